// SPDX-License-Identifier: MIT
/* question.c - see question.h; the grammar around the context language
 *
 *   question := from [ next ]                          from  := current | first | last | TIME [ + K ]
 *   next     := (forward | backward) TYPE [ COUNT ] tail        all := TYPE tail
 *   tail     := [ "of" expression ] [ "where" condition ] */
#include "query/condition/question.h"

#include "query/text/lexer.h"

#include <stdlib.h>
#include <string.h>

/* ---- questions made by commands ---- */

static struct tbd_question make(enum tbd_from from, enum tbd_event_type type)
{
    return (struct tbd_question){ .from = from, .is_search = true, .type = type, .count = 1 };
}

struct tbd_question tbd_question_first(enum tbd_event_type type)
{
    return make(TBD_FROM_FIRST, type);
}

struct tbd_question tbd_question_last(enum tbd_event_type type)
{
    struct tbd_question question = make(TBD_FROM_LAST, type);

    question.backward = true;
    return question;
}

struct tbd_question tbd_question_after(struct tbd_position position, enum tbd_event_type type)
{
    struct tbd_question question = make(TBD_FROM_POSITION, type);

    question.position = position;
    return question;
}

struct tbd_question tbd_question_before(struct tbd_position position, enum tbd_event_type type)
{
    struct tbd_question question = tbd_question_after(position, type);

    question.backward = true;
    return question;
}

struct tbd_question tbd_question_all(enum tbd_event_type type)
{
    struct tbd_question question = make(TBD_FROM_FIRST, type);

    question.count = TBD_QUESTION_ALL;
    return question;
}

void tbd_question_where(struct tbd_question *question, struct tbd_expr *condition)
{
    if (question->where != NULL)
        condition = tbd_expr_join(TBD_EXPR_AND, question->where, condition);
    question->is_lost |= condition == NULL;
    question->where = condition;
}

void tbd_question_where_field(struct tbd_question *question, enum tbd_event_field field,
                              enum tbd_expr_op op, uint64_t value)
{
    tbd_question_where(question, tbd_expr_compare(question->type, field, op, value));
}

void tbd_question_where_span(struct tbd_question *question)
{
    if (question->since != 0)
        tbd_question_where_field(question, TBD_FIELD_TIME, TBD_EXPR_GE, question->since);
    if (question->has_until)
        tbd_question_where_field(question, TBD_FIELD_TIME, TBD_EXPR_LT, question->until);
    question->since = 0;
    question->has_until = false;
}

/* ---- questions of users ---- */

/* A question that is being read. */
struct reading {
    struct tbd_lexer lexer;
    struct tbd_question *out;
    struct tbd_question_words *words;
    size_t to;
};

static enum tbd_status parse_offset(struct tbd_lexer *lexer, struct tbd_position *position)
{
    if (!tbd_token_is_sign(&lexer->token, '+'))
        return TBD_OK;
    tbd_lexer_next(lexer);
    if (lexer->token.kind != TBD_TOKEN_NUMBER || lexer->token.number > UINT32_MAX)
        return tbd_lexer_fail(lexer, TBD_SYNTAX, "a position is TIME or TIME+K",
                              "expected a number of instructions after '+'");
    position->offset = (uint32_t)lexer->token.number;
    tbd_lexer_next(lexer);
    return TBD_OK;
}

static enum tbd_status parse_from(struct reading *r)
{
    struct tbd_lexer *lexer = &r->lexer;
    struct tbd_question *out = r->out;
    const struct tbd_token *token = &lexer->token;

    if (token->kind == TBD_TOKEN_NUMBER) {
        out->from = TBD_FROM_POSITION;
        out->position.time = token->number;
        tbd_lexer_next(lexer);
        return parse_offset(lexer, &out->position);
    }
    if (tbd_token_is_word(token, "first"))
        out->from = TBD_FROM_FIRST;
    else if (tbd_token_is_word(token, "last"))
        out->from = TBD_FROM_LAST;
    else if (tbd_token_is_word(token, "current"))
        out->from = TBD_FROM_CURRENT;
    else if (token->kind != TBD_TOKEN_END && lexer->source[token->at] == '@')
        return tbd_lexer_fail(lexer, TBD_SYNTAX, "`tbdq marks` lists them",
                              "no position has this name");
    else
        return tbd_lexer_fail(lexer, TBD_SYNTAX,
                              "current, first, last, or a position TIME[+K]; to a function: first "
                              "forward func_enter 1 where func==NAME",
                              "expected where to start from");
    tbd_lexer_next(lexer);
    return TBD_OK;
}

static enum tbd_status parse_direction(struct reading *r)
{
    struct tbd_lexer *lexer = &r->lexer;
    struct tbd_question *out = r->out;
    out->backward = tbd_token_is_word(&lexer->token, "backward");
    if (!out->backward && !tbd_token_is_word(&lexer->token, "forward"))
        return tbd_lexer_fail(lexer, TBD_SYNTAX, "forward or backward", "expected a direction");
    tbd_lexer_next(lexer);
    return TBD_OK;
}

static enum tbd_status parse_type(struct reading *r)
{
    struct tbd_lexer *lexer = &r->lexer;
    struct tbd_question *out = r->out;
    out->type = TBD_EVENT_POSITION;
    if (lexer->token.kind == TBD_TOKEN_WORD)
        out->type = tbd_event_type_find(lexer->token.text, lexer->token.length);
    if (out->type == TBD_EVENT_POSITION)
        return tbd_lexer_fail(
            lexer, TBD_SYNTAX,
            "func_enter, func_exit, block_entry, store, load, syscall, thread_switch, "
            "line, signal or state",
            "expected a type of event");
    tbd_lexer_next(lexer);
    return TBD_OK;
}

/* Does what follows a type and a count begin here? */
static bool is_tail(const struct tbd_token *token)
{
    return token->kind == TBD_TOKEN_END || tbd_token_is_word(token, "where") ||
           tbd_token_is_word(token, "of");
}

/* Reads the count; without one it is 1. */
static enum tbd_status parse_count(struct reading *r)
{
    struct tbd_lexer *lexer = &r->lexer;
    struct tbd_question *out = r->out;
    out->count = 1;
    if (is_tail(&lexer->token))
        return TBD_OK;
    if (lexer->token.kind != TBD_TOKEN_NUMBER || lexer->token.number == 0)
        return tbd_lexer_fail(lexer, TBD_SYNTAX, "1 is the next one, 2 the one after it, ...",
                              "expected a count of at least 1");
    out->count = lexer->token.number;
    tbd_lexer_next(lexer);
    return TBD_OK;
}

static enum tbd_status parse_where(struct reading *r)
{
    struct tbd_lexer *lexer = &r->lexer;

    if (lexer->token.kind == TBD_TOKEN_END)
        return TBD_OK;
    if (!tbd_token_is_word(&lexer->token, "where"))
        return tbd_lexer_fail(lexer, TBD_SYNTAX, "a condition begins with 'where'",
                              "'%.*s' is not expected here", (int)lexer->token.length,
                              lexer->source + lexer->token.at);
    r->words->where = lexer->at;
    r->words->end = r->to;
    return TBD_OK;
}

/* The expression is one of C: it goes as far as the word "where", or to the end. */
static enum tbd_status parse_tail(struct reading *r)
{
    struct tbd_lexer *lexer = &r->lexer;
    const char *where;

    if (!tbd_token_is_word(&lexer->token, "of"))
        return parse_where(r);
    r->words->of = lexer->token.at;
    where = strstr(lexer->source + lexer->at, " where ");
    r->words->of_end = where == NULL ? r->to : (size_t)(where - lexer->source);
    r->words->object = lexer->at + strspn(lexer->source + lexer->at, " \t\n");
    if (r->words->object >= r->words->of_end)
        return tbd_lexer_fail(lexer, TBD_SYNTAX, "for example of list->head",
                              "expected an expression after 'of'");
    if (where != NULL) {
        r->words->where = r->words->of_end + strlen(" where ");
        r->words->end = r->to;
    }
    return TBD_OK;
}

static enum tbd_status parse_next(struct reading *r)
{
    static enum tbd_status (*const steps[])(struct reading *) = { parse_direction, parse_type,
                                                                  parse_count, parse_tail };
    enum tbd_status status = TBD_OK;

    r->out->is_search = true;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && status == TBD_OK; i++)
        status = steps[i](r);
    return status;
}

static enum tbd_status parse_question(struct reading *r)
{
    enum tbd_status status = parse_from(r);

    if (status != TBD_OK || r->lexer.token.kind == TBD_TOKEN_END)
        return status;
    return parse_next(r);
}

static enum tbd_status parse_all(struct reading *r)
{
    enum tbd_status status = parse_type(r);
    enum tbd_event_type type = r->out->type;

    *r->out = tbd_question_all(type);
    return status == TBD_OK ? parse_tail(r) : status;
}

/* The lexer's text is cut where the question ends, but begins where it began: places stay the
 * same. */
static enum tbd_status read_as(enum tbd_status (*parse)(struct reading *), struct reading *r,
                               const char *text, size_t from, struct tbd_query_error *error)
{
    char *own = strndup(text, r->to);
    enum tbd_status status;

    *r->words = (struct tbd_question_words){ .text = text };
    if (own == NULL) {
        *error = (struct tbd_query_error){ .status = TBD_NOMEM, .message = "out of memory" };
        return TBD_NOMEM;
    }
    tbd_lexer_start(&r->lexer, own, from, error);
    status = parse(r);
    free(own);
    return status;
}

enum tbd_status tbd_question_read(const char *text, size_t from, size_t to,
                                  struct tbd_question *out, struct tbd_question_words *words,
                                  struct tbd_query_error *error)
{
    struct reading r = { .out = out, .words = words, .to = to };

    *out = (struct tbd_question){ .from = TBD_FROM_CURRENT };
    return read_as(parse_question, &r, text, from, error);
}

enum tbd_status tbd_question_read_next(const char *text, size_t from, size_t to,
                                       struct tbd_question *out, struct tbd_question_words *words,
                                       struct tbd_query_error *error)
{
    struct reading r = { .out = out, .words = words, .to = to };

    *out = (struct tbd_question){ .from = TBD_FROM_CURRENT };
    return read_as(parse_next, &r, text, from, error);
}

enum tbd_status tbd_question_read_all(const char *text, size_t from, size_t to,
                                      struct tbd_question *out, struct tbd_question_words *words,
                                      struct tbd_query_error *error)
{
    struct reading r = { .out = out, .words = words, .to = to };

    *out = (struct tbd_question){ .from = TBD_FROM_FIRST };
    return read_as(parse_all, &r, text, from, error);
}

enum tbd_status tbd_question_read_tail(const char *text, size_t from, size_t to,
                                       struct tbd_question_words *words,
                                       struct tbd_query_error *error)
{
    struct reading r = { .words = words, .to = to };

    return read_as(parse_tail, &r, text, from, error);
}

enum tbd_status tbd_question_take_where(struct tbd_question *question,
                                        const struct tbd_question_words *words,
                                        const struct tbd_expr_words *own,
                                        struct tbd_query_error *error)
{
    struct tbd_expr_source source = { .text = words->text,
                                      .from = words->where,
                                      .to = words->end,
                                      .type = question->type,
                                      .words = own };
    struct tbd_expr *where;
    enum tbd_status status;

    if (words->end == 0)
        return TBD_OK;
    status = tbd_expr_parse_source(&source, &where, error);
    if (status == TBD_OK)
        tbd_question_where(question, where);
    return status;
}

/* Only `tbdq` knows the program's variables. */
static enum tbd_status finish(struct tbd_question *question, const struct tbd_question_words *words,
                              struct tbd_query_error *error)
{
    if (words->of_end == 0)
        return tbd_question_take_where(question, words, NULL, error);
    *error = (struct tbd_query_error){
        .status = TBD_SYNTAX, .at = words->of, .length = 2, .message = "'of' is not expected here"
    };
    return TBD_SYNTAX;
}

enum tbd_status tbd_question_parse(const char *text, size_t from, struct tbd_question *out,
                                   struct tbd_query_error *error)
{
    struct tbd_question_words words;
    enum tbd_status status = tbd_question_read(text, from, strlen(text), out, &words, error);

    return status == TBD_OK ? finish(out, &words, error) : status;
}

enum tbd_status tbd_question_parse_all(const char *text, size_t from, struct tbd_question *out,
                                       struct tbd_query_error *error)
{
    struct tbd_question_words words;
    enum tbd_status status = tbd_question_read_all(text, from, strlen(text), out, &words, error);

    return status == TBD_OK ? finish(out, &words, error) : status;
}

/* ---- all questions ---- */

bool tbd_question_is_states(const struct tbd_question *question)
{
    return question->type == TBD_EVENT_STATE && question->where == NULL && question->since == 0 &&
           !question->has_until;
}

enum tbd_status tbd_question_copy(const struct tbd_question *question, struct tbd_question *out)
{
    *out = *question;
    out->where = NULL;
    if (question->where != NULL)
        tbd_question_where(out, tbd_expr_copy(question->where));
    return out->is_lost ? TBD_NOMEM : TBD_OK;
}

void tbd_question_free(struct tbd_question *question)
{
    tbd_expr_free(question->where);
    question->where = NULL;
}
