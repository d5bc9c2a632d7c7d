// SPDX-License-Identifier: MIT
/* step_walk.c - see step_walk.h
 *
 * A call is over when a return takes its return address from the call's slot and leads to the instruction after the call, or when an
 * unwinder's return or a jump leads to a frame further out.  Calls that take long are left to tbd_frame_find_end(). */
#include "query/stepping/step_walk.h"

#include <string.h>

#define SKIPPED_MAX     (1u << 18) /* blocks that are looked at one by one */
#define UNWINDER_FRAMES 16u        /* between an unwinder's return and the function that throws */

static const struct tbd_block *block_of(const struct tbd_step_walk *walk,
                                        const struct tbd_path_block *block)
{
    return tbd_trace_block(walk->run->session->trace, block->id);
}

static uint64_t start_of(const struct tbd_step_walk *walk, const struct tbd_path_block *block)
{
    return block_of(walk, block)->def.start;
}

static uint64_t end_of(const struct tbd_step_walk *walk, const struct tbd_path_block *block)
{
    const struct tbd_block *of = block_of(walk, block);

    return of->def.start + of->def.code_bytes;
}

/* Stands on an instruction of a block that the thread entered at this time. */
static bool stand(struct tbd_step_walk *walk, uint64_t time, uint32_t offset)
{
    walk->at = (struct tbd_position){ time, offset };
    return tbd_session_pc(walk->run->session, walk->at, &walk->window, &walk->pc) == TBD_OK;
}

/* The same within a block that is known. */
static bool stand_in(struct tbd_step_walk *walk, const struct tbd_path_block *block,
                     uint32_t offset)
{
    struct tbd_session *session = walk->run->session;
    struct tbd_block_insn insn;

    if (!tbd_disas_insn(session->disas, block->id, offset, &insn))
        return stand(walk, block->time, offset);
    walk->at = (struct tbd_position){ block->time, offset };
    walk->window = tbd_trace_window_of(session->trace, block->time);
    walk->pc = insn.pc;
    return true;
}

static bool stand_at_last(struct tbd_step_walk *walk, const struct tbd_path_block *block)
{
    return stand_in(walk, block, block->insns == 0 ? 0 : block->insns - 1);
}

/* The frame is another one now. */
static enum tbd_step_move in_other_frame(struct tbd_step_walk *walk, enum tbd_step_move move)
{
    return tbd_frame_call_at(walk->run->session, walk->at, &walk->frame) == TBD_OK
               ? move
               : TBD_STEP_FAILED;
}

static enum tbd_step_move none(enum tbd_status status)
{
    return status == TBD_NOTFOUND ? TBD_STEP_ENDS : TBD_STEP_FAILED;
}

enum tbd_status tbd_step_walk_start(struct tbd_step_walk *walk, struct tbd_command_run *run,
                                    struct tbd_position from)
{
    enum tbd_status status;

    *walk = (struct tbd_step_walk){ .run = run, .at = from };
    status = tbd_frame_call_at(run->session, from, &walk->frame);
    if (status == TBD_OK)
        status = tbd_session_pc(run->session, from, &walk->window, &walk->pc);
    tbd_path_start(&walk->path, run->session, walk->frame.thread, from.time);
    return status;
}

void tbd_step_walk_end(struct tbd_step_walk *walk)
{
    tbd_path_free(&walk->path);
}

bool tbd_step_stand(struct tbd_step_walk *walk, struct tbd_position at,
                    const struct tbd_frame_call *frame)
{
    walk->frame = *frame;
    return stand(walk, at.time, at.offset);
}

bool tbd_step_is_entry(struct tbd_step_walk *walk)
{
    return walk->at.offset == 0 &&
           tbd_symbols_is_function_start(walk->run->session->symbols, walk->window, walk->pc);
}

/* ---- functions that are called ---- */

/* An import stub, or the loader's code that binds it. */
static bool is_on_the_way(const struct tbd_step_walk *walk, const struct tbd_path_block *block)
{
    uint32_t window = tbd_trace_window_of(walk->run->session->trace, block->time);
    struct tbd_symbol symbol;

    return tbd_symbols_at(walk->run->session->symbols, window, start_of(walk, block), &symbol) &&
           (symbol.is_stub || symbol.is_resolver ||
            strncmp(symbol.module, "ld-", strlen("ld-")) == 0);
}

/* The time at which the function itself is entered: after the stub through which it is called.  0: it is not known. */
static uint64_t entry_of(struct tbd_step_walk *walk, const struct tbd_path_block *first)
{
    struct tbd_path_block block = *first;
    const struct tbd_path_block *next;
    uint32_t deeper = 0;

    for (size_t i = 0; i < SKIPPED_MAX; i++) {
        if (deeper == 0 && !is_on_the_way(walk, &block))
            return block.time;
        deeper += block.end == TBD_PATH_CALLS;
        if (block.end == TBD_PATH_RETURNS && deeper-- == 0)
            return 0;
        if (tbd_path_from(&walk->path, block.time + 1, &next) != TBD_OK)
            return 0;
        block = *next;
    }
    return 0;
}

/* ---- over a call ---- */

bool tbd_step_function(const struct tbd_step_walk *walk, uint32_t window, uint64_t pc,
                       struct tbd_symbol *out)
{
    struct tbd_symbols *symbols = walk->run->session->symbols;

    if (!tbd_symbols_at(symbols, window, pc, out))
        return false;
    tbd_symbols_to_whole(symbols, window, out);
    return true;
}

static bool function_at(const struct tbd_step_walk *walk, const struct tbd_path_block *block,
                        struct tbd_symbol *out)
{
    return tbd_step_function(walk, tbd_trace_window_of(walk->run->session->trace, block->time),
                             start_of(walk, block), out);
}

/* Has a jump out of a deeper frame led to `to`, in the middle of a function? */
static bool is_landing(const struct tbd_step_walk *walk, const struct tbd_path_block *from,
                       const struct tbd_path_block *to)
{
    struct tbd_symbol there, here;

    return block_of(walk, from)->def.end == TBD_END_JUMP_INDIRECT &&
           function_at(walk, from, &there) && function_at(walk, to, &here) &&
           here.start != there.start && here.start != start_of(walk, to);
}

static bool is_unwinder(const struct tbd_step_walk *walk, const struct tbd_path_block *block)
{
    struct tbd_symbol symbol;

    return function_at(walk, block, &symbol) && symbol.name != NULL &&
           strncmp(symbol.name, "_Unwind_", strlen("_Unwind_")) == 0;
}

/* Has the way from `last` to `block` left the call?  By an unwinder's return, or by a jump. */
static bool has_landed(struct tbd_step_walk *walk, const struct tbd_path_block *call,
                       const struct tbd_path_block *last, const struct tbd_path_block *block)
{
    struct tbd_position position = { .time = block->time };
    struct tbd_frame_call frame;

    if (last->end == TBD_PATH_RETURNS && last->slot >= call->slot)
        return is_unwinder(walk, last);
    return last->end == TBD_PATH_GOES_ON && is_landing(walk, last, block) &&
           tbd_frame_call_at(walk->run->session, position, &frame) == TBD_OK &&
           frame.slot > call->slot;
}

enum call_end { CALL_GOES_ON, CALL_RETURNS, CALL_LANDS, CALL_IS_LOST };

/* Is the call over at `block`, which follows `last`? */
static enum call_end end_at(struct tbd_step_walk *walk, const struct tbd_path_block *call,
                            const struct tbd_path_block *last, const struct tbd_path_block *block)
{
    if (last->end == TBD_PATH_RETURNS && last->slot == call->slot &&
        start_of(walk, block) == end_of(walk, call))
        return CALL_RETURNS;
    if (has_landed(walk, call, last, block))
        return CALL_LANDS;
    return last->end != TBD_PATH_GOES_ON && last->slot >= call->slot ? CALL_IS_LOST : CALL_GOES_ON;
}

/* How the call that ends `call` ends among the next blocks, and where it leads. */
static enum call_end find_end(struct tbd_step_walk *walk, const struct tbd_path_block *call,
                              struct tbd_path_block *out)
{
    uint64_t handler = 0; /* the slot of a handler that is at work, perhaps on a stack of its own */
    struct tbd_path_block last = { .end = TBD_PATH_GOES_ON };
    const struct tbd_path_block *block;
    uint64_t time = call->time + 1;

    for (size_t i = 0; i < SKIPPED_MAX; i++) {
        enum call_end end = CALL_GOES_ON;

        if (tbd_path_from(&walk->path, time, &block) != TBD_OK)
            return CALL_IS_LOST;
        *out = *block;
        if (last.time != 0 && handler == 0)
            end = end_at(walk, call, &last, out);
        else if (last.time != 0 && has_landed(walk, call, &last, out))
            end = CALL_LANDS;
        if (end != CALL_GOES_ON)
            return end;
        if (out->handles != 0 && handler == 0)
            handler = out->handles;
        else if (handler != 0 && last.end == TBD_PATH_RETURNS && last.slot == handler)
            handler = 0;
        last = *out;
        time = last.time + 1;
    }
    return CALL_IS_LOST;
}

/* An exception or longjmp may lead to the frame itself. */
static enum tbd_step_move landed(struct tbd_step_walk *walk)
{
    uint64_t slot = walk->frame.slot;

    if (in_other_frame(walk, TBD_STEP_LEFT) == TBD_STEP_FAILED)
        return TBD_STEP_FAILED;
    return walk->frame.slot == slot ? TBD_STEP_ON : TBD_STEP_LEFT;
}

/* A call that takes long. */
static enum tbd_step_move over_slowly(struct tbd_step_walk *walk, const struct tbd_path_block *call,
                                      uint64_t entry)
{
    struct tbd_frame_call callee = { .slot = call->slot,
                                     .from =
                                         start_of(walk, call) + block_of(walk, call)->def.last_insn,
                                     .since = { .time = entry },
                                     .thread = walk->frame.thread };
    enum tbd_frame_end end;
    struct tbd_event event;
    enum tbd_status status = tbd_frame_find_end(walk->run, &callee, NULL, &end, &event);

    if (status == TBD_OK && end == TBD_FRAME_RETURNS)
        status = tbd_frame_thread_block(walk->run, false, callee.thread, &event.position);
    if (status != TBD_OK || !stand(walk, event.position.time, event.position.offset))
        return none(status);
    return end == TBD_FRAME_RETURNS ? TBD_STEP_ON : landed(walk);
}

static enum tbd_step_move over_call(struct tbd_step_walk *walk, const struct tbd_path_block *call,
                                    uint64_t entry)
{
    struct tbd_path_block next;
    enum call_end end = find_end(walk, call, &next);

    if (end == CALL_IS_LOST)
        return over_slowly(walk, call, entry);
    if (!stand_in(walk, &next, 0))
        return TBD_STEP_FAILED;
    return end == CALL_RETURNS ? TBD_STEP_ON : landed(walk);
}

static enum tbd_step_move call(struct tbd_step_walk *walk, const struct tbd_path_block *from,
                               const struct tbd_path_block *first, tbd_step_enters enters,
                               void *context)
{
    uint64_t next = first->time, entry = enters == NULL ? 0 : entry_of(walk, first);
    uint32_t window;
    uint64_t pc;

    if (entry != 0 &&
        tbd_session_pc(walk->run->session, (struct tbd_position){ .time = entry }, &window, &pc) ==
            TBD_OK &&
        enters(context, window, pc))
        return stand(walk, entry, 0) ? in_other_frame(walk, TBD_STEP_ENTERED) : TBD_STEP_FAILED;
    return over_call(walk, from, next);
}

/* ---- forward ---- */

/* What was interrupted goes on after the system call rt_sigreturn, which the handler's return leads to; or a jump out of the handler leads to
 * the frame that it interrupted, or further out. */
static enum call_end after_handler(struct tbd_step_walk *walk, struct tbd_path_block *next)
{
    struct tbd_path_block interrupted = { .slot = walk->frame.slot - 1 }, last;
    const struct tbd_path_block *block;
    uint64_t slot = next->handles;

    for (size_t i = 0; i < SKIPPED_MAX; i++) {
        bool returns = next->end == TBD_PATH_RETURNS && next->slot == slot;

        last = *next;
        for (unsigned more = 0; more < (returns ? 2 : 1); more++) {
            if (tbd_path_from(&walk->path, next->time + 1, &block) != TBD_OK)
                return CALL_IS_LOST;
            *next = *block;
        }
        if (returns)
            return CALL_RETURNS;
        if (has_landed(walk, &interrupted, &last, next))
            return CALL_LANDS;
    }
    return CALL_IS_LOST;
}

enum tbd_step_move tbd_step_forward(struct tbd_step_walk *walk, tbd_step_enters enters,
                                    void *context)
{
    const struct tbd_path_block *block;
    struct tbd_path_block from, next;
    enum call_end end = CALL_RETURNS; /* of signal handlers */
    enum tbd_status status = tbd_path_from(&walk->path, walk->at.time, &block);

    if (status != TBD_OK)
        return none(status);
    from = *block;
    if (walk->at.offset + 1 < from.insns)
        return stand_in(walk, &from, walk->at.offset + 1) ? TBD_STEP_ON : TBD_STEP_FAILED;
    status = tbd_path_from(&walk->path, from.time + 1, &block);
    if (status != TBD_OK)
        return none(status);
    next = *block;
    while (end == CALL_RETURNS && next.handles != 0)
        end = after_handler(walk, &next);
    if (end == CALL_LANDS)
        return stand_in(walk, &next, 0) ? landed(walk) : TBD_STEP_FAILED;
    if (end != CALL_RETURNS)
        return TBD_STEP_ENDS;
    if (from.end == TBD_PATH_CALLS)
        return call(walk, &from, &next, enters, context);
    if (!stand_in(walk, &next, 0))
        return TBD_STEP_FAILED;
    return from.end == TBD_PATH_RETURNS ? in_other_frame(walk, TBD_STEP_RETURNED) : TBD_STEP_ON;
}

/* ---- backward ---- */

/* The call before `time`, or the signal, that made the frame with its return address at `slot`. */
static enum tbd_status find_call(struct tbd_step_walk *walk, uint64_t slot, uint64_t time,
                                 struct tbd_path_block *out, bool *out_is_handler)
{
    const struct tbd_path_block *block;

    *out_is_handler = false;
    for (size_t i = 0; i < SKIPPED_MAX; i++) {
        enum tbd_status status = tbd_path_before(&walk->path, time, &block);

        if (status != TBD_OK)
            return status;
        if (*out_is_handler || (block->end == TBD_PATH_CALLS && block->slot == slot)) {
            *out = *block;
            return TBD_OK;
        }
        *out_is_handler = block->handles == slot;
        time = block->time;
    }
    return TBD_NOTFOUND;
}

static enum tbd_step_move to_call_slowly(struct tbd_step_walk *walk, uint64_t slot, uint64_t time)
{
    struct tbd_position at = { .time = time };
    struct tbd_question question = tbd_question_before(at, TBD_EVENT_FUNC_ENTER);
    struct tbd_event entry;
    enum tbd_status status;

    question.only_calls = true;
    tbd_question_where_field(&question, TBD_FIELD_SP, TBD_EXPR_EQ, slot);
    tbd_question_where_field(&question, TBD_FIELD_THREAD, TBD_EXPR_EQ, walk->frame.thread);
    status = tbd_command_find_event(walk->run, &question, &entry);
    if (status == TBD_OK)
        status = tbd_frame_thread_block(walk->run, true, walk->frame.thread, &entry.position);
    if (status != TBD_OK || !stand(walk, entry.position.time, entry.position.offset))
        return none(status);
    return TBD_STEP_ON;
}

static enum tbd_step_move to_call(struct tbd_step_walk *walk, uint64_t slot, uint64_t time)
{
    struct tbd_path_block call;
    bool is_handler;
    enum tbd_status status = find_call(walk, slot, time, &call, &is_handler);

    if (status == TBD_NOTFOUND)
        return to_call_slowly(walk, slot, time);
    if (status != TBD_OK || !stand_at_last(walk, &call))
        return none(status);
    return TBD_STEP_ON;
}

/* The jump of a tail call that led to the function's first instruction, rather than the call that made its frame. */
static bool find_tail_call(struct tbd_step_walk *walk, uint64_t since, struct tbd_path_block *out)
{
    const struct tbd_path_block *block;
    struct tbd_symbol here, there;
    uint64_t time = walk->at.time + 1, returned = 0;

    if (!tbd_step_function(walk, walk->window, walk->pc, &here))
        return false;
    while (tbd_path_before(&walk->path, time, &block) == TBD_OK && block->time > since) {
        bool starts = returned == 0 && start_of(walk, block) == here.start;

        time = block->time;
        if (returned == 0 && block->end == TBD_PATH_RETURNS && time < walk->at.time)
            returned = block->slot;
        else if (block->end == TBD_PATH_CALLS && block->slot == returned)
            returned = 0;
        if (starts && tbd_path_before(&walk->path, time, &block) == TBD_OK && block->time > since &&
            function_at(walk, block, &there) && there.start != here.start) {
            *out = *block;
            return true;
        }
    }
    return false;
}

enum tbd_step_move tbd_step_to_call(struct tbd_step_walk *walk)
{
    struct tbd_step_walk from = *walk;
    struct tbd_path_block jump;
    enum tbd_step_move move = to_call(walk, walk->frame.slot, walk->at.time + 1);

    if (move != TBD_STEP_ON)
        return move;
    from.path = walk->path;
    if (find_tail_call(&from, walk->at.time, &jump))
        move = stand_at_last(walk, &jump) ? move : TBD_STEP_FAILED;
    walk->path = from.path;
    return move == TBD_STEP_ON ? in_other_frame(walk, TBD_STEP_RETURNED) : move;
}

/* When was the function entered in which this block is?  0: not found. */
static uint64_t entered_at(struct tbd_step_walk *walk, const struct tbd_path_block *in)
{
    const struct tbd_path_block *block;
    struct tbd_symbol symbol;
    uint64_t time = in->time + 1;

    if (!function_at(walk, in, &symbol))
        return 0;
    for (size_t i = 0; i < SKIPPED_MAX; i++) {
        if (tbd_path_before(&walk->path, time, &block) != TBD_OK)
            return 0;
        time = block->time;
        if (start_of(walk, block) == symbol.start)
            return time;
    }
    return 0;
}

/* An unwinder, or longjmp, has jumped out of its frame: back to the call that led to it, in the first function further out that the walk goes into
 * (the one that throws or calls longjmp, or a cleanup that goes on unwinding).  TBD_STEP_ENDS: there is none.  An unwinder that is about to
 * return has no return address of its own any more, so its frame is that of its entry. */
static enum tbd_step_move back_into_thrower(struct tbd_step_walk *walk,
                                            const struct tbd_path_block *back,
                                            tbd_step_enters enters, void *context)
{
    struct tbd_position at = { .time = enters == NULL ? 0 : entered_at(walk, back) };
    struct tbd_path_block call;
    struct tbd_frame_call frame;
    struct tbd_symbol symbol;
    bool is_handler;

    for (unsigned i = 0; i < UNWINDER_FRAMES && at.time != 0; i++) {
        if (tbd_frame_call_at(walk->run->session, at, &frame) != TBD_OK ||
            find_call(walk, frame.slot, at.time, &call, &is_handler) != TBD_OK || is_handler)
            break;
        if (function_at(walk, &call, &symbol) &&
            enters(context, tbd_trace_window_of(walk->run->session->trace, call.time),
                   symbol.start))
            return stand_at_last(walk, &call) ? in_other_frame(walk, TBD_STEP_ENTERED)
                                              : TBD_STEP_FAILED;
        at.time = call.time;
    }
    return TBD_STEP_ENDS;
}

/* Backward over a return: into the function that returned, or to its call. */
static enum tbd_step_move back_from_return(struct tbd_step_walk *walk,
                                           const struct tbd_path_block *back,
                                           tbd_step_enters enters, void *context)
{
    struct tbd_symbol symbol;
    uint32_t window = tbd_trace_window_of(walk->run->session->trace, back->time);
    enum tbd_step_move move;

    if (enters != NULL &&
        tbd_symbols_at(walk->run->session->symbols, window, start_of(walk, back), &symbol) &&
        enters(context, window, symbol.start))
        return stand_at_last(walk, back) ? in_other_frame(walk, TBD_STEP_ENTERED) : TBD_STEP_FAILED;
    if (is_unwinder(walk, back) &&
        (move = back_into_thrower(walk, back, enters, context)) != TBD_STEP_ENDS)
        return move;
    return to_call(walk, back->slot, back->time + 1);
}

/* To the call of this frame during which longjmp() was called: calls that have returned lie between.  The symbol and the frame tell. */
static enum tbd_step_move back_from_landing(struct tbd_step_walk *walk,
                                            const struct tbd_path_block *landing)
{
    uint64_t slot = walk->frame.slot, time = landing->time, returned = 0;
    const struct tbd_path_block *block;
    struct tbd_symbol here, there;

    if (!function_at(walk, landing, &here))
        return TBD_STEP_ENDS;
    for (size_t i = 0; i < SKIPPED_MAX; i++) {
        enum tbd_status status = tbd_path_before(&walk->path, time, &block);

        if (status != TBD_OK)
            return none(status);
        time = block->time;
        if (block->end == TBD_PATH_RETURNS && returned == 0)
            returned = block->slot;
        if (block->end != TBD_PATH_CALLS)
            continue;
        if (returned != 0) {
            returned = returned == block->slot ? 0 : returned;
            continue;
        }
        if (!function_at(walk, block, &there) || there.start != here.start)
            continue;
        if (!stand_at_last(walk, block) || in_other_frame(walk, TBD_STEP_ON) == TBD_STEP_FAILED)
            return TBD_STEP_FAILED;
        if (walk->frame.slot == slot)
            return TBD_STEP_ON;
    }
    return TBD_STEP_ENDS;
}

enum tbd_step_move tbd_step_backward(struct tbd_step_walk *walk, tbd_step_enters enters,
                                     void *context)
{
    const struct tbd_path_block *block;
    struct tbd_path_block before, from;
    enum tbd_status status = tbd_path_from(&walk->path, walk->at.time, &block);

    if (status != TBD_OK)
        return none(status);
    from = *block;
    if (walk->at.offset != 0)
        return stand_in(walk, &from, walk->at.offset - 1) ? TBD_STEP_ON : TBD_STEP_FAILED;
    status = tbd_path_before(&walk->path, walk->at.time, &block);
    if (status != TBD_OK)
        return none(status);
    before = *block;
    if (before.end == TBD_PATH_RETURNS)
        return back_from_return(walk, &before, enters, context);
    if (is_landing(walk, &before, &from)) {
        enum tbd_step_move move = back_into_thrower(walk, &before, enters, context);

        return move != TBD_STEP_ENDS ? move : back_from_landing(walk, &from);
    }
    if (!stand_at_last(walk, &before))
        return TBD_STEP_FAILED;
    return before.end == TBD_PATH_CALLS || from.handles != 0
               ? in_other_frame(walk, TBD_STEP_RETURNED)
               : TBD_STEP_ON;
}
