// SPDX-License-Identifier: MIT
/* scan.c - turns blocks and ops into events; scan_messages.c handles messages
 *
 * A call's op announces a function entry, but the entry happens at the block that follows; so the
 * event waits for the next block entry. Import stubs and tail calls reach functions by a jump; a
 * jump of the same kind that stays inside a function (a switch) is no function entry. A signal in
 * between delays the event: the thread enters the function's block when the handler is done.  A
 * call that ends the window enters the block at the window's end registers.
 *
 * Threads take turns: the next block is the next one of the same thread (scan_threads.c).
 *
 * Only the first instructions of an interrupted block (a fault, the end of the program) ran:
 * `limit`. */
#include "query/search/scan_private.h"

#include "query/text/user_interrupt.h"
#include "query/search/scan_jumps.h"
#include "query/search/scan_threads.h"
#include "query/search/search_plan.h"

#include <string.h>

struct call_operands {
    uint64_t sp, rdi, rsi, rdx, rcx, r8, r9;
};

static bool is_inside(const struct tbd_span *span, struct tbd_position position)
{
    if (!span->from_start && tbd_position_compare(position, span->after) <= 0)
        return false;
    return span->to_end || tbd_position_compare(position, span->before) < 0;
}

void tbd_scan_deliver(struct tbd_scan *scan, struct tbd_event *event)
{
    if (scan->stopped || !is_inside(&scan->span, event->position))
        return;
    if (!scan->emit(scan->context, event))
        scan->stopped = true;
}

static uint64_t insn_pc(const struct tbd_scan *scan, uint32_t insn)
{
    struct tbd_block_insn found;

    if (insn == 0)
        return scan->cursor.block->def.start;
    if (!tbd_disas_insn(scan->disas, scan->cursor.id, insn, &found))
        return scan->cursor.block->def.start;
    return found.pc;
}

struct tbd_event tbd_scan_event(const struct tbd_scan *scan, enum tbd_event_type type,
                                uint32_t insn)
{
    return (struct tbd_event){
        .type = type,
        .block = scan->cursor.id,
        .position = { .time = scan->cursor.time, .offset = insn },
        .pc = insn_pc(scan, insn),
        .thread = scan->cursor.thread,
    };
}

static bool is_wanted_block(const struct tbd_scan *scan)
{
    return scan->blocks == NULL || scan->blocks[scan->cursor.id] != 0;
}

/* The state at an event is the one before its instruction: the effects of an instruction on the
 * stack of callers and on memory count from the next instruction on. */
void tbd_scan_settle(struct tbd_scan *scan)
{
    if (scan->probes != NULL)
        tbd_probes_step(scan->probes);
    if (scan->has_push)
        (void)tbd_callers_call(scan->callers, scan->push_slot, scan->push_pc, scan->push_time);
    scan->has_push = false;
}

/* ---- blocks ---- */

static uint32_t block_limit(const struct tbd_cursor *cursor)
{
    uint64_t limit = tbd_cursor_insn_limit(cursor);

    return limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
}

/* The instructions below `limit`, one bit each. */
static uint64_t bits_below(uint32_t limit)
{
    return limit >= 64 ? UINT64_MAX : (1ull << limit) - 1;
}

/* The instructions of the block just entered at which `pc` can be what is wanted; without it, all of them. */
static uint64_t insns_at_pc(const struct tbd_scan *scan)
{
    uint32_t insn;

    if (!scan->has_pc)
        return bits_below(scan->cursor.block->def.insn_count);
    return tbd_disas_index_of(scan->disas, scan->cursor.id, scan->pc, &insn) ? 1ull << insn : 0;
}

/* Events at instructions of the block just entered: they lie between the block's ops in time. */
static void expect_insns(struct tbd_scan *scan)
{
    const struct tbd_cursor *cursor = &scan->cursor;
    uint64_t insns;
    bool entry = scan->type == TBD_EVENT_BLOCK_ENTRY, all = scan->type == TBD_EVENT_STATE;

    scan->due = 0;
    if (!is_wanted_block(scan) ||
        (!entry && !all && (scan->type != TBD_EVENT_LINE || scan->lines == NULL)))
        return;
    if (all)
        scan->due = bits_below(scan->limit) & insns_at_pc(scan);
    else if (!entry)
        scan->due = tbd_line_starts_of(scan->lines, scan->window->index, cursor->id) &
                    bits_below(scan->limit);
    else {
        insns = scan->has_pc ? insns_at_pc(scan) : 1;
        scan->due = insns & (1 | bits_below(scan->limit));
    }
    if (scan->due != 0)
        scan->due_at = tbd_scan_event(scan, scan->type, 0);
    scan->due_id = cursor->id;
}

/* Delivers the events up to instruction `last`, each after the effects of the instructions before
 * it are applied. */
void tbd_scan_deliver_insns(struct tbd_scan *scan, uint32_t last)
{
    while (scan->due != 0 && (uint32_t)__builtin_ctzll(scan->due) <= last) {
        uint32_t insn = (uint32_t)__builtin_ctzll(scan->due);
        struct tbd_event event = scan->due_at;
        struct tbd_block_insn found;

        scan->due &= scan->due - 1;
        if (insn != scan->insn)
            tbd_scan_settle(scan);
        event.position.offset = insn;
        if (insn != 0 && tbd_disas_insn(scan->disas, scan->due_id, insn, &found))
            event.pc = found.pc;
        tbd_scan_deliver(scan, &event);
    }
}

bool tbd_scan_is_function(struct tbd_symbols *symbols, uint32_t window, uint64_t target)
{
    struct tbd_symbol symbol;

    return symbols == NULL || !tbd_symbols_at(symbols, window, target, &symbol) ||
           symbol.name == NULL || (symbol.start == target && !symbol.is_part);
}

static bool is_function(const struct tbd_scan *scan, uint64_t target)
{
    return !scan->waiting.by_jump ||
           tbd_scan_is_function(scan->symbols, scan->window->index, target);
}

/* A jump of an import stub, or of the loader that binds it (_dl_runtime_resolve). */
static bool is_of_stub(const struct tbd_scan *scan, uint64_t from)
{
    struct tbd_symbol symbol;

    return scan->symbols != NULL &&
           tbd_symbols_at(scan->symbols, scan->window->index, from, &symbol) &&
           (symbol.is_stub || strncmp(symbol.module, "ld-", strlen("ld-")) == 0);
}

/* The call that led to a jump is the one whose return address is on top of the stack. */
static const struct tbd_callers_frame *frame_of(const struct tbd_scan *scan,
                                                const struct tbd_event *event)
{
    const struct tbd_callers *callers = scan->callers;
    bool is_over;

    if ((event->flags & TBD_EVENT_BARE) == 0)
        return tbd_callers_at(callers, event->sp, &is_over);
    return callers->count == 0 ? NULL : &callers->frames[callers->count - 1];
}

void tbd_scan_note_caller(const struct tbd_scan *scan, struct tbd_event *event)
{
    const struct tbd_callers_frame *frame;

    event->called_at = event->from;
    if ((event->flags & TBD_EVENT_BY_JUMP) == 0)
        return;
    frame = frame_of(scan, event);
    event->called_at = frame == NULL ? 0 : frame->call_pc;
    if (frame != NULL && is_of_stub(scan, event->from))
        event->from = frame->call_pc;
}

static void deliver_call(struct tbd_scan *scan, uint64_t time, uint64_t target)
{
    struct tbd_event *event = &scan->waiting.event;

    scan->waiting.is_there = false;
    if (!is_function(scan, target))
        return;
    event->position = (struct tbd_position){ .time = time };
    event->pc = target;
    event->block = time == scan->cursor.time ? scan->cursor.id : 0;
    if (scan->keeps_frames)
        tbd_scan_note_caller(scan, event);
    else if (scan->own_returns && !scan->waiting.by_jump)
        event->called_at = event->from;
    tbd_scan_deliver(scan, event);
}

/* The position of a turn is where the thread goes on: the block that it enters. */
void tbd_scan_deliver_switch(struct tbd_scan *scan, uint64_t time, uint64_t pc)
{
    if (!scan->has_switch)
        return;
    scan->has_switch = false;
    scan->switched.position = (struct tbd_position){ .time = time };
    scan->switched.pc = pc;
    tbd_scan_deliver(scan, &scan->switched);
}

/* Nothing in this block can matter: no event, no store for a probe, no call for the stack. */
static bool can_skip(const struct tbd_scan *scan)
{
    if (scan->probes != NULL || scan->callers != NULL || scan->type == TBD_EVENT_FUNC_ENTER)
        return false;
    return scan->type == TBD_EVENT_BLOCK_ENTRY || scan->type == TBD_EVENT_SYSCALL ||
           scan->type == TBD_EVENT_LINE || scan->type == TBD_EVENT_STATE ||
           scan->type == TBD_EVENT_SIGNAL || scan->type == TBD_EVENT_THREAD_SWITCH ||
           !is_wanted_block(scan);
}

static void at_block(struct tbd_scan *scan)
{
    const struct tbd_cursor *cursor = &scan->cursor;

    tbd_scan_deliver_insns(scan, UINT32_MAX);
    scan->limit = block_limit(cursor);
    tbd_scan_settle(scan);
    scan->insn = 0;
    tbd_scan_deliver_switch(scan, cursor->time, cursor->block->def.start);
    if (scan->waiting.is_there &&
        (scan->waiting.target == 0 || scan->waiting.target == cursor->block->def.start)) {
        if (scan->makes_operands)
            tbd_scan_take_handed(scan);
        if (!scan->only_jumps &&
            (scan->blocks == NULL || (scan->blocks[cursor->id] & ~TBD_PLAN_NO_ENTRY) != 0))
            deliver_call(scan, cursor->time, cursor->block->def.start);
        scan->waiting.is_there = false;
    } else if (scan->with_jumps) {
        tbd_scan_meet_jump(scan);
    }
    if (scan->with_jumps)
        tbd_scan_pass_block(scan);
    expect_insns(scan);
    if (can_skip(scan))
        tbd_scan_deliver_insns(scan, UINT32_MAX);
}

/* ---- ops ---- */

static void deliver_overwriting(struct tbd_scan *scan, uint32_t insn, uint64_t slot)
{
    struct tbd_event event = tbd_scan_event(scan, TBD_EVENT_FUNC_EXIT, insn);

    event.sp = slot;
    event.began = scan->cursor.time;
    event.flags = TBD_EVENT_HAS_SP | TBD_EVENT_HAS_CALL | TBD_EVENT_OVERWRITES;
    tbd_scan_deliver(scan, &event);
}

static void at_call(struct tbd_scan *scan)
{
    const struct tbd_op *op = scan->cursor.op;
    bool tail = (op->flags & TBD_OPF_TAIL) != 0;
    struct call_operands operands;
    uint64_t pc;

    if (scan->type != TBD_EVENT_FUNC_ENTER && scan->callers == NULL)
        return;
    memcpy(&operands, scan->cursor.record + op->data, sizeof(operands));
    pc = insn_pc(scan, op->insn);
    if (scan->callers != NULL && !tail) {
        scan->has_push = true;
        scan->push_slot = operands.sp - 8;
        scan->push_pc = pc;
        scan->push_time = scan->cursor.time;
    }
    if (scan->with_returns && !tail)
        deliver_overwriting(scan, op->insn, operands.sp - 8);
    if (scan->type != TBD_EVENT_FUNC_ENTER)
        return;
    scan->waiting = (struct tbd_scan_call){ .is_there = true, .by_jump = tail };
    scan->waiting.event = (struct tbd_event){
        .type = TBD_EVENT_FUNC_ENTER,
        .from = pc,
        .sp = tail ? operands.sp : operands.sp - 8,
        .args = { operands.rdi, operands.rsi, operands.rdx, operands.rcx, operands.r8,
                  operands.r9 },
        .thread = scan->cursor.thread,
        .flags = TBD_EVENT_HAS_SP | (tail ? TBD_EVENT_BY_JUMP : 0),
    };
    scan->waiting.made_at = scan->cursor.time;
    scan->waiting.back = scan->cursor.block->def.start + scan->cursor.block->def.code_bytes;
}

/* Tells a frame that ends from one that an exception jumps into. */
static void note_call(const struct tbd_callers *callers, struct tbd_event *event)
{
    bool is_over;
    const struct tbd_callers_frame *frame = tbd_callers_at(callers, event->sp, &is_over);

    if (is_over)
        event->flags |= TBD_EVENT_OVER;
    if (frame == NULL)
        return;
    event->flags |= TBD_EVENT_HAS_CALL;
    event->from = frame->call_pc;
    event->began = frame->time;
}

static void at_return(struct tbd_scan *scan)
{
    const struct tbd_op *op = scan->cursor.op;
    struct tbd_event event;
    uint64_t operands[2];

    memcpy(operands, scan->cursor.record + op->data, sizeof(operands));
    if (scan->with_returns || scan->every_return ||
        (scan->type == TBD_EVENT_FUNC_EXIT && is_wanted_block(scan)) ||
        (scan->own_returns && (scan->blocks[scan->cursor.id] & TBD_PLAN_RETURN) != 0)) {
        event = tbd_scan_event(scan, TBD_EVENT_FUNC_EXIT, op->insn);
        event.sp = operands[0];
        event.retval = operands[1];
        event.flags = TBD_EVENT_HAS_SP;
        if (scan->keeps_frames)
            note_call(scan->callers, &event);
        tbd_scan_deliver(scan, &event);
    }
    if (scan->callers != NULL)
        tbd_callers_return(scan->callers, operands[0]);
}

static void at_access(struct tbd_scan *scan)
{
    const struct tbd_op *op = scan->cursor.op;
    bool is_store = op->kind == TBD_OP_STORE;
    enum tbd_event_type type = is_store ? TBD_EVENT_STORE : TBD_EVENT_LOAD;
    uint64_t address = tbd_cursor_address(&scan->cursor);
    const uint8_t *old = is_store ? scan->cursor.record + op->data : NULL;

    if (scan->type == type && is_wanted_block(scan)) {
        struct tbd_event event = tbd_scan_event(scan, type, op->insn);

        event.addr = address;
        event.size = op->size;
        event.old = old;
        tbd_scan_deliver(scan, &event);
    }
    if (is_store && scan->probes != NULL)
        tbd_probes_store(scan->probes, scan->cursor.time, address, op->size, old);
}

static void at_op(struct tbd_scan *scan)
{
    const struct tbd_op *op = scan->cursor.op;

    if (op->insn >= scan->limit)
        return;
    tbd_scan_deliver_insns(scan, op->insn);
    if (op->insn != scan->insn) {
        tbd_scan_settle(scan);
        scan->insn = op->insn;
    }
    switch ((enum tbd_op_kind)op->kind) {
    case TBD_OP_CALL: at_call(scan); break;
    case TBD_OP_RET: at_return(scan); break;
    case TBD_OP_STORE:
    case TBD_OP_LOAD: at_access(scan); break;
    case TBD_OP_NOTE: break; /* windows with notes have nothing else (register_notes.h) */
    }
}

/* ---- the walk ---- */

static bool is_past(const struct tbd_scan *scan)
{
    return scan->probes == NULL && !scan->span.to_end && scan->cursor.time > scan->span.before.time;
}

/* Blocks without wanted events are skipped, if nothing waits for the next block. */
static void hurry(struct tbd_scan *scan)
{
    // clang-format off
    struct tbd_pass pass = {
        .blocks = scan->blocks, .start = scan->range_start, .end = scan->range_end,
        .calls = scan->callers != NULL,
        .until = scan->span.to_end ? UINT64_MAX : scan->span.before.time,
    };
    // clang-format on

    if (scan->type == TBD_EVENT_FUNC_ENTER || scan->waiting.is_there || scan->has_switch ||
        scan->due != 0)
        return;
    if (scan->type == TBD_EVENT_SYSCALL || scan->type == TBD_EVENT_SIGNAL ||
        scan->type == TBD_EVENT_THREAD_SWITCH)
        pass.blocks = NULL;
    else if (scan->blocks == NULL)
        return;
    if (scan->has_range)
        pass.accesses = scan->type == TBD_EVENT_STORE ? TBD_OP_STORE : TBD_OP_LOAD;
    tbd_scan_settle(scan);
    if (scan->probes != NULL) {
        tbd_probes_waiting(scan->probes, &pass.watch_start, &pass.watch_end);
        pass.until = UINT64_MAX;
    }
    tbd_cursor_pass(&scan->cursor, &pass);
}

static bool step(struct tbd_scan *scan)
{
    bool skip = false;

    switch (scan->cursor.kind) {
    case TBD_AT_BLOCK:
        hurry(scan);
        at_block(scan);
        skip = can_skip(scan);
        break;
    case TBD_AT_OP: at_op(scan); break;
    case TBD_AT_MESSAGE: tbd_scan_at_message(scan); break;
    case TBD_AT_END: return false;
    }
    return skip ? tbd_cursor_skip_block(&scan->cursor) : tbd_cursor_next(&scan->cursor);
}

static bool has_threads(const struct tbd_window *window)
{
    return window->trace != NULL && tbd_trace_thread_count(window->trace) > 1;
}

uint64_t tbd_scan_start_time(const struct tbd_scan *scan)
{
    uint64_t first = scan->window->first_time;

    if (scan->type == TBD_EVENT_FUNC_ENTER && has_threads(scan->window))
        return first; /* a thread's call may be long ago */
    if (scan->span.from_start || scan->probes != NULL || scan->span.after.time <= first)
        return first;
    return scan->span.after.time - 1;
}

static void start(struct tbd_scan *scan)
{
    uint64_t time = tbd_scan_start_time(scan);

    tbd_cursor_first(scan->window, &scan->cursor);
    if (scan->callers != NULL)
        time = scan->seeded_at;
    if (time <= scan->window->first_time)
        return;
    if (!tbd_cursor_seek(scan->window, time, &scan->cursor))
        tbd_cursor_first(scan->window, &scan->cursor);
}

/* Accesses are nothing to a walk for entries and returns, unless probes take part.  A call is its block's last instruction: what it
 * pushes is settled at the next block in any case. */
static uint8_t passed_ops(const struct tbd_scan *scan)
{
    const uint8_t accesses = 1u << TBD_OP_STORE | 1u << TBD_OP_LOAD | 1u << TBD_OP_NOTE;
    bool is_about_calls = scan->type == TBD_EVENT_FUNC_ENTER || scan->type == TBD_EVENT_FUNC_EXIT;

    if (!is_about_calls || scan->probes != NULL)
        return 0;
    if (!scan->only_jumps)
        return accesses;
    return accesses | 1u << TBD_OP_RET | (scan->makes_operands ? 0 : 1u << TBD_OP_CALL);
}

void tbd_scan_run(struct tbd_scan *scan)
{
    const struct tbd_window *window = scan->window;

    scan->has_push = false;
    scan->has_switch = false;
    scan->due = 0;
    scan->stopped = false;
    start(scan);
    scan->way = (struct tbd_scan_way){ .is_at_start = tbd_scan_starts_threads(window) };
    scan->cursor.passes = passed_ops(scan);
    if (scan->cursor.kind == TBD_AT_END)
        return;
    tbd_scan_begin_turns(scan);
    while (step(scan)) {
        if ((scan->stopped && scan->probes == NULL) || is_past(scan) || tbd_is_interrupted())
            break;
    }
    tbd_scan_deliver_insns(scan, UINT32_MAX);
    tbd_scan_settle(scan);
    if (scan->cursor.kind == TBD_AT_END) {
        tbd_scan_deliver_switch(scan, window->first_time + window->blocks, window->end_regs.rip);
        tbd_scan_deliver_fatal(scan);
    }
    /* with other threads the next window has the event: another thread may come first */
    if (scan->waiting.is_there && scan->cursor.kind == TBD_AT_END && window->complete &&
        window->end_thread_count == 0)
        deliver_call(scan, window->first_time + window->blocks, window->end_regs.rip);
    else if (scan->with_jumps && scan->cursor.kind == TBD_AT_END)
        tbd_scan_meet_end(scan);
    if (scan->probes != NULL)
        tbd_probes_finish(scan->probes);
    tbd_scan_end_turns(scan);
}

bool tbd_scan_block_has(const struct tbd_block *block, enum tbd_event_type type)
{
    static const uint8_t kinds[TBD_EVENT_TYPE_COUNT] = {
        [TBD_EVENT_FUNC_EXIT] = TBD_OP_RET,
        [TBD_EVENT_STORE] = TBD_OP_STORE,
    };

    if (type == TBD_EVENT_SYSCALL)
        return block->def.end == TBD_END_SYSCALL;
    if (kinds[type] == 0)
        return true;
    for (unsigned i = 0; i < block->def.op_count; i++) {
        if (block->ops[i].kind == kinds[type])
            return true;
    }
    return type == TBD_EVENT_STORE &&
           (block->def.end == TBD_END_SYSCALL || block->def.end == TBD_END_SPECIAL);
}
