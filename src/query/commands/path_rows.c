// SPDX-License-Identifier: MIT
/* path_rows.c - see path_rows.h
 *
 * Rows are found from where the user asks, in one direction, and printed in the order in which they ran.  A loop is folded as its rows
 * are found: when the last P rows equal the P before them, they become one group with a count.
 *
 *     for / body / for / body / for / body        becomes        for, body: 3 times
 *
 * PATH_ROWS-1  Rows of one group follow each other, `loop` of them, and have the same `times`. */
#include "query/commands/path_rows.h"
#include "query/commands/path_text.h"
#include "query/commands/path_values.h"

#include "base/assert.h"
#include "base/string.h"
#include "query/output/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LONGEST_LOOP 32u    /* rows */
#define FAR_INSNS    65536u /* between two rows whose values come from simulations of their own */

/* A stretch that ran. */
struct path_row {
    uint64_t step, last_step; /* where it begins and ends */
    uint32_t insn;            /* of `step`, its first */
    uint64_t blocks, insns;
    uint64_t times; /* 1: not folded */
    uint32_t loop;  /* rows of its group */
};

struct row_finding {
    struct tbd_path_rows *path;
    struct tbd_rings_thread *thread;
    const struct tbd_rings_step *steps;
    struct path_row *rows; /* in the order in which they are found */
    size_t count, max;
};

const char *const *tbd_path_rows_columns(const struct tbd_path_rows *path)
{
    static const char *const columns[] = { "back",     "thread", "blocks", "pc",
                                           "function", "source", NULL };
    static const char *const with_more[] = { "back", "thread",   "blocks", "times", "loop", "pc",
                                             "insn", "function", "source", "text",  NULL };
    static const char *const table[] = { "back", "when", "pc", "function", "source", NULL };
    static const char *const table_with_more[] = { "back",     "when",   "pc",   "insn",
                                                   "function", "source", "text", NULL };
    static const char *const kept[] = { "back", "when",     "thread", "part", "blocks", "pc",
                                        "insn", "function", "source", "text", NULL };
    static const char *const merged_lines[] = { "group", "back",     "thread", "beside", "blocks",
                                                "pc",    "function", "source", NULL };
    static const char *const line_values[] = { "back", "thread", "function", "source",
                                               "text", "values", NULL };
    static const char *const insn_values[] = { "back",     "thread", "pc",     "insn",
                                               "function", "source", "values", NULL };

    static const char *const merged[] = { "group", "back",     "thread", "beside", "blocks", "pc",
                                          "insn",  "function", "source", "text",   NULL };

    if (path->is_kept)
        return kept;
    if (path->merged != NULL)
        return path->with_text || path->unit == TBD_PATH_INSNS ? merged : merged_lines;
    if (path->when != NULL)
        return path->with_text || path->unit == TBD_PATH_INSNS ? table_with_more : table;
    if (path->with_values)
        return path->unit == TBD_PATH_INSNS ? insn_values : line_values;
    return path->folds || path->with_text || path->unit == TBD_PATH_INSNS ? with_more : columns;
}

/* ---- places ---- */

static const struct tbd_rings_place *place_of(const struct row_finding *f, uint64_t step,
                                              uint32_t insn)
{
    static const struct tbd_rings_place none;
    const struct tbd_rings_place *place =
        tbd_rings_place(f->path->ring, f->steps[step].block, insn);

    return place != NULL ? place : &none;
}

static bool same_text(const char *one, const char *other)
{
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

static const struct tbd_crash_kept *kept_row(const struct row_finding *f, uint64_t step)
{
    return f->path->ring->kept_rows[step];
}

/* Are the two instructions at one line, or, without lines, in one block? */
static bool is_same_line(const struct row_finding *f, uint64_t step, uint32_t insn,
                         uint64_t other_step, uint32_t other_insn)
{
    struct tbd_rings_place one = *place_of(f, step, insn);
    const struct tbd_rings_place *other = place_of(f, other_step, other_insn);

    if (f->path->is_kept && (kept_row(f, step)->part != kept_row(f, other_step)->part ||
                             kept_row(f, step)->tid != kept_row(f, other_step)->tid))
        return false;
    if (one.line.line == 0 || other->line.line == 0)
        return f->steps[step].block == f->steps[other_step].block &&
               one.line.line == other->line.line;
    return one.line.line == other->line.line && same_text(one.line.file, other->line.file) &&
           same_text(one.function, other->function);
}

/* ---- stretches ---- */

/* The part of a step that is one row by itself: [first, end) around `insn`. */
static void stretch_of(const struct row_finding *f, uint64_t step, uint32_t insn, uint32_t *first,
                       uint32_t *end)
{
    uint32_t insns = f->steps[step].insns;

    *first = insn;
    *end = insn + 1;
    if (f->path->unit == TBD_PATH_INSNS)
        return;
    while (*first > 0 &&
           (f->path->unit == TBD_PATH_BLOCKS || is_same_line(f, step, *first - 1, step, insn)))
        --*first;
    while (*end < insns &&
           (f->path->unit == TBD_PATH_BLOCKS || is_same_line(f, step, *end, step, insn)))
        ++*end;
}

static bool belongs_to(const struct row_finding *f, const struct path_row *row, uint64_t step,
                       uint32_t insn)
{
    return f->path->unit == TBD_PATH_LINES && is_same_line(f, row->step, row->insn, step, insn);
}

/* Rows with the same count of blocks and instructions from the same place on. */
static bool is_same_row(const struct row_finding *f, const struct path_row *one,
                        const struct path_row *other)
{
    return one->times == 1 && one->blocks == other->blocks && one->insns == other->insns &&
           one->insn == other->insn && f->steps[one->step].block == f->steps[other->step].block;
}

static bool repeats(const struct row_finding *f, uint32_t length)
{
    const struct path_row *last = &f->rows[f->count - length];

    if (f->count < 2 * (size_t)length)
        return false;
    for (uint32_t i = 0; i < length; i++) {
        const struct path_row *before = &last[(ptrdiff_t)i - (ptrdiff_t)length];

        if (!is_same_row(f, &last[i], before) || (before->times != 1 && before->loop != length))
            return false;
    }
    return last[-(ptrdiff_t)length].times == last[-1].times;
}

/* Keeps PATH_ROWS-1. */
static void fold(struct row_finding *f)
{
    for (uint32_t length = 1; length <= LONGEST_LOOP && 2 * (size_t)length <= f->count; length++) {
        struct path_row *group = &f->rows[f->count - 2 * (size_t)length];

        if (!repeats(f, length))
            continue;
        for (uint32_t i = 0; i < length; i++) {
            group[i].times++;
            group[i].loop = length;
            if (!f->path->forward) { /* the group began earlier */
                group[i].step = group[i + length].step;
            } else {
                group[i].last_step = group[i + length].last_step;
            }
            TBD_INVARIANT("PATH_ROWS-1", group[i].times == group[0].times);
        }
        f->count -= length;
        return;
    }
}

/* Opens a row, when the one before is complete; false: there are enough. */
static bool begin_row(struct row_finding *f, struct path_row row)
{
    if (f->path->folds)
        fold(f);
    if (f->count == f->max)
        return false;
    f->rows[f->count++] = row;
    return true;
}

/* Takes the stretch around an instruction into the last row, or a new one. */
static bool take(struct row_finding *f, uint64_t step, uint32_t insn, uint32_t *first,
                 uint32_t *end)
{
    struct path_row *row = f->count != 0 ? &f->rows[f->count - 1] : NULL;

    stretch_of(f, step, insn, first, end);
    if (row == NULL || row->times != 1 || !belongs_to(f, row, step, *first))
        return begin_row(f,
                         (struct path_row){ step, step, *first, *first == 0, *end - *first, 1, 1 });
    if (!f->path->forward) {
        row->step = step;
        row->insn = *first;
    } else {
        row->last_step = step;
    }
    row->blocks += *first == 0;
    row->insns += *end - *first;
    return true;
}

/* As far as the stretch of the merged view goes, if there is one. */
static void find_backward(struct row_finding *f, uint64_t step)
{
    uint64_t begin = f->path->merged != NULL ? f->path->merged->first : 0;
    uint32_t first, end;

    while (step-- > begin)
        for (uint32_t insn = f->steps[step].insns; insn > 0; insn = first)
            if (!take(f, step, insn - 1, &first, &end))
                return;
    if (f->path->merged == NULL &&
        tbd_rings_back(f->thread, 0) < f->thread->older + f->thread->newest.count)
        f->path->on = tbd_rings_back(f->thread, 0) + 1;
}

/* From instruction `insn` of the step: the row that it lies in is whole. */
static void find_forward(struct row_finding *f, uint64_t step, uint32_t insn)
{
    uint32_t first, end;

    for (; step < f->thread->count; step++, insn = 0)
        for (; insn < f->steps[step].insns; insn = end)
            if (!take(f, step, insn, &first, &end))
                return;
    f->path->on = f->thread->after;
}

/* ---- rows as objects ---- */

static void put_text(struct tbd_path_rows *path, const struct tbd_source_line *line, json_t *row)
{
    const char *text = tbd_path_text(&path->sources, line);

    if (text != NULL)
        json_object_set_new(row, "text", tbd_output_text(text));
}

static void put_insn(const struct row_finding *f, const struct path_row *row, json_t *object)
{
    struct tbd_path_rows *path = f->path;
    uint32_t block = f->steps[row->step].block;
    const uint8_t *code = tbd_rings_code(path->ring, block, row->insn);
    const struct tbd_rings_insn *insn = &path->ring->blocks[block].insns[row->insn];
    char text[256];

    if (path->disas == NULL && tbd_disas_new(NULL, NULL, path->syntax, &path->disas) != TBD_OK)
        return;
    if (code != NULL)
        tbd_disas_text(path->disas, 0, code, insn->length, insn->pc, text, sizeof(text));
    json_object_set_new(object, "insn", tbd_output_text(code != NULL ? text : "(not known)"));
}

static void put_place(const struct row_finding *f, const struct tbd_rings_place *place,
                      json_t *object)
{
    char text[600];

    json_object_set_new(object, "pc", tbd_output_hex(place->address));
    if (place->function != NULL) {
        snprintf(text, sizeof(text), "%s!%s", place->module, place->function);
        json_object_set_new(object, "function", tbd_output_text(text));
    } else if (place->module != NULL) {
        json_object_set_new(object, "function", tbd_output_text(place->module));
    }
    if (place->line.line == 0)
        return;
    tbd_output_source_cell(place->line.file, place->line.line, object);
    if (f->path->with_text)
        put_text(f->path, &place->line, object);
}

/* "2026-03-01T12:34:56.123456Z" */
static json_t *when_text(uint64_t time_us)
{
    time_t seconds = (time_t)(time_us / 1000000);
    char day[40] = "", text[64];
    struct tm utc;

    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc) == 0)
        return json_null();
    snprintf(text, sizeof(text), "%s.%06uZ", day, (unsigned)(time_us % 1000000));
    return json_string(text);
}

static void put_kept(const struct tbd_rings *ring, uint64_t step, json_t *object)
{
    const struct tbd_crash_kept *row = ring->kept_rows[step];

    json_object_set_new(object, "thread", json_integer(row->tid));
    json_object_set_new(object, "part", tbd_output_text(ring->dump.parts[row->part].name));
}

static void put_merged(const struct tbd_path_merged *merged, json_t *object)
{
    json_t *beside = json_array();

    for (size_t i = 0; i < merged->beside_count; i++)
        json_array_append_new(beside, json_integer(merged->beside[i]));
    json_object_set_new(object, "group", json_integer((json_int_t)merged->group));
    json_object_set_new(object, "beside", beside);
}

static json_t *object_of(const struct row_finding *f, const struct path_row *row)
{
    const struct tbd_rings_step *last = &f->steps[row->last_step];
    struct tbd_rings_place place = *place_of(f, row->step, row->insn);
    json_t *object = json_object();
    char text[64];

    snprintf(text, sizeof(text), row->insn != 0 ? "-%" PRIu64 "+%" PRIu32 : "-%" PRIu64,
             tbd_rings_back(f->thread, row->step), row->insn);
    json_object_set_new(object, "back", json_string(text));
    if (f->path->when != NULL)
        json_object_set_new(object, "when", when_text(f->path->when[row->step].time_us));
    if (f->path->merged != NULL)
        put_merged(f->path->merged, object);
    if (f->path->is_kept)
        put_kept(f->path->ring, row->step, object);
    else if (f->path->when == NULL)
        json_object_set_new(object, "thread", json_integer(f->thread->tid));
    json_object_set_new(object, "blocks", json_integer((json_int_t)row->blocks));
    json_object_set_new(object, "insns", json_integer((json_int_t)row->insns));
    if (row->times > 1) {
        json_object_set_new(object, "times", json_integer((json_int_t)row->times));
        json_object_set_new(object, "loop", json_integer(row->loop));
    }
    if ((last->flags & TBD_RINGS_CUT) != 0)
        json_object_set_new(object, "cut", json_true());
    if ((last->flags & TBD_RINGS_UNCERTAIN) != 0)
        json_object_set_new(object, "uncertain", json_true());
    put_place(f, &place, object);
    if (f->path->unit == TBD_PATH_INSNS)
        put_insn(f, row, object);
    return object;
}

/* Does another call run after that step?  Names may mean other variables there. */
static bool leaves_frame(const struct row_finding *f, uint64_t step)
{
    enum tbd_rings_end end = f->path->ring->blocks[f->steps[step].block].end;

    return end == TBD_RINGS_CALLS || end == TBD_RINGS_CALLS_ANYWHERE || end == TBD_RINGS_RETURNS ||
           end == TBD_RINGS_SIGRETURN || end == TBD_RINGS_UNKNOWN ||
           (f->steps[step + 1].flags & TBD_RINGS_HANDLER) != 0;
}

/* Is the thread still in the same call when it gets from the row to the next one?  A jump to another function leaves it, too. */
static bool stays_in_frame(const struct row_finding *f, const struct path_row *row,
                           const struct path_row *next)
{
    for (uint64_t step = row->step; step < next->step; step++)
        if (leaves_frame(f, step))
            return false;
    return place_of(f, row->step, row->insn)->function_start ==
           place_of(f, next->step, next->insn)->function_start;
}

/* Row `i`, in the order in which rows ran, up to the next one. */
static struct tbd_path_span span_of(const struct row_finding *f, size_t i)
{
    const struct path_row *row = &f->rows[f->path->forward ? i : f->count - 1 - i];
    const struct path_row *next = &f->rows[f->path->forward ? i + 1 : f->count - 2 - i];
    struct tbd_path_span span = { .step = row->step,
                                  .insn = row->insn,
                                  .end_step = UINT64_MAX,
                                  .is_insn = f->path->unit == TBD_PATH_INSNS };

    if (i + 1 < f->count && next->times == 1 && stays_in_frame(f, row, next)) {
        span.end_step = next->step;
        span.end_insn = next->insn;
    }
    span.text = tbd_path_text(&f->path->sources, &place_of(f, row->step, row->insn)->line);
    return span;
}

/* ---- rows that one simulation serves ---- */

/* Row `i`, in the order in which rows ran. */
static const struct path_row *row_at(const struct row_finding *f, size_t i)
{
    return &f->rows[f->path->forward ? i : f->count - 1 - i];
}

/* Rows that were folded have none. */
static bool has_values(const struct path_row *row)
{
    return row->times == 1;
}

/* Would one simulation for both be about much that nobody asked for? */
static bool is_far(const struct row_finding *f, uint64_t from, uint64_t to)
{
    uint64_t insns = 0;

    for (uint64_t step = from; step < to && insns <= FAR_INSNS; step++)
        insns += f->steps[step].insns;
    return insns > FAR_INSNS;
}

/* From row `i` on: the first row whose values do not come together with its own; *out_last: the last step where these are wanted. */
static size_t rows_together(const struct row_finding *f, size_t i, uint64_t *out_last)
{
    uint64_t last = row_at(f, i)->step;

    for (; i < f->count; i++) {
        const struct path_row *row = row_at(f, i);

        if (!has_values(row))
            continue;
        if (is_far(f, last, row->step))
            break;
        last = row->step;
    }
    *out_last = last;
    return i;
}

/* Values of the rows from `i` on come next, up to the row that it returns. */
static size_t begin_values(const struct row_finding *f, size_t i, bool *out_have)
{
    uint64_t first, last;
    size_t end;

    while (i < f->count && !has_values(row_at(f, i)))
        i++;
    if (i == f->count)
        return i;
    first = row_at(f, i)->step;
    end = rows_together(f, i, &last);
    *out_have = tbd_path_values_begin(f->path->values, f->thread, first, last) == TBD_OK;
    return *out_have ? end : f->count;
}

static void put_rows(const struct row_finding *f, struct tbd_rows *rows)
{
    bool with_values = false;
    size_t begin = f->path->values != NULL ? 0 : f->count;

    for (size_t i = 0; i < f->count; i++) {
        const struct path_row *row = row_at(f, i);
        struct tbd_path_span span = { .step = 0 };
        json_t *object;

        if (i == begin)
            begin = begin_values(f, i, &with_values);
        if (with_values)
            span = span_of(f, i);
        if (f->path->values != NULL && !tbd_path_values_match(f->path->values, &span))
            continue;
        object = object_of(f, row);
        if (with_values && has_values(row))
            tbd_path_values_put(f->path->values, &span, object);
        tbd_rows_add(rows, object);
    }
}

/* How many rows there can be. */
static size_t most_rows(const struct row_finding *f, size_t max)
{
    const struct tbd_path_merged *merged = f->path->merged;
    uint64_t end = merged != NULL ? merged->end : f->thread->count, insns = 0;

    for (uint64_t i = merged != NULL ? merged->first : 0; f->steps != NULL && i < end; i++)
        insns += f->steps[i].insns;
    return insns < max ? (size_t)insns : max;
}

/* From the thread's first entry on, if it has not as many. */
static enum tbd_status reach_from(const struct tbd_path_rows *path, struct tbd_rings_thread *thread,
                                  uint64_t *from)
{
    uint64_t all = thread->older + thread->newest.count;

    *from = path->from > all ? all : path->from;
    if (*from == 0)
        return TBD_OK; /* the end of what is looked at */
    return tbd_rings_reach(path->ring, thread, *from);
}

/* The step before which rows are found. */
static uint64_t end_of_rows(const struct row_finding *f, uint64_t from)
{
    if (f->path->merged != NULL)
        return f->path->merged->end;
    return from != 0 ? tbd_rings_step_at(f->thread, from) + 1 : f->thread->count;
}

/* The caller frees f->rows. */
static enum tbd_status find(struct row_finding *f, size_t max)
{
    struct tbd_path_rows *path = f->path;
    uint64_t from;
    enum tbd_status status = reach_from(path, f->thread, &from);

    if (status != TBD_OK)
        return status;
    f->steps = tbd_rings_steps(path->ring, f->thread);
    f->max = most_rows(f, max);
    f->rows = calloc(f->max + 1, sizeof(*f->rows));
    path->on = 0;
    if (f->steps == NULL || f->rows == NULL)
        return TBD_NOMEM;
    if (path->forward)
        find_forward(f, tbd_rings_step_at(f->thread, from),
                     from == path->from ? path->from_insn : 0);
    else
        find_backward(f, end_of_rows(f, from));
    return TBD_OK;
}

enum tbd_status tbd_path_rows_add(struct tbd_path_rows *path, struct tbd_rings_thread *thread,
                                  size_t max, struct tbd_rows *rows)
{
    struct row_finding f = { .path = path, .thread = thread };
    enum tbd_status status = find(&f, max);

    if (status == TBD_OK)
        put_rows(&f, rows);
    free(f.rows);
    return status;
}

enum tbd_status tbd_path_rows_count(struct tbd_path_rows *path, struct tbd_rings_thread *thread,
                                    size_t max, size_t *out)
{
    struct row_finding f = { .path = path, .thread = thread };
    enum tbd_status status = find(&f, max);

    *out = f.count;
    free(f.rows);
    return status;
}

void tbd_path_rows_free(struct tbd_path_rows *path)
{
    tbd_disas_free(path->disas);
    tbd_path_texts_free(path->sources);
}
