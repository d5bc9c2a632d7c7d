// SPDX-License-Identifier: MIT
/* slices.c - see slices.h
 *
 * After each slice the replay process sends the state as at a window's end: registers of all
 * threads, and the contents of all mapped pages that the whole window modifies.  So one slice's end
 * state is the next one's start state.  The first slice has the window's start state, or the state
 * that the process sends before its first event.
 *
 * Invariants
 *
 * SLICES-1  A slice has the log messages that came while it ran: together, the slices have each
 *     message of the window's log once, in order.
 * SLICES-2  A slice is given to the caller after a comparison with the window's TOC: the log of
 *     each slice, the end state of the last.  (not checked: it is what compare() does) */
#include "replay/slices.h"

#include "base/assert.h"
#include "base/binary_search.h"
#include "format/window/window_make.h"
#include "replay/compare.h"
#include "replay/full.h"
#include "replay/replayer_private.h"
#include "replay/run_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The events of this many block entries take about 300 MB. */
#define SLICE_BLOCKS (16ull << 20)

struct tbd_slices {
    struct tbd_replayer *replayer;
    unsigned number;
    struct tbd_worker *worker;
    struct tbd_window *toc;    /* the whole window; owned */
    struct tbd_window *before; /* has the next slice's start state; owned; NULL: use the window's */
    struct tbd_full full;
    struct tbd_run_consumer consumer;
    struct tbd_worker_range range;
    uint64_t at;              /* relative time at which the next slice begins */
    size_t order;             /* log messages before it */
    struct tbd_called called; /* threads whose block before it ended with a call */
    bool is_running;          /* the process has not ended the replay yet */
    bool has_failed;
};

/* ---- number of slices ---- */

/* TBD_SLICE_BLOCKS is for tests: with it, small traces have slices, too. */
static uint64_t slice_blocks(void)
{
    const char *set = getenv("TBD_SLICE_BLOCKS");
    uint64_t blocks = set ? strtoull(set, NULL, 10) : 0;

    return blocks ? blocks : SLICE_BLOCKS;
}

uint32_t tbd_slice_count(const struct tbd_trace *trace, uint32_t window)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, window);
    uint64_t size = slice_blocks();

    if (!summary || !summary->complete || summary->blocks <= size ||
        summary->blocks / size >= UINT32_MAX)
        return 1;
    return (uint32_t)((summary->blocks + size - 1) / size);
}

uint64_t tbd_slice_time(const struct tbd_trace *trace, uint32_t window, uint32_t slice)
{
    return tbd_trace_window(trace, window)->first_time + slice * slice_blocks();
}

uint32_t tbd_slice_of(const struct tbd_trace *trace, uint32_t window, uint64_t time)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, window);
    uint32_t count = tbd_slice_count(trace, window);
    uint64_t slice;

    if (count == 1 || time < summary->first_time)
        return 0;
    slice = (time - summary->first_time) / slice_blocks();
    return slice < count ? (uint32_t)slice : count - 1;
}

/* ---- state between slices ---- */

static void *copy_bytes(struct tbd_window *to, const void *from, size_t bytes)
{
    void *copy = tbd_window_memory(to, bytes);

    if (copy && bytes)
        memcpy(copy, from, bytes);
    return copy;
}

/* The contents are contiguous.  NULL without memory. */
static const struct tbd_page_contents *
copy_pages(struct tbd_window *to, const struct tbd_page_contents *from, size_t count)
{
    struct tbd_page_contents *copy = copy_bytes(to, from, count * sizeof(*copy));
    uint8_t *bytes = tbd_window_large_buffer(to, count * TBD_PAGE_SIZE + 1);

    if (!copy || !bytes)
        return NULL;
    for (size_t i = 0; i < count; i++)
        copy[i].bytes = memcpy(bytes + i * TBD_PAGE_SIZE, from[i].bytes, TBD_PAGE_SIZE);
    return copy;
}

static const struct tbd_thread_state *
copy_threads(struct tbd_window *to, const struct tbd_thread_state *from, size_t count)
{
    struct tbd_thread_state *copy = copy_bytes(to, from, count * sizeof(*copy));
    bool good = copy;

    for (size_t i = 0; i < count && good; i++) {
        copy[i].xsave = copy_bytes(to, from[i].xsave, from[i].regs.xsave_bytes);
        good = copy[i].xsave;
    }
    return good ? copy : NULL;
}

struct state {
    const struct tbd_regs *regs;
    const uint8_t *xsave;
    const struct tbd_thread_state *threads;
    size_t thread_count;
    const struct tbd_page_contents *pages;
    size_t page_count;
};

static bool put_start(struct tbd_window *to, const struct state *from)
{
    to->regs = *from->regs;
    to->xsave = copy_bytes(to, from->xsave, from->regs->xsave_bytes);
    to->threads = copy_threads(to, from->threads, from->thread_count);
    to->thread_count = from->thread_count;
    to->start = copy_pages(to, from->pages, from->page_count);
    to->start_count = from->page_count;
    return to->xsave && to->threads && to->start;
}

static struct state start_of(const struct tbd_window *window)
{
    return (struct state){ &window->regs,        window->xsave, window->threads,
                           window->thread_count, window->start, window->start_count };
}

static struct state end_of(const struct tbd_window *window)
{
    return (struct state){ &window->end_regs,        window->end_xsave, window->end_threads,
                           window->end_thread_count, window->dirty,     window->dirty_count };
}

static bool keep(struct tbd_slices *s, const struct tbd_window *of, const struct state *state)
{
    tbd_window_free(s->before);
    s->before = tbd_window_new(of->blocks_by_id);
    return s->before && put_start(s->before, state);
}

/* Keeps the end state of `slice` for the next one. */
static bool keep_end(struct tbd_slices *s, const struct tbd_window *slice)
{
    struct state end = end_of(slice);

    return keep(s, slice, &end);
}

/* Does the replay begin with the first slice that is wanted? */
static bool begins_with_slice(const struct tbd_slices *s)
{
    return s->worker->slice && s->worker->slice->slice_time == s->range.from;
}

/* If so, its start state is known: keeps it. */
static bool keep_start(struct tbd_slices *s)
{
    struct state start;

    if (!begins_with_slice(s))
        return true;
    start = start_of(s->worker->slice);
    return keep(s, s->worker->slice, &start);
}

/* ---- begin and end ---- */

void tbd_slices_close(struct tbd_slices *s)
{
    if (!s)
        return;
    if (s->is_running)
        tbd_worker_stop(s->worker);
    s->worker->range = (struct tbd_worker_range){ 0 };
    tbd_replayer_finish(s->replayer, s->number, s->toc);
    tbd_window_free(s->before);
    free(s->called.threads);
    free(s);
}

/* Threads whose last block before the window ended with a call. */
static bool take_called(struct tbd_slices *s)
{
    size_t bytes = s->toc->called_count * sizeof(*s->toc->called);

    if (!bytes || s->range.from)
        return true;
    s->called.threads = malloc(bytes);
    if (!s->called.threads)
        return false;
    memcpy(s->called.threads, s->toc->called, bytes);
    s->called.count = s->called.capacity = s->toc->called_count;
    return true;
}

enum tbd_status tbd_slices_open_range(struct tbd_replayer *replayer, unsigned number,
                                      uint32_t window, uint32_t hooks,
                                      const struct tbd_worker_range *range,
                                      const struct tbd_window *slice, struct tbd_slices **out,
                                      struct tbd_error *why)
{
    struct tbd_window *toc;
    struct tbd_slices *s;
    enum tbd_status status = tbd_replayer_begin(replayer, number, window, false, &toc, why);

    *out = NULL;
    if (status != TBD_OK) {
        tbd_replayer_finish(replayer, number, toc);
        return status;
    }
    s = calloc(1, sizeof(*s));
    if (!s) {
        tbd_replayer_finish(replayer, number, toc);
        return tbd_process_error(why, TBD_NOMEM, "no memory");
    }
    *s = (struct tbd_slices){ .replayer = replayer,
                              .number = number,
                              .toc = toc,
                              .worker = &replayer->workers[number],
                              .range = *range,
                              .at = range->from };
    s->full = (struct tbd_full){ .worker = s->worker, .hooks = hooks };
    s->consumer = (struct tbd_run_consumer){ .begin = tbd_full_begin_events,
                                             .take = tbd_full_take_events,
                                             .has_enough = tbd_full_has_window,
                                             .context = &s->full };
    s->worker->range = *range;
    status = tbd_replayer_begin_slice(replayer, number, slice, why);
    if (status == TBD_OK && !(take_called(s) && keep_start(s)))
        status = tbd_process_error(why, TBD_NOMEM, "no memory");
    if (status != TBD_OK)
        tbd_slices_close(s);
    else
        *out = s;
    return status;
}

enum tbd_status tbd_slices_open(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                                uint32_t hooks, uint32_t first, uint32_t last,
                                struct tbd_slices **out, struct tbd_error *why)
{
    const struct tbd_window_summary *summary = tbd_trace_window(replayer->trace, window);
    struct tbd_worker_range range = { .slice = slice_blocks() };

    *out = NULL;
    if (worker >= replayer->count || !summary || first > last)
        return tbd_process_error(why, TBD_USAGE, "no worker %u, or no slice %u", worker, first);
    range.from = first * range.slice;
    range.until = (last + 1ull) * range.slice;
    if (range.until > summary->blocks)
        range.until = summary->blocks;
    if (range.from >= range.until)
        return tbd_process_error(why, TBD_USAGE, "no slice %u", first);
    return tbd_slices_open_range(replayer, replayer->count + worker, window, hooks, &range, NULL,
                                 out, why);
}

/* ---- a slice ---- */

/* The number of messages before the slice.  Messages at the time where the first slice begins may
 * belong to it or to the one before: this follows from what the process has sent. */
static size_t messages_before(const struct tbd_slices *s, const struct tbd_window *slice)
{
    const struct tbd_window *toc = s->toc;
    size_t upto = TBD_COUNT_BEFORE(i, toc->log_count, toc->log[i].time <= s->at);
    size_t own = TBD_COUNT_BEFORE(i, slice->log_count, slice->log[i].time == 0);

    return own < upto ? upto - own : 0;
}

static bool is_gone(const struct tbd_window *window, uint64_t address)
{
    for (size_t i = 0; i < window->gone_count; i++)
        if (window->gone[i].address == address)
            return true;
    return false;
}

/* With a touch map, the process sends the pages that it wrote. */
static enum tbd_status compare_pages(const struct tbd_slices *s, const struct tbd_window *slice,
                                     struct tbd_divergence *divergence, struct tbd_error *why)
{
    for (size_t i = 0; i < slice->dirty_count && s->full.hooks & TBD_HOOK_TOUCH; i++) {
        uint64_t address = slice->dirty[i].address;

        if (tbd_window_dirty(s->toc, address) || is_gone(s->toc, address))
            continue;
        if (divergence) {
            *divergence =
                (struct tbd_divergence){ .position = { slice->first_time + slice->blocks, 0 },
                                         .window = s->toc->index };
            snprintf(divergence->what, sizeof(divergence->what),
                     "page 0x%lx was modified, in play it was not", address);
        }
        return tbd_process_error(why, TBD_DIVERGED, "the replayed window differs");
    }
    return TBD_OK;
}

/* Keeps SLICES-2. */
static enum tbd_status compare(struct tbd_slices *s, const struct tbd_window *slice,
                               struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_window play = *s->toc;
    bool is_last = s->at + slice->blocks == play.blocks;
    size_t left = play.log_count - s->order;
    struct tbd_log_entry *log;
    enum tbd_status status;

    play.log_count = is_last || left < slice->log_count ? left : slice->log_count;
    log = malloc((play.log_count + 1) * sizeof(*log));
    if (!log)
        return tbd_process_error(why, TBD_NOMEM, "no memory");
    for (size_t i = 0; i < play.log_count; i++) {
        log[i] = s->toc->log[s->order + i];
        log[i].time -= s->at;
    }
    play.log = log;
    play.first_time += s->at;
    play.blocks =
        is_last || s->range.slice > play.blocks - s->at ? play.blocks - s->at : s->range.slice;
    play.complete = is_last;
    status = tbd_compare_windows(&play, slice, divergence);
    free(log);
    return status == TBD_OK ? compare_pages(s, slice, divergence, why)
                            : tbd_process_error(why, status, "the replayed window differs");
}

/* Adds the pages that were unmapped while it ran. */
static bool put_gone(struct tbd_slices *s, struct tbd_window *slice)
{
    const struct tbd_window *toc = s->toc;
    struct tbd_page_contents *gone = malloc((toc->gone_count + 1) * sizeof(*gone));
    size_t count = 0;

    if (!gone)
        return false;
    for (size_t i = 0; i < toc->gone_count; i++)
        if (toc->gone[i].order >= s->order && toc->gone[i].order < s->order + slice->log_count)
            gone[count++] = toc->gone[i];
    slice->gone = copy_pages(slice, gone, count);
    slice->gone_count = count;
    free(gone);
    return slice->gone;
}

/* Completes the slice from the events and the end state. */
static bool complete(struct tbd_slices *s, struct tbd_window *slice)
{
    const struct tbd_window *toc = s->toc;
    struct state start = start_of(s->before ? s->before : toc);

    slice->trace = s->replayer->trace;
    slice->level = TBD_LEVEL_BITS;
    slice->is_slice = true;
    slice->slice_time = s->at;
    slice->slice_order = (uint32_t)s->order;
    slice->words = copy_bytes(slice, toc->words, toc->word_count * sizeof(*toc->words));
    slice->word_count = toc->word_count;
    slice->dirty = copy_pages(slice, slice->dirty, slice->dirty_count);
    return slice->words && slice->dirty && put_start(slice, &start) && put_gone(s, slice) &&
           tbd_slice_calls(&s->called, s->toc, slice);
}

/* Runs the replay until a slice is complete. */
static enum tbd_status gather(struct tbd_slices *s, struct tbd_window **out,
                              struct tbd_divergence *divergence, struct tbd_error *why)
{
    bool is_over;
    enum tbd_status status = tbd_run_on(s->worker, &s->consumer, &is_over, divergence, why);

    if (status == TBD_OK && is_over)
        status = tbd_process_error(why, TBD_STUBDIED, "the window's stream has no end");
    if (status == TBD_OK)
        status = tbd_full_finish_events(s->worker, s->full.hooks, out, divergence, why);
    return status;
}

static enum tbd_status begin_window(struct tbd_slices *s, struct tbd_error *why)
{
    const struct tbd_window *start = s->before ? s->before : s->toc;

    if (tbd_gather_begin(s->worker->gather, s->worker->consumer, NULL, s->toc->first_time + s->at,
                         start->regs.thread) != TBD_OK)
        return tbd_process_error(why, TBD_NOMEM, "no memory");
    tbd_full_expect(s->worker, s->full.hooks);
    return TBD_OK;
}

/* The part before the first slice gives its start state, unless it is known. */
static enum tbd_status begin(struct tbd_slices *s, struct tbd_divergence *divergence,
                             struct tbd_error *why)
{
    enum tbd_status status = tbd_run_begin(s->worker, s->full.hooks, NULL, 0, &s->consumer, why);
    struct tbd_window *state = NULL;

    s->is_running = status == TBD_OK;
    if (status != TBD_OK || begins_with_slice(s) || !s->at)
        return status;
    status = gather(s, &state, divergence, why);
    if (status == TBD_OK && !keep_end(s, state))
        status = tbd_process_error(why, TBD_NOMEM, "no memory");
    tbd_window_free(state);
    return status == TBD_OK ? begin_window(s, why) : status;
}

/* After the last slice the process reports how the replay ended. */
static enum tbd_status end(struct tbd_slices *s, struct tbd_divergence *divergence,
                           struct tbd_error *why)
{
    bool is_over = false;
    enum tbd_status status = begin_window(s, why);

    if (status == TBD_OK)
        status = tbd_run_on(s->worker, &s->consumer, &is_over, divergence, why);
    s->is_running = status == TBD_OK && !is_over;
    return status;
}

static enum tbd_status next(struct tbd_slices *s, struct tbd_window **out,
                            struct tbd_divergence *divergence, struct tbd_error *why)
{
    bool is_first = s->at == s->range.from;
    enum tbd_status status = is_first ? begin(s, divergence, why) : begin_window(s, why);

    if (status == TBD_OK)
        status = gather(s, out, divergence, why);
    if (status != TBD_OK)
        return status;
    if (is_first)
        s->order = messages_before(s, *out);
    status = compare(s, *out, divergence, why);
    if (status == TBD_OK && (!complete(s, *out) || !keep_end(s, *out)))
        status = tbd_process_error(why, TBD_NOMEM, "no memory");
    s->at += (*out)->blocks;
    s->order += (*out)->log_count;
    TBD_INVARIANT("SLICES-1", status || s->order <= s->toc->log_count);
    return status == TBD_OK && s->at >= s->range.until ? end(s, divergence, why) : status;
}

enum tbd_status tbd_slices_next(struct tbd_slices *s, struct tbd_window **out,
                                struct tbd_divergence *divergence, struct tbd_error *why)
{
    enum tbd_status status;

    *out = NULL;
    if (s->has_failed || s->at >= s->range.until)
        return TBD_NOTFOUND;
    status = next(s, out, divergence, why);
    if (status == TBD_OK)
        return TBD_OK;
    s->has_failed = true;
    tbd_window_free(*out);
    *out = NULL;
    return status;
}

/* ---- one slice ---- */

enum tbd_status tbd_slices_only(struct tbd_replayer *replayer, unsigned number, uint32_t window,
                                uint32_t hooks, const struct tbd_worker_range *range,
                                const struct tbd_window *slice, struct tbd_window **out,
                                struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_slices *slices;
    enum tbd_status status =
        tbd_slices_open_range(replayer, number, window, hooks, range, slice, &slices, why);

    *out = NULL;
    if (status == TBD_OK)
        status = tbd_slices_next(slices, out, divergence, why);
    tbd_slices_close(slices);
    return status;
}

enum tbd_status tbd_replay_slice(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                                 uint32_t hooks, uint32_t slice, const struct tbd_window *before,
                                 struct tbd_window **out, struct tbd_divergence *divergence,
                                 struct tbd_error *why)
{
    const struct tbd_window_summary *summary = tbd_trace_window(replayer->trace, window);
    uint64_t blocks = slice_blocks();
    struct tbd_worker_range range = { slice * blocks, (slice + 1ull) * blocks, blocks };

    *out = NULL;
    if (!summary || range.from >= summary->blocks)
        return tbd_process_error(why, TBD_USAGE, "no slice %u", slice);
    if (range.until > summary->blocks)
        range.until = summary->blocks;
    return tbd_slices_only(replayer, worker, window, hooks, &range, before, out, divergence, why);
}

enum tbd_status tbd_slices_verify(struct tbd_replayer *replayer, unsigned number, uint32_t window,
                                  struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_worker_range range = { .until = tbd_trace_window(replayer->trace, window)->blocks,
                                      .slice = slice_blocks() };
    struct tbd_slices *slices;
    struct tbd_window *slice;
    enum tbd_status status =
        tbd_slices_open_range(replayer, number, window, TBD_HOOKS_PLAY, &range, NULL, &slices, why);

    while (status == TBD_OK) {
        status = tbd_slices_next(slices, &slice, divergence, why);
        tbd_window_free(slice);
    }
    tbd_slices_close(slices);
    return status == TBD_NOTFOUND ? TBD_OK : status;
}
