// SPDX-License-Identifier: MIT
/* cmd_step.c - steps by line, function and instruction, both ways
 *
 * A step is a goto: lines are events, and a function's frame is known by its CFA, which conditions
 * call `frame`.  The CFA of the caller is larger. */
#include "query/commands/commands.h"

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

static enum tbd_exit go_by_lines_of_frame(struct tbd_command_run *run, bool backward)
{
    struct tbd_question question = from_here(run, backward, TBD_EVENT_LINE);
    uint32_t thread;
    uint64_t frame;
    enum tbd_status status = current_frame(run->session, &frame);

    if (status == TBD_OK)
        status = current_thread(run->session, &thread);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    where_frame(&question, TBD_FIELD_FRAME, frame, thread);
    return go(run, &question);
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
    return go_by_lines_of_frame(run, false);
}

enum tbd_exit tbd_command_reverse_next(struct tbd_command_run *run)
{
    return go_by_lines_of_frame(run, true);
}

/* ---- functions ---- */

/* Finds the thread's next block, or the one before; blocks of other threads may lie between.  The
 * result is the first instruction of the next block, or the last one of the block before. */
static enum tbd_status thread_block(struct tbd_command_run *run, bool backward, uint32_t thread,
                                    struct tbd_position *out)
{
    struct tbd_question question = backward ? tbd_question_before(*out, TBD_EVENT_BLOCK_ENTRY)
                                            : tbd_question_after(*out, TBD_EVENT_BLOCK_ENTRY);
    struct tbd_event event;
    struct tbd_place place;
    enum tbd_status status;

    tbd_question_where_field(&question, TBD_FIELD_THREAD, TBD_EXPR_EQ, thread);
    status = tbd_command_find_event(run, &question, &event);
    if (status == TBD_OK)
        *out = event.position;
    if (status == TBD_OK && backward)
        status = tbd_session_place(run->session, *out, &place);
    if (status == TBD_OK && backward)
        out->offset = place.insns == 0 ? 0 : place.insns - 1;
    return status;
}

enum tbd_exit tbd_command_finish(struct tbd_command_run *run)
{
    struct tbd_position from = tbd_session_current(run->session), next;
    uint64_t frame;
    uint32_t thread;
    struct tbd_question question;
    enum tbd_exit result = current_call(run, "finish takes no arguments", &frame, &thread);

    if (result != TBD_EXIT_FOUND)
        return result;
    /* Search from before this instruction: it may be the return itself. */
    if (from.offset != 0)
        from.offset--;
    else if (from.time != 0)
        from = (struct tbd_position){ from.time - 1, TBD_BLOCK_MAX_INSNS };
    question = tbd_question_after(from, TBD_EVENT_FUNC_EXIT);
    where_frame(&question, TBD_FIELD_SP, frame - 8, thread);
    result = tbd_command_ask(run, &question);
    next = tbd_session_current(run->session);
    if (result != TBD_EXIT_FOUND || thread_block(run, false, thread, &next) != TBD_OK)
        return result;
    return tbd_command_go(run, next);
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
    status = thread_block(run, true, thread, &call);
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
