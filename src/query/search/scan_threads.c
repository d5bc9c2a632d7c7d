// SPDX-License-Identifier: MIT
/* scan_threads.c - what a walk over a window's events keeps for each thread
 *
 * A call that waits for its target belongs to its thread: the block entered next may be another
 * thread's.  A thread that comes back into a system call finishes it there; the call's instruction
 * is in the block that the thread entered before it began to wait. */
#include "query/search/scan_threads.h"

#include "base/array.h"
#include "query/search/scan_jumps.h"
#include "format/window/window_make.h"

#include <stdlib.h>

/* ---- calls that wait for their targets ---- */

static struct tbd_scan_turn *turn_of(struct tbd_scan *scan, uint32_t thread)
{
    for (size_t i = 0; i < scan->turn_count; i++) {
        if (scan->turns[i].thread == thread)
            return &scan->turns[i];
    }
    if (!tbd_array_grow(&scan->turns, scan->turn_count, &scan->turn_capacity, sizeof(*scan->turns)))
        return NULL;
    scan->turns[scan->turn_count] =
        (struct tbd_scan_turn){ .thread = thread,
                                .way.is_at_start = tbd_scan_starts_threads(scan->window) };
    return &scan->turns[scan->turn_count++];
}

void tbd_scan_change_turn(struct tbd_scan *scan, uint32_t from, uint32_t to)
{
    struct tbd_scan_turn *turn = turn_of(scan, from);

    if (turn != NULL) {
        turn->waiting = scan->waiting;
        turn->way = scan->way;
    }
    turn = turn_of(scan, to);
    scan->waiting = (struct tbd_scan_call){ 0 };
    scan->way = (struct tbd_scan_way){ 0 };
    if (turn != NULL) {
        scan->waiting = turn->waiting;
        scan->way = turn->way;
    }
    if (scan->turn != NULL)
        scan->turn(scan->context, from, to);
}

const struct tbd_regs *tbd_scan_thread_regs(const struct tbd_window *window, uint32_t thread)
{
    if (thread == window->regs.thread)
        return &window->regs;
    for (size_t i = 0; i < window->thread_count; i++) {
        if (window->threads[i].regs.thread == thread)
            return &window->threads[i].regs;
    }
    return NULL;
}

/* The call's operands are gone with the previous window, but the registers are unchanged. */
static bool make_waiting(const struct tbd_window *window, const struct tbd_called_thread *called,
                         struct tbd_scan_call *out)
{
    const struct tbd_block *block = tbd_window_block(window, called->id);
    const struct tbd_regs *regs = tbd_scan_thread_regs(window, called->thread);
    const struct tbd_op *op = NULL;

    for (uint16_t i = 0; block != NULL && i < block->def.op_count; i++) {
        if (block->ops[i].kind == TBD_OP_CALL)
            op = &block->ops[i];
    }
    if (op == NULL || regs == NULL)
        return false;
    *out = (struct tbd_scan_call){ .is_there = true, .by_jump = (op->flags & TBD_OPF_TAIL) != 0 };
    out->event = (struct tbd_event){
        .type = TBD_EVENT_FUNC_ENTER,
        .from = block->def.start + block->def.last_insn,
        .sp = regs->gpr[TBD_RSP],
        .args = { regs->gpr[TBD_RDI], regs->gpr[TBD_RSI], regs->gpr[TBD_RDX], regs->gpr[TBD_RCX],
                  regs->gpr[TBD_R8], regs->gpr[TBD_R9] },
        .thread = called->thread,
        .flags = TBD_EVENT_HAS_SP | (out->by_jump ? TBD_EVENT_BY_JUMP : 0),
    };
    return true;
}

void tbd_scan_begin_turns(struct tbd_scan *scan)
{
    const struct tbd_window *window = scan->window;

    scan->turn_count = 0;
    scan->waiting = (struct tbd_scan_call){ 0 };
    for (size_t i = 0; i < window->called_count && scan->type == TBD_EVENT_FUNC_ENTER; i++) {
        const struct tbd_called_thread *called = &window->called[i];
        struct tbd_scan_call waiting;
        struct tbd_scan_turn *turn;

        if (!make_waiting(window, called, &waiting))
            continue;
        if (called->thread == window->regs.thread)
            scan->waiting = waiting;
        else if ((turn = turn_of(scan, called->thread)) != NULL)
            turn->waiting = waiting;
    }
}

void tbd_scan_end_turns(struct tbd_scan *scan)
{
    free(scan->turns);
    scan->turns = NULL;
    scan->turn_count = scan->turn_capacity = 0;
}

/* ---- system calls that waited ---- */

bool tbd_scan_resumed_pc(const struct tbd_scan *scan, uint64_t *out)
{
    const struct tbd_window *window = scan->window;
    const struct tbd_regs *regs;
    struct tbd_cursor cursor;

    if (scan->cursor.began >= window->first_time) {
        if (!tbd_cursor_seek(window, scan->cursor.began, &cursor))
            return false;
        *out = cursor.block->def.start + cursor.block->def.last_insn;
        return true;
    }
    regs = tbd_scan_thread_regs(window, scan->cursor.thread);
    *out = regs == NULL ? 0 : regs->rip;
    return regs != NULL;
}
