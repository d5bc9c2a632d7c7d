// SPDX-License-Identifier: MIT
/* cmd_rows.c - stores, calls, lines, syscalls, signals, count: events of a whole run as rows
 *
 * Each is a question as `all` takes it.  A call is an entry and the return that takes its return
 * address off the stack: the first one at or above it. */
#include "query/commands/output.h"
#include "query/commands/rows.h"
#include "query/search/search.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool add_event(void *context, const struct tbd_event *event)
{
    struct tbd_rows *rows = context;

    tbd_rows_add(rows, tbd_rows_event(rows->run->session, event));
    return ferror(rows->run->out) == 0;
}

/* "TYPE ARGUMENTS": all such events. */
static enum tbd_exit list(struct tbd_command_run *run, const char *type, const char *arguments,
                          const char *const *columns)
{
    struct tbd_rows rows;
    char *question;
    enum tbd_exit result;

    if (asprintf(&question, "%s %s", type, arguments) < 0)
        return TBD_EXIT_SYSTEM;
    tbd_rows_start(&rows, run, columns);
    result = tbd_command_each(run, question, add_event, &rows);
    free(question);
    if (result > TBD_EXIT_NOT_FOUND) {
        json_decref(rows.waiting);
        return result;
    }
    return tbd_rows_end(&rows);
}

static const char *arguments_of(const struct tbd_command_run *run)
{
    return run->text + run->arguments;
}

enum tbd_exit tbd_command_stores(struct tbd_command_run *run)
{
    static const char *const columns[] = { "position", "addr",   "size",     "oldval",
                                           "newval",   "source", "function", NULL };

    if (run->argc < 2 || (strcmp(run->argv[0], "of") != 0 && strcmp(run->argv[0], "where") != 0))
        return tbd_command_usage(run, "stores takes `of EXPRESSION`, or a condition");
    return list(run, "store", arguments_of(run), columns);
}

enum tbd_exit tbd_command_syscalls(struct tbd_command_run *run)
{
    static const char *const columns[] = {
        "position", "thread", "call", "source", "function", NULL
    };

    return list(run, "syscall", arguments_of(run), columns);
}

enum tbd_exit tbd_command_signals(struct tbd_command_run *run)
{
    static const char *const columns[] = {
        "position", "thread", "signal", "from", "function", NULL
    };

    return list(run, "signal", arguments_of(run), columns);
}

/* lines FILE[:N] [where ...] */
enum tbd_exit tbd_command_lines(struct tbd_command_run *run)
{
    static const char *const columns[] = { "position", "thread", "source", "function", NULL };
    const char *rest = arguments_of(run), *colon, *more;
    char *where;
    size_t length = strcspn(rest, " ");
    enum tbd_exit result;
    int file;

    if (run->argc == 0 || (run->argc > 1 && strcmp(run->argv[1], "where") != 0))
        return tbd_command_usage(run, "lines takes FILE or FILE:LINE, and perhaps a condition");
    colon = memchr(rest, ':', length);
    file = (int)(colon == NULL ? length : (size_t)(colon - rest));
    more = strstr(rest, " where ");
    if (asprintf(&where, "where src=<%.*s%s%.*s>%s%s%s", file, rest, colon == NULL ? "" : ",",
                 colon == NULL ? 0 : (int)(length - (size_t)file - 1),
                 colon == NULL ? "" : colon + 1, more == NULL ? "" : " and (",
                 more == NULL ? "" : more + strlen(" where "), more == NULL ? "" : ")") < 0)
        return TBD_EXIT_SYSTEM;
    result = list(run, "line", where, columns);
    free(where);
    return result;
}

/* ---- calls ---- */

struct call {
    struct tbd_event enter;
    struct tbd_position exit;
    uint64_t retval;
    bool has_exit;
    uint32_t nesting;
};

struct calls {
    struct call *all; /* owned; by entry */
    size_t count, room;
    size_t *open; /* owned; indices of calls without exit, innermost last */
    size_t open_count, open_room;
    bool no_memory;
};

static bool add_call(void *context, const struct tbd_event *event)
{
    struct calls *calls = context;

    calls->no_memory =
        !tbd_array_grow(&calls->all, calls->count, &calls->room, sizeof(*calls->all));
    if (!calls->no_memory)
        calls->all[calls->count++] = (struct call){ .enter = *event };
    return !calls->no_memory;
}

/* Closes what this return leaves: all calls of the thread whose return address is
 * at or below it. */
static void close_calls(struct calls *calls, const struct tbd_event *exit)
{
    size_t kept = 0;

    for (size_t i = 0; i < calls->open_count; i++) {
        struct call *call = &calls->all[calls->open[i]];

        if (call->enter.thread != exit->thread || call->enter.sp > exit->sp) {
            calls->open[kept++] = calls->open[i];
            continue;
        }
        call->has_exit = true;
        call->exit = exit->position;
        call->retval = exit->retval;
    }
    calls->open_count = kept;
}

struct exits {
    struct calls *calls;
    size_t next; /* entry that comes next in time */
};

static void open_until(struct exits *exits, struct tbd_position position)
{
    struct calls *calls = exits->calls;

    while (exits->next < calls->count &&
           tbd_position_compare(calls->all[exits->next].enter.position, position) <= 0) {
        struct call *call = &calls->all[exits->next];

        for (size_t i = 0; i < calls->open_count; i++)
            call->nesting += calls->all[calls->open[i]].enter.thread == call->enter.thread;
        if (!tbd_array_grow(&calls->open, calls->open_count, &calls->open_room,
                            sizeof(*calls->open)))
            calls->no_memory = true;
        else
            calls->open[calls->open_count++] = exits->next;
        exits->next++;
    }
}

static bool add_exit(void *context, const struct tbd_event *event)
{
    struct exits *exits = context;

    open_until(exits, event->position);
    close_calls(exits->calls, event);
    return !exits->calls->no_memory &&
           (exits->next < exits->calls->count || exits->calls->open_count != 0);
}

/* All returns that could end one of the calls: they lie at or above the lowest entry. */
static enum tbd_exit find_exits(struct tbd_command_run *run, struct calls *calls)
{
    struct exits exits = { .calls = calls };
    uint64_t lowest = UINT64_MAX, highest = 0;
    char question[160];
    enum tbd_exit result;

    for (size_t i = 0; i < calls->count; i++) {
        lowest = calls->all[i].enter.sp < lowest ? calls->all[i].enter.sp : lowest;
        highest = calls->all[i].enter.sp > highest ? calls->all[i].enter.sp : highest;
    }
    snprintf(question, sizeof(question),
             "%" PRIu64 "+%" PRIu32 " forward func_exit 1 where sp >= 0x%" PRIx64,
             calls->all[0].enter.position.time, calls->all[0].enter.position.offset, lowest);
    result = tbd_command_each_from(run, question, add_exit, &exits);
    open_until(&exits, (struct tbd_position){ UINT64_MAX, UINT32_MAX });
    return result;
}

static json_t *call_row(struct tbd_session *session, const struct call *call)
{
    json_t *row = tbd_rows_event(session, &call->enter);
    struct tbd_place place;
    uint32_t window =
        tbd_session_place(session, call->enter.position, &place) == TBD_OK ? place.window : 0;
    char text[256];

    tbd_output_parameters(session, &call->enter, row);
    json_object_set_new(row, "nesting", json_integer(call->nesting));
    json_object_set_new(row, "caller",
                        tbd_output_text(tbd_symbols_format(session->symbols, window,
                                                           call->enter.from, text, sizeof(text))));
    json_object_set_new(row, "exit", call->has_exit ? tbd_rows_position(call->exit) : json_null());
    json_object_set_new(row, "retval", call->has_exit ? tbd_output_hex(call->retval) : json_null());
    if (call->has_exit)
        tbd_output_result(session, &call->enter, call->retval, row);
    return row;
}

/* calls FUNC [where ...] */
enum tbd_exit tbd_command_calls(struct tbd_command_run *run)
{
    static const char *const columns[] = { "position", "exit",   "nesting", "thread", "function",
                                           "values",   "result", "caller",  NULL };
    const char *rest = arguments_of(run), *more = strstr(rest, " where ");
    struct calls calls = { 0 };
    struct tbd_rows rows;
    char *question;
    enum tbd_exit result;

    if (run->argc == 0 || (run->argc > 1 && strcmp(run->argv[1], "where") != 0))
        return tbd_command_usage(run,
                                 "calls takes the name of a function, and perhaps a condition");
    if (asprintf(&question, "func_enter where func==\"%s\"%s%s%s",
                 run->argv[0] + (run->argv[0][0] == '"'), more == NULL ? "" : " and (",
                 more == NULL ? "" : more + strlen(" where "), more == NULL ? "" : ")") < 0)
        return TBD_EXIT_SYSTEM;
    result = tbd_command_each(run, question, add_call, &calls);
    free(question);
    if (result == TBD_EXIT_FOUND)
        result = find_exits(run, &calls);
    if (result <= TBD_EXIT_NOT_FOUND) {
        tbd_rows_start(&rows, run, columns);
        for (size_t i = 0; i < calls.count; i++)
            tbd_rows_add(&rows, call_row(run->session, &calls.all[i]));
        result = tbd_rows_end(&rows);
    }
    free(calls.all);
    free(calls.open);
    return result;
}

/* ---- count ---- */

struct row_counting {
    const struct tbd_command_run *run;
    const char *by; /* "func", "line", "thread", "value" */
    json_t *counts; /* by text */
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

static void group_of(const struct row_counting *counting, const struct tbd_event *event, char *out,
                     size_t bytes)
{
    struct tbd_session *session = counting->run->session;
    uint32_t window = tbd_trace_window_of(session->trace, event->position.time);
    struct tbd_source_line line;
    struct tbd_symbol symbol;

    snprintf(out, bytes, "?");
    if (strcmp(counting->by, "thread") == 0)
        snprintf(out, bytes, "%" PRIu32, event->thread);
    else if (strcmp(counting->by, "value") == 0)
        snprintf(out, bytes, "0x%" PRIx64, value_of(event));
    else if (strcmp(counting->by, "line") == 0 &&
             tbd_source_line_at(session, window, event->pc, &line))
        snprintf(out, bytes, "%s:%" PRIu32, line.file, line.line);
    else if (tbd_symbols_at(session->symbols, window, event->pc, &symbol))
        snprintf(out, bytes, "%s!%s", symbol.module, symbol.name == NULL ? "?" : symbol.name);
}

static bool count_event(void *context, const struct tbd_event *event)
{
    struct row_counting *counting = context;
    char text[512];
    json_int_t before;

    group_of(counting, event, text, sizeof(text));
    before = json_integer_value(json_object_get(counting->counts, text));
    return json_object_set_new_nocheck(counting->counts, text, json_integer(before + 1)) == 0;
}

static int compare_rows(const void *left, const void *right)
{
    json_t *const *a = left, *const *b = right;
    json_int_t x = json_integer_value(json_object_get(*a, "count"));
    json_int_t y = json_integer_value(json_object_get(*b, "count"));

    if (x != y)
        return x < y ? 1 : -1;
    return strcmp(json_string_value(json_object_get(*a, "by")),
                  json_string_value(json_object_get(*b, "by")));
}

static enum tbd_exit print_counts(const struct row_counting *counting)
{
    static const char *const columns[] = { "count", "by", NULL };
    json_t **sorted = calloc(json_object_size(counting->counts) + 1, sizeof(json_t *));
    size_t count = 0;
    struct tbd_rows rows;
    const char *key;
    json_t *value;

    json_object_foreach(counting->counts, key, value)
    {
        json_t *row = json_object();

        json_object_set(row, "count", value);
        json_object_set_new(row, "by", tbd_output_text(key));
        if (sorted != NULL)
            sorted[count++] = row;
        else
            json_decref(row);
    }
    if (sorted != NULL)
        qsort(sorted, count, sizeof(json_t *), compare_rows);
    tbd_rows_start(&rows, counting->run, columns);
    for (size_t i = 0; i < count; i++)
        tbd_rows_add(&rows, sorted[i]);
    free(sorted);
    return tbd_rows_end(&rows);
}

static bool is_group(const char *by)
{
    return strcmp(by, "func") == 0 || strcmp(by, "line") == 0 || strcmp(by, "thread") == 0 ||
           strcmp(by, "value") == 0;
}

/* count TYPE [of EXPR] [where CONTEXT] [by func|line|thread|value] */
enum tbd_exit tbd_command_count(struct tbd_command_run *run)
{
    struct row_counting counting = { .run = run, .by = "func" };
    char *question = strdup(arguments_of(run));
    enum tbd_exit result;

    if (question == NULL)
        return TBD_EXIT_SYSTEM;
    if (run->argc >= 2 && strcmp(run->argv[run->argc - 2], "by") == 0) {
        char *last = strrchr(question, ' ');

        counting.by = run->argv[run->argc - 1];
        if (last != NULL) {
            *last = '\0';
            last = strrchr(question, ' ');
        }
        if (last != NULL)
            *last = '\0';
    }
    if (run->argc == 0 || !is_group(counting.by)) {
        free(question);
        return tbd_command_usage(
            run, "count takes a question, and what to count by: func, line, thread or value");
    }
    counting.counts = json_object();
    result = tbd_command_each(run, question, count_event, &counting);
    if (result <= TBD_EXIT_NOT_FOUND)
        result = print_counts(&counting);
    json_decref(counting.counts);
    free(question);
    return result;
}
