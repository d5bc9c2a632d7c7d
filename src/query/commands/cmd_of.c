// SPDX-License-Identifier: MIT
/* cmd_of.c - "store 1 of EXPRESSION where ...": what is stored to, as a C expression
 *
 * The expression is resolved once, in the frame where the search starts, to the bytes it denotes
 * there; the question goes on as a condition on addresses, which the summaries of windows
 * understand: "where touches[0x4040a8,8] and (...)".  In the condition, oldval and newval are the
 * variable before and after the event, with its type: "(int)mem[0x4040a8,4]"; old.MEMBER and
 * new.MEMBER are parts of it. */
#include "query/commands/commands.h"
#include "query/text/lexer.h"
#include "query/condition/question.h"
#include "query/session/source_place.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct of_text {
    size_t at;         /* of the word "of" */
    size_t from, to;   /* of the expression */
    const char *where; /* the condition behind it; NULL: none */
};

static bool find_of(const struct tbd_command_run *run, struct of_text *out)
{
    const char *text = run->text;
    const char *of = strstr(text + run->arguments, " of ");
    const char *where = strstr(text + run->arguments, " where ");

    if (of == NULL || (where != NULL && where < of))
        return false;
    out->at = (size_t)(of - text) + 1;
    out->from = out->at + strlen("of ");
    out->to = where == NULL ? strlen(text) : (size_t)(where - text);
    out->where = where == NULL ? NULL : where + strlen(" where ");
    return true;
}

/* Where a goto starts: its first word; otherwise the current position. */
static struct tbd_position start_of(const struct tbd_command_run *run)
{
    const char *text = run->text + run->arguments + strspn(run->text + run->arguments, " ");
    struct tbd_position position = tbd_session_current(run->session);
    char *word = strndup(text, strcspn(text, " "));
    struct tbd_query_error error;
    struct tbd_question question;

    if (word == NULL)
        return position;
    if (tbd_question_parse(word, 0, &question, &error) == TBD_OK) {
        if (question.from == TBD_FROM_FIRST)
            position = tbd_session_first(run->session);
        else if (question.from == TBD_FROM_LAST)
            position = tbd_session_last(run->session);
        else if (question.from == TBD_FROM_POSITION)
            position = question.position;
    }
    tbd_question_free(&question);
    free(word);
    return position;
}

static enum tbd_exit refuse(const struct tbd_command_run *run, const struct of_text *of,
                            const char *why)
{
    struct tbd_query_error error = { .status = TBD_TYPE,
                                     .at = of->from,
                                     .length = of->to - of->from };

    snprintf(error.message, sizeof(error.message), "it has no place in memory there: %s", why);
    return tbd_command_wrong(run, &error);
}

/* ---- the condition ---- */

/* What stands for a scalar of the program's before or after the event; false if it is none. */
static bool write_scalar(FILE *out, const struct tbd_data *data, bool is_after)
{
    static const char *const casts[] = { [1] = "(signed char)", [2] = "(short)", [4] = "(int)" };
    struct tbd_type_view view = tbd_type_look(&data->type);
    bool real = view.kind == TBD_TYPE_FLOAT && (view.bytes == 4 || view.bytes == 8);
    bool whole = view.kind == TBD_TYPE_INTEGER || view.kind == TBD_TYPE_ENUM ||
                 view.kind == TBD_TYPE_POINTER;
    const char *cast = "";
    char pointer[256];

    if (!data->is_known || !data->in_memory || data->bits != 0 || (!real && !whole) ||
        view.bytes < 1 || view.bytes > 8)
        return false;
    if (whole && view.is_signed)
        cast = view.bytes == 8   ? "(long)"
               : view.bytes == 4 ? casts[4]
               : view.bytes == 2 ? casts[2]
               : view.bytes == 1 ? casts[1]
                                 : "";
    if (view.kind == TBD_TYPE_POINTER) /* in parentheses: "->" may follow */
        fprintf(out, "((%s)", tbd_type_text(&data->type, pointer, sizeof(pointer)));
    fprintf(out, "%s%s%s[0x%" PRIx64 ",%" PRIu64 "]%s", cast,
            real       ? "real"
            : is_after ? ""
                       : "mem",
            real       ? (is_after ? "_after" : "")
            : is_after ? "after"
                       : "",
            data->address, view.bytes, view.kind == TBD_TYPE_POINTER ? ")" : "");
    return true;
}

struct rewrite {
    const struct tbd_c_scope *scope;
    const struct tbd_command_run *run;
    const struct of_text *of;
    const struct tbd_data *object;
    struct tbd_query_error error;
};

/* old.x or new.a.b at the token. */
static bool write_member(struct rewrite *r, FILE *out, const struct tbd_token *token)
{
    struct tbd_data data;
    char *text;
    bool good;

    if (asprintf(&text, "(%.*s)%.*s", (int)(r->of->to - r->of->from), r->run->text + r->of->from,
                 (int)token->length - 3, token->text + 3) < 0)
        return false;
    good = tbd_c_evaluate(r->scope, text, 0, strlen(text), &data, &r->error) == TBD_OK;
    free(text);
    if (good && write_scalar(out, &data, token->text[0] == 'n'))
        return true;
    if (good)
        snprintf(r->error.message, sizeof(r->error.message), "this member has no single value");
    r->error.status = TBD_TYPE;
    r->error.hint[0] = '\0';
    r->error.at = token->at;
    r->error.length = token->length;
    return false;
}

static bool starts_with(const struct tbd_token *token, const char *prefix)
{
    return token->kind == TBD_TOKEN_WORD && token->length > strlen(prefix) &&
           strncmp(token->text, prefix, strlen(prefix)) == 0;
}

/* A token that stands for something of the object; false: copy it as it is, or r->error. */
static bool write_token(struct rewrite *r, FILE *out, const struct tbd_token *token)
{
    if (tbd_token_is_word(token, "oldval") || tbd_token_is_word(token, "newval"))
        return write_scalar(out, r->object, token->text[0] == 'n');
    if (starts_with(token, "old.") || starts_with(token, "new."))
        return write_member(r, out, token);
    return false;
}

/* The condition with the object's names replaced; the caller's.  What cannot be cut into words is
 * copied: parsing it will say what is wrong. */
static char *rewrite_where(struct rewrite *r, size_t from)
{
    const char *text = r->run->text;
    struct tbd_query_error unused = { 0 };
    struct tbd_lexer lexer;
    char *result = NULL;
    size_t bytes = 0, copied = from;
    FILE *out = open_memstream(&result, &bytes);

    if (out == NULL)
        return NULL;
    tbd_lexer_start(&lexer, text, from, &unused);
    while (lexer.token.kind != TBD_TOKEN_END && r->error.status == TBD_OK) {
        struct tbd_token token = lexer.token;

        fwrite(text + copied, 1, token.at - copied, out);
        copied = token.at;
        if (write_token(r, out, &token))
            copied = token.at + token.length;
        tbd_lexer_next(&lexer);
    }
    fputs(text + copied, out);
    fclose(out);
    return result;
}

static enum tbd_exit make_text(struct tbd_command_run *run, const struct of_text *of,
                               const struct tbd_c_scope *scope, const struct tbd_data *data,
                               char **out)
{
    struct rewrite rewrite = { .scope = scope, .run = run, .of = of, .object = data };
    uint64_t bytes = data->bits != 0 ? (data->bit_offset + data->bits + 7) / 8
                                     : tbd_type_look(&data->type).bytes;
    char *where = NULL;
    int length;

    if (!data->is_known)
        return refuse(run, of, data->why);
    if (!data->in_memory)
        return refuse(run, of, "it is in a register, or a result");
    if (bytes == 0)
        return refuse(run, of, "its size is not known");
    if (of->where != NULL) {
        where = rewrite_where(&rewrite, (size_t)(of->where - run->text));
        if (rewrite.error.status != TBD_OK) {
            free(where);
            return tbd_command_wrong(run, &rewrite.error);
        }
    }
    length = asprintf(out, "%.*swhere touches[0x%" PRIx64 ",%" PRIu64 "]%s%s%s", (int)of->at,
                      run->text, data->address, bytes, where == NULL ? "" : " and (",
                      where == NULL ? "" : where, where == NULL ? "" : ")");
    free(where);
    if (length >= 0)
        return TBD_EXIT_FOUND;
    *out = NULL;
    return tbd_command_fail(run, TBD_NOMEM);
}

/* Is the condition wrong as it was written? */
static bool is_wrong(const struct tbd_command_run *run, const struct of_text *of,
                     struct tbd_query_error *error)
{
    struct tbd_expr *expr = NULL;
    enum tbd_status status = TBD_OK;

    if (of->where != NULL)
        status = tbd_expr_parse(run->text, (size_t)(of->where - run->text), TBD_EVENT_STORE, &expr,
                                error);
    tbd_expr_free(expr);
    return status == TBD_SYNTAX;
}

enum tbd_exit tbd_command_resolve_of(struct tbd_command_run *run, char **out)
{
    struct tbd_source_place place;
    struct tbd_c_scope scope;
    struct tbd_query_error error;
    struct tbd_data data;
    struct of_text of;
    enum tbd_exit result;

    *out = NULL;
    if (!find_of(run, &of))
        return TBD_EXIT_FOUND;
    if (is_wrong(run, &of, &error))
        return tbd_command_wrong(run, &error);
    result = tbd_command_value_of(run, start_of(run), of.from, of.to, &place, &data);
    if (result != TBD_EXIT_FOUND)
        return result;
    scope = tbd_source_scope(&place);
    result = make_text(run, &of, &scope, &data, out);
    tbd_source_place_close(&place);
    return result;
}
