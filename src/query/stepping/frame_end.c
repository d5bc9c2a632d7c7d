// SPDX-License-Identifier: MIT
/* frame_end.c - see frame_end.h
 *
 * An unwinder ends with a return instruction, too: it writes the handler's address over the return
 * address of the frame that it leaves, and returns to it.  Such a return differs from the frame's
 * own: calls deeper in the stack have not returned, and it does not lead to where the call was made.
 * longjmp() leaves by a jump: the next call or return at or above the frame's slot shows it. */
#include "query/stepping/frame_end.h"

#include "query/session/code/symbols.h"

#include <string.h>

#define CALL_MAX_BYTES 15u
#define PIECE_FIRST    65536u /* blocks that are searched for a frame's end ... */
#define PIECE_GROWTH   16u    /* ... and how much more they are the next time */

static bool is_unwinder(struct tbd_session *session, const struct tbd_event *exit)
{
    uint32_t window = tbd_trace_window_of(session->trace, exit->position.time);
    struct tbd_symbol symbol;

    return tbd_symbols_at(session->symbols, window, exit->pc, &symbol) && symbol.name != NULL &&
           strncmp(symbol.name, "_Unwind_", strlen("_Unwind_")) == 0;
}

/* Where there is one thread, all blocks are its. */
static enum tbd_status block_beside(struct tbd_session *session, bool backward,
                                    struct tbd_position *out)
{
    struct tbd_position at = { .time = backward ? out->time - 1 : out->time + 1 };
    struct tbd_place place = { 0 };
    enum tbd_status status = TBD_OK;

    if (backward ? out->time == 0 : at.time >= session->info->blocks)
        return TBD_NOTFOUND;
    if (backward)
        status = tbd_session_place(session, at, &place);
    at.offset = place.insns == 0 ? 0 : place.insns - 1;
    if (status == TBD_OK)
        *out = at;
    return status;
}

enum tbd_status tbd_frame_thread_block(struct tbd_command_run *run, bool backward, uint32_t thread,
                                       struct tbd_position *out)
{
    struct tbd_question question;
    struct tbd_event event;
    struct tbd_place place;
    enum tbd_status status;

    if (tbd_trace_thread_count(run->session->trace) <= 1)
        return block_beside(run->session, backward, out);
    question = backward ? tbd_question_before(*out, TBD_EVENT_BLOCK_ENTRY)
                        : tbd_question_after(*out, TBD_EVENT_BLOCK_ENTRY);
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

/* Does the return lead to the instruction after the call?  Yes, if that is not known. */
enum tbd_frame_end tbd_frame_settle(struct tbd_command_run *run, const struct tbd_frame_call *call,
                                    struct tbd_position exit)
{
    uint64_t back = 0, pc = 0;
    uint32_t window;

    if (tbd_session_read(run->session, call->since, call->slot, &back, sizeof(back)) != TBD_OK ||
        tbd_frame_thread_block(run, false, call->thread, &exit) != TBD_OK ||
        tbd_session_pc(run->session, exit, &window, &pc) != TBD_OK || pc == back)
        return TBD_FRAME_RETURNS;
    return TBD_FRAME_LEFT;
}

/* A later call has put its own return address into the slot, and returns. */
static bool is_of_later_call(const struct tbd_frame_call *call, const struct tbd_event *exit)
{
    if ((exit->flags & TBD_EVENT_HAS_CALL) == 0)
        return false;
    if (exit->began != 0)
        return exit->began > call->since.time;
    return call->from != 0 && (exit->from > call->from ? exit->from - call->from
                                                       : call->from - exit->from) >= CALL_MAX_BYTES;
}

enum tbd_frame_end tbd_frame_end_by(struct tbd_session *session, const struct tbd_frame_call *call,
                                    const struct tbd_event *exit)
{
    if (exit->thread != call->thread || exit->sp < call->slot)
        return TBD_FRAME_STAYS;
    if (exit->sp > call->slot || is_of_later_call(call, exit))
        return TBD_FRAME_LEFT;
    if ((exit->flags & TBD_EVENT_OVER) == 0)
        return TBD_FRAME_RETURNS;
    return is_unwinder(session, exit) ? TBD_FRAME_LEFT : TBD_FRAME_SEEMS_TO_RETURN;
}

void tbd_frame_take_slot(const struct tbd_frame *frames, size_t count, size_t index,
                         struct tbd_frame_call *out)
{
    uint64_t cfa = index < count ? frames[index].cfa : 0;
    bool has_caller = index + 1 < count;

    if (cfa == 0 && has_caller)
        cfa = frames[index + 1].sp;
    out->slot = cfa - 8;
    out->from = has_caller ? frames[index + 1].call_pc : 0;
}

enum tbd_status tbd_frame_call_at(struct tbd_session *session, struct tbd_position position,
                                  struct tbd_frame_call *out)
{
    struct tbd_frame frames[2];
    struct tbd_place place;
    size_t count = 0;
    enum tbd_status status = tbd_session_stack(session, position, frames, 2, &count);

    *out = (struct tbd_frame_call){ .since = position };
    if (status == TBD_OK)
        status = tbd_session_place(session, position, &place);
    if (status != TBD_OK)
        return status;
    tbd_frame_take_slot(frames, count, 0, out);
    out->thread = place.thread;
    return TBD_OK;
}

/* ---- the end of one frame ---- */

static void where_at_or_above(struct tbd_question *question, const struct tbd_frame_call *call)
{
    tbd_question_where_field(question, TBD_FIELD_SP, TBD_EXPR_GE, call->slot);
    tbd_question_where_field(question, TBD_FIELD_THREAD, TBD_EXPR_EQ, call->thread);
}

/* The first call above the frame, before `limit`: the frame is gone there. */
static bool find_call_above(struct tbd_command_run *run, const struct tbd_frame_call *call,
                            struct tbd_position limit, struct tbd_event *out)
{
    struct tbd_question question = tbd_question_after(call->since, TBD_EVENT_FUNC_ENTER);

    question.only_calls = true;
    where_at_or_above(&question, call);
    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_LE, limit.time);
    return tbd_command_find_event(run, &question, out) == TBD_OK &&
           (out->flags & TBD_EVENT_BY_JUMP) == 0;
}

/* The jump lies between the last call within the frame and `limit`, which shows that the frame is
 * gone. */
static enum tbd_status find_landing(struct tbd_command_run *run, const struct tbd_frame_call *call,
                                    struct tbd_position limit, struct tbd_event *out)
{
    struct tbd_question question = tbd_question_before(limit, TBD_EVENT_FUNC_ENTER);
    struct tbd_position from = call->since;
    struct tbd_event last;

    question.only_calls = true;
    tbd_question_where_field(&question, TBD_FIELD_SP, TBD_EXPR_LE, call->slot);
    tbd_question_where_field(&question, TBD_FIELD_THREAD, TBD_EXPR_EQ, call->thread);
    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_GE, from.time);
    if (tbd_command_find_event(run, &question, &last) == TBD_OK &&
        tbd_position_compare(last.position, from) > 0)
        from = last.position;
    question = tbd_question_after(from, TBD_EVENT_BLOCK_ENTRY);
    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_LE, limit.time);
    tbd_question_where_field(&question, TBD_FIELD_THREAD, TBD_EXPR_EQ, call->thread);
    tbd_question_where_field(&question, TBD_FIELD_SP, TBD_EXPR_GT, call->slot);
    return tbd_command_find_event(run, &question, out);
}

/* The first return at or above the frame, from the instruction at call->since on. */
static enum tbd_status find_return_by(struct tbd_command_run *run,
                                      const struct tbd_frame_call *call, uint64_t until,
                                      struct tbd_event *out)
{
    struct tbd_position from = call->since;
    struct tbd_question question;

    if (from.offset != 0)
        from.offset--;
    else if (from.time != 0)
        from = (struct tbd_position){ from.time - 1, TBD_BLOCK_MAX_INSNS };
    question = tbd_question_after(from, TBD_EVENT_FUNC_EXIT);
    question.keeps_frames = true;
    where_at_or_above(&question, call);
    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_LE, until);
    return tbd_command_find_event(run, &question, out);
}

/* The same.  Most frames end soon, and a search that may go on to the end replays a long window from its start: the stretch around the
 * position is often in memory. */
static enum tbd_status find_return(struct tbd_command_run *run, const struct tbd_frame_call *call,
                                   uint64_t until, struct tbd_event *out)
{
    uint64_t since = call->since.time;
    enum tbd_status status = TBD_NOTFOUND;

    for (uint64_t piece = PIECE_FIRST;
         status == TBD_NOTFOUND && since < until && piece < until - since; piece *= PIECE_GROWTH)
        status = find_return_by(run, call, since + piece, out);
    return status == TBD_NOTFOUND ? find_return_by(run, call, until, out) : status;
}

enum tbd_status tbd_frame_find_end(struct tbd_command_run *run, const struct tbd_frame_call *call,
                                   const struct tbd_position *limit, enum tbd_frame_end *out_end,
                                   struct tbd_event *out_at)
{
    uint64_t blocks = run->session->info->blocks;
    struct tbd_position until =
        limit == NULL ? (struct tbd_position){ .time = blocks == 0 ? 0 : blocks - 1 } : *limit;
    enum tbd_status status = find_return(run, call, until.time, out_at);
    bool is_found = status == TBD_OK;
    struct tbd_event above;

    *out_end = TBD_FRAME_STAYS;
    if (!is_found && status != TBD_NOTFOUND)
        return status;
    if (is_found)
        *out_end = tbd_frame_end_by(run->session, call, out_at);
    if (*out_end == TBD_FRAME_SEEMS_TO_RETURN)
        *out_end = tbd_frame_settle(run, call, out_at->position);
    if (*out_end == TBD_FRAME_RETURNS)
        return TBD_OK;
    if (is_found && (out_at->flags & TBD_EVENT_OVER) != 0 && is_unwinder(run->session, out_at))
        return tbd_frame_thread_block(run, false, call->thread, &out_at->position);
    if (find_call_above(run, call, is_found ? out_at->position : until, &above))
        *out_at = above;
    else if (!is_found)
        return TBD_NOTFOUND;
    *out_end = TBD_FRAME_LEFT;
    return find_landing(run, call, out_at->position, out_at);
}
