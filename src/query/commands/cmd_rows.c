// SPDX-License-Identifier: MIT
/* cmd_rows.c - stores, lines, syscalls, signals, count: events of a whole run as rows
 *
 * Each is a question as `all` takes it. */
#include "query/output/output.h"
#include "query/commands/rows.h"
#include "query/search/search.h"
#include "query/session/signal_info.h"
#include "query/session/source/source.h"

#include "hooks/table/syscalls.h"

#include <inttypes.h>
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

/* ---- count ---- */

#define COUNTED_PLACES 256u

/* An instruction whose function or line was looked up. */
struct counted_place {
    uint64_t pc;
    uint32_t window;
    char *text; /* owned; NULL: none yet */
};

struct row_counting {
    const struct tbd_command_run *run;
    const char *by;                              /* "func", "outer", "line", "thread", "value" */
    json_t *counts;                              /* by text */
    struct counted_place places[COUNTED_PLACES]; /* by pc: the same few have most events */
};

static uint64_t value_of(const struct tbd_event *event)
{
    switch (event->type) {
    case TBD_EVENT_STORE:
    case TBD_EVENT_LOAD: return event->value;
    case TBD_EVENT_FUNC_ENTER: return event->args[0];
    case TBD_EVENT_FUNC_EXIT: return event->retval;
    case TBD_EVENT_SYSCALL:
    case TBD_EVENT_SIGNAL: return event->number;
    default: return event->pc;
    }
}

/* A number, or the name of a system call or signal. */
static void value_text(const struct tbd_event *event, char *out, size_t bytes)
{
    const char *name = event->type == TBD_EVENT_SYSCALL ? tbd_syscall_name(event->number) : NULL;

    if (event->type == TBD_EVENT_SIGNAL)
        (void)tbd_signal_name(event->number, out, bytes);
    else if (name != NULL)
        snprintf(out, bytes, "%s", name);
    else
        snprintf(out, bytes, "0x%" PRIx64, value_of(event));
}

/* The function of an event: of copies of inlined functions around it the innermost, but for "outer".
 * An entry or exit is one of a function with code of its own, even if this begins with a copy. */
static void function_of(const struct row_counting *counting, uint32_t window,
                        const struct tbd_event *event, char *out, size_t bytes)
{
    struct tbd_session *session = counting->run->session;
    struct tbd_source_frame innermost = { .name = NULL };
    struct tbd_symbol symbol;

    if (!tbd_symbols_at(session->symbols, window, event->pc, &symbol))
        return;
    if (strcmp(counting->by, "outer") != 0 && event->type != TBD_EVENT_FUNC_ENTER &&
        event->type != TBD_EVENT_FUNC_EXIT)
        (void)tbd_source_frames(session, window, event->pc, &innermost, 1);
    if (innermost.name != NULL)
        symbol.name = innermost.name;
    snprintf(out, bytes, "%s!%s", symbol.module, symbol.name == NULL ? "?" : symbol.name);
}

static bool is_by_function(const struct row_counting *counting)
{
    return strcmp(counting->by, "func") == 0 || strcmp(counting->by, "outer") == 0;
}

/* The function or line of an event; "?" if it is not known. */
static void place_of(const struct row_counting *counting, uint32_t window,
                     const struct tbd_event *event, char *out, size_t bytes)
{
    struct tbd_source_line line;

    snprintf(out, bytes, "?");
    if (strcmp(counting->by, "line") == 0 &&
        tbd_source_line_at(counting->run->session, window, event->pc, &line))
        snprintf(out, bytes, "%s:%" PRIu32, line.file, line.line);
    else
        function_of(counting, window, event, out, bytes);
}

/* The same, looked up only if it is not kept. */
static void kept_place_of(struct row_counting *counting, const struct tbd_event *event, char *out,
                          size_t bytes)
{
    struct counted_place *kept = &counting->places[event->pc % COUNTED_PLACES];
    uint32_t window = tbd_trace_window_of(counting->run->session->trace, event->position.time);

    if (kept->text == NULL || kept->pc != event->pc || kept->window != window) {
        free(kept->text);
        place_of(counting, window, event, out, bytes);
        *kept = (struct counted_place){ event->pc, window, strdup(out) };
    } else {
        snprintf(out, bytes, "%s", kept->text);
    }
}

static void group_of(struct row_counting *counting, const struct tbd_event *event, char *out,
                     size_t bytes)
{
    if (strcmp(counting->by, "thread") == 0)
        snprintf(out, bytes, "%" PRIu32, event->thread);
    else if (strcmp(counting->by, "value") == 0)
        value_text(event, out, bytes);
    else
        kept_place_of(counting, event, out, bytes);
}

/* An import stub is no function of its own: what it leads to is entered next. */
static bool is_on_the_way(const struct row_counting *counting, const struct tbd_event *event)
{
    struct tbd_session *session = counting->run->session;
    uint32_t window = tbd_trace_window_of(session->trace, event->position.time);
    struct tbd_symbol symbol;

    return event->type == TBD_EVENT_FUNC_ENTER && is_by_function(counting) &&
           tbd_symbols_at(session->symbols, window, event->pc, &symbol) &&
           (symbol.is_stub || (symbol.name != NULL && strncmp(symbol.name, "_dl_runtime_resolve",
                                                              strlen("_dl_runtime_resolve")) == 0));
}

static bool count_event(void *context, const struct tbd_event *event)
{
    struct row_counting *counting = context;
    char text[512];
    json_int_t before;

    if (is_on_the_way(counting, event))
        return true;
    group_of(counting, event, text, sizeof(text));
    before = json_integer_value(json_object_get(counting->counts, text));
    return json_object_set_new_nocheck(counting->counts, text, json_integer(before + 1)) == 0;
}

static bool is_group(const char *by)
{
    static const char *const groups[] = { "func", "outer", "line", "thread", "value" };

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (strcmp(by, groups[i]) == 0)
            return true;
    }
    return false;
}

/* The offset at which the last `words` words of text[0, end) begin, with the blanks before them. */
static size_t before_words(const char *text, size_t end, unsigned words)
{
    for (; words != 0; words--) {
        while (end != 0 && text[end - 1] != ' ')
            end--;
        while (end != 0 && text[end - 1] == ' ')
            end--;
    }
    return end;
}

/* "count TYPE by KEY where CONTEXT": the question with blanks in place of what it is counted by, so that errors keep their places; the
 * caller frees it.  NULL: it is not so written. */
static char *without_early_by(const struct tbd_command_run *run)
{
    const char *by;
    char *out;
    size_t length;

    if (run->argc < 4 || strcmp(run->argv[1], "by") != 0 || !is_group(run->argv[2]))
        return NULL;
    by = strstr(run->text + run->arguments + strlen(run->argv[0]), "by");
    out = by == NULL ? NULL : strdup(run->text);
    if (out == NULL)
        return NULL;
    length = (size_t)(strstr(by, run->argv[2]) - by) + strlen(run->argv[2]);
    memset(out + (by - run->text), ' ', length);
    return out;
}

static enum tbd_exit count_question(struct tbd_command_run *run, const char *early)
{
    struct row_counting counting = { .run = run, .by = early == NULL ? "func" : early };
    struct tbd_question question;
    size_t end = strlen(run->text);
    enum tbd_exit result;

    if (run->argc >= 2 && strcmp(run->argv[run->argc - 2], "by") == 0) {
        counting.by = run->argv[run->argc - 1];
        end = before_words(run->text, end, 2);
    }
    if (run->argc == 0 || !is_group(counting.by))
        return tbd_command_usage(
            run,
            "count takes a question, and what to count by: func, outer, line, thread or value");
    result = tbd_command_read_all(run, run->arguments, end, &question);
    if (result != TBD_EXIT_FOUND)
        return result;
    counting.counts = json_object();
    question.skips_operands = strcmp(counting.by, "value") != 0;
    result = tbd_command_each(run, &question, count_event, &counting);
    if (result <= TBD_EXIT_NOT_FOUND)
        result = tbd_rows_counts(run, counting.counts);
    json_decref(counting.counts);
    for (size_t i = 0; i < COUNTED_PLACES; i++)
        free(counting.places[i].text);
    return result;
}

/* count TYPE [of EXPR] [where CONTEXT] [by func|outer|line|thread|value] */
enum tbd_exit tbd_command_count(struct tbd_command_run *run)
{
    char *text = without_early_by(run);
    struct tbd_command_run plain = *run;
    enum tbd_exit result;

    if (text != NULL)
        plain.text = text;
    result = count_question(&plain, text == NULL ? NULL : run->argv[2]);
    free(text);
    return result;
}
