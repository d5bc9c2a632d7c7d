// SPDX-License-Identifier: MIT
/* cmd_calls.c - calls: the calls of a function, with parameters, result, caller, entry and exit
 *
 * A call is an entry and its end: frame_end.h tells a return from a jump over the frame.  A frame
 * that seems to be left may come back, if the program has several stacks: it returns after all. */
#include "query/commands/frame_end.h"
#include "query/commands/functions.h"
#include "query/commands/output.h"
#include "query/commands/rows.h"

#include "base/array.h"

#include <stdlib.h>

struct call {
    struct tbd_event enter;
    struct tbd_position exit;
    uint64_t retval;
    enum tbd_frame_end end;
    uint32_t nesting;
};

struct calls {
    struct call *all; /* owned; by entry */
    size_t count, capacity;
    size_t *open; /* owned; indices of calls without exit, innermost last */
    size_t open_count, open_capacity;
    bool no_memory;
    struct tbd_command_run *run;
    uint64_t stack_top; /* of the main thread */
};

static bool add_call(void *context, const struct tbd_event *event)
{
    struct calls *calls = context;

    calls->no_memory =
        !tbd_array_grow(&calls->all, calls->count, &calls->capacity, sizeof(*calls->all));
    if (!calls->no_memory)
        calls->all[calls->count++] = (struct call){ .enter = *event };
    return !calls->no_memory;
}

/* Nothing but the main thread's stack lies within this distance below its end. */
#define MAIN_STACK_MOST (128ull << 20)

/* The end of the main thread's stack; 0 if it is not known. */
static uint64_t find_stack_top(struct tbd_session *session)
{
    const struct tbd_region *regions = NULL;
    size_t count = 0;

    if (tbd_trace_regions(session->trace, 0, &regions, &count, &session->why) != TBD_OK)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if ((regions[i].flags & TBD_REGION_STACK) != 0)
            return regions[i].end;
    }
    return 0;
}

/* A frame left on one stack does not come back. */
static bool is_on_main_stack(const struct calls *calls, uint64_t slot)
{
    return slot < calls->stack_top && calls->stack_top - slot < MAIN_STACK_MOST;
}

static struct tbd_frame_call frame_of(const struct call *call)
{
    bool by_jump = (call->enter.flags & TBD_EVENT_BY_JUMP) != 0;

    return (struct tbd_frame_call){ .slot = call->enter.sp,
                                    .from = by_jump ? 0 : call->enter.from,
                                    .since = call->enter.position,
                                    .thread = call->enter.thread };
}

static bool is_closed_by(struct calls *calls, struct call *call, const struct tbd_event *exit)
{
    struct tbd_frame_call frame = frame_of(call);
    enum tbd_frame_end end = tbd_frame_end_by(calls->run->session, &frame, exit);

    if (end == TBD_FRAME_STAYS)
        return false;
    call->end = end;
    call->exit = exit->position;
    call->retval = exit->retval;
    return exit->sp == frame.slot ||
           (is_on_main_stack(calls, exit->sp) && is_on_main_stack(calls, frame.slot));
}

static void close_calls(struct calls *calls, const struct tbd_event *exit)
{
    size_t kept = 0;

    for (size_t i = 0; i < calls->open_count; i++) {
        if (!is_closed_by(calls, &calls->all[calls->open[i]], exit))
            calls->open[kept++] = calls->open[i];
    }
    calls->open_count = kept;
}

/* A call overwrites the return addresses at and below its own. */
static void close_overwritten(struct calls *calls, const struct tbd_event *enter)
{
    size_t kept = 0;

    for (size_t i = 0; i < calls->open_count; i++) {
        struct call *call = &calls->all[calls->open[i]];

        if (call->enter.thread == enter->thread && call->enter.sp == enter->sp &&
            (enter->flags & TBD_EVENT_BY_JUMP) == 0)
            call->end = TBD_FRAME_LEFT;
        else
            calls->open[kept++] = calls->open[i];
    }
    calls->open_count = kept;
}

/* Calls of the thread that this one is made in. */
static uint32_t nesting_of(const struct calls *calls, const struct call *call)
{
    uint32_t nesting = 0;

    for (size_t i = 0; i < calls->open_count; i++) {
        const struct call *outer = &calls->all[calls->open[i]];

        nesting += outer->enter.thread == call->enter.thread && outer->end == TBD_FRAME_STAYS &&
                   outer->enter.sp >= call->enter.sp;
    }
    return nesting;
}

struct exits {
    struct calls *calls;
    size_t next; /* entry that comes next in time */
};

static void open_until(struct exits *exits, struct tbd_position position)
{
    struct calls *calls = exits->calls;

    while (exits->next < calls->count &&
           tbd_position_compare(calls->all[exits->next].enter.position, position) <= 0) {
        struct call *call = &calls->all[exits->next];

        close_overwritten(calls, &call->enter);
        call->nesting = nesting_of(calls, call);
        if (!tbd_array_grow(&calls->open, calls->open_count, &calls->open_capacity,
                            sizeof(*calls->open)))
            calls->no_memory = true;
        else
            calls->open[calls->open_count++] = exits->next;
        exits->next++;
    }
}

static bool add_exit(void *context, const struct tbd_event *event)
{
    struct exits *exits = context;

    open_until(exits, event->position);
    close_calls(exits->calls, event);
    return !exits->calls->no_memory &&
           (exits->next < exits->calls->count || exits->calls->open_count != 0);
}

/* Finds all returns that could end one of the calls: their stack pointer is at or above the lowest
 * entry's. */
static enum tbd_exit find_exits(struct tbd_command_run *run, struct calls *calls)
{
    struct exits exits = { .calls = calls };
    uint64_t lowest = UINT64_MAX, highest = 0;
    struct tbd_question question =
        tbd_question_after(calls->all[0].enter.position, TBD_EVENT_FUNC_EXIT);
    enum tbd_exit result;

    for (size_t i = 0; i < calls->count; i++) {
        lowest = calls->all[i].enter.sp < lowest ? calls->all[i].enter.sp : lowest;
        highest = calls->all[i].enter.sp > highest ? calls->all[i].enter.sp : highest;
    }
    tbd_question_where_field(&question, TBD_FIELD_SP, TBD_EXPR_GE, lowest);
    question.keeps_frames = true;
    calls->stack_top = find_stack_top(run->session);
    result = tbd_command_each(run, &question, add_exit, &exits);
    open_until(&exits, (struct tbd_position){ UINT64_MAX, UINT32_MAX });
    for (size_t i = 0; i < calls->count; i++) {
        struct call *call = &calls->all[i];
        struct tbd_frame_call frame = frame_of(call);

        if (call->end == TBD_FRAME_SEEMS_TO_RETURN)
            call->end = tbd_frame_settle(run, &frame, call->exit);
    }
    return result;
}

static json_t *exit_of(const struct tbd_session *session, const struct call *call)
{
    if (call->end == TBD_FRAME_RETURNS)
        return tbd_rows_position(call->exit);
    return call->end == TBD_FRAME_LEFT && !session->json ? json_string(TBD_FRAME_LEFT_TEXT)
                                                         : json_null();
}

static json_t *call_row(struct tbd_session *session, const struct call *call)
{
    json_t *row = tbd_rows_event(session, &call->enter);
    struct tbd_place place;
    uint32_t window =
        tbd_session_place(session, call->enter.position, &place) == TBD_OK ? place.window : 0;
    char text[256];

    tbd_output_parameters(session, &call->enter, row);
    json_object_set_new(row, "nesting", json_integer(call->nesting));
    json_object_set_new(row, "caller",
                        tbd_output_text(tbd_symbols_format(session->symbols, window,
                                                           call->enter.from, text, sizeof(text))));
    json_object_set_new(row, "exit", exit_of(session, call));
    json_object_set_new(
        row, "retval", call->end == TBD_FRAME_RETURNS ? tbd_output_hex(call->retval) : json_null());
    if (call->end == TBD_FRAME_LEFT)
        json_object_set_new(row, "left", json_true());
    if (call->end == TBD_FRAME_RETURNS)
        tbd_output_result(session, &call->enter, call->retval, row);
    return row;
}

/* calls FUNC [where ...] */
enum tbd_exit tbd_command_calls(struct tbd_command_run *run)
{
    static const char *const columns[] = { "position", "exit",   "nesting", "thread", "function",
                                           "values",   "result", "caller",  NULL };
    struct calls calls = { .run = run };
    struct tbd_rows rows;
    struct tbd_question question;
    enum tbd_exit result = tbd_rows_read_named(
        run, TBD_EVENT_FUNC_ENTER, TBD_NAME_FUNCTION,
        "calls takes the name of a function, and perhaps a condition", &question);

    if (result != TBD_EXIT_FOUND)
        return result;
    question.keeps_frames = true;
    result = tbd_command_each(run, &question, add_call, &calls);
    if (result == TBD_EXIT_FOUND)
        result = find_exits(run, &calls);
    if (calls.no_memory)
        result = tbd_command_fail(run, TBD_NOMEM);
    if (result <= TBD_EXIT_NOT_FOUND) {
        tbd_rows_start(&rows, run, columns);
        for (size_t i = 0; i < calls.count; i++)
            tbd_rows_add(&rows, call_row(run->session, &calls.all[i]));
        result = tbd_rows_end(&rows);
        tbd_functions_tell_inlined(run->session, run->argv[0]);
    }
    free(calls.all);
    free(calls.open);
    return result;
}
