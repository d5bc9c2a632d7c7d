// SPDX-License-Identifier: MIT
/* merge.c - several windows as one
 *
 * A merged window has the start state of the first part, the end state of the last, and all logs in
 * order; counts are summed, bits or-ed.  A page keeps its first and its last contents.  Contents in
 * between matter only if the page's mapping was removed before the end: then the contents just
 * before that are kept (GONE), as play would have sent them for one long window.
 *
 * Invariants
 * MERGE-1  Replay of the merged window sends the state that is made here: its dirty pages are the
 *     parts' dirty pages whose mapping stayed, readable, until the end. (not checked: test_merge
 *     compares pages before and after)
 * MERGE-2  Contents from the start of a part are contents from the start of the merged window, or
 *     from when the page's mapping was made in it. (not checked: test_merge compares pages before
 *     and after) */
#include "format/merging/merge.h"

#include "format/merging/merge_private.h"
#include "format/reading/window_read.h"
#include "format/trace/mappings.h"
#include "format/trace/trace_handle.h"
#include "format/window/opened.h"
#include "format/window/window_make.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u
/* Event numbers have 32 bits. */
#define EVENTS_MAX 0xf0000000u

/* ---- arrays of all parts, one after another ---- */

static void *merged_array(struct tbd_merge *m, size_t count, size_t element)
{
    return tbd_window_memory(m->out, count * element);
}

static bool merge_log(struct tbd_merge *m)
{
    struct tbd_log_entry *log;
    size_t count = 0;

    for (uint32_t i = 0; i < m->count; i++)
        count += m->parts[i].window->log_count;
    log = merged_array(m, count, sizeof(*log));
    if (!log)
        return false;
    m->out->log = log;
    for (uint32_t i = 0; i < m->count; i++) {
        const struct tbd_window *part = m->parts[i].window;

        for (size_t k = 0; k < part->log_count; k++)
            log[m->out->log_count++] =
                (struct tbd_log_entry){ part->log[k].time + m->shifts[i].time,
                                        part->log[k].message };
    }
    return true;
}

/* Is the call from before the first part: did the thread run in no earlier part? */
static bool is_early(const struct tbd_merge *m, uint32_t part, uint32_t thread)
{
    for (uint32_t i = 0; i < part; i++)
        if (tbd_trace_thread_ran(m->trace, m->first + i, thread))
            return false;
    return true;
}

static bool merge_early_calls(struct tbd_merge *m)
{
    struct tbd_early_call *calls;
    size_t count = 0;

    for (uint32_t i = 0; i < m->count; i++)
        count += m->parts[i].window->early_call_count;
    calls = merged_array(m, count, sizeof(*calls));
    if (!calls)
        return false;
    m->out->early_calls = calls;
    for (uint32_t i = 0; i < m->count; i++)
        for (size_t k = 0; k < m->parts[i].window->early_call_count; k++) {
            struct tbd_early_call call = m->parts[i].window->early_calls[k];

            call.time += (uint32_t)m->shifts[i].time;
            if (is_early(m, i, call.thread))
                calls[m->out->early_call_count++] = call;
        }
    return true;
}

static bool merge_stamps(struct tbd_merge *m)
{
    struct tbd_stamp *stamps;
    size_t count = 0;

    for (uint32_t i = 0; i < m->count; i++)
        count += m->parts[i].window->stamp_count;
    stamps = merged_array(m, count, sizeof(*stamps));
    if (!stamps)
        return false;
    m->out->stamps = stamps;
    for (uint32_t i = 0; i < m->count; i++)
        for (size_t k = 0; k < m->parts[i].window->stamp_count; k++) {
            struct tbd_stamp stamp = m->parts[i].window->stamps[k];

            stamp.time += m->shifts[i].time;
            stamps[m->out->stamp_count++] = stamp;
        }
    return true;
}

static bool merge_opened(struct tbd_merge *m)
{
    uint32_t later = 0; /* messages in the logs of the parts before */
    size_t count = 0;
    uint8_t *list;

    for (uint32_t i = 0; i < m->count; i++)
        count += m->parts[i].window->opened_bytes;
    list = merged_array(m, count, 1);
    if (!list)
        return false;
    m->out->opened = list;
    for (uint32_t i = 0; i < m->count; i++) {
        const struct tbd_window *part = m->parts[i].window;
        uint8_t *here = list + m->out->opened_bytes;

        if (part->opened_bytes) {
            memcpy(here, part->opened, part->opened_bytes);
            tbd_opened_move(here, part->opened_bytes, later);
        }
        m->out->opened_bytes += part->opened_bytes;
        later += (uint32_t)part->log_count;
    }
    return true;
}

/* ---- pages ---- */

struct page_lists {
    struct tbd_page_contents *dirty, *gone, *first;
};

/* The end of a page's contents from the end of a part: the first event in later parts that removes
 * its mapping, or makes it unreadable (then play sends it, too).  NULL: they last until the end. */
static const struct tbd_mapping_event *end_of_page(const struct tbd_merge *m, uint32_t part,
                                                   uint64_t address)
{
    struct tbd_moment after = { m->first + part, UINT32_MAX, UINT64_MAX };
    size_t count;
    const struct tbd_mapping_event *events = tbd_mapping_events(m->trace, &count);

    for (size_t i = tbd_mapping_events_before(m->trace, &after); i < count; i++) {
        const struct tbd_mapping_event *event = &events[i];

        if (event->when.window >= m->first + m->count)
            break;
        if (event->region.start <= address && address < event->region.end &&
            (event->unmap || !(event->region.prot & PROT_READ)))
            return event;
    }
    return NULL;
}

/* Did play itself send the page in the part where its mapping ended? */
static bool is_sent_again(const struct tbd_merge *m, const struct tbd_mapping_event *end,
                          uint64_t address)
{
    const struct tbd_window *window = m->parts[end->when.window - m->first].window;

    for (size_t i = 0; i < window->gone_count; i++)
        if (window->gone[i].address == address && window->gone[i].time <= end->when.time &&
            window->gone[i].order <= end->when.order)
            return true;
    return false;
}

static void put_dirty(struct tbd_merge *m, struct page_lists *lists, uint32_t part,
                      const struct tbd_page_contents *page)
{
    const struct tbd_mapping_event *end;
    const struct tbd_disk_shift *shift;

    if (!page->bytes) /* superseded */
        return;
    end = end_of_page(m, part, page->address);
    if (!end) {
        lists->dirty[m->out->dirty_count++] = *page;
        return;
    }
    if (is_sent_again(m, end, page->address))
        return;
    shift = &m->shifts[end->when.window - m->first];
    lists->gone[m->out->gone_count++] = (struct tbd_page_contents){
        .address = page->address,
        .time = end->when.time + shift->time,
        .order = end->when.order + shift->order - (end->when.order != 0),
        .bytes = page->bytes,
    };
}

/* MERGE-2 */
static bool put_first(struct tbd_merge *m, struct page_lists *lists, uint32_t part,
                      const struct tbd_page_contents *page)
{
    struct tbd_moment start = { .window = m->first + part };
    struct tbd_page_contents first = *page;
    const struct tbd_mapping_piece *piece = NULL;
    uint32_t from = part;

    if (!page->time && !page->order && part) {
        if (tbd_mapping_at_locked(m->trace, &start, page->address, &piece))
            return false;
        from = 0;
        if (piece && !piece->initial && piece->born.window >= m->first) {
            from = piece->born.window - m->first;
            first.time = piece->born.time;
            first.order = piece->born.order;
        }
    }
    first.time += m->shifts[from].time;
    first.order += m->shifts[from].order;
    lists->first[m->out->first_count++] = first;
    return true;
}

static bool fill_pages(struct tbd_merge *m, struct page_lists *lists)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const struct tbd_window *part = m->parts[i].window;

        for (size_t k = 0; k < part->dirty_count; k++)
            put_dirty(m, lists, i, &part->dirty[k]);
        for (size_t k = 0; k < part->gone_count; k++) {
            struct tbd_page_contents *page = &lists->gone[m->out->gone_count++];

            *page = part->gone[k];
            page->time += m->shifts[i].time;
            page->order += m->shifts[i].order;
        }
        for (size_t k = 0; k < part->first_count; k++)
            if (!put_first(m, lists, i, &part->first[k]))
                return false;
    }
    return true;
}

static bool merge_pages(struct tbd_merge *m)
{
    struct page_lists lists;
    size_t dirty = 0, gone = 0, first = 0;
    bool good;

    for (uint32_t i = 0; i < m->count; i++) {
        dirty += m->parts[i].window->dirty_count;
        gone += m->parts[i].window->gone_count;
        first += m->parts[i].window->first_count;
    }
    lists.dirty = merged_array(m, dirty, sizeof(*lists.dirty));
    lists.gone = merged_array(m, dirty + gone, sizeof(*lists.gone));
    lists.first = merged_array(m, first, sizeof(*lists.first));
    if (!lists.dirty || !lists.gone || !lists.first)
        return false;
    tbd_trace_lock(m->trace);
    good = fill_pages(m, &lists);
    tbd_trace_unlock(m->trace);
    tbd_page_contents_sort(lists.dirty, m->out->dirty_count);
    tbd_page_contents_sort(lists.gone, m->out->gone_count);
    tbd_page_contents_sort(lists.first, m->out->first_count);
    m->out->dirty = lists.dirty;
    m->out->gone = lists.gone;
    m->out->first = lists.first;
    return good;
}

/* ---- the whole ---- */

static uint64_t count_events(const struct tbd_merge *m, const struct tbd_window *window)
{
    uint64_t events = window->log_count;

    for (size_t i = 0; i < window->block_summary_count; i++) {
        const struct tbd_block *block = tbd_trace_block(m->trace, window->block_summaries[i].id);

        events += window->block_summaries[i].count * (1ull + (block ? block->def.op_count : 0));
    }
    return events;
}

/* Does the merged window need the page's contents from the end of the part that is being loaded?
 * No, if a later part has newer contents of the same mapping.  The last part is loaded first:
 * `later` has the pages of the parts after this one. */
static bool is_wanted(void *context, uint64_t address)
{
    struct tbd_merge *m = context;
    const uint32_t *next = tbd_page_numbers_find(&m->later, address);
    const struct tbd_mapping_event *end = next ? end_of_page(m, m->loading, address) : NULL;

    return !next || (end && *next >= end->when.window - m->first);
}

static enum tbd_status load_part(struct tbd_merge *m, uint32_t i, struct tbd_error *why)
{
    struct tbd_wanted_pages wanted = { is_wanted, m };
    struct tbd_merge_part *part = &m->parts[i];
    enum tbd_status status;

    m->loading = i;
    status = tbd_window_load_wanted(m->trace, m->first + i, &wanted, &part->window, why);
    for (size_t k = 0; !status && k < part->window->dirty_count; k++)
        if (!tbd_page_numbers_put(&m->later, part->window->dirty[k].address, i))
            status = TBD_NOMEM;
    return status;
}

static enum tbd_status load_parts(struct tbd_merge *m, struct tbd_error *why)
{
    enum tbd_status status = TBD_OK;

    for (uint32_t i = m->count; i-- && !status;)
        status = load_part(m, i, why);
    return status;
}

/* Computes how times and log positions in each part move. */
static enum tbd_status measure_parts(struct tbd_merge *m, struct tbd_error *why)
{
    uint64_t events = 0, blocks = 0, order = 0;
    enum tbd_level level = m->out->level;

    for (uint32_t i = 0; i < m->count; i++) {
        struct tbd_merge_part *part = &m->parts[i];

        m->shifts[i] = (struct tbd_disk_shift){ .time = blocks, .order = (uint32_t)order };
        part->events_before = events;
        events += count_events(m, part->window);
        blocks += part->window->blocks;
        order += part->window->log_count;
        level = part->window->level < level ? part->window->level : level;
        if (blocks > UINT32_MAX || (level > TBD_LEVEL_BITS && events > EVENTS_MAX) ||
            order > UINT32_MAX)
            return tbd_error_set(why, TBD_NOREPLAY, tbd_trace_path(m->trace), 0,
                                 "windows %u to %u would have too many events as one", m->first,
                                 m->first + m->count - 1);
    }
    m->out->level = level;
    m->out->blocks = blocks;
    return TBD_OK;
}

static void take_states(struct tbd_merge *m)
{
    const struct tbd_window *first = m->parts[0].window;
    const struct tbd_window *last = m->parts[m->count - 1].window;
    struct tbd_window *out = m->out;

    tbd_trace_adopt(m->trace, out);
    out->index = m->first;
    out->number = first->number;
    out->first_time = first->first_time;
    out->regs = first->regs;
    out->xsave = first->xsave;
    out->complete = last->complete;
    out->end_regs = last->end_regs;
    out->end_xsave = last->end_xsave;
    out->threads = first->threads;
    out->called = first->called;
    out->called_count = first->called_count;
    out->thread_count = first->thread_count;
    out->end_threads = last->end_threads;
    out->end_thread_count = last->end_thread_count;
}

/* The merged window takes over the parts' memory, as its pointers lead there. */
static bool inherit_parts(struct tbd_merge *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (!tbd_window_inherit(m->out, m->parts[i].window))
            return false;
        m->parts[i].window = NULL;
    }
    return true;
}

static enum tbd_status merge(struct tbd_merge *m, struct tbd_error *why)
{
    enum tbd_status status = load_parts(m, why);

    if (!status)
        status = measure_parts(m, why);
    if (status)
        return status;
    take_states(m);
    if (!merge_log(m) || !tbd_merge_read_pages(m) || !tbd_merge_words(m) || !tbd_merge_blocks(m) ||
        !merge_early_calls(m) || !merge_stamps(m) || !merge_opened(m) || !merge_pages(m) ||
        !inherit_parts(m))
        return tbd_error_set(why, TBD_NOMEM, tbd_trace_path(m->trace), 0, "window %u", m->first);
    m->out->digest = tbd_window_digest(m->out);
    return TBD_OK;
}

enum tbd_status tbd_merge_windows(struct tbd_trace *trace, uint32_t first, uint32_t count,
                                  enum tbd_level level, struct tbd_window **out,
                                  struct tbd_disk_shift *shifts, struct tbd_error *why)
{
    struct tbd_merge m = { .trace = trace,
                           .first = first,
                           .count = count,
                           .shifts = shifts,
                           .parts = calloc(count, sizeof(*m.parts)),
                           .out = tbd_window_new(tbd_trace_blocks(trace)) };
    enum tbd_status status = TBD_NOMEM;

    if (m.parts && m.out) {
        m.out->level = level < TBD_LEVEL_COUNTS ? level : TBD_LEVEL_COUNTS;
        status = merge(&m, why);
    }
    for (uint32_t i = 0; i < count && m.parts; i++)
        if (m.parts[i].window)
            tbd_window_free(m.parts[i].window);
    free(m.parts);
    tbd_page_numbers_free(&m.later);
    if (status && m.out)
        tbd_window_free(m.out);
    *out = status ? NULL : m.out;
    return status;
}
