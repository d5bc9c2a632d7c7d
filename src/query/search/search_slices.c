// SPDX-License-Identifier: MIT
/* search_slices.c - searches a long window, which replay delivers in slices (replay/slices.h)
 *
 * One replay gives the slices in order, so a forward search takes them as they come. A backward
 * search takes the last slice first, alone: most answers are near. It goes on with the two slices
 * before it, then the four before those: one replay counts the matches in each slice of such a
 * group, and the slice that holds the wanted match is searched again.
 *
 * Slices that cannot hold a match are left out: slices outside the span, and, if the question asks
 * for system calls, signals or turns of threads, slices without any in the window's log. A new
 * replay after a gap must run to the gap's end, counting only, which takes about a quarter of the
 * time: so the current replay runs through short gaps. */
#include "query/search/search_private.h"

#include "format/reading/window_read.h"
#include "format/window/window_make.h"

#include <stdlib.h>

/* A replay counts through this many slices in the time that one slice takes with its events. */
#define COUNTING_COSTS 4u

struct sliced {
    struct tbd_search_run *run;
    uint32_t window, count;
    bool *wanted; /* by slice; owned */
};

/* ---- which slices ---- */

static uint32_t message_of(enum tbd_event_type type)
{
    return type == TBD_EVENT_SYSCALL         ? TBD_MSG_SYSCALL
           : type == TBD_EVENT_SIGNAL        ? TBD_MSG_SIGNAL
           : type == TBD_EVENT_THREAD_SWITCH ? TBD_MSG_THREAD
                                             : 0;
}

/* A message at the border between two slices may belong to either. */
static void want_messages(struct sliced *s, const struct tbd_window *window, uint32_t kind)
{
    const struct tbd_trace *trace = s->run->session->trace;

    for (size_t i = 0; i < window->log_count; i++) {
        uint64_t time = window->first_time + window->log[i].time;

        if (tbd_message_kind(window->log[i].message) != kind)
            continue;
        s->wanted[tbd_slice_of(trace, s->window, time)] = true;
        s->wanted[tbd_slice_of(trace, s->window, time ? time - 1 : 0)] = true;
    }
}

static enum tbd_status want_all(struct sliced *s)
{
    struct tbd_session *session = s->run->session;
    uint32_t kind = message_of(s->run->question->type);
    struct tbd_window *window = NULL;
    enum tbd_status status = TBD_OK;

    if (kind != 0)
        status = tbd_window_load_summaries(session->trace, s->window, &window, &session->why);
    if (kind != 0 && status == TBD_OK)
        want_messages(s, window, kind);
    if (kind == TBD_MSG_SIGNAL)
        s->wanted[s->count - 1] = true; /* a signal may have ended the program there */
    for (uint32_t i = 0; kind == 0 && i < s->count; i++)
        s->wanted[i] = true;
    tbd_window_free(window);
    return status;
}

/* A thread's call may be long ago: only a walk from the window's start knows of it. */
static bool needs_start(const struct sliced *s)
{
    return s->run->question->type == TBD_EVENT_FUNC_ENTER &&
           tbd_trace_thread_count(s->run->session->trace) > 1;
}

static void leave_out_others(struct sliced *s)
{
    const struct tbd_span *span = &s->run->span;
    const struct tbd_trace *trace = s->run->session->trace;
    const struct tbd_window_summary *summary = tbd_trace_window(trace, s->window);
    uint32_t first = 0, last = s->count - 1;

    if (!span->from_start && span->after.time >= summary->first_time && !needs_start(s))
        first = tbd_slice_of(trace, s->window, span->after.time);
    if (!span->to_end && span->before.time >= summary->first_time)
        last = tbd_slice_of(trace, s->window, span->before.time);
    for (uint32_t i = 0; i < s->count; i++)
        s->wanted[i] = s->wanted[i] && i >= first && i <= last;
}

/* ---- forward ---- */

/* The last slice of the run that begins at `first`; short gaps belong to it. */
static uint32_t end_of_run(const struct sliced *s, uint32_t first, uint32_t limit)
{
    uint32_t last = first;

    for (uint32_t i = first + 1; i < limit; i++) {
        if (i - last > 1 + i / COUNTING_COSTS)
            break;
        if (s->wanted[i])
            last = i;
    }
    return last;
}

/* Searches the slices [first, limit) as they come; `each` may look at run->total. */
static enum tbd_status go_through(struct sliced *s, uint32_t first, uint32_t limit,
                                  void (*each)(void *context, uint32_t slice), void *context)
{
    struct tbd_session_slice slice = { .window = s->window, .slice = first, .last = first };
    enum tbd_status status = TBD_OK;

    for (; slice.slice < limit && status == TBD_OK && !tbd_search_is_done(s->run); slice.slice++) {
        bool begins = slice.slice == first || slice.slice > slice.last;

        if (begins && !s->wanted[slice.slice])
            continue;
        if (begins)
            slice.last = end_of_run(s, slice.slice, limit);
        if (!s->wanted[slice.slice])
            status = tbd_session_slice(s->run->session, &slice, &s->run->window);
        else
            status = tbd_search_slice(s->run, &slice);
        if (status == TBD_OK && each != NULL)
            each(context, slice.slice);
    }
    return status;
}

/* ---- backward ---- */

struct match_counting {
    struct tbd_search_run *run;
    uint64_t *matches; /* by slice */
    uint64_t before;
};

static void note_matches(void *context, uint32_t slice)
{
    struct match_counting *counting = context;

    counting->matches[slice] = counting->run->total - counting->before;
    counting->before = counting->run->total;
}

/* Counts the matches in each slice of [first, limit). */
static enum tbd_status count_matches(struct sliced *s, uint32_t first, uint32_t limit,
                                     uint64_t *matches)
{
    struct tbd_search_run *run = s->run;
    const struct tbd_question *question = run->question;
    struct tbd_question forward = *question;
    struct match_counting counting = { .run = run, .matches = matches };
    uint64_t total = run->total;
    enum tbd_status status;

    forward.backward = false;
    forward.count = UINT64_MAX;
    run->question = &forward;
    run->total = 0;
    status = go_through(s, first, limit, note_matches, &counting);
    run->question = question;
    run->total = total;
    return status;
}

/* Does not count again what was counted already. */
static enum tbd_status search_again(struct sliced *s, const struct tbd_session_slice *slice)
{
    struct tbd_search_run *run = s->run;
    struct tbd_bad_events before = run->env.bad;
    uint64_t candidates = run->session->stats.candidates;
    enum tbd_status status = tbd_search_slice(run, slice);

    run->env.bad = before;
    run->session->stats.candidates = candidates;
    return status;
}

static enum tbd_status search_group(struct sliced *s, uint32_t first, uint32_t limit)
{
    uint64_t *matches = calloc(limit, sizeof(*matches));
    enum tbd_status status = matches == NULL ? TBD_NOMEM : count_matches(s, first, limit, matches);

    for (uint32_t i = limit; i-- > first && status == TBD_OK && !tbd_search_is_done(s->run);) {
        if (s->run->total + matches[i] < s->run->question->count)
            s->run->total += matches[i];
        else
            status = search_again(s, &(struct tbd_session_slice){ s->window, i, i, false });
    }
    free(matches);
    return status;
}

static enum tbd_status search_backward(struct sliced *s)
{
    uint32_t limit = s->count, size = 1;
    enum tbd_status status = TBD_OK;

    while (limit != 0 && status == TBD_OK && !tbd_search_is_done(s->run)) {
        uint32_t first = needs_start(s) || limit < size ? 0 : limit - size;

        if (!s->wanted[limit - 1]) {
            limit--;
            continue;
        }
        if (first == limit - 1)
            status = tbd_search_slice(
                s->run, &(struct tbd_session_slice){ s->window, first, first, false });
        else
            status = search_group(s, first, limit);
        limit = first;
        size *= 2;
    }
    return status;
}

enum tbd_status tbd_search_slices(struct tbd_search_run *run, uint32_t window, uint32_t count)
{
    struct sliced s = { .run = run, .window = window, .count = count };
    enum tbd_status status;

    s.wanted = calloc(count, sizeof(*s.wanted));
    if (s.wanted == NULL)
        return TBD_NOMEM;
    status = want_all(&s);
    leave_out_others(&s);
    if (status == TBD_OK && run->question->backward && run->search->each == NULL)
        status = search_backward(&s);
    else if (status == TBD_OK)
        status = go_through(&s, 0, count, NULL, NULL);
    tbd_session_end_slices(run->session);
    free(s.wanted);
    return status;
}
