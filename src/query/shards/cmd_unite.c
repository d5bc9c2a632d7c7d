// SPDX-License-Identifier: MIT
/* cmd_unite.c - unite: the answer of the whole run, from those of its shards
 *
 * All first lines are read before anything is printed: the shards must be of one answer. Then the rows go through what prints
 * them without --shard, in the order of the search, one file at a time. */
#include "query/commands/commands.h"
#include "query/commands/rows.h"
#include "query/heap/heap_shards.h"
#include "query/output/log_line.h"
#include "query/output/output.h"
#include "query/shards/shard_file.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum row_kind {
    KIND_ROWS,
    KIND_COUNTS,
    KIND_EVENTS,
    KIND_FOUND,
    KIND_LOG,
    KIND_HEAP,
    KIND_HEAP_OF,
    KIND_HEAP_ERRORS,
    KIND_COUNT
};
static const char *const kinds[KIND_COUNT] = { "rows", "counts", "events",  "found",
                                               "log",  "heap",   "heap of", "heap errors" };

struct uniting {
    struct tbd_command_run *run;
    struct tbd_shard_file *shards; /* owned: in the order of the search */
    size_t count;
    json_t *of; /* borrowed from the first shard */
    enum row_kind kind;
    struct tbd_rows rows;
    json_t *counts; /* owned: by text */
    json_t *found;  /* owned */
    struct tbd_heap_parts heap;
    uint64_t seen, wanted;
    json_t *missing; /* owned: numbers of shards */
    enum tbd_exit worst;
};

/* ---- the shards ---- */

static enum tbd_exit refuse(const struct uniting *u, size_t index, const char *why)
{
    fprintf(stderr, "tbdq: unite: %s: %s\n", tbd_shown(u->shards[index].path), why);
    return TBD_EXIT_USAGE;
}

static int compare_shards(const void *left, const void *right)
{
    const struct tbd_shard_file *a = left, *b = right;
    int order = (a->number > b->number) - (a->number < b->number);

    return a->backward ? -order : order;
}

/* Where one shard ends, the next one begins, unless the trace's windows were merged in between. */
static bool fits(const struct tbd_shard_file *one, const struct tbd_shard_file *next)
{
    const struct tbd_shard_file *early = one->backward ? next : one;
    const struct tbd_shard_file *late = one->backward ? one : next;

    return late->number != early->number + 1 || early->to == late->from;
}

static enum tbd_exit check_shards(struct uniting *u)
{
    for (size_t i = 1; i < u->count; i++) {
        if (!json_equal(u->shards[i].of, u->of) || u->shards[i].count != u->shards[0].count)
            return refuse(u, i, "it is of another question, trace or number of shards");
    }
    qsort(u->shards, u->count, sizeof(*u->shards), compare_shards);
    for (size_t i = 1; i < u->count; i++) {
        if (u->shards[i].number == u->shards[i - 1].number)
            return refuse(u, i, "there are two answers of this shard");
        if (!fits(&u->shards[i - 1], &u->shards[i]))
            return refuse(u, i, "the trace's windows have changed between the shards");
    }
    return TBD_EXIT_FOUND;
}

static enum tbd_exit open_shards(struct uniting *u)
{
    u->shards = calloc(u->run->argc, sizeof(*u->shards));
    if (u->shards == NULL)
        return tbd_command_no_memory();
    for (; u->count < u->run->argc; u->count++) {
        struct tbd_shard_file *shard = &u->shards[u->count];
        bool good = tbd_shard_file_open(shard, u->run->argv[u->count]);

        tbd_shard_file_rest(shard);
        if (!good) {
            u->count++;
            return refuse(u, u->count - 1, shard->why);
        }
    }
    u->of = u->shards[0].of;
    return check_shards(u);
}

/* The numbers that are not there. */
static void find_missing(struct uniting *u)
{
    uint64_t count = u->shards[0].count, next = 1;

    for (size_t i = 0; i <= u->count; i++) {
        size_t at = u->shards[0].backward ? u->count - 1 - i : i;
        uint64_t number = i == u->count ? count + 1 : u->shards[at].number;

        for (; next < number; next++)
            json_array_append_new(u->missing, json_integer((json_int_t)next));
        next = number + 1;
    }
}

/* ---- how the answer is shown ---- */

static enum tbd_exit take_kind(struct uniting *u)
{
    const char *name = tbd_shard_text(u->of, "kind");

    while (u->kind < KIND_COUNT && strcmp(kinds[u->kind], name) != 0)
        u->kind++;
    if (u->kind == KIND_COUNT)
        return refuse(u, 0, "its rows are of an unknown kind");
    if (u->kind == KIND_FOUND && !tbd_shard_number(u->of, "wanted", &u->wanted))
        return refuse(u, 0, "its first line is damaged");
    return TBD_EXIT_FOUND;
}

/* The session has no trace; it says how rows are printed. */
static enum tbd_exit take_form(struct uniting *u)
{
    struct tbd_session *session = u->run->session;
    const char *form = tbd_shard_text(u->of, "form");
    bool json = strcmp(form, "json") == 0, csv = strcmp(form, "csv") == 0;

    if ((session->json && !json) || (session->csv && !csv)) {
        fprintf(stderr,
                "tbdq: unite: rows are shown as the shards were asked for: %s\n"
                "hint: --json and --csv go beside --shard\n",
                tbd_shown(form));
        return TBD_EXIT_USAGE;
    }
    session->json = json;
    session->csv = csv;
    session->shows_wall = false; /* the columns have it */
    session->shows_threads = json_is_true(json_object_get(u->of, "threads"));
    return TBD_EXIT_FOUND;
}

static enum tbd_exit begin_rows(struct uniting *u)
{
    const char *columns[TBD_ROWS_MAX_COLUMNS] = { NULL };
    const json_t *given = json_object_get(u->of, "columns");
    size_t count = json_array_size(given);

    if (u->kind != KIND_ROWS && u->kind != KIND_HEAP_OF && u->kind != KIND_HEAP_ERRORS)
        return TBD_EXIT_FOUND;
    for (size_t i = 0; i < count && i < TBD_ROWS_MAX_COLUMNS - 1; i++)
        columns[i] = json_string_value(json_array_get(given, i));
    if (count == 0 || count >= TBD_ROWS_MAX_COLUMNS || columns[count - 1] == NULL)
        return refuse(u, 0, "its columns are damaged");
    tbd_rows_start(&u->rows, u->run, columns);
    return TBD_EXIT_FOUND;
}

/* ---- rows ---- */

/* False: the numbers are not possible. */
static bool add_count(struct uniting *u, const json_t *row)
{
    const char *by = json_string_value(json_object_get(row, "by"));
    uint64_t count, before = 0;

    if (by == NULL || !tbd_shard_number(row, "count", &count))
        return false;
    (void)tbd_shard_number(u->counts, by, &before);
    if (count > INT64_MAX - before)
        return false;
    count += before;
    return json_object_set_new(u->counts, by, json_integer((json_int_t)count)) == 0;
}

/* False: it lacks something. */
static bool print_log(struct uniting *u, const json_t *row)
{
    bool has_wall = json_is_true(json_object_get(u->of, "wall"));
    struct tbd_log_head head = { .position = tbd_shard_text(row, "position"),
                                 .wall = has_wall ? tbd_shard_text(row, "wall") : NULL,
                                 .has_thread = u->run->session->shows_threads };
    uint64_t thread = 0;

    if (*head.position == '\0' || !tbd_shard_number(row, "thread", &thread))
        return false;
    head.thread = (uint32_t)thread;
    tbd_log_head_print(&head, u->run->out);
    fprintf(u->run->out, "%s\n", tbd_shard_text(row, "text"));
    return true;
}

/* Takes the row.  False: it is damaged. */
static bool take_row(struct uniting *u, json_t *row)
{
    bool good = true;

    u->seen++;
    switch (u->kind) {
    case KIND_ROWS: tbd_rows_add(&u->rows, row); return true;
    case KIND_COUNTS: good = add_count(u, row); break;
    case KIND_EVENTS: tbd_output_print_event(u->run->session, row, u->run->out); break;
    case KIND_LOG: good = print_log(u, row); break;
    case KIND_HEAP: good = tbd_heap_parts_call(&u->heap, row); break;
    case KIND_HEAP_OF: good = tbd_heap_parts_block(&u->heap, row); break;
    case KIND_HEAP_ERRORS: good = tbd_heap_parts_error(&u->heap, row, &u->rows); break;
    default:
        if (u->seen == u->wanted)
            u->found = json_incref(row);
    }
    json_decref(row);
    return good;
}

static bool is_done(const struct uniting *u)
{
    return u->found != NULL || ferror(u->run->out) != 0;
}

/* ---- what is missing ---- */

static void add_left_out(struct tbd_left_out *all, const json_t *left)
{
    const json_t *windows = json_object_get(left, "windows");
    uint64_t first = 0;

    (void)tbd_shard_number(left, "first", &first);
    for (size_t i = 0; i < json_array_size(windows); i++) {
        json_int_t window = json_integer_value(json_array_get(windows, i));

        if (window >= 0 && window < UINT32_MAX)
            tbd_left_out_add(all, (uint32_t)window,
                             (uint64_t)window == first ? tbd_shard_text(left, "why") : "");
    }
    all->has_unlisted |= json_is_true(json_object_get(left, "unlisted"));
    all->has_lost_end |= json_is_true(json_object_get(left, "lost_end"));
}

static void take_end(struct uniting *u, const json_t *end)
{
    struct tbd_session_stats *stats = &u->run->session->stats;
    uint64_t status = 0, divisions = 0, unmapped = 0, optimized = 0;

    (void)tbd_shard_number(end, "exit", &status);
    (void)tbd_shard_number(end, "divisions", &divisions);
    (void)tbd_shard_number(end, "unmapped", &unmapped);
    (void)tbd_shard_number(end, "optimized", &optimized);
    stats->bad.divisions += divisions;
    stats->bad.unmapped += unmapped;
    stats->bad.optimized += optimized;
    add_left_out(&u->run->session->left_out, json_object_get(end, "left_out"));
    if (status == TBD_EXIT_USAGE || status >= TBD_EXIT_TRACE)
        u->worst = TBD_EXIT_TRACE;
}

static void note_broken(struct uniting *u, const struct tbd_shard_file *shard, const char *why)
{
    fprintf(stderr, "tbdq: note: the answer may be incomplete: shard %" PRIu64 " (%s): %s\n",
            shard->number, tbd_shown(shard->path), why);
    u->worst = TBD_EXIT_TRACE;
}

static void read_shard(struct uniting *u, const struct tbd_shard_file *first)
{
    struct tbd_shard_file shard;
    bool good = tbd_shard_file_open(&shard, first->path);
    json_t *row;

    tbd_heap_parts_next(&u->heap);
    if (good && (shard.number != first->number || !json_equal(shard.of, first->of))) {
        snprintf(shard.why, sizeof(shard.why), "it has changed meanwhile");
        good = false;
    }
    while (good && !is_done(u) && (row = tbd_shard_file_next(&shard)) != NULL) {
        good = take_row(u, row);
        if (!good)
            snprintf(shard.why, sizeof(shard.why), "a row is damaged");
    }
    if (shard.why[0] != '\0')
        note_broken(u, &shard, shard.why);
    else if (shard.end != NULL)
        take_end(u, shard.end);
    else if (!is_done(u))
        note_broken(u, &shard, "it is cut");
    tbd_shard_file_close(&shard);
}

/* ---- the answer ---- */

static enum tbd_exit finish_heap(struct uniting *u)
{
    size_t index;
    json_t *block;

    if (!u->heap.heap.is_known) {
        tbd_heap_say_unknown();
        if (u->kind != KIND_HEAP)
            tbd_rows_drop(&u->rows);
        return TBD_EXIT_NOT_FOUND;
    }
    if (u->kind == KIND_HEAP)
        return tbd_heap_parts_live(u->run, &u->heap, tbd_shard_text(u->of, "at"));
    json_array_foreach(u->heap.blocks, index, block) tbd_rows_add(&u->rows, json_incref(block));
    return tbd_rows_end(&u->rows);
}

static enum tbd_exit finish(struct uniting *u)
{
    switch (u->kind) {
    case KIND_HEAP:
    case KIND_HEAP_OF:
    case KIND_HEAP_ERRORS: return finish_heap(u);
    case KIND_ROWS: return tbd_rows_end(&u->rows);
    case KIND_COUNTS: return tbd_rows_counts(u->run, u->counts);
    case KIND_LOG:
        if (u->seen == 0)
            fprintf(u->run->out, "none\n");
        return u->seen != 0 ? TBD_EXIT_FOUND : TBD_EXIT_NOT_FOUND;
    case KIND_EVENTS:
        return u->seen != 0 ? TBD_EXIT_FOUND
                            : tbd_command_none(u->run, tbd_shard_text(u->of, "type"), 0);
    default:
        if (u->found == NULL)
            return tbd_command_none(u->run, tbd_shard_text(u->of, "type"), u->seen);
        tbd_output_print_event(u->run->session, u->found, u->run->out);
        return TBD_EXIT_FOUND;
    }
}

static void tell_missing(struct uniting *u)
{
    size_t count = json_array_size(u->missing);
    json_t *object;

    if (count == 0 || u->found != NULL)
        return;
    if (u->run->session->json) {
        object = json_object();
        json_object_set_new(object, "incomplete", json_true());
        json_object_set(object, "shards", u->missing);
        tbd_output_line(object, u->run->out);
    }
    fprintf(stderr,
            "tbdq: note: the answer may be incomplete: of %" PRIu64 " shards %zu %s missing:",
            u->shards[0].count, count, count == 1 ? "is" : "are");
    for (size_t i = 0; i < count && i < 10; i++)
        fprintf(stderr, " %" JSON_INTEGER_FORMAT,
                json_integer_value(json_array_get(u->missing, i)));
    fprintf(stderr, "%s\n", count > 10 ? " ..." : "");
    u->worst = TBD_EXIT_TRACE;
}

static enum tbd_exit unite(struct uniting *u)
{
    enum tbd_exit result = open_shards(u);

    if (result == TBD_EXIT_FOUND)
        result = take_kind(u);
    if (result == TBD_EXIT_FOUND)
        result = take_form(u);
    if (result == TBD_EXIT_FOUND)
        result = begin_rows(u);
    if (result != TBD_EXIT_FOUND)
        return result;
    find_missing(u);
    for (size_t i = 0; i < u->count && !is_done(u); i++)
        read_shard(u, &u->shards[i]);
    result = finish(u);
    tbd_command_report_bad(u->run->session);
    tell_missing(u);
    result = tbd_command_tell_left_out(u->run, result);
    return u->worst > result ? u->worst : result;
}

enum tbd_exit tbd_command_unite(struct tbd_command_run *run)
{
    struct uniting u = { .run = run, .counts = json_object(), .missing = json_array() };
    enum tbd_exit result = TBD_EXIT_FOUND;

    if (run->argc == 0)
        result = tbd_command_usage(run, "unite takes the answers of shards");
    else if (!tbd_heap_parts_new(&u.heap))
        result = tbd_command_no_memory();
    else
        result = unite(&u);
    for (size_t i = 0; i < u.count; i++)
        tbd_shard_file_close(&u.shards[i]);
    free(u.shards);
    if (run->argc != 0)
        tbd_heap_parts_free(&u.heap);
    json_decref(u.counts);
    json_decref(u.found);
    json_decref(u.missing);
    tbd_left_out_clear(&run->session->left_out);
    return result;
}
