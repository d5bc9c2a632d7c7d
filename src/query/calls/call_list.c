// SPDX-License-Identifier: MIT
/* call_list.c - see call_list.h
 *
 * A call is an entry and its end: frame_end.h tells a return from a jump over the frame.  A frame
 * that seems to be left may come back, if the program has several stacks: it returns after all.
 *
 * The first search gives the entries and the returns in the windows that have entries.  Calls that live
 * on, from such a window into one that was not searched, may end there: the index over windows tells in
 * which (search/search_ends.h), and these are searched, too.
 *
 * First it is tried without stacks of callers (own_calls.h). */
#include "query/calls/call_list.h"

#include "base/array.h"
#include "format/files/large_buffers.h"
#include "query/calls/own_calls.h"
#include "query/condition/expr_keep.h"
#include "query/search/search.h"
#include "query/search/search_ends.h"
#include "query/search/seen_jumps.h"
#include "query/session/main_stack.h"
#include "query/text/user_interrupt.h"

#include <stdlib.h>
#include <string.h>

struct finding {
    struct tbd_command_run *run;
    struct tbd_call_list *list;
    struct tbd_ends *ends;
    uint8_t *searched, *only; /* owned; by window */
    size_t *open;             /* owned; indices of calls without an end, innermost last */
    size_t open_count, open_capacity;
    uint32_t keeps; /* kept values of an entry */
    bool no_memory;
    bool is_own;                  /* by own_calls.h */
    struct tbd_seen_jumps *jumps; /* owned; while is_own */
};

/* ---- pairing ---- */

static struct tbd_frame_call frame_of(const struct tbd_listed_call *call)
{
    bool by_jump = (call->enter.flags & TBD_EVENT_BY_JUMP) != 0;

    return (struct tbd_frame_call){ .slot = call->enter.sp,
                                    .from = by_jump ? 0 : call->enter.from,
                                    .since = call->enter.position,
                                    .thread = call->enter.thread };
}

static bool are_on_main_stack(const struct finding *f, uint64_t a, uint64_t b)
{
    return tbd_is_on_main_stack(f->run->session, a) && tbd_is_on_main_stack(f->run->session, b);
}

static void close_call(struct finding *f, struct tbd_listed_call *call,
                       const struct tbd_event *exit)
{
    struct tbd_frame_call frame = frame_of(call);
    enum tbd_frame_end end = tbd_frame_end_by(f->run->session, &frame, exit);

    bool is_certain = exit->sp == frame.slot || are_on_main_stack(f, exit->sp, frame.slot);

    if (end == TBD_FRAME_STAYS || (!is_certain && (exit->flags & TBD_EVENT_OVERWRITES) != 0))
        return;
    call->end = end;
    call->exit = exit->position;
    call->retval = exit->retval;
    call->is_closed = is_certain;
}

/* A call overwrites the return addresses at and below its own; a jump those below. */
static void overwrite(const struct finding *f, struct tbd_listed_call *call,
                      const struct tbd_event *enter)
{
    bool by_jump = (enter->flags & TBD_EVENT_BY_JUMP) != 0;

    if (call->enter.thread != enter->thread || call->enter.sp > enter->sp ||
        (by_jump && call->enter.sp == enter->sp))
        return;
    if (call->enter.sp != enter->sp && !are_on_main_stack(f, call->enter.sp, enter->sp))
        return;
    call->end = TBD_FRAME_LEFT;
    call->exit = enter->position;
    call->is_closed = true;
}

/* What the event ends; calls of the same thread further out are not concerned. */
static void end_calls(struct finding *f, const struct tbd_event *event)
{
    size_t first = f->open_count, kept;

    while (first != 0) {
        const struct tbd_call_entry *enter = &f->list->all[f->open[first - 1]].enter;

        if (enter->thread == event->thread && enter->sp > event->sp &&
            are_on_main_stack(f, enter->sp, event->sp))
            break;
        first--;
    }
    kept = first;
    for (size_t i = first; i < f->open_count; i++) {
        struct tbd_listed_call *call = &f->list->all[f->open[i]];

        if (event->type == TBD_EVENT_FUNC_EXIT)
            close_call(f, call, event);
        else
            overwrite(f, call, event);
        if (!call->is_closed)
            f->open[kept++] = f->open[i];
    }
    f->open_count = kept;
}

static void open_call(struct finding *f, const struct tbd_event *enter)
{
    struct tbd_call_list *list = f->list;

    if (!tbd_large_array_grow(&list->all, list->count, &list->capacity, sizeof(*list->all)) ||
        !tbd_array_grow(&f->open, f->open_count, &f->open_capacity, sizeof(*f->open))) {
        f->no_memory = true;
        return;
    }
    list->all[list->count] = (struct tbd_listed_call){ .enter = tbd_call_entry_of(enter) };
    f->open[f->open_count++] = list->count++;
}

static void pair(struct finding *f)
{
    if (f->is_own) {
        f->no_memory = f->no_memory || tbd_own_calls_pair(f->list) != TBD_OK;
        return;
    }
    f->list->count = f->open_count = 0;
    for (size_t i = 0; i < f->list->event_count && !f->no_memory; i++) {
        const struct tbd_event *event = &f->list->events[i];

        end_calls(f, event);
        if (event->type == TBD_EVENT_FUNC_ENTER)
            open_call(f, event);
    }
}

/* ---- the search ---- */

/* By own_calls.h. */
static bool add_own(void *context, const struct tbd_event *event)
{
    struct finding *f = context;

    f->no_memory = !tbd_own_calls_add(f->list, event);
    return !f->no_memory && !f->list->is_odd;
}

static bool merge_own(void *context, void *batch)
{
    struct finding *f = context;

    f->no_memory = !tbd_own_calls_merge(f->list, batch);
    return !f->no_memory && !f->list->is_odd;
}

static bool add_event(void *context, const struct tbd_event *event)
{
    struct finding *f = context;
    struct tbd_call_list *list = f->list;

    f->no_memory = !tbd_large_array_grow(&list->events, list->event_count, &list->event_capacity,
                                         sizeof(*list->events));
    if (f->no_memory)
        return false;
    list->events[list->event_count] = *event;
    if (event->kept != NULL && event->type == TBD_EVENT_FUNC_ENTER) {
        list->events[list->event_count].kept = tbd_kept_copy(event->kept, f->keeps);
        list->has_kept = true;
        f->no_memory = list->events[list->event_count].kept == NULL;
    } else {
        list->events[list->event_count].kept = NULL;
    }
    list->event_count++;
    return !f->no_memory;
}

static enum tbd_exit search(struct finding *f, struct tbd_question *question)
{
    struct tbd_search by_own = { .question = question,
                                 .each = add_own,
                                 .each_context = f,
                                 .gather = tbd_own_calls_gather,
                                 .merge = merge_own,
                                 .drop = tbd_own_calls_drop };

    question->keeps_frames = question->with_returns = !f->is_own;
    question->own_returns = f->is_own;
    question->searched = f->searched;
    question->seen_jumps = f->jumps;
    return f->is_own ? tbd_command_each_of(f->run, &by_own)
                     : tbd_command_each(f->run, question, add_event, f);
}

static int compare_events(const void *left, const void *right)
{
    const struct tbd_event *a = left, *b = right;
    int order = tbd_position_compare(a->position, b->position);

    return order != 0 ? order : (int)a->type - (int)b->type; /* an entry goes before its return */
}

/* The next window in which the call may end. */
static uint32_t next_of(struct finding *f, const struct tbd_listed_call *call, bool *out_is_over)
{
    struct tbd_trace *trace = f->run->session->trace;
    uint32_t last = tbd_trace_window_count(trace) - 1;
    struct tbd_event enter = tbd_call_entry_event(&call->enter);
    struct tbd_ends_span span = { .known = f->searched };

    *out_is_over = false;
    span.from = tbd_trace_window_of(trace, call->enter.position.time);
    span.to = call->is_closed ? tbd_trace_window_of(trace, call->exit.time) : last;
    if (span.from == UINT32_MAX)
        return UINT32_MAX;
    span.to = span.to < last ? span.to : last;
    return tbd_ends_next(f->ends, &enter, &span, out_is_over);
}

/* The window of the entry before, because calls come in order. */
struct entry_window {
    uint64_t from, to; /* times */
    bool is_searched;
};

/* Has the call ended in the window, which was searched, of its entry?  Most do. */
static bool ends_at_once(const struct finding *f, const struct tbd_listed_call *call,
                         struct entry_window *window)
{
    struct tbd_trace *trace = f->run->session->trace;
    uint64_t time = call->enter.position.time;
    const struct tbd_window_summary *summary;
    uint32_t index;

    if (time < window->from || time >= window->to) {
        index = tbd_trace_window_of(trace, time);
        summary = index == UINT32_MAX ? NULL : tbd_trace_window(trace, index);
        if (summary == NULL)
            return false;
        *window = (struct entry_window){ .from = summary->first_time,
                                         .to = summary->first_time + summary->blocks,
                                         .is_searched = f->searched[index] };
    }
    return call->is_closed && window->is_searched && call->exit.time >= window->from &&
           call->exit.time < window->to;
}

/* Chooses the next window of each call; false: there are none. */
static bool choose(struct finding *f)
{
    uint32_t windows = tbd_trace_window_count(f->run->session->trace);
    struct entry_window window = { 0 };
    bool has_some = false, is_over;

    for (uint32_t i = 0; i < windows; i++)
        f->only[i] = 0;
    for (size_t i = 0; i < f->list->count; i++) {
        uint32_t next = ends_at_once(f, &f->list->all[i], &window)
                            ? UINT32_MAX
                            : next_of(f, &f->list->all[i], &is_over);

        if (next == UINT32_MAX)
            continue;
        f->only[next] = 1;
        has_some = true;
    }
    return has_some;
}

static enum tbd_exit search_on(struct finding *f, const struct tbd_question *question)
{
    struct tbd_question next;
    enum tbd_exit result;

    if (tbd_question_copy(question, &next) != TBD_OK)
        return tbd_command_fail(f->run, TBD_NOMEM);
    next.only = f->only;
    result = search(f, &next);
    for (uint32_t i = 0; i < tbd_trace_window_count(f->run->session->trace); i++)
        f->searched[i] |= f->only[i]; /* one that was left out is not asked for again */
    if (f->is_own)
        tbd_own_calls_sort(f->list);
    else
        qsort(f->list->events, f->list->event_count, sizeof(*f->list->events), compare_events);
    return result == TBD_EXIT_NOT_FOUND ? TBD_EXIT_FOUND : result; /* it has no further entries */
}

/* Searches windows again that came before all jumps were seen (search/seen_jumps.h). */
#define SEEN_ROUNDS 4u

static enum tbd_exit search_stale(struct finding *f, const struct tbd_question *question)
{
    struct tbd_trace *trace = f->run->session->trace;
    enum tbd_exit result = TBD_EXIT_FOUND;
    unsigned rounds = 0;

    while (f->is_own && !f->list->is_odd && !f->no_memory && result == TBD_EXIT_FOUND &&
           tbd_seen_jumps_take_stale(f->jumps, f->only)) {
        f->list->is_odd = ++rounds > SEEN_ROUNDS;
        for (uint32_t i = 0; i < tbd_trace_window_count(trace) && !f->list->is_odd; i++) {
            const struct tbd_window_summary *window = tbd_trace_window(trace, i);

            if (f->only[i])
                tbd_own_calls_forget_returns(f->list, window->first_time,
                                             window->first_time + window->blocks);
        }
        if (!f->list->is_odd)
            result = search_on(f, question);
    }
    return result;
}

/* Is the frame gone, although no call or return shows it? */
static bool is_gone(struct finding *f, const struct tbd_listed_call *call)
{
    struct tbd_event enter = tbd_call_entry_event(&call->enter);
    bool is_over;

    (void)next_of(f, call, &is_over);
    return is_over || tbd_ends_is_gone(f->ends, &enter);
}

/* What is left when all windows were searched. */
static void settle(struct finding *f)
{
    for (size_t i = 0; i < f->list->count; i++) {
        struct tbd_listed_call *call = &f->list->all[i];
        struct tbd_frame_call frame = frame_of(call);

        if (call->end == TBD_FRAME_SEEMS_TO_RETURN)
            call->end = tbd_frame_settle(f->run, &frame, call->exit);
        else if (call->end == TBD_FRAME_STAYS && is_gone(f, call))
            call->end = TBD_FRAME_LEFT;
    }
}

static enum tbd_exit find(struct finding *f, struct tbd_question *question)
{
    struct tbd_question first;
    enum tbd_exit result;

    if (tbd_question_copy(question, &first) != TBD_OK)
        return tbd_command_fail(f->run, TBD_NOMEM);
    result = search(f, &first);
    if (result == TBD_EXIT_FOUND)
        result = search_stale(f, question);
    pair(f);
    while (result == TBD_EXIT_FOUND && !f->no_memory && !f->list->is_odd && choose(f)) {
        result = search_on(f, question);
        if (result == TBD_EXIT_FOUND)
            result = search_stale(f, question);
        pair(f);
    }
    if (f->no_memory)
        return tbd_command_fail(f->run, TBD_NOMEM);
    if (result == TBD_EXIT_FOUND && !f->is_own)
        settle(f);
    return result;
}

/* By own_calls.h; *out_is_done: it could tell. */
static enum tbd_exit find_own(struct finding *f, struct tbd_question *question, bool *out_is_done)
{
    enum tbd_exit result;

    *out_is_done = false;
    if (!tbd_own_calls_fit(f->run, question))
        return TBD_EXIT_FOUND;
    f->jumps = tbd_seen_jumps_new(tbd_trace_window_count(f->run->session->trace));
    if (f->jumps == NULL)
        return tbd_command_fail(f->run, TBD_NOMEM);
    f->is_own = true;
    result = find(f, question);
    tbd_seen_jumps_free(f->jumps);
    f->jumps = NULL;
    *out_is_done = result > TBD_EXIT_NOT_FOUND || tbd_is_interrupted() ||
                   (!f->list->is_odd && tbd_own_calls_are_whole(f->list));
    if (*out_is_done) {
        tbd_own_calls_keep_wanted(f->list);
        return result;
    }
    tbd_call_list_free(f->list);
    memset(f->searched, 0, tbd_trace_window_count(f->run->session->trace));
    f->is_own = false;
    return TBD_EXIT_FOUND;
}

enum tbd_exit tbd_call_list_find(struct tbd_command_run *run, struct tbd_question *question,
                                 struct tbd_call_list *out)
{
    size_t windows = (size_t)tbd_trace_window_count(run->session->trace) + 1;
    struct finding f = { .run = run,
                         .list = out,
                         .keeps = question->keeps + question->keeps_stack };
    bool is_done = false;
    enum tbd_exit result;

    *out = (struct tbd_call_list){ 0 };
    tbd_question_where_span(question); /* of entries, not of returns */
    f.searched = calloc(windows, 1);
    f.only = calloc(windows, 1);
    if (f.searched == NULL || f.only == NULL || tbd_ends_new(run->session, &f.ends) != TBD_OK) {
        result = tbd_command_fail(run, TBD_NOMEM);
    } else {
        result = find_own(&f, question, &is_done);
        if (!is_done)
            result = find(&f, question);
    }
    tbd_question_free(question);
    tbd_ends_free(f.ends);
    free(f.searched);
    free(f.only);
    free(f.open);
    return result;
}

void tbd_call_list_free(struct tbd_call_list *list)
{
    for (size_t i = 0; i < list->event_count && list->has_kept; i++)
        free(list->events[i].kept);
    tbd_large_buffer_give(list->all);
    tbd_large_buffer_give(list->events);
    tbd_large_buffer_give(list->returns);
    *list = (struct tbd_call_list){ 0 };
}
