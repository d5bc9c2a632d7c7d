// SPDX-License-Identifier: MIT
/* replayer.c - the interface of replay.h: workers, windows, registers at positions
 *
 * Each worker has its own handle on the trace and its own replay process; both are made when they
 * are first needed. */
#include "replay/replay.h"

#include "base/binary_search.h"
#include "format/files/file.h"
#include "format/reading/window_read.h"
#include "format/window/window_make.h"
#include "replay/compare.h"
#include "replay/full.h"
#include "replay/native/stops_window.h"
#include "replay/replayer_private.h"
#include "replay/run_plan.h"

#include <stdlib.h>
#include <string.h>

enum tbd_status tbd_replayer_new(struct tbd_trace *trace, unsigned workers,
                                 struct tbd_replayer **out, struct tbd_error *why)
{
    struct tbd_replayer *replayer = NULL;

    *out = NULL;
    if (!workers)
        return tbd_process_error(why, TBD_USAGE, "a replayer needs a worker");
    replayer = calloc(1, sizeof(*replayer) + 2 * workers * sizeof(struct tbd_worker));
    if (!replayer)
        return tbd_process_error(why, TBD_NOMEM, "no memory");
    replayer->trace = trace;
    replayer->count = workers;
    *out = replayer;
    return TBD_OK;
}

void tbd_replayer_free(struct tbd_replayer *replayer)
{
    if (!replayer)
        return;
    for (unsigned i = 0; i < 2 * replayer->count; i++) {
        struct tbd_worker *worker = &replayer->workers[i];

        tbd_worker_stop(worker);
        tbd_window_free(worker->kept);
        tbd_builder_free(worker->builder);
        tbd_gather_free(worker->gather);
        tbd_skim_free(worker->skim);
        tbd_block_table_release(worker->loads);
        tbd_block_table_release(worker->noted);
        free(worker->notes);
        tbd_trace_close(worker->trace);
        free(worker->code);
        free(worker->pages);
        free(worker->given);
        free(worker->before);
    }
    free(replayer);
}

/* ---- a worker with a window ---- */

/* The first worker keeps its last window: questions at a prompt, which are its, are about the same one again and again. */
#define KEEPING_WORKER 0u

static struct tbd_window *take_kept(struct tbd_worker *worker, uint32_t index)
{
    struct tbd_window *window = worker->kept;

    worker->kept = NULL;
    if (window && window->index == index)
        return window;
    tbd_window_free(window);
    return NULL;
}

enum tbd_status tbd_replayer_begin(struct tbd_replayer *replayer, unsigned number, uint32_t index,
                                   bool with_events, struct tbd_window **out_window,
                                   struct tbd_error *why)
{
    struct tbd_worker *worker;
    enum tbd_status status = TBD_OK;

    *out_window = NULL;
    if (number >= 2 * replayer->count)
        return tbd_process_error(why, TBD_USAGE, "no worker %u", number);
    worker = &replayer->workers[number];
    if (!worker->trace)
        status = tbd_trace_open_again(replayer->trace, &worker->trace, why);
    if (status == TBD_OK)
        status =
            tbd_trace_regions(worker->trace, index, &worker->regions, &worker->region_count, why);
    if (status == TBD_OK && !with_events)
        *out_window = take_kept(worker, index);
    if (status == TBD_OK && !*out_window)
        status = tbd_window_load(worker->trace, index, with_events, out_window, why);
    worker->window = *out_window;
    return status;
}

static bool is_mapped(const struct tbd_region *regions, size_t count, uint64_t address)
{
    size_t found = TBD_COUNT_BEFORE(i, count, regions[i].end <= address);

    return found < count && regions[found].start <= address &&
           !(regions[found].flags & (TBD_REGION_PATCH | TBD_REGION_VVAR));
}

/* Has the slice all pages?  The process could not send pages that it cannot read (PROT_NONE). */
static bool has_pages(const struct tbd_window *slice, const struct tbd_page_contents *pages,
                      size_t page_count, const struct tbd_region *regions, size_t count)
{
    for (size_t i = 0; i < page_count; i++)
        if (!tbd_window_start(slice, pages[i].address) &&
            is_mapped(regions, count, pages[i].address))
            return false;
    return true;
}

enum tbd_status tbd_replayer_begin_slice(struct tbd_replayer *replayer, unsigned number,
                                         const struct tbd_window *slice, struct tbd_error *why)
{
    struct tbd_worker *worker = &replayer->workers[number];
    const struct tbd_window *window = worker->window;
    const struct tbd_region *regions;
    size_t count;
    enum tbd_status status;

    if (!slice)
        return TBD_OK;
    status = tbd_slice_regions(worker->trace, slice, &regions, &count, why);
    if (status != TBD_OK || !has_pages(slice, window->dirty, window->dirty_count, regions, count) ||
        !has_pages(slice, window->gone, window->gone_count, regions, count))
        return status;
    worker->slice = slice;
    worker->regions = regions;
    worker->region_count = count;
    return TBD_OK;
}

void tbd_replayer_finish(struct tbd_replayer *replayer, unsigned number, struct tbd_window *window)
{
    if (number < 2 * replayer->count) {
        free(replayer->workers[number].code);
        replayer->workers[number].code = NULL;
        replayer->workers[number].window = replayer->workers[number].slice = NULL;
    }
    if (number == KEEPING_WORKER && window && !window->has_events) {
        tbd_window_free(replayer->workers[number].kept);
        replayer->workers[number].kept = window;
    } else {
        tbd_window_free(window);
    }
}

/* For callers of replay.h, who only use the first process of each worker. */
static enum tbd_status begin(struct tbd_replayer *replayer, unsigned number, uint32_t index,
                             bool with_events, struct tbd_window **out_window,
                             struct tbd_error *why)
{
    *out_window = NULL;
    if (number >= replayer->count)
        return tbd_process_error(why, TBD_USAGE, "no worker %u", number);
    return tbd_replayer_begin(replayer, number, index, with_events, out_window, why);
}

/* In a damaged trace a replay may differ because data is lost (block definitions, pages of other
 * windows).  Then the window counts as damaged, like one whose own file is damaged. */
static enum tbd_status judge(const struct tbd_replayer *replayer, uint32_t window,
                             enum tbd_status status, const struct tbd_divergence *divergence,
                             struct tbd_error *why)
{
    const struct tbd_trace_info *info = tbd_trace_info(replayer->trace);

    if (status != TBD_DIVERGED || !info->damage_count)
        return status;
    return tbd_error_set(why, TBD_CORRUPT, info->path, 0,
                         "window %u cannot be replayed without what is lost: %s%s%.100s", window,
                         tbd_trace_damage(replayer->trace, 0), divergence ? ": " : "",
                         divergence ? divergence->what : "");
}

enum tbd_isolation tbd_replay_isolation(void)
{
    return tbd_process_isolation();
}

uint64_t tbd_replayer_entries(const struct tbd_replayer *replayer)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < 2 * replayer->count; i++)
        sum += replayer->workers[i].asked;
    return sum;
}

/* ---- registers at positions ---- */

static bool are_valid(const struct tbd_window *window, const struct tbd_reg_state *states,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct tbd_position *now = &states[i].position;
        const struct tbd_position *before = &states[i ? i - 1 : 0].position;

        if (now->time < window->first_time || now->time > window->first_time + window->blocks)
            return false;
        if (now->time < before->time || (now->time == before->time && now->offset < before->offset))
            return false;
    }
    return true;
}

/* Finds the thread among the waiting ones. */
static bool put_waiting(struct tbd_reg_state *state, const struct tbd_thread_state *threads,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (threads[i].regs.thread == state->thread) {
            tbd_reg_state_put(state, &threads[i].regs, threads[i].xsave);
            return true;
        }
    return false;
}

/* Does a signal or a turn precede its first block? */
static bool begins_with_message(const struct tbd_window *window)
{
    size_t first = tbd_window_begins_with(window, TBD_MSG_STOPS); /* about the window as a whole */

    return window->log_count > first && !window->log[first].time;
}

/* Positions that need no replay: the window's start and end. */
static bool is_known(const struct tbd_window *window, struct tbd_reg_state *state)
{
    if (state->position.offset)
        return false;
    if (state->position.time == window->first_time && !begins_with_message(window)) {
        if (state->thread && state->thread != window->regs.thread)
            return put_waiting(state, window->threads, window->thread_count);
        tbd_reg_state_put(state, &window->regs, window->xsave);
        return true;
    }
    if (window->complete && state->position.time == window->first_time + window->blocks) {
        if (state->thread && state->thread != window->end_regs.thread)
            return put_waiting(state, window->end_threads, window->end_thread_count);
        tbd_reg_state_put(state, &window->end_regs, window->end_xsave);
        return true;
    }
    return false;
}

/* `made`: the stop in our copy of the plan; `stop`: as the process has filled it. */
static void put_stack(const struct tbd_worker *worker, struct tbd_reg_state *state,
                      const struct tbd_plan_stop *made, const struct tbd_plan_stop *stop)
{
    if (!state->stack || stop->stack_bytes > state->stack_capacity ||
        !tbd_process_plan_read(&worker->process, made->stack, state->stack, stop->stack_bytes))
        return;
    state->stack_start = stop->stack_start;
    state->stack_bytes = stop->stack_bytes;
}

static bool put_stop(const struct tbd_worker *worker, struct tbd_reg_state *state,
                     const struct tbd_plan_stop *made, const struct tbd_plan_stop *stop)
{
    uint8_t image[TBD_PLAN_XSAVE_BYTES];

    if (!stop->done || stop->regs.xsave_bytes > sizeof(image) ||
        !tbd_process_plan_read(&worker->process, made->xsave, image, stop->regs.xsave_bytes))
        return false;
    tbd_reg_state_put(state, &stop->regs, image);
    put_stack(worker, state, made, stop);
    return true;
}

static enum tbd_status take_states(struct tbd_worker *worker, struct tbd_reg_state *states,
                                   size_t count, struct tbd_error *why)
{
    uint64_t offset = worker->process.plan->stops.offset;
    const struct tbd_plan_stop *made = tbd_process_plan_at(&worker->process, offset);

    for (size_t i = 0; i < count; i++) {
        struct tbd_plan_stop stop = { 0 };
        bool is_there =
            tbd_process_plan_read(&worker->process, offset + i * sizeof(stop), &stop, sizeof(stop));

        if (stop.done == TBD_STOP_NO_THREAD)
            return tbd_error_set(why, TBD_NOTFOUND, "", 0, "there is no thread %u at %lu+%u",
                                 states[i].thread, states[i].position.time,
                                 states[i].position.offset);
        if (!is_there || !put_stop(worker, &states[i], &made[i], &stop))
            return tbd_process_error(why, TBD_NOTIME, "position %lu+%u was not reached",
                                     states[i].position.time, states[i].position.offset);
    }
    return TBD_OK;
}

static enum tbd_status replay_states(struct tbd_worker *worker, struct tbd_reg_state *states,
                                     size_t count, struct tbd_divergence *divergence,
                                     struct tbd_error *why)
{
    enum tbd_status status;

    while (count && is_known(worker->window, &states[0])) {
        states++;
        count--;
    }
    while (count && is_known(worker->window, &states[count - 1]))
        count--;
    if (!count)
        return TBD_OK;
    status = tbd_run_plan(worker, TBD_HOOKS_PARTIAL, states, count, NULL, divergence, why);
    return status == TBD_OK ? take_states(worker, states, count, why) : status;
}

enum tbd_status tbd_replay_regs(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                                const struct tbd_window *slice, struct tbd_reg_state *states,
                                size_t count, struct tbd_divergence *divergence,
                                struct tbd_error *why)
{
    struct tbd_window *loaded;
    enum tbd_status status = begin(replayer, worker, window, false, &loaded, why);

    if (status == TBD_OK && !are_valid(loaded, states, count))
        status =
            tbd_process_error(why, TBD_NOTIME, "positions are not in window %u, in order", window);
    if (status == TBD_OK && slice && count && states[0].position.time >= slice->first_time)
        status = tbd_replayer_begin_slice(replayer, worker, slice, why);
    if (status == TBD_OK)
        status = replay_states(&replayer->workers[worker], states, count, divergence, why);
    tbd_replayer_finish(replayer, worker, loaded);
    return judge(replayer, window, status, divergence, why);
}

/* ---- whole windows ---- */

/* Compares the worker's window in play with its replay. */
static enum tbd_status compare(struct tbd_worker *worker, const struct tbd_window *play,
                               const struct tbd_window *replay, struct tbd_divergence *divergence,
                               struct tbd_error *why)
{
    enum tbd_status status = tbd_compare_windows(play, replay, divergence);

    if (status != TBD_OK)
        return tbd_process_error(why, status, "the replayed window differs");
    tbd_worker_at_end(worker);
    return TBD_OK;
}

static enum tbd_status replay_whole(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                                    uint32_t hooks, bool with_index, struct tbd_window **out,
                                    struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_window *toc, *made = NULL;
    enum tbd_status status;

    *out = NULL;
    status = begin(replayer, worker, window, false, &toc, why);
    if (status == TBD_OK && !toc->complete)
        hooks |= TBD_HOOK_TOUCH; /* play has not said which pages were written */
    if (status == TBD_OK)
        status = tbd_full_replay(&replayer->workers[worker], hooks, &made, divergence, why);
    if (status == TBD_OK)
        status = compare(&replayer->workers[worker], toc, made, divergence, why);
    tbd_replayer_finish(replayer, worker, NULL);
    if (status == TBD_OK && with_index)
        status = tbd_full_index(made, why);
    if (status == TBD_OK)
        status = tbd_full_complete(made, toc, why);
    if (status != TBD_OK) {
        tbd_window_free(made);
        tbd_window_free(toc);
        return judge(replayer, window, status, divergence, why);
    }
    made->trace = replayer->trace;
    *out = made;
    return TBD_OK;
}

enum tbd_status tbd_replay_full(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                                uint32_t hooks, struct tbd_window **out,
                                struct tbd_divergence *divergence, struct tbd_error *why)
{
    return replay_whole(replayer, worker, window, hooks, true, out, divergence, why);
}

enum tbd_status tbd_replay_counts(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                                  struct tbd_window **out, struct tbd_divergence *divergence,
                                  struct tbd_error *why)
{
    return replay_whole(replayer, worker, window, TBD_HOOKS_FULL, false, out, divergence, why);
}

static enum tbd_status replay_events(struct tbd_replayer *replayer, unsigned worker,
                                     struct tbd_window *toc, uint32_t hooks,
                                     struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_window *made;
    enum tbd_status status =
        tbd_full_events(&replayer->workers[worker], hooks, &made, divergence, why);

    if (status == TBD_OK)
        status = compare(&replayer->workers[worker], toc, made, divergence, why);
    if (status == TBD_OK && !tbd_window_take_events(toc, made))
        status = tbd_process_error(why, TBD_NOMEM, "no memory");
    else if (status == TBD_OK)
        return TBD_OK;
    tbd_window_free(made);
    return status;
}

enum tbd_status tbd_replay_events(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                                  uint32_t hooks, struct tbd_window **out,
                                  struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_window *toc;
    enum tbd_status status;

    *out = NULL;
    if (window < tbd_trace_window_count(replayer->trace) &&
        !tbd_trace_window(replayer->trace, window)->complete)
        return tbd_replay_full(replayer, worker, window, hooks, out, divergence, why);
    status = begin(replayer, worker, window, false, &toc, why);
    if (status == TBD_OK)
        status = replay_events(replayer, worker, toc, hooks, divergence, why);
    tbd_replayer_finish(replayer, worker, NULL);
    if (status != TBD_OK) {
        tbd_window_free(toc);
        return judge(replayer, window, status, divergence, why);
    }
    toc->trace = replayer->trace;
    toc->has_loads = (hooks & TBD_HOOK_LOADS) != 0;
    *out = toc;
    return TBD_OK;
}

/* The window `toc` was replayed to `made`, with this status. */
static enum tbd_status end_skim(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                                struct tbd_window *toc, struct tbd_window *made,
                                enum tbd_status status, struct tbd_divergence *divergence,
                                struct tbd_error *why)
{
    if (status == TBD_OK)
        status = compare(&replayer->workers[worker], toc, made, divergence, why);
    tbd_replayer_finish(replayer, worker, toc);
    tbd_window_free(made);
    return judge(replayer, window, status, divergence, why);
}

enum tbd_status tbd_replay_skim(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                                const struct tbd_skim_listener *listener,
                                struct tbd_divergence *divergence, struct tbd_error *why)
{
    uint32_t hooks = TBD_HOOKS_FULL | (listener->records ? 0 : TBD_PLAN_ENTRIES);
    struct tbd_window *toc, *made = NULL;
    enum tbd_status status = begin(replayer, worker, window, false, &toc, why);

    if (status == TBD_OK)
        status =
            tbd_skim_window(&replayer->workers[worker], hooks, listener, &made, divergence, why);
    return end_skim(replayer, worker, window, toc, made, status, divergence, why);
}

/* Replays with the sites of all windows so far; for a slice, only the slice. */
static enum tbd_status replay_notes(struct tbd_replayer *replayer, unsigned worker,
                                    const struct tbd_window *window, struct tbd_window **out,
                                    struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_worker_range range = { window->slice_time, window->slice_time + window->blocks,
                                      window->blocks };
    uint32_t hooks = TBD_HOOK_BLOCKS | TBD_HOOK_NOTES;
    struct tbd_window *toc;
    enum tbd_status status;

    if (window->is_slice)
        return tbd_slices_only(replayer, worker, window->index, hooks, &range, window, out,
                               divergence, why);
    status = begin(replayer, worker, window->index, false, &toc, why);
    if (status == TBD_OK)
        status = tbd_full_events(&replayer->workers[worker], hooks, out, divergence, why);
    if (status == TBD_OK)
        status = compare(&replayer->workers[worker], toc, *out, divergence, why);
    if (status != TBD_OK) {
        tbd_window_free(*out);
        *out = NULL;
    }
    tbd_replayer_finish(replayer, worker, toc);
    return status;
}

enum tbd_status tbd_replay_notes(struct tbd_replayer *replayer, unsigned worker,
                                 const struct tbd_window *window, const struct tbd_note_site *sites,
                                 size_t count, struct tbd_window **out,
                                 struct tbd_divergence *divergence, struct tbd_error *why)
{
    *out = NULL;
    if (worker >= replayer->count)
        return tbd_process_error(why, TBD_USAGE, "no worker %u", worker);
    if (!tbd_worker_add_notes(&replayer->workers[worker], sites, count))
        return tbd_process_error(why, TBD_NOMEM, "no memory for notes");
    return judge(replayer, window->index,
                 replay_notes(replayer, worker, window, out, divergence, why), divergence, why);
}

enum tbd_status tbd_replay_skim_notes(struct tbd_replayer *replayer, unsigned worker,
                                      uint32_t window, const struct tbd_note_site *sites,
                                      size_t count, const struct tbd_note_listener *listener,
                                      struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_window *toc, *made = NULL;
    enum tbd_status status;

    if (!tbd_worker_add_notes(&replayer->workers[worker], sites, count))
        return tbd_process_error(why, TBD_NOMEM, "no memory for notes");
    status = begin(replayer, worker, window, false, &toc, why);
    if (status == TBD_OK)
        status = tbd_skim_notes(&replayer->workers[worker], listener, &made, divergence, why);
    return end_skim(replayer, worker, window, toc, made, status, divergence, why);
}

/* A window below level 3 has no events; everything else is compared. */
static enum tbd_status begin_verify(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                                    enum tbd_verify how, struct tbd_window **out,
                                    struct tbd_error *why)
{
    const struct tbd_window_summary *summary;

    if (window >= tbd_trace_window_count(replayer->trace))
        return tbd_process_error(why, TBD_NOWINDOW, "no window %u", window);
    summary = tbd_trace_window(replayer->trace, window);
    return begin(replayer, worker, window,
                 how == TBD_VERIFY_ALL && summary->level >= TBD_LEVEL_EVENTS, out, why);
}

/* The first window, and then one in this many, has its records looked at, too: do they have the lengths that their blocks say? */
#define WINDOWS_A_LOOK 16u

/* Nothing of what the replay makes is needed but its end and its log: so its blocks are only counted, and its records, though translated
 * code writes them, go aside.  If that says anything but that all is well, its entries say where. */
static enum tbd_status skim_to_compare(struct tbd_worker *worker, uint32_t hooks,
                                       struct tbd_window **out, struct tbd_divergence *divergence,
                                       struct tbd_error *why)
{
    uint32_t unread = TBD_PLAN_COUNTS | TBD_PLAN_ASIDE;
    struct tbd_divergence first = { 0 };
    enum tbd_status status, again;

    if (worker->window->index % WINDOWS_A_LOOK == 0)
        return tbd_skim_window(worker, hooks, NULL, out, divergence, why);
    status = tbd_skim_window(worker, hooks | unread, NULL, out, &first, why);
    if (status != TBD_DIVERGED && status != TBD_NOTFOUND)
        return status;
    again = tbd_skim_window(worker, hooks, NULL, out, divergence, why);
    if (again || status == TBD_NOTFOUND)
        return again;
    tbd_window_free(*out);
    *out = NULL;
    if (divergence)
        *divergence = first;
    return tbd_process_error(why, status, "%s", first.what);
}

/* The end of a window that is not counted is compared already. */
static enum tbd_status replay_to_compare(struct tbd_worker *worker, uint32_t hooks,
                                         struct tbd_window **out, struct tbd_divergence *divergence,
                                         struct tbd_error *why)
{
    if (tbd_window_begins_with(worker->window, TBD_MSG_STOPS))
        return tbd_stops_end(worker, out, divergence, why);
    return worker->window->has_events ? tbd_full_events(worker, hooks, out, divergence, why)
                                      : skim_to_compare(worker, hooks, out, divergence, why);
}

enum tbd_status tbd_replay_verify(struct tbd_replayer *replayer, unsigned worker, uint32_t window,
                                  enum tbd_verify how, struct tbd_divergence *divergence,
                                  struct tbd_error *why)
{
    uint32_t hooks = how == TBD_VERIFY_QUICK ? TBD_HOOKS_FULL : TBD_HOOKS_PLAY;
    struct tbd_window *play = NULL, *replay = NULL;
    enum tbd_status status;

    status = begin_verify(replayer, worker, window, how, &play, why);
    if (status == TBD_OK && !play->complete)
        hooks |= TBD_HOOK_TOUCH; /* play has not said which pages were written */
    if (status == TBD_OK)
        status = replay_to_compare(&replayer->workers[worker], hooks, &replay, divergence, why);
    if (status == TBD_OK && !tbd_window_begins_with(play, TBD_MSG_STOPS))
        status = compare(&replayer->workers[worker], play, replay, divergence, why);
    tbd_replayer_finish(replayer, worker, play);
    tbd_window_free(replay);
    return judge(replayer, window, status, divergence, why);
}
