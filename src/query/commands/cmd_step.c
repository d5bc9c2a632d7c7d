// SPDX-License-Identifier: MIT
/* cmd_step.c - steps by line, function and instruction, both ways
 *
 * A step is a goto: lines are events, and a function's frame is known by its CFA, which conditions
 * call `frame`.  The CFA of the caller is larger; that of a function called later may be the same,
 * so `next` looks whether the frame ended on the way. */
#include "query/commands/frame_end.h"
#include "query/session/inlined.h"
#include "query/session/source.h"

#include <stdlib.h>
#include <string.h>

/* The command's count, 1 by default; false if the argument is no count. */
static bool take_count(const struct tbd_command_run *run, uint64_t *out)
{
    char *end = NULL;

    *out = 1;
    if (run->argc == 0)
        return true;
    *out = strtoull(run->argv[0], &end, 0);
    return run->argc == 1 && *end == '\0' && *out != 0 && run->argv[0][0] != '-';
}

/* A question about events of this type after the current position, or before it. */
static struct tbd_question from_here(const struct tbd_command_run *run, bool backward,
                                     enum tbd_event_type type)
{
    struct tbd_position here = tbd_session_current(run->session);

    return backward ? tbd_question_before(here, type) : tbd_question_after(here, type);
}

/* Moves to the event that the command's count selects; frees the question. */
static enum tbd_exit go(struct tbd_command_run *run, struct tbd_question *question)
{
    if (take_count(run, &question->count))
        return tbd_command_ask(run, question);
    tbd_question_free(question);
    return tbd_command_usage(run, "expected a count of at least 1");
}

static enum tbd_exit go_by(struct tbd_command_run *run, bool backward, enum tbd_event_type type)
{
    struct tbd_question question = from_here(run, backward, type);

    return go(run, &question);
}

/* The frame of the function at the current position. */
static enum tbd_status current_frame(struct tbd_session *session, uint64_t *out)
{
    struct tbd_frame frames[2];
    size_t count = 0;
    enum tbd_status status =
        tbd_session_stack(session, tbd_session_current(session), frames, 2, &count);

    *out = status == TBD_OK && count != 0 ? frames[0].cfa : 0;
    if (status == TBD_OK && *out == 0 && count > 1)
        *out = frames[1].sp;
    return status;
}

static enum tbd_status current_thread(struct tbd_session *session, uint32_t *out)
{
    struct tbd_place place;
    enum tbd_status status = tbd_session_place(session, tbd_session_current(session), &place);

    *out = status == TBD_OK ? place.thread : 0;
    return status;
}

/* The frame and the thread of the current function, for a command that takes no arguments. */
static enum tbd_exit current_call(struct tbd_command_run *run, const char *usage,
                                  uint64_t *out_frame, uint32_t *out_thread)
{
    enum tbd_status status = current_frame(run->session, out_frame);

    if (run->argc != 0)
        return tbd_command_usage(run, usage);
    if (status == TBD_OK)
        status = current_thread(run->session, out_thread);
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}

/* The thread is compared as well, because other threads have larger frames too. */
static void where_frame(struct tbd_question *question, enum tbd_event_field field, uint64_t lowest,
                        uint32_t thread)
{
    tbd_question_where_field(question, field, TBD_EXPR_GE, lowest);
    tbd_question_where_field(question, TBD_FIELD_THREAD, TBD_EXPR_EQ, thread);
}

/* ---- next ---- */

/* The line events of this function and its callers, or with `above` of its callers alone. */
static struct tbd_question lines_of(const struct tbd_frame_call *call, struct tbd_position from,
                                    bool backward, bool above)
{
    struct tbd_question question = backward ? tbd_question_before(from, TBD_EVENT_LINE)
                                            : tbd_question_after(from, TBD_EVENT_LINE);

    where_frame(&question, TBD_FIELD_FRAME, call->slot + 8 + above, call->thread);
    return question;
}

/* Does a step end here, where a function has come back to its caller or a jump has led? */
static bool is_stop(struct tbd_session *session, struct tbd_position position,
                    enum tbd_frame_end end)
{
    struct tbd_source_line line;
    uint32_t window;
    uint64_t pc;

    return tbd_session_pc(session, position, &window, &pc) == TBD_OK &&
           tbd_source_line_at(session, window, pc, &line) && (end == TBD_FRAME_LEFT || line.begins);
}

/* The frame may end before the next line of it and its callers: then what is called in the rest of
 * the caller's line does not count.  As in gdb, a return to the start of a statement is a step's
 * end. */
static enum tbd_exit next_line(struct tbd_command_run *run, const struct tbd_frame_call *call)
{
    struct tbd_question question = lines_of(call, call->since, false, false);
    struct tbd_event line, event;
    enum tbd_frame_end end;
    bool is_found = tbd_command_find_event(run, &question, &line) == TBD_OK;

    question = lines_of(call, call->since, false, false);
    if (tbd_frame_find_end(run, call, is_found ? &line.position : NULL, &end, &event) != TBD_OK ||
        (is_found && tbd_position_compare(event.position, line.position) >= 0) ||
        (end == TBD_FRAME_RETURNS &&
         tbd_frame_thread_block(run, false, call->thread, &event.position) != TBD_OK))
        return tbd_command_ask(run, &question);
    tbd_question_free(&question);
    if (is_stop(run->session, event.position, end))
        return tbd_command_go(run, event.position);
    question = lines_of(call, event.position, false, true);
    return tbd_command_ask(run, &question);
}

/* The function may have been entered after that line: then only lines of callers count. */
static enum tbd_exit line_before(struct tbd_command_run *run, const struct tbd_frame_call *call)
{
    struct tbd_question question = lines_of(call, call->since, true, false);
    struct tbd_position past = { call->since.time, call->since.offset + 1 };
    struct tbd_event line, entry;

    if (tbd_command_find_event(run, &question, &line) != TBD_OK)
        line.position = tbd_session_first(run->session);
    question = tbd_question_before(past, TBD_EVENT_FUNC_ENTER);
    tbd_question_where_field(&question, TBD_FIELD_SP, TBD_EXPR_EQ, call->slot);
    tbd_question_where_field(&question, TBD_FIELD_THREAD, TBD_EXPR_EQ, call->thread);
    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_GE, line.position.time);
    if (tbd_command_find_event(run, &question, &entry) != TBD_OK ||
        tbd_position_compare(entry.position, line.position) <= 0)
        question = lines_of(call, call->since, true, false);
    else
        question = lines_of(call, entry.position, true, true);
    return tbd_command_ask(run, &question);
}

static enum tbd_exit next_lines(struct tbd_command_run *run, bool backward)
{
    struct tbd_command_run part = *run;
    enum tbd_exit result = TBD_EXIT_FOUND;
    struct tbd_position at = run->session->at;
    struct tbd_frame_call call;
    enum tbd_status status;
    uint64_t count;

    if (!take_count(run, &count))
        return tbd_command_usage(run, "expected a count of at least 1");
    for (; count != 0 && result == TBD_EXIT_FOUND; count--) {
        part.silent = run->silent || count != 1;
        status = tbd_frame_call_at(run->session, tbd_session_current(run->session), &call);
        if (status != TBD_OK)
            result = tbd_command_fail(run, status);
        else
            result = backward ? line_before(&part, &call) : next_line(&part, &call);
    }
    if (run->session->has_at)
        run->session->at = at;
    return result;
}

enum tbd_exit tbd_command_step(struct tbd_command_run *run)
{
    return go_by(run, false, TBD_EVENT_LINE);
}

enum tbd_exit tbd_command_reverse_step(struct tbd_command_run *run)
{
    return go_by(run, true, TBD_EVENT_LINE);
}

enum tbd_exit tbd_command_next(struct tbd_command_run *run)
{
    return next_lines(run, false);
}

enum tbd_exit tbd_command_reverse_next(struct tbd_command_run *run)
{
    return next_lines(run, true);
}

/* ---- functions ---- */

/* Goes to the return, and prints the result with it; then to the caller. */
static enum tbd_exit go_over_return(struct tbd_command_run *run, struct tbd_position at,
                                    uint32_t thread)
{
    struct tbd_question question = tbd_question_first(TBD_EVENT_FUNC_EXIT);
    enum tbd_exit result;

    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_EQ, at.time);
    tbd_question_where_field(&question, TBD_FIELD_OFFSET, TBD_EXPR_EQ, at.offset);
    result = tbd_command_ask(run, &question);
    if (result != TBD_EXIT_FOUND || tbd_frame_thread_block(run, false, thread, &at) != TBD_OK)
        return result;
    return tbd_command_go(run, at);
}

/* The thread's next instruction that is outside of this copy of an inlined function, in the function
 * around it or in a caller. */
static enum tbd_exit leave_inlined(struct tbd_command_run *run, const struct tbd_frame_call *call,
                                   const struct tbd_dwarf_inlined *inlined)
{
    struct tbd_question question = tbd_question_after(call->since, TBD_EVENT_STATE);

    where_frame(&question, TBD_FIELD_FRAME, call->slot + 8, call->thread);
    for (size_t i = 0; i < inlined->range_count; i++)
        tbd_question_where(&question,
                           tbd_expr_join(TBD_EXPR_OR,
                                         tbd_expr_compare(TBD_EVENT_STATE, TBD_FIELD_PC,
                                                          TBD_EXPR_LT, inlined->ranges[i].start),
                                         tbd_expr_compare(TBD_EVENT_STATE, TBD_FIELD_PC,
                                                          TBD_EXPR_GE, inlined->ranges[i].end)));
    return tbd_command_ask(run, &question);
}

/* The copy of an inlined function that is the innermost frame. */
static bool is_in_inlined(struct tbd_session *session, struct tbd_position position,
                          struct tbd_dwarf_inlined *out)
{
    uint32_t window;
    uint64_t pc;

    return tbd_session_pc(session, position, &window, &pc) == TBD_OK &&
           tbd_inlined_at(session->symbols, window, pc, out);
}

enum tbd_exit tbd_command_finish(struct tbd_command_run *run)
{
    struct tbd_dwarf_inlined inlined;
    struct tbd_frame_call call;
    struct tbd_event event;
    enum tbd_frame_end end;
    struct tbd_question question;
    enum tbd_status status =
        tbd_frame_call_at(run->session, tbd_session_current(run->session), &call);

    if (run->argc != 0)
        return tbd_command_usage(run, "finish takes no arguments");
    if (status == TBD_OK && is_in_inlined(run->session, call.since, &inlined))
        return leave_inlined(run, &call, &inlined);
    if (status == TBD_OK)
        status = tbd_frame_find_end(run, &call, NULL, &end, &event);
    if (status == TBD_NOTFOUND) {
        question = tbd_question_after(call.since, TBD_EVENT_FUNC_EXIT);
        where_frame(&question, TBD_FIELD_SP, call.slot, call.thread);
        return tbd_command_ask(run, &question);
    }
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    if (end == TBD_FRAME_RETURNS)
        return go_over_return(run, event.position, call.thread);
    fprintf(stderr, "tbdq: note: the function did not return: it was " TBD_FRAME_LEFT_TEXT "\n");
    return tbd_command_go(run, event.position);
}

enum tbd_exit tbd_command_reverse_finish(struct tbd_command_run *run)
{
    struct tbd_position start = tbd_session_current(run->session), call;
    struct tbd_command_run entry = *run;
    uint64_t frame;
    uint32_t thread;
    struct tbd_question question;
    enum tbd_status status;
    enum tbd_exit result = current_call(run, "reverse-finish takes no arguments", &frame, &thread);

    if (result != TBD_EXIT_FOUND)
        return result;
    /* Search from after this instruction: it may be the function's first one. */
    start.offset++;
    question = tbd_question_before(start, TBD_EVENT_FUNC_ENTER);
    where_frame(&question, TBD_FIELD_SP, frame - 8, thread);
    entry.silent = true;
    result = tbd_command_ask(&entry, &question);
    if (result != TBD_EXIT_FOUND)
        return result;
    call = tbd_session_current(run->session);
    status = tbd_frame_thread_block(run, true, thread, &call);
    return status == TBD_OK ? tbd_command_go(run, call) : tbd_command_fail(run, status);
}

/* ---- instructions ---- */

static enum tbd_status insns_at(struct tbd_session *session, uint64_t time, uint64_t *out)
{
    struct tbd_place place;
    enum tbd_status status =
        tbd_session_place(session, (struct tbd_position){ .time = time }, &place);

    *out = status == TBD_OK ? place.insns : 0;
    return status;
}

enum tbd_status tbd_command_states(struct tbd_session *session, struct tbd_position from,
                                   bool backward, uint64_t count, struct tbd_position *out)
{
    uint64_t insns = 0, offset = from.offset;
    enum tbd_status status = insns_at(session, from.time, &insns);

    while (status == TBD_OK && backward && count > offset) {
        count -= offset + 1;
        status = from.time == 0 ? TBD_NOTIME : insns_at(session, --from.time, &insns);
        offset = insns == 0 ? 0 : insns - 1;
    }
    while (status == TBD_OK && !backward && count != 0 && offset + count >= insns) {
        count -= insns > offset ? insns - offset : 1;
        status = insns_at(session, ++from.time, &insns);
        offset = 0;
    }
    from.offset = (uint32_t)(backward ? offset - count : offset + count);
    *out = from;
    return status;
}

enum tbd_exit tbd_command_stepi(struct tbd_command_run *run)
{
    return go_by(run, false, TBD_EVENT_STATE);
}

enum tbd_exit tbd_command_reverse_stepi(struct tbd_command_run *run)
{
    return go_by(run, true, TBD_EVENT_STATE);
}
