// SPDX-License-Identifier: MIT
/* question.c - the grammar around the context language */
#include "query/condition/question.h"

#include "query/text/lexer.h"

#include <string.h>

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

static enum tbd_status parse_from(struct tbd_lexer *lexer, struct tbd_question *out)
{
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

static enum tbd_status parse_direction(struct tbd_lexer *lexer, struct tbd_question *out)
{
    out->backward = tbd_token_is_word(&lexer->token, "backward");
    if (!out->backward && !tbd_token_is_word(&lexer->token, "forward"))
        return tbd_lexer_fail(lexer, TBD_SYNTAX, "forward or backward", "expected a direction");
    tbd_lexer_next(lexer);
    return TBD_OK;
}

static enum tbd_status parse_type(struct tbd_lexer *lexer, struct tbd_question *out)
{
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

/* The count may be left out before "where" and at the end: 1. */
static enum tbd_status parse_count(struct tbd_lexer *lexer, struct tbd_question *out)
{
    out->count = 1;
    if (lexer->token.kind == TBD_TOKEN_END || tbd_token_is_word(&lexer->token, "where"))
        return TBD_OK;
    if (lexer->token.kind != TBD_TOKEN_NUMBER || lexer->token.number == 0)
        return tbd_lexer_fail(lexer, TBD_SYNTAX, "1 is the next one, 2 the one after it, ...",
                              "expected a count of at least 1");
    out->count = lexer->token.number;
    tbd_lexer_next(lexer);
    return TBD_OK;
}

static enum tbd_status parse_where(struct tbd_lexer *lexer, struct tbd_question *out)
{
    out->is_states = out->type == TBD_EVENT_STATE && lexer->token.kind == TBD_TOKEN_END;
    if (lexer->token.kind == TBD_TOKEN_END)
        return TBD_OK;
    if (!tbd_token_is_word(&lexer->token, "where"))
        return tbd_lexer_fail(lexer, TBD_SYNTAX, "a condition begins with 'where'",
                              "'%.*s' is not expected here", (int)lexer->token.length,
                              lexer->source + lexer->token.at);
    out->where_at = lexer->at;
    out->text = lexer->source;
    return tbd_expr_parse(out->text, out->where_at, out->type, &out->where, lexer->error);
}

enum tbd_status tbd_question_parse(const char *text, size_t from, struct tbd_question *out,
                                   struct tbd_query_error *error)
{
    static enum tbd_status (*const steps[])(struct tbd_lexer *,
                                            struct tbd_question *) = { parse_direction, parse_type,
                                                                       parse_count, parse_where };
    struct tbd_lexer lexer;
    enum tbd_status status;

    memset(out, 0, sizeof(*out));
    tbd_lexer_start(&lexer, text, from, error);
    status = parse_from(&lexer, out);
    if (status != TBD_OK || lexer.token.kind == TBD_TOKEN_END)
        return status;
    out->is_search = true;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && status == TBD_OK; i++)
        status = steps[i](&lexer, out);
    return status;
}

enum tbd_status tbd_question_parse_all(const char *text, size_t from, struct tbd_question *out,
                                       struct tbd_query_error *error)
{
    struct tbd_lexer lexer;
    enum tbd_status status;

    memset(out, 0, sizeof(*out));
    tbd_lexer_start(&lexer, text, from, error);
    out->from = TBD_FROM_FIRST;
    out->is_search = true;
    out->count = UINT64_MAX;
    status = parse_type(&lexer, out);
    return status == TBD_OK ? parse_where(&lexer, out) : status;
}

enum tbd_status tbd_question_copy(const struct tbd_question *question, struct tbd_question *out)
{
    struct tbd_query_error error;

    *out = *question;
    out->where = NULL;
    if (question->where == NULL)
        return TBD_OK;
    return tbd_expr_parse(question->text, question->where_at, question->type, &out->where, &error);
}

void tbd_question_free(struct tbd_question *question)
{
    tbd_expr_free(question->where);
    question->where = NULL;
}
