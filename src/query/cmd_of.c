// SPDX-License-Identifier: MIT
/* cmd_of.c - "store 1 of EXPRESSION where ...": what is stored to, as a C expression
 *
 * The expression is resolved once, in the frame where the search starts, to the bytes it denotes
 * there; the question goes on as a condition on addresses, which the summaries of windows
 * understand: "where touches[0x4040a8,8] and (...)". */
#include "query/commands.h"
#include "query/question.h"
#include "query/source_place.h"

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
    struct tbd_query_error error;
    struct tbd_question question;
    struct tbd_position position = tbd_session_current(run->session);

    if (run->argc == 0)
        return position;
    if (tbd_question_parse(run->argv[0], 0, &question, &error) == TBD_OK) {
        if (question.from == TBD_FROM_FIRST)
            position = tbd_session_first(run->session);
        else if (question.from == TBD_FROM_LAST)
            position = tbd_session_last(run->session);
        else if (question.from == TBD_FROM_POSITION)
            position = question.position;
    }
    tbd_question_free(&question);
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

static enum tbd_exit make_text(struct tbd_command_run *run, const struct of_text *of,
                               const struct tbd_data *data, char **out)
{
    uint64_t bytes = data->bits != 0 ? (data->bit_offset + data->bits + 7) / 8
                                     : tbd_type_look(&data->type).bytes;
    int length;

    if (!data->is_known)
        return refuse(run, of, data->why);
    if (!data->in_memory)
        return refuse(run, of, "it is in a register, or a result");
    if (bytes == 0)
        return refuse(run, of, "its size is not known");
    length = asprintf(out, "%.*swhere touches[0x%" PRIx64 ",%" PRIu64 "]%s%s%s", (int)of->at,
                      run->text, data->address, bytes, of->where == NULL ? "" : " and (",
                      of->where == NULL ? "" : of->where, of->where == NULL ? "" : ")");
    if (length >= 0)
        return TBD_EXIT_FOUND;
    *out = NULL;
    return tbd_command_fail(run, TBD_NOMEM);
}

enum tbd_exit tbd_command_resolve_of(struct tbd_command_run *run, char **out)
{
    struct tbd_source_place place;
    struct tbd_c_scope scope;
    struct tbd_query_error error;
    struct tbd_data data;
    struct of_text of;
    enum tbd_exit result;
    enum tbd_status status;

    *out = NULL;
    if (!find_of(run, &of))
        return TBD_EXIT_FOUND;
    status = tbd_source_place_open(run->session, start_of(run), SIZE_MAX, &place);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    scope = tbd_source_scope(&place);
    if (tbd_c_evaluate(&scope, run->text, of.from, of.to, &data, &error) != TBD_OK)
        result = tbd_command_wrong(run, &error);
    else
        result = make_text(run, &of, &data, out);
    tbd_source_place_close(&place);
    return result;
}
