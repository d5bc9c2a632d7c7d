// SPDX-License-Identifier: MIT
/* diff_counts.c - see diff_counts.h
 *
 * A function was entered as often as the block at its first instruction.  A line ran as often as blocks in which one of
 * its statements begins. */
#include "query/diff/diff_counts.h"

#include "base/array.h"
#include "query/session/source/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct entry_counting {
    struct tbd_diff_side *side;
    struct tbd_diff_counts *out;
    uint32_t window; /* whose modules are looked at */
    bool no_memory;
};

static void add(struct entry_counting *counting, const char *name, uint64_t count)
{
    struct tbd_diff_counts *out = counting->out;
    struct tbd_diff_count *row;

    if (!tbd_array_grow(&out->all, out->count, &out->capacity, sizeof(*out->all))) {
        counting->no_memory = true;
        return;
    }
    row = &out->all[out->count];
    *row = (struct tbd_diff_count){ .name = strdup(name) };
    row->counts[counting->side->number] = count;
    counting->no_memory = counting->no_memory || row->name == NULL;
    out->count += row->name != NULL;
}

static void add_function(struct entry_counting *counting, const struct tbd_block *block,
                         uint64_t count)
{
    struct tbd_session *session = &counting->side->session;
    struct tbd_symbol symbol;
    char name[512];

    if (!tbd_symbols_at(session->symbols, counting->window, block->def.start, &symbol) ||
        !symbol.is_function || symbol.is_stub || symbol.is_part || symbol.start != block->def.start)
        return;
    snprintf(name, sizeof(name), "%s", symbol.name);
    add(counting, name, count);
}

static void add_line(struct entry_counting *counting, const struct tbd_source_line *line,
                     uint64_t count)
{
    const struct tbd_diff_side *side = counting->side;
    uint32_t number = tbd_diff_builds_line(side->builds, side->number, line->file, line->line);
    const char *slash = strrchr(line->file, '/');
    bool is_only = number >= TBD_DIFF_ONLY_SECOND;
    char name[512];

    snprintf(name, sizeof(name), "%s:%" PRIu32 "%s", slash == NULL ? line->file : slash + 1,
             number == 0 || is_only ? line->line : number, is_only ? " of B" : "");
    add(counting, name, count);
}

static void add_lines(struct entry_counting *counting, uint32_t id, const struct tbd_block *block,
                      uint64_t count)
{
    struct tbd_session *session = &counting->side->session;
    struct tbd_block_insn insn;
    uint32_t last = 0;

    for (uint32_t i = 0; i < block->def.insn_count; i++) {
        struct tbd_source_line line;

        if (!tbd_disas_insn(session->disas, id, i, &insn) ||
            !tbd_source_line_at(session, counting->window, insn.pc, &line))
            continue;
        if (line.begins && line.line != last)
            add_line(counting, &line, count);
        last = line.line;
    }
}

static int compare_names(const void *left, const void *right)
{
    const struct tbd_diff_count *a = left, *b = right;

    return strcmp(a->name, b->name);
}

static uint64_t distance(const struct tbd_diff_count *row)
{
    return row->counts[0] > row->counts[1] ? row->counts[0] - row->counts[1]
                                           : row->counts[1] - row->counts[0];
}

static int compare_distances(const void *left, const void *right)
{
    const struct tbd_diff_count *a = left, *b = right;

    if (distance(a) != distance(b))
        return distance(a) < distance(b) ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* Rows of one name become one; those that are equal on both sides go. */
static void join(struct tbd_diff_counts *out)
{
    size_t used = 0, from = 0;

    if (out->count != 0)
        qsort(out->all, out->count, sizeof(*out->all), compare_names);
    while (from < out->count) {
        struct tbd_diff_count row = out->all[from++];

        for (; from < out->count && strcmp(out->all[from].name, row.name) == 0; from++) {
            row.counts[0] += out->all[from].counts[0];
            row.counts[1] += out->all[from].counts[1];
            free(out->all[from].name);
        }
        if (row.counts[0] == row.counts[1])
            free(row.name);
        else
            out->all[used++] = row;
    }
    out->count = used;
    if (used != 0)
        qsort(out->all, used, sizeof(*out->all), compare_distances);
}

enum tbd_status tbd_diff_counts_make(struct tbd_diff_side sides[2], bool by_line,
                                     struct tbd_diff_counts *out)
{
    struct entry_counting counting = { .out = out };

    *out = (struct tbd_diff_counts){ .all = NULL };
    for (unsigned side = 0; side < 2; side++) {
        const struct tbd_trace *trace = sides[side].session.trace;

        counting.side = &sides[side];
        counting.window = tbd_trace_window_count(trace) - 1;
        for (uint32_t id = 1; id < sides[side].count_capacity; id++) {
            const struct tbd_block *block = tbd_trace_block(trace, id);
            const struct tbd_diff_code *code =
                id < sides[side].code_capacity ? &sides[side].codes[id] : NULL;

            if (sides[side].counts[id] == 0 || block == NULL || code == NULL ||
                (code->key == 0 && code->line_count == 0))
                continue;
            if (by_line)
                add_lines(&counting, id, block, sides[side].counts[id]);
            else
                add_function(&counting, block, sides[side].counts[id]);
        }
    }
    join(out);
    return counting.no_memory ? TBD_NOMEM : TBD_OK;
}

void tbd_diff_counts_free(struct tbd_diff_counts *counts)
{
    for (size_t i = 0; i < counts->count; i++)
        free(counts->all[i].name);
    free(counts->all);
    counts->all = NULL;
    counts->count = 0;
}
