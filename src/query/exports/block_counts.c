// SPDX-License-Identifier: MIT
/* block_counts.c - see block_counts.h
 *
 * BLOCK_COUNTS-1  Of each window all block entries are counted, or none: a summary whose counts do not add up to them is
 *     not used. (not checked: test_exports compares with gcov) */
#include "query/exports/block_counts.h"

#include "format/reading/window_read.h"
#include "format/window/cursor.h"
#include "query/text/user_interrupt.h"

#include <stdlib.h>

static void add(struct tbd_block_counts *counts, uint32_t id, uint64_t count, uint32_t window)
{
    if (id >= counts->capacity)
        return;
    counts->all[id].count += count;
    counts->all[id].window = window;
}

/* False: the summary has no counts. */
static bool add_summary(struct tbd_block_counts *counts, const struct tbd_window *window)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < window->block_summary_count; i++)
        sum += window->block_summaries[i].count;
    if (sum != window->blocks)
        return false;
    for (size_t i = 0; i < window->block_summary_count; i++)
        add(counts, window->block_summaries[i].id, window->block_summaries[i].count, window->index);
    return true;
}

static void add_events(struct tbd_block_counts *counts, const struct tbd_window *window)
{
    struct tbd_cursor cursor;

    tbd_cursor_first(window, &cursor);
    while (cursor.kind != TBD_AT_END) {
        if (cursor.kind == TBD_AT_BLOCK)
            add(counts, cursor.id, 1, window->index);
        (void)tbd_cursor_skip_block(&cursor);
    }
}

static void add_all(struct tbd_block_counts *counts, const struct tbd_block_counts *of,
                    uint32_t window)
{
    for (uint32_t id = 0; id < of->capacity; id++) {
        if (of->all[id].count != 0)
            add(counts, id, of->all[id].count, window);
    }
}

static enum tbd_status count_slices(struct tbd_session *session, uint32_t index, uint32_t slices,
                                    struct tbd_block_counts *counts)
{
    const struct tbd_window *window;
    enum tbd_status status = TBD_OK;

    for (uint32_t i = 0; i < slices && status == TBD_OK; i++) {
        struct tbd_session_slice slice = { .window = index, .slice = i, .last = slices - 1 };

        status = tbd_session_slice(session, &slice, &window);
        if (status == TBD_OK)
            add_events(counts, window);
    }
    return status;
}

/* Keeps BLOCK_COUNTS-1: a later slice may fail. */
static enum tbd_status count_replayed(struct tbd_session *session, uint32_t index,
                                      struct tbd_block_counts *counts)
{
    uint32_t slices = tbd_session_slices(session, index, false);
    struct tbd_block_counts own = { .capacity = counts->capacity };
    enum tbd_status status;

    if (slices <= 1)
        return count_slices(session, index, slices, counts);
    own.all = calloc(own.capacity, sizeof(*own.all));
    status = own.all == NULL ? TBD_NOMEM : count_slices(session, index, slices, &own);
    if (status == TBD_OK)
        add_all(counts, &own, index);
    tbd_block_counts_free(&own);
    tbd_session_end_slices(session);
    return status;
}

static enum tbd_status count_window(struct tbd_session *session, uint32_t index,
                                    struct tbd_block_counts *counts)
{
    const struct tbd_window_summary *summary = tbd_trace_window(session->trace, index);
    struct tbd_window *window = NULL;
    enum tbd_status status;
    bool is_counted;

    if (summary->level < TBD_LEVEL_COUNTS || summary->is_uncounted)
        return count_replayed(session, index, counts);
    status = tbd_window_load_summaries(session->trace, index, &window, &session->why);
    if (status != TBD_OK)
        return status;
    is_counted = add_summary(counts, window);
    tbd_window_free(window);
    return is_counted ? TBD_OK : count_replayed(session, index, counts);
}

enum tbd_status tbd_block_counts_make(struct tbd_session *session, struct tbd_block_counts *out)
{
    uint32_t windows = tbd_trace_window_count(session->trace);
    enum tbd_status status = TBD_OK;

    out->capacity = tbd_trace_block_count(session->trace) + 1;
    out->all = calloc(out->capacity, sizeof(*out->all));
    if (out->all == NULL)
        return TBD_NOMEM;
    for (uint32_t i = 0; i < windows && status == TBD_OK; i++) {
        if (tbd_is_interrupted())
            return TBD_INTERRUPTED;
        status = count_window(session, i, out);
        if (!tbd_session_is_of_window(status))
            continue;
        tbd_session_leave_out(session, i, status);
        status = TBD_OK;
    }
    return status;
}

void tbd_block_counts_free(struct tbd_block_counts *counts)
{
    free(counts->all);
    *counts = (struct tbd_block_counts){ 0 };
}
