// SPDX-License-Identifier: MIT
/* scan.c - from blocks, ops and messages to events
 *
 * A function entry is known by the call's op, but it happens at the block that follows; so the
 * event waits for the next block entry.  Import stubs and tail calls reach functions by a jump; a
 * jump of the same kind that stays inside a function (a switch) is none.  A signal in between sends
 * it further: the function's block is entered when the handler is done.  A call that ends the
 * window enters the block at the window's end registers.
 *
 * Threads take turns: the next block is the next one of the same thread (scan_threads.c).
 *
 * Of an interrupted block (a fault, the end of the program) only the first instructions ran:
 * `limit`. */
#include "query/scan.h"

#include "format/window.h"
#include "query/interrupt.h"
#include "query/scan_threads.h"

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

static void deliver(struct tbd_scan *scan, struct tbd_event *event)
{
    if (scan->stopped || !is_inside(&scan->span, event->position))
        return;
    if (!scan->emit(scan->context, event))
        scan->stopped = true;
}

static uint64_t insn_pc(const struct tbd_scan *scan, uint32_t insn)
{
    struct tbd_insn found;

    if (insn == 0)
        return scan->cursor.block->def.start;
    if (!tbd_disas_insn(scan->disas, scan->cursor.id, insn, &found))
        return scan->cursor.block->def.start;
    return found.pc;
}

static struct tbd_event make_event(const struct tbd_scan *scan, enum tbd_event_type type,
                                   uint32_t insn)
{
    return (struct tbd_event){
        .type = type,
        .position = { .time = scan->cursor.time, .offset = insn },
        .pc = insn_pc(scan, insn),
        .thread = scan->cursor.thread,
    };
}

static bool is_wanted_block(const struct tbd_scan *scan)
{
    return scan->blocks == NULL || scan->blocks[scan->cursor.id] != 0;
}

/* The state at an event is the one before its instruction: what an instruction does to the stack of
 * callers and to memory counts from the next one on. */
static void settle(struct tbd_scan *scan)
{
    if (scan->probes != NULL)
        tbd_probes_step(scan->probes);
    if (scan->has_push)
        (void)tbd_callers_call(scan->callers, scan->push_slot, scan->push_pc);
    scan->has_push = false;
}

/* ---- blocks ---- */

/* The reader checked message sizes, so the payload is there. */
static const uint8_t *payload_of(const struct tbd_message *message, struct tbd_message *out)
{
    memcpy(out, message, sizeof(*out));
    return (const uint8_t *)message + sizeof(*out);
}

static uint32_t block_limit(const struct tbd_cursor *cursor)
{
    uint64_t limit = tbd_cursor_insn_limit(cursor);

    return limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
}

/* Instructions below `limit`, as bits. */
static uint64_t bits_below(uint32_t limit)
{
    return limit >= 64 ? UINT64_MAX : (1ull << limit) - 1;
}

/* Events at instructions of the block just entered: in time they lie between its ops. */
static void expect_insns(struct tbd_scan *scan)
{
    const struct tbd_cursor *cursor = &scan->cursor;
    uint32_t insn = 0;
    bool entry = scan->type == TBD_EVENT_BLOCK_ENTRY, all = scan->type == TBD_EVENT_STATE;

    scan->due = 0;
    if (!is_wanted_block(scan) ||
        (!entry && !all && (scan->type != TBD_EVENT_LINE || scan->lines == NULL)))
        return;
    if (all)
        scan->due = bits_below(scan->limit) & bits_below(cursor->block->def.insn_count);
    else if (!entry)
        scan->due = tbd_line_starts_of(scan->lines, scan->window->index, cursor->id) &
                    bits_below(scan->limit);
    else if (!scan->has_pc || tbd_disas_index_of(scan->disas, cursor->id, scan->pc, &insn))
        scan->due = insn == 0 ? 1 : (1ull << insn) & bits_below(scan->limit);
    if (scan->due != 0)
        scan->due_at = make_event(scan, scan->type, 0);
    scan->due_id = cursor->id;
}

/* Delivers those up to instruction `last`; what the ones before did has been applied then. */
static void deliver_insns(struct tbd_scan *scan, uint32_t last)
{
    while (scan->due != 0 && (uint32_t)__builtin_ctzll(scan->due) <= last) {
        uint32_t insn = (uint32_t)__builtin_ctzll(scan->due);
        struct tbd_event event = scan->due_at;
        struct tbd_insn found;

        scan->due &= scan->due - 1;
        if (insn != scan->insn)
            settle(scan);
        event.position.offset = insn;
        if (insn != 0 && tbd_disas_insn(scan->disas, scan->due_id, insn, &found))
            event.pc = found.pc;
        deliver(scan, &event);
    }
}

static bool is_function(const struct tbd_scan *scan, uint64_t target)
{
    struct tbd_symbol symbol;

    if (!scan->waiting.by_jump || scan->symbols == NULL)
        return true;
    return !tbd_symbols_at(scan->symbols, scan->window->index, target, &symbol) ||
           symbol.name == NULL || symbol.start == target;
}

static void deliver_call(struct tbd_scan *scan, uint64_t time, uint64_t target)
{
    struct tbd_event *event = &scan->waiting.event;

    scan->waiting.is_there = false;
    if (!is_function(scan, target))
        return;
    event->position = (struct tbd_position){ .time = time };
    event->pc = target;
    deliver(scan, event);
}

/* A turn is where the thread goes on: at the block that it enters. */
static void deliver_switch(struct tbd_scan *scan, uint64_t time, uint64_t pc)
{
    if (!scan->has_switch)
        return;
    scan->has_switch = false;
    scan->switched.position = (struct tbd_position){ .time = time };
    scan->switched.pc = pc;
    deliver(scan, &scan->switched);
}

/* Nothing in this block can matter: no event, no store for a probe, no call for the stack. */
static bool can_skip(const struct tbd_scan *scan)
{
    if (scan->probes != NULL || scan->callers != NULL || scan->type == TBD_EVENT_FUNC_ENTER)
        return false;
    return scan->type == TBD_EVENT_BLOCK_ENTRY || scan->type == TBD_EVENT_SYSCALL ||
           scan->type == TBD_EVENT_LINE || scan->type == TBD_EVENT_STATE ||
           scan->type == TBD_EVENT_SIGNAL ||
           scan->type == TBD_EVENT_THREAD_SWITCH || !is_wanted_block(scan);
}

static void at_block(struct tbd_scan *scan)
{
    const struct tbd_cursor *cursor = &scan->cursor;

    deliver_insns(scan, UINT32_MAX);
    scan->limit = block_limit(cursor);
    settle(scan);
    scan->insn = 0;
    deliver_switch(scan, cursor->time, cursor->block->def.start);
    if (scan->waiting.is_there &&
        (scan->waiting.target == 0 || scan->waiting.target == cursor->block->def.start)) {
        if (scan->blocks == NULL || scan->blocks[cursor->id] != 0)
            deliver_call(scan, cursor->time, cursor->block->def.start);
        scan->waiting.is_there = false;
    }
    expect_insns(scan);
    if (can_skip(scan))
        deliver_insns(scan, UINT32_MAX);
}

/* ---- ops ---- */

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
    }
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
        .flags = TBD_EVENT_HAS_SP,
    };
}

static void at_return(struct tbd_scan *scan)
{
    const struct tbd_op *op = scan->cursor.op;
    struct tbd_event event;
    uint64_t operands[2];

    memcpy(operands, scan->cursor.record + op->data, sizeof(operands));
    if (scan->type == TBD_EVENT_FUNC_EXIT && is_wanted_block(scan)) {
        event = make_event(scan, TBD_EVENT_FUNC_EXIT, op->insn);
        event.sp = operands[0];
        event.retval = operands[1];
        event.flags = TBD_EVENT_HAS_SP;
        deliver(scan, &event);
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
        struct tbd_event event = make_event(scan, type, op->insn);

        event.addr = address;
        event.size = op->size;
        event.old = old;
        deliver(scan, &event);
    }
    if (is_store && scan->probes != NULL)
        tbd_probes_store(scan->probes, address, op->size, old);
}

static void at_op(struct tbd_scan *scan)
{
    const struct tbd_op *op = scan->cursor.op;

    if (op->insn >= scan->limit)
        return;
    deliver_insns(scan, op->insn);
    if (op->insn != scan->insn) {
        settle(scan);
        scan->insn = op->insn;
    }
    switch ((enum tbd_op_kind)op->kind) {
    case TBD_OP_CALL: at_call(scan); break;
    case TBD_OP_RET: at_return(scan); break;
    case TBD_OP_STORE:
    case TBD_OP_LOAD: at_access(scan); break;
    case TBD_OP_NOTE: break; /* windows with notes have nothing else (notes.h) */
    }
}

/* ---- messages ---- */

static uint32_t last_insn(const struct tbd_scan *scan)
{
    uint32_t count = scan->cursor.block == NULL ? 0 : scan->cursor.block->def.insn_count;

    return count == 0 ? 0 : count - 1;
}

static bool is_resumed(const struct tbd_scan *scan)
{
    return scan->cursor.began != scan->cursor.time;
}

/* At the last instruction of the block entered last.  Where that was another thread, because this
 * one waited in the call, the moment is the same, but the instruction is this one's. */
static struct tbd_event make_message_event(const struct tbd_scan *scan, enum tbd_event_type type)
{
    struct tbd_event event = { .type = type, .position = { .time = scan->window->first_time },
                               .thread = scan->cursor.thread };

    if (scan->cursor.block != NULL)
        event = make_event(scan, type, last_insn(scan));
    if (is_resumed(scan)) {
        event.flags |= TBD_EVENT_RESUMED;
        event.began = scan->cursor.began;
        (void)tbd_scan_resumed_pc(scan, &event.pc);
    }
    return event;
}

/* Writes of the kernel, or of the engine on the program's behalf, are stores of the block's last
 * instruction; a signal's frame is there before the handler's first instruction. */
static void deliver_writes(struct tbd_scan *scan, uint32_t kind, const uint8_t *payload,
                           uint32_t bytes, const struct tbd_event *at)
{
    struct tbd_write_cursor writes;
    struct tbd_write_view view;

    tbd_writes_first(kind, payload, bytes, &writes);
    while (tbd_writes_next(&writes, &view)) {
        if (scan->type == TBD_EVENT_STORE) {
            struct tbd_event event = *at;

            event.type = TBD_EVENT_STORE;
            event.addr = view.address;
            event.size = view.bytes;
            event.old = view.old_bytes;
            event.fresh = view.new_bytes;
            deliver(scan, &event);
        }
        if (scan->probes != NULL)
            tbd_probes_store(scan->probes, view.address, view.bytes, view.old_bytes);
    }
}

static void deliver_syscall(struct tbd_scan *scan, const uint8_t *payload)
{
    struct tbd_event event;
    struct tbd_msg_syscall call;

    memcpy(&call, payload, sizeof(call));
    if (scan->type != TBD_EVENT_SYSCALL || (call.flags & TBD_SYSCALL_CONTINUED) != 0)
        return;
    event = make_message_event(scan, TBD_EVENT_SYSCALL);
    event.number = call.number;
    event.retval = call.result;
    memcpy(event.args, call.args, sizeof(event.args));
    deliver(scan, &event);
}

/* Where the interrupted code goes on: the saved rip in the frame's ucontext (see sigframe: return
 * address, then uc_flags, uc_link, uc_stack, then the general registers with rip as the 17th). */
static uint64_t interrupted_rip(const struct tbd_msg_signal *signal, const uint8_t *payload,
                                uint32_t bytes)
{
    uint64_t at = signal->frame + 8 + 40 + 16 * 8;
    struct tbd_write_cursor writes;
    struct tbd_write_view view;
    uint64_t rip = 0;

    tbd_writes_first(TBD_MSG_SIGNAL, payload, bytes, &writes);
    while (tbd_writes_next(&writes, &view)) {
        if (view.bytes >= 8 && at - view.address <= view.bytes - 8)
            memcpy(&rip, view.new_bytes + (at - view.address), sizeof(rip));
    }
    return rip;
}

/* The handler's block comes next; a waiting call's block when the handler is done. */
static void at_signal(struct tbd_scan *scan, const struct tbd_message *message,
                      const uint8_t *payload)
{
    struct tbd_msg_signal signal;
    struct tbd_event event = { 0 };

    memcpy(&signal, payload, sizeof(signal));
    if (scan->waiting.is_there)
        scan->waiting.target = interrupted_rip(&signal, payload, message->bytes);
    event.position.time =
        scan->cursor.block == NULL ? scan->window->first_time : scan->cursor.time + 1;
    event.pc = signal.handler;
    if (scan->callers != NULL)
        (void)tbd_callers_call(scan->callers, signal.frame,
                               interrupted_rip(&signal, payload, message->bytes));
    event.thread = scan->cursor.thread;
    deliver_writes(scan, TBD_MSG_SIGNAL, payload, message->bytes, &event);
    if (scan->type != TBD_EVENT_SIGNAL)
        return;
    settle(scan);
    event.type = TBD_EVENT_SIGNAL;
    event.number = signal.signo;
    event.from = interrupted_rip(&signal, payload, message->bytes);
    deliver(scan, &event);
}

/* Others' stores to the code of the block that is entered next. */
static void at_code(struct tbd_scan *scan, const struct tbd_message *message,
                    const uint8_t *payload)
{
    struct tbd_event event = { .type = TBD_EVENT_STORE, .thread = scan->cursor.thread };
    struct tbd_msg_code code;

    memcpy(&code, payload, sizeof(code));
    event.position.time =
        scan->cursor.block == NULL ? scan->window->first_time : scan->cursor.time + 1;
    event.pc = code.start;
    deliver_writes(scan, TBD_MSG_CODE, payload, message->bytes, &event);
}

static void at_thread(struct tbd_scan *scan)
{
    struct tbd_msg_thread message = tbd_thread_message(scan->cursor.message);
    uint64_t next = scan->cursor.block == NULL ? scan->window->first_time : scan->cursor.time + 1;

    if (message.event != TBD_THREAD_SWITCH)
        return;
    tbd_scan_change_turn(scan, message.from, message.thread);
    if (scan->type != TBD_EVENT_THREAD_SWITCH)
        return;
    deliver_switch(scan, next, 0); /* the one before came to no block */
    scan->has_switch = true;
    scan->switched = (struct tbd_event){ .type = TBD_EVENT_THREAD_SWITCH,
                                         .thread = message.thread,
                                         .previous = message.from,
                                         .reason = message.reason };
}

static void at_message(struct tbd_scan *scan)
{
    struct tbd_message message;
    const uint8_t *payload = payload_of(scan->cursor.message, &message);
    struct tbd_event event;

    deliver_insns(scan, UINT32_MAX);
    if (message.kind != TBD_MSG_INTERRUPTED)
        settle(scan);
    if (message.kind == TBD_MSG_SIGNAL) {
        at_signal(scan, &message, payload);
        return;
    }
    if (message.kind == TBD_MSG_CODE) {
        at_code(scan, &message, payload);
        return;
    }
    if (message.kind == TBD_MSG_THREAD) {
        at_thread(scan);
        return;
    }
    if ((scan->cursor.block == NULL && !is_resumed(scan)) ||
        (message.kind != TBD_MSG_SYSCALL && message.kind != TBD_MSG_SPECIAL))
        return;
    if (message.kind == TBD_MSG_SYSCALL)
        deliver_syscall(scan, payload);
    if (scan->type != TBD_EVENT_STORE && scan->probes == NULL)
        return;
    event = make_message_event(scan, TBD_EVENT_STORE);
    deliver_writes(scan, message.kind, payload, message.bytes, &event);
}

/* ---- the walk ---- */

static bool is_past(const struct tbd_scan *scan)
{
    return scan->probes == NULL && !scan->span.to_end && scan->cursor.time > scan->span.before.time;
}

/* Blocks of which nothing is wanted are passed without a look, where nothing waits for
 * the next block. */
static void hurry(struct tbd_scan *scan)
{
    struct tbd_pass pass = {
        .blocks = scan->blocks, .start = scan->range_start, .end = scan->range_end,
        .calls = scan->callers != NULL,
        .until = scan->span.to_end ? UINT64_MAX : scan->span.before.time,
    };

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
    settle(scan);
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
    case TBD_AT_MESSAGE: at_message(scan); break;
    case TBD_AT_END: return false;
    }
    return skip ? tbd_cursor_skip_block(&scan->cursor) : tbd_cursor_next(&scan->cursor);
}

static bool has_threads(const struct tbd_window *window)
{
    return window->trace != NULL && tbd_trace_thread_count(window->trace) > 1;
}

/* A walk that needs nothing from before starts at the block where the span begins. */
static void start(struct tbd_scan *scan)
{
    tbd_cursor_first(scan->window, &scan->cursor);
    if (scan->type == TBD_EVENT_FUNC_ENTER && has_threads(scan->window))
        return; /* a thread's call may be long ago */
    if (scan->span.from_start || scan->probes != NULL || scan->callers != NULL ||
        scan->span.after.time <= scan->window->first_time)
        return;
    if (!tbd_cursor_seek(scan->window, scan->span.after.time - 1, &scan->cursor))
        tbd_cursor_first(scan->window, &scan->cursor);
}

void tbd_scan_run(struct tbd_scan *scan)
{
    const struct tbd_window *window = scan->window;

    scan->has_push = false;
    scan->has_switch = false;
    scan->due = 0;
    scan->stopped = false;
    start(scan);
    if (scan->cursor.kind == TBD_AT_END)
        return;
    tbd_scan_begin_turns(scan);
    while (step(scan)) {
        if ((scan->stopped && scan->probes == NULL) || is_past(scan) || tbd_is_interrupted())
            break;
    }
    deliver_insns(scan, UINT32_MAX);
    settle(scan);
    if (scan->cursor.kind == TBD_AT_END)
        deliver_switch(scan, window->first_time + window->blocks, window->end_regs.rip);
    /* with other threads it is the next window's: one of them may come first */
    if (scan->waiting.is_there && scan->cursor.kind == TBD_AT_END && window->complete &&
        window->end_thread_count == 0)
        deliver_call(scan, window->first_time + window->blocks, window->end_regs.rip);
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
