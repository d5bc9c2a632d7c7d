// SPDX-License-Identifier: MIT
/* cmd_count.c - count: how many events there are for each function, line, thread or value
 *
 * Events are counted by a number first: the instruction and its window, the thread, or the value. Names are looked up once for each such number, so an
 * event costs no text. Workers count one window each (tbd_search.gather), and where no more than places matter, a window is counted without
 * its events (tbd_search.each_many).
 *
 * CMD_COUNT-1  At most TABLE_MOST numbers are kept by place before their names take their counts: the table's size does not grow with the run. (not
 *     checked: it follows from put()) */
#include "query/output/output.h"
#include "query/commands/rows.h"
#include "query/search/search.h"
#include "query/session/signal_info.h"
#include "query/session/source/source.h"

#include "hooks/table/syscalls.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_LEAST 256u /* a power of two */
#define TABLE_MOST  (1u << 20)

/* ---- numbers ---- */

struct counted {
    uint64_t number; /* an instruction's address, a thread, or a value */
    uint32_t window; /* of an instruction: names are those of this window */
    bool is_used;
    uint64_t count;
};

struct count_table {
    struct counted *cells; /* owned */
    size_t count, capacity;
};

static void free_table(struct count_table *table)
{
    free(table->cells);
    *table = (struct count_table){ .cells = NULL };
}

static struct counted *cell_of(const struct count_table *table, uint64_t number, uint32_t window)
{
    uint64_t hash = (number ^ (uint64_t)window << 40) * 0x9e3779b97f4a7c15ull;
    size_t i = (size_t)(hash >> 32) & (table->capacity - 1);

    while (table->cells[i].is_used &&
           (table->cells[i].number != number || table->cells[i].window != window))
        i = (i + 1) & (table->capacity - 1);
    return &table->cells[i];
}

static bool grow_table(struct count_table *table)
{
    size_t capacity = table->capacity == 0 ? TABLE_LEAST : 2 * table->capacity;
    struct count_table grown = { calloc(capacity, sizeof(*grown.cells)), table->count, capacity };

    if (grown.cells == NULL)
        return false;
    for (size_t i = 0; i < table->capacity; i++) {
        const struct counted *cell = &table->cells[i];

        if (cell->is_used)
            *cell_of(&grown, cell->number, cell->window) = *cell;
    }
    free(table->cells);
    *table = grown;
    return true;
}

static bool add_to_table(struct count_table *table, uint64_t number, uint32_t window,
                         uint64_t count)
{
    struct counted *cell;

    if (2 * table->count >= table->capacity && !grow_table(table))
        return false;
    cell = cell_of(table, number, window);
    if (!cell->is_used) {
        *cell = (struct counted){ .number = number, .window = window, .is_used = true };
        table->count++;
    }
    cell->count += count;
    return true;
}

/* ---- what an event counts for ---- */

struct event_counts {
    struct tbd_command_run *run;
    const char *by; /* "func", "outer", "line", "thread", "value" */
    enum tbd_event_type type;
    json_t *counts; /* by text */
    struct count_table table;
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

static bool is_by_place(const struct event_counts *counting)
{
    return strcmp(counting->by, "thread") != 0 && strcmp(counting->by, "value") != 0;
}

static uint64_t number_of(const struct event_counts *counting, const struct tbd_event *event)
{
    if (is_by_place(counting))
        return event->pc;
    return strcmp(counting->by, "thread") == 0 ? event->thread : value_of(event);
}

static uint32_t window_of(const struct event_counts *counting, const struct tbd_session *session,
                          const struct tbd_event *event)
{
    return is_by_place(counting) ? tbd_trace_window_of(session->trace, event->position.time) : 0;
}

/* A number, or the name of a system call or signal. */
static void value_text(enum tbd_event_type type, uint64_t value, char *out, size_t bytes)
{
    const char *name = type == TBD_EVENT_SYSCALL ? tbd_syscall_name(value) : NULL;

    if (type == TBD_EVENT_SIGNAL)
        (void)tbd_signal_name(value, out, bytes);
    else if (name != NULL)
        snprintf(out, bytes, "%s", name);
    else
        snprintf(out, bytes, "0x%" PRIx64, value);
}

/* The function of an event: of copies of inlined functions around it the innermost, but for "outer".
 * An entry or exit is one of a function with code of its own, even if this begins with a copy. */
static void function_of(const struct event_counts *counting, uint32_t window,
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

static bool is_by_function(const struct event_counts *counting)
{
    return strcmp(counting->by, "func") == 0 || strcmp(counting->by, "outer") == 0;
}

/* The function or line of an event; "?" if it is not known. */
static void place_of(const struct event_counts *counting, uint32_t window,
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

/* An import stub is no function of its own: what it leads to is entered next. */
static bool is_on_the_way(const struct event_counts *counting, uint32_t window,
                          const struct tbd_event *event)
{
    struct tbd_session *session = counting->run->session;
    struct tbd_symbol symbol;

    return event->type == TBD_EVENT_FUNC_ENTER && is_by_function(counting) &&
           tbd_symbols_at(session->symbols, window, event->pc, &symbol) &&
           (symbol.is_stub || (symbol.name != NULL && strncmp(symbol.name, "_dl_runtime_resolve",
                                                              strlen("_dl_runtime_resolve")) == 0));
}

/* ---- names ---- */

static void text_of(const struct event_counts *counting, const struct counted *cell, char *out,
                    size_t bytes)
{
    const struct tbd_event event = { .type = counting->type, .pc = cell->number };

    if (is_by_place(counting))
        place_of(counting, cell->window, &event, out, bytes);
    else if (strcmp(counting->by, "thread") == 0)
        snprintf(out, bytes, "%" PRIu64, cell->number);
    else
        value_text(counting->type, cell->number, out, bytes);
}

static bool add_to_name(struct event_counts *counting, const struct counted *cell)
{
    const struct tbd_event event = { .type = counting->type, .pc = cell->number };
    char text[512];
    json_int_t before;

    if (is_on_the_way(counting, cell->window, &event))
        return true;
    text_of(counting, cell, text, sizeof(text));
    before = json_integer_value(json_object_get(counting->counts, text));
    return json_object_set_new_nocheck(counting->counts, text,
                                       json_integer(before + (json_int_t)cell->count)) == 0;
}

/* Names take the counts of the table, which is empty then. */
static bool name_all(struct event_counts *counting)
{
    bool good = true;

    for (size_t i = 0; i < counting->table.capacity && good; i++) {
        if (counting->table.cells[i].is_used)
            good = add_to_name(counting, &counting->table.cells[i]);
    }
    free_table(&counting->table);
    return good;
}

/* ---- events ---- */

static bool put(struct event_counts *counting, uint64_t number, uint32_t window, uint64_t count)
{
    if (!add_to_table(&counting->table, number, window, count))
        return false;
    return !is_by_place(counting) || counting->table.count < TABLE_MOST || name_all(counting);
}

static bool count_many(void *context, const struct tbd_event *event, uint64_t count)
{
    struct event_counts *counting = context;

    return put(counting, number_of(counting, event),
               window_of(counting, counting->run->session, event), count);
}

static bool count_event(void *context, const struct tbd_event *event)
{
    return count_many(context, event, 1);
}

static bool gather_events(void *context, struct tbd_session *session, void **batch,
                          const struct tbd_event *event, uint64_t count)
{
    const struct event_counts *counting = context;

    if (*batch == NULL)
        *batch = calloc(1, sizeof(struct count_table));
    return *batch != NULL && add_to_table(*batch, number_of(counting, event),
                                          window_of(counting, session, event), count);
}

static bool merge_events(void *context, void *batch)
{
    struct event_counts *counting = context;
    const struct count_table *table = batch;
    bool good = true;

    for (size_t i = 0; table != NULL && i < table->capacity && good; i++) {
        const struct counted *cell = &table->cells[i];

        if (cell->is_used)
            good = put(counting, cell->number, cell->window, cell->count);
    }
    return good;
}

static void drop_events(void *batch)
{
    free_table(batch);
    free(batch);
}

/* ---- the command ---- */

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

static enum tbd_exit count_all(struct event_counts *counting, struct tbd_question *question)
{
    bool is_by_value = strcmp(counting->by, "value") == 0;
    struct tbd_search search = { .question = question,
                                 .each = count_event,
                                 .each_context = counting,
                                 .gather = gather_events,
                                 .merge = merge_events,
                                 .drop = drop_events,
                                 .each_many = count_many,
                                 .many_by_value = is_by_value };
    struct tbd_command_run *run = counting->run;
    enum tbd_exit result;

    question->skips_operands = !is_by_value;
    result = tbd_command_each_of(run, &search);
    if (result > TBD_EXIT_NOT_FOUND)
        return result;
    return name_all(counting) ? tbd_rows_counts(run, counting->counts)
                              : tbd_command_fail(run, TBD_NOMEM);
}

static enum tbd_exit count_question(struct tbd_command_run *run, const char *early)
{
    struct event_counts counting = { .run = run, .by = early == NULL ? "func" : early };
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
    counting.type = question.type;
    counting.counts = json_object();
    result = count_all(&counting, &question);
    json_decref(counting.counts);
    free_table(&counting.table);
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
