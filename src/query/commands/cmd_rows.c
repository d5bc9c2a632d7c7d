// SPDX-License-Identifier: MIT
/* cmd_rows.c - stores, lines, syscalls, signals: events of a whole run as rows
 *
 * Each is a question as `all` takes it. */
#include "query/output/output.h"
#include "query/commands/rows.h"
#include "query/search/search.h"

#include <stdlib.h>
#include <string.h>

static bool add_event(void *context, const struct tbd_event *event)
{
    struct tbd_rows *rows = context;

    tbd_rows_add(rows, tbd_rows_event(rows->run->session, event));
    return ferror(rows->run->out) == 0;
}

/* Takes the question. */
static enum tbd_exit list(struct tbd_command_run *run, struct tbd_question *question,
                          const char *const *columns)
{
    struct tbd_rows rows;
    enum tbd_exit result;

    tbd_rows_start(&rows, run, columns);
    result = tbd_command_each(run, question, add_event, &rows);
    if (result > TBD_EXIT_NOT_FOUND) {
        tbd_rows_drop(&rows);
        return result;
    }
    return tbd_rows_end(&rows);
}

/* Adds "[of EXPRESSION] [where CONTEXT]", from `from` to the end of the text, to the question; frees
 * the question if they are wrong. */
static enum tbd_exit take_tail(struct tbd_command_run *run, size_t from,
                               struct tbd_question *question)
{
    struct tbd_query_error error;
    struct tbd_question_words words;
    enum tbd_exit result;

    if (tbd_question_read_tail(run->text, from, strlen(run->text), &words, &error) != TBD_OK)
        result = tbd_command_wrong(run, &error);
    else
        result = tbd_command_take_words(run, &words, question);
    if (result != TBD_EXIT_FOUND)
        tbd_question_free(question);
    return result;
}

/* All events of a type that the user's arguments allow. */
static enum tbd_exit list_type(struct tbd_command_run *run, enum tbd_event_type type,
                               const char *const *columns)
{
    struct tbd_question question = tbd_question_all(type);
    enum tbd_exit result = take_tail(run, run->arguments, &question);

    return result == TBD_EXIT_FOUND ? list(run, &question, columns) : result;
}

enum tbd_exit tbd_command_stores(struct tbd_command_run *run)
{
    static const char *const columns[] = { "position", "addr",   "size",     "oldval",
                                           "newval",   "source", "function", NULL };

    const char *arguments = run->text + run->arguments;
    struct tbd_command_run own = *run;
    enum tbd_exit result;
    char *text;

    if (run->argc == 0)
        return tbd_command_usage(run, "stores takes an expression, or a condition");
    if (strncmp(arguments, "of ", 3) == 0 || strncmp(arguments, "where ", 6) == 0)
        return list_type(run, TBD_EVENT_STORE, columns);
    if (asprintf(&text, "stores of %s", arguments) < 0)
        return tbd_command_no_memory();
    own.text = text;
    own.arguments = strlen("stores ");
    result = list_type(&own, TBD_EVENT_STORE, columns);
    free(text);
    return result;
}

enum tbd_exit tbd_command_syscalls(struct tbd_command_run *run)
{
    static const char *const columns[] = {
        "position", "thread", "call", "source", "function", NULL
    };

    return list_type(run, TBD_EVENT_SYSCALL, columns);
}

enum tbd_exit tbd_command_signals(struct tbd_command_run *run)
{
    static const char *const columns[] = { "position", "thread", "signal",   "reason", "addr",
                                           "effect",   "from",   "function", NULL };

    return list_type(run, TBD_EVENT_SIGNAL, columns);
}

/* ---- events in a place that has a name ---- */

/* The length of a name without quotes: blanks in brackets belong to it, as in "(anonymous namespace)::f". */
static size_t name_length(const char *text)
{
    size_t first = strcspn(text, " "), depth = 0;

    for (size_t i = 0; text[i] != '\0'; i++) {
        if (text[i] == ' ' && depth == 0)
            return i;
        depth += strchr("(<[", text[i]) != NULL;
        depth -= strchr(")>]", text[i]) != NULL && depth != 0;
        if (strncmp(text + i, "operator", strlen("operator")) == 0)
            return first;
    }
    return depth == 0 ? strlen(text) : first;
}

/* Finds the first argument, which may be quoted; returns where the next one begins. */
static size_t first_name(const struct tbd_command_run *run, size_t *at, size_t *length)
{
    const char *text = run->text + run->arguments;
    bool is_quoted = text[0] == '"' && strchr(text + 1, '"') != NULL;
    size_t whole;

    *at = run->arguments + is_quoted;
    *length = is_quoted ? strcspn(run->text + *at, "\"") : name_length(text);
    whole = *length + 2u * is_quoted;
    return run->arguments + whole + strspn(text + whole, " ");
}

enum tbd_exit tbd_rows_read_named(struct tbd_command_run *run, enum tbd_event_type type,
                                  enum tbd_name_kind kind, const char *usage,
                                  struct tbd_question *out)
{
    size_t at = 0, length = 0, rest = first_name(run, &at, &length);
    struct tbd_expr_name name = { .kind = kind, .at = (uint32_t)at, .length = (uint32_t)length };

    if (length == 0 || (run->text[rest] != '\0' && strncmp(run->text + rest, "where ", 6) != 0))
        return tbd_command_usage(run, usage);
    name.text = strndup(run->text + at, length);
    if (name.text == NULL)
        return tbd_command_fail(run, TBD_NOMEM);
    *out = tbd_question_all(type);
    tbd_question_where(out, tbd_expr_is_in(&name));
    free(name.text);
    return take_tail(run, rest, out);
}

/* lines FILE[:N] [where ...] */
enum tbd_exit tbd_command_lines(struct tbd_command_run *run)
{
    static const char *const columns[] = { "position", "thread", "source", "function", NULL };
    struct tbd_question question;
    enum tbd_exit result =
        tbd_rows_read_named(run, TBD_EVENT_LINE, TBD_NAME_SOURCE,
                            "lines takes FILE or FILE:LINE, and perhaps a condition", &question);

    return result == TBD_EXIT_FOUND ? list(run, &question, columns) : result;
}
