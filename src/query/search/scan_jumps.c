// SPDX-License-Identifier: MIT
/* scan_jumps.c - see scan_jumps.h
 *
 * Any block that does not end with a call may lead to a function: by a jump, a branch or a return that is taken there, or
 * because code goes on without one. */
#include "query/search/scan_jumps.h"

#include "format/window/window_make.h"
#include "query/search/scan_private.h"
#include "query/search/scan_threads.h"
#include "query/search/search_plan.h"
#include "query/search/search_tails.h"

#include <string.h>

bool tbd_scan_starts_threads(const struct tbd_window *window)
{
    return window->thread_count != 0;
}

/* ---- what is an entry ---- */

static bool has_call(const struct tbd_block *block)
{
    for (uint16_t i = 0; i < block->def.op_count; i++) {
        if (block->ops[i].kind == TBD_OP_CALL)
            return true;
    }
    return false;
}

bool tbd_scan_leads_on(const struct tbd_block *block)
{
    switch ((enum tbd_end)block->def.end) {
    case TBD_END_LIMIT:
    case TBD_END_JUMP:
    case TBD_END_BRANCH:
    case TBD_END_RETURN: return true;
    case TBD_END_JUMP_INDIRECT: return !has_call(block);
    default: return false;
    }
}

static uint64_t last_pc(const struct tbd_block *block)
{
    return block->def.start + block->def.last_insn;
}

bool tbd_scan_is_inside(struct tbd_symbols *symbols, uint32_t window, uint64_t from, uint64_t start)
{
    struct tbd_symbol there, here;

    if (symbols == NULL || !tbd_symbols_at(symbols, window, start, &there) ||
        (from >= there.start && from < there.end))
        return true;
    if (!tbd_symbols_at(symbols, window, from, &here) || !here.is_part)
        return false;
    tbd_symbols_to_whole(symbols, window, &here);
    return here.start == start;
}

static bool is_inside(const struct tbd_scan *scan, uint64_t from, uint64_t start)
{
    return tbd_scan_is_inside(scan->symbols, scan->window->index, from, start);
}

/* ---- entries inside a window ---- */

static struct tbd_event make_entry(const struct tbd_scan *scan, uint64_t from)
{
    const struct tbd_cursor *cursor = &scan->cursor;

    return (struct tbd_event){
        .type = TBD_EVENT_FUNC_ENTER,
        .block = cursor->id,
        .position = { .time = cursor->time },
        .pc = cursor->block->def.start,
        .from = from,
        .thread = cursor->thread,
        .flags = TBD_EVENT_BY_JUMP | TBD_EVENT_BARE,
    };
}

/* The jump is none of a stub: it is shown itself, unless it is in another window. */
static void deliver(struct tbd_scan *scan, struct tbd_event *event)
{
    uint64_t from = event->from;

    if (scan->keeps_frames) {
        tbd_scan_note_caller(scan, event);
        event->from = from != 0 ? from : event->called_at;
    }
    tbd_scan_deliver(scan, event);
}

/* A handler gets its signal's number, information and context, of which the latter two lie above the return address at the same
 * distances (struct rt_sigframe of the kernel, arch/x86/include/asm/sigframe.h).  Functions that get a buffer which their caller
 * has there, as fstat() does, have one of them by chance. */
static bool is_handler(const struct tbd_regs *regs)
{
    enum { CONTEXT_AT = 8, INFO_AT = 312, SIGNALS = 64 };

    return regs->gpr[TBD_RDX] == regs->gpr[TBD_RSP] + CONTEXT_AT &&
           regs->gpr[TBD_RSI] == regs->gpr[TBD_RSP] + INFO_AT && regs->gpr[TBD_RDI] - 1 < SIGNALS;
}

/* Does code of the function jump to its own start? */
static bool is_loop(const struct tbd_scan *scan, uint64_t start)
{
    const struct tbd_trace *trace = scan->window->trace;
    uint32_t count = tbd_trace_block_count(trace);
    uint64_t target;

    for (uint32_t id = 1; id <= count; id++) {
        const struct tbd_block *block = tbd_trace_block(trace, id);

        if (block != NULL && tbd_tails_target(block, &target) && target == start &&
            is_inside(scan, last_pc(block), start))
            return true;
    }
    return false;
}

/* The block before is in an earlier window. */
static void meet_at_start(struct tbd_scan *scan)
{
    const struct tbd_regs *regs = tbd_scan_thread_regs(scan->window, scan->cursor.thread);
    struct tbd_event event = make_entry(scan, 0);

    if (regs == NULL || regs->rip != event.pc || is_handler(regs) || is_loop(scan, event.pc))
        return;
    tbd_event_take_operands(&event, regs);
    deliver(scan, &event);
}

/* The block that leads to this one; NULL: none does. */
static const struct tbd_block *take_before(struct tbd_scan *scan)
{
    struct tbd_scan_way *way = &scan->way;
    const struct tbd_block *before = tbd_window_block(scan->window, way->block);

    if (way->held == 0 || before == NULL || before->def.end != TBD_END_SYSCALL ||
        way->held_back != scan->cursor.block->def.start)
        return before;
    before = tbd_window_block(scan->window, way->held);
    way->held = 0;
    return before;
}

/* ---- operands that follow from a call ---- */

void tbd_scan_take_handed(struct tbd_scan *scan)
{
    const struct tbd_scan_call *call = &scan->waiting;

    if (call->by_jump || call->made_at == 0 || call->made_at + 1 != scan->cursor.time)
        return;
    scan->handed = (struct tbd_scan_handed){ .time = scan->cursor.time,
                                             .block = scan->cursor.id,
                                             .back = call->back,
                                             .operands.sp = call->event.sp };
    memcpy(scan->handed.operands.args, call->event.args, sizeof(call->event.args));
}

static const struct tbd_register_moves *moves_of(struct tbd_scan *scan, uint32_t id,
                                                 const struct tbd_block *block)
{
    struct tbd_scan_moves *kept = &scan->moves[id % TBD_SCAN_MOVES];

    if (kept->block != id)
        tbd_register_moves_of(block, &kept->moves);
    kept->block = id;
    return &kept->moves;
}

/* Only if nothing came between the call, the block `before` that it entered, and this one: no signal, no other thread. */
static void make_operands(struct tbd_scan *scan, const struct tbd_block *before,
                          struct tbd_event *event)
{
    const struct tbd_scan_handed *handed = &scan->handed;
    struct tbd_call_operands operands = handed->operands;
    const struct tbd_register_moves *moves;

    if (handed->time == 0 || handed->time + 1 != event->position.time ||
        before != tbd_window_block(scan->window, handed->block))
        return;
    moves = moves_of(scan, handed->block, before);
    if (!moves->is_known)
        return;
    tbd_register_moves_apply(moves, &operands);
    event->sp = operands.sp;
    memcpy(event->args, operands.args, sizeof(event->args));
    event->called_at = handed->back - 1;
    event->flags = (event->flags & ~TBD_EVENT_BARE) | TBD_EVENT_HAS_SP;
}

void tbd_scan_meet_jump(struct tbd_scan *scan)
{
    const struct tbd_block *before;
    struct tbd_event event;

    if (scan->blocks == NULL || (scan->blocks[scan->cursor.id] & TBD_PLAN_JUMPED) == 0)
        return;
    if (scan->way.is_at_start) {
        meet_at_start(scan);
        return;
    }
    before = take_before(scan);
    if (before == NULL || !tbd_scan_leads_on(before))
        return;
    event = make_entry(scan, last_pc(before));
    if (is_inside(scan, event.from, event.pc))
        return;
    make_operands(scan, before, &event);
    deliver(scan, &event);
}

void tbd_scan_pass_block(struct tbd_scan *scan)
{
    bool ran = scan->limit >= scan->cursor.block->def.insn_count;

    scan->way.block = ran ? scan->cursor.id : 0;
    scan->way.is_at_start = false;
}

void tbd_scan_hold_jump(struct tbd_scan *scan, uint64_t back)
{
    const struct tbd_block *before = tbd_window_block(scan->window, scan->way.block);

    if (before != NULL && tbd_scan_leads_on(before)) {
        scan->way.held = scan->way.block;
        scan->way.held_back = back;
    }
    scan->way.block = 0;
    scan->way.is_at_start = false;
}

/* ---- is there any? ---- */

bool tbd_scan_may_meet(const struct tbd_window *window, const uint8_t *blocks, uint32_t count)
{
    const uint32_t *entries = window->entries;

    for (size_t i = 0; i < window->entry_count; i++) {
        const struct tbd_block *before;

        if (entries[i] >= count || (blocks[entries[i]] & TBD_PLAN_JUMPED) == 0)
            continue;
        if (i == 0 || (entries[i - 1] & TBD_ENTRY_MESSAGE) != 0)
            return true;
        before = tbd_window_block(window, entries[i - 1]);
        if (before != NULL && tbd_scan_leads_on(before))
            return true;
    }
    return false;
}

/* ---- the entry at a window's end ---- */

void tbd_scan_meet_end(struct tbd_scan *scan)
{
    const struct tbd_window *window = scan->window;
    const struct tbd_block *before = tbd_window_block(window, scan->way.block);
    uint64_t start = window->end_regs.rip;
    struct tbd_event event;

    if (!window->complete || window->end_thread_count != 0 || before == NULL ||
        !tbd_scan_leads_on(before) || scan->symbols == NULL ||
        !tbd_symbols_is_function_start(scan->symbols, window->index, start) ||
        is_inside(scan, last_pc(before), start))
        return;
    event = make_entry(scan, last_pc(before));
    event.block = 0;
    event.position.time = window->first_time + window->blocks;
    event.pc = start;
    tbd_event_take_operands(&event, &window->end_regs);
    deliver(scan, &event);
}
