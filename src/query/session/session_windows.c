// SPDX-License-Identifier: MIT
/* session_windows.c - gets windows with their events, and slices of long windows, from memory, disk
 * or replay
 *
 * Slices are not kept on disk: the slices of one window would take more than the folder's limit. */
#include "query/session/session.h"
#include "query/session/part_trace.h"
#include "format/files/file.h"
#include "format/reading/window_read.h"

#include <inttypes.h>
#include <stdio.h>

/* The last window of a program that was killed has no end state on disk: only a replay knows what
 * its memory held in the end.  If it cannot be replayed, its recorded events are used. */
static enum tbd_status raise_window(struct tbd_session *session, uint32_t index, uint32_t hooks,
                                    struct tbd_window **out)
{
    enum tbd_status status = tbd_session_replayer(session);

    if (status != TBD_OK)
        return status;
    session->stats.raised++;
    return tbd_replay_events(session->replayer, session->worker, index, hooks, out,
                             &session->divergence, &session->why);
}

/* The window from an earlier question's replay, if it was kept. */
static enum tbd_status raise_or_reuse(struct tbd_session *session, uint32_t index,
                                      struct tbd_window **out)
{
    enum tbd_status status;

    *out =
        session->cache == NULL ? NULL : tbd_window_cache_get(session->cache, session->trace, index);
    if (*out != NULL) {
        session->stats.cached++;
        return TBD_OK;
    }
    status = raise_window(session, index, TBD_HOOKS_FULL, out);
    if (status == TBD_OK && session->cache != NULL)
        tbd_window_cache_put(session->cache, session->trace, *out);
    return status;
}

static enum tbd_status load_window(struct tbd_session *session, uint32_t index, bool with_loads,
                                   struct tbd_window **out)
{
    struct tbd_error why;
    enum tbd_status status;

    if (session->info->has_rings_only)
        return tbd_error_set(&session->why, TBD_NOTKEPT, "", 0, "%s", TBD_RINGS_ONLY_TEXT);
    if (with_loads)
        return raise_window(session, index, TBD_HOOKS_FULL | TBD_HOOK_LOADS, out);
    if (!tbd_trace_window(session->trace, index)->complete &&
        raise_window(session, index, TBD_HOOKS_FULL, out) == TBD_OK)
        return TBD_OK;
    status = tbd_window_load(session->trace, index, true, out, &session->why);
    if (status == TBD_NOTKEPT)
        return raise_or_reuse(session, index, out);
    if (!tbd_session_is_damage(status))
        return status;
    /* perhaps only its events are damaged: then a replay brings them back */
    why = session->why;
    if (raise_or_reuse(session, index, out) == TBD_OK)
        return TBD_OK;
    session->why = why;
    return status;
}

bool tbd_session_is_damage(enum tbd_status status)
{
    return status == TBD_TRUNCATED || status == TBD_CHECKSUM || status == TBD_CORRUPT ||
           status == TBD_BADMAGIC || status == TBD_UNSUPPORTED || status == TBD_NOTRACE;
}

bool tbd_session_is_of_window(enum tbd_status status)
{
    return tbd_session_is_damage(status) || status == TBD_DIVERGED || status == TBD_NOREPLAY ||
           status == TBD_STUBDIED;
}

void tbd_session_leave_out(struct tbd_session *session, uint32_t index, enum tbd_status status)
{
    const struct tbd_error *why = &session->why;
    const struct tbd_divergence *divergence = &session->divergence;
    char text[sizeof(session->left_out.why)];

    if (status == TBD_DIVERGED)
        snprintf(text, sizeof(text), "replay diverged at %" PRIu64 "+%" PRIu32 ": %s",
                 divergence->position.time, divergence->position.offset, divergence->what);
    else if (why->status == status && why->file[0] != '\0')
        snprintf(text, sizeof(text), "%s at offset %" PRIu64 ": %s", why->file, why->offset,
                 why->detail);
    else
        snprintf(text, sizeof(text), "%s", tbd_status_text(status));
    tbd_left_out_add(&session->left_out, index, text);
}

/* ---- long windows ---- */

uint32_t tbd_session_slices(const struct tbd_session *session, uint32_t index, bool with_loads)
{
    const struct tbd_window_summary *summary = tbd_trace_window(session->trace, index);

    return summary == NULL || (summary->level == TBD_LEVEL_EVENTS && !with_loads)
               ? 1
               : tbd_slice_count(session->trace, index);
}

/* The start for a replay: the last slice in memory that begins at `time` or before. */
static const struct tbd_window *held_before(const struct tbd_session *session, uint32_t index,
                                            uint64_t time)
{
    const struct tbd_window *best = NULL;

    for (size_t i = 0; i < session->window_max; i++) {
        const struct tbd_window *window = session->windows[i].window;

        if (window != NULL && window->is_slice && window->index == index &&
            window->first_time <= time && (best == NULL || best->first_time < window->first_time))
            best = window;
    }
    return best;
}

static enum tbd_status one_slice(struct tbd_session *session,
                                 const struct tbd_session_slice *wanted, struct tbd_window **out)
{
    uint32_t hooks = TBD_HOOKS_FULL | (wanted->with_loads ? TBD_HOOK_LOADS : 0);
    uint64_t time = tbd_slice_time(session->trace, wanted->window, wanted->slice);

    return tbd_replay_slice(session->replayer, session->worker, wanted->window, hooks,
                            wanted->slice, held_before(session, wanted->window, time), out,
                            &session->divergence, &session->why);
}

void tbd_session_end_slices(struct tbd_session *session)
{
    tbd_slices_close(session->slices.run);
    session->slices.run = NULL;
}

static bool is_next(const struct tbd_session *session, const struct tbd_session_slice *wanted)
{
    const struct tbd_session_slice *next = &session->slices.next;

    return session->slices.run != NULL && next->window == wanted->window &&
           next->slice == wanted->slice && next->last == wanted->last &&
           next->with_loads == wanted->with_loads;
}

/* Several slices in order come from one replay. */
static enum tbd_status next_slice(struct tbd_session *session,
                                  const struct tbd_session_slice *wanted, struct tbd_window **out)
{
    uint32_t hooks = TBD_HOOKS_FULL | (wanted->with_loads ? TBD_HOOK_LOADS : 0);
    struct tbd_session_slice *next = &session->slices.next;
    enum tbd_status status = TBD_OK;

    if (!is_next(session, wanted)) {
        tbd_session_end_slices(session);
        status = tbd_slices_open(session->replayer, session->worker, wanted->window, hooks,
                                 wanted->slice, wanted->last, &session->slices.run, &session->why);
        *next = *wanted;
    }
    if (status == TBD_OK)
        status = tbd_slices_next(session->slices.run, out, &session->divergence, &session->why);
    if (status != TBD_OK || next->slice == next->last)
        tbd_session_end_slices(session);
    next->slice++;
    return status;
}

static enum tbd_status make_slice(struct tbd_session *session,
                                  const struct tbd_session_slice *wanted, struct tbd_window **out)
{
    enum tbd_status status = tbd_session_replayer(session);

    if (status != TBD_OK)
        return status;
    session->stats.raised += session->slices.raised != wanted->window + 1;
    session->slices.raised = wanted->window + 1;
    return wanted->slice == wanted->last && !is_next(session, wanted)
               ? one_slice(session, wanted, out)
               : next_slice(session, wanted, out);
}

/* ---- windows and slices in memory ---- */

static bool is_held(const struct tbd_session_held *held, const struct tbd_session_slice *wanted)
{
    return held->window != NULL && held->window->index == wanted->window &&
           held->has_loads == wanted->with_loads && held->slice == wanted->slice;
}

/* NULL: no window in memory is the wanted one. */
static struct tbd_session_held *find_held(struct tbd_session *session,
                                          const struct tbd_session_slice *wanted)
{
    for (size_t i = 0; i < session->window_max; i++) {
        if (is_held(&session->windows[i], wanted))
            return &session->windows[i];
    }
    return NULL;
}

const struct tbd_window *tbd_session_held(struct tbd_session *session,
                                          const struct tbd_session_slice *wanted)
{
    const struct tbd_session_held *held = find_held(session, wanted);

    return held == NULL ? NULL : held->window;
}

enum tbd_status tbd_session_slice(struct tbd_session *session,
                                  const struct tbd_session_slice *wanted,
                                  const struct tbd_window **out)
{
    struct tbd_session_held *oldest = &session->windows[0], *held = find_held(session, wanted);
    struct tbd_window *window = NULL;
    enum tbd_status status;

    if (held != NULL) {
        held->used = ++session->clock;
        *out = held->window;
        return TBD_OK;
    }
    *out = NULL;
    if (!tbd_part_has(session->part, wanted->window))
        return TBD_INTERRUPTED;
    for (size_t i = 0; i < session->window_max; i++) {
        if (session->windows[i].used < oldest->used)
            oldest = &session->windows[i];
    }
    tbd_window_free(oldest->window);
    oldest->window = NULL;
    status = tbd_session_slices(session, wanted->window, wanted->with_loads) > 1
                 ? make_slice(session, wanted, &window)
                 : load_window(session, wanted->window, wanted->with_loads, &window);
    if (status != TBD_OK)
        return status;
    *oldest = (struct tbd_session_held){ .window = window,
                                         .has_loads = wanted->with_loads,
                                         .slice = wanted->slice,
                                         .used = ++session->clock };
    *out = window;
    return TBD_OK;
}

/* Reads the window from its files, if they hold it and are not damaged. */
static enum tbd_status load_picked(struct tbd_session *session, uint32_t index,
                                   struct tbd_picker *picker)
{
    const struct tbd_window_summary *summary = tbd_trace_window(session->trace, index);

    if (!summary->complete || summary->level < TBD_LEVEL_EVENTS)
        return TBD_NOTKEPT;
    return tbd_window_load_picked(session->trace, index, picker, &session->picked, &session->why);
}

enum tbd_status tbd_session_picked(struct tbd_session *session,
                                   const struct tbd_session_slice *wanted,
                                   struct tbd_picker *picker, const struct tbd_window **out)
{
    const struct tbd_window *whole;
    enum tbd_status status = TBD_NOTKEPT;

    tbd_window_free(session->picked);
    session->picked = NULL;
    *out = NULL;
    if (!wanted->with_loads && find_held(session, wanted) == NULL)
        status = load_picked(session, wanted->window, picker);
    if (status != TBD_OK && status != TBD_NOTFOUND && status != TBD_NOMEM) {
        status = tbd_session_slice(session, wanted, &whole);
        if (status == TBD_OK)
            status = tbd_picker_pick(picker, whole, &session->picked);
    }
    *out = session->picked;
    return status;
}

static struct tbd_session_slice slice_at(const struct tbd_session *session, uint32_t index,
                                         uint64_t time)
{
    struct tbd_session_slice wanted = { .window = index };

    if (tbd_session_slices(session, index, false) > 1)
        wanted.slice = wanted.last = tbd_slice_of(session->trace, index, time);
    return wanted;
}

enum tbd_status tbd_session_slice_at(struct tbd_session *session, uint32_t index, uint64_t time,
                                     const struct tbd_window **out)
{
    struct tbd_session_slice wanted = slice_at(session, index, time);

    return tbd_session_slice(session, &wanted, out);
}

enum tbd_status tbd_session_whole(struct tbd_session *session, const struct tbd_window *window,
                                  uint64_t time, const struct tbd_window **out)
{
    if (window->is_picked)
        return tbd_session_slice_at(session, window->index, time, out);
    *out = window;
    return TBD_OK;
}

bool tbd_session_has_slice_at(const struct tbd_session *session, uint32_t index, uint64_t time)
{
    struct tbd_session_slice wanted = slice_at(session, index, time);

    for (size_t i = 0; i < session->window_max; i++) {
        if (is_held(&session->windows[i], &wanted))
            return true;
    }
    return false;
}

/* A single question needs only a replay to its position. A second question for the same window
 * suggests more of them, so it gets the slice around the position, from which their replays
 * begin. */
static const struct tbd_window *start_for(struct tbd_session *session, uint32_t index,
                                          uint64_t time)
{
    const struct tbd_window *slice = held_before(session, index, time);
    bool asks_again = session->slices.asked == index + 1;

    if (slice != NULL && time - slice->first_time < slice->blocks)
        return slice;
    session->slices.asked = index + 1;
    if (asks_again && tbd_session_slices(session, index, false) > 1 &&
        tbd_session_slice_at(session, index, time, &slice) == TBD_OK)
        return slice;
    return held_before(session, index, time);
}

enum tbd_status tbd_session_replay_regs(struct tbd_session *session, uint32_t index,
                                        struct tbd_reg_state *states, size_t count)
{
    const struct tbd_window *start =
        count == 0 ? NULL : start_for(session, index, states[0].position.time);

    return tbd_replay_regs(session->replayer, session->worker, index, start, states, count,
                           &session->divergence, &session->why);
}
