// SPDX-License-Identifier: MIT
/* scan_messages.c - turns messages into events: system calls, signals, turns of threads, and stores
 * by others than the program's instructions */
#include "query/search/scan_private.h"

#include "format/window/window_make.h"
#include "query/search/scan_jumps.h"
#include "query/search/scan_threads.h"
#include "query/session/signal_info.h"

#include <string.h>

/* The reader checked message sizes, so the payload is there. */
static const uint8_t *payload_of(const struct tbd_message *message, struct tbd_message *out)
{
    memcpy(out, message, sizeof(*out));
    return (const uint8_t *)message + sizeof(*out);
}

static uint32_t last_insn(const struct tbd_scan *scan)
{
    uint32_t count = scan->cursor.block == NULL ? 0 : scan->cursor.block->def.insn_count;

    return count == 0 ? 0 : count - 1;
}

static bool is_resumed(const struct tbd_scan *scan)
{
    return scan->cursor.began != scan->cursor.time;
}

/* The event is at the last instruction of the block entered last. If another thread entered that
 * block, because this thread waited in the call, the time is the same, but the instruction is this
 * thread's. */
static struct tbd_event make_message_event(const struct tbd_scan *scan, enum tbd_event_type type)
{
    struct tbd_event event = { .type = type,
                               .position = { .time = scan->window->first_time },
                               .thread = scan->cursor.thread };

    if (scan->cursor.block != NULL)
        event = tbd_scan_event(scan, type, last_insn(scan));
    if (is_resumed(scan)) {
        event.flags |= TBD_EVENT_RESUMED;
        event.began = scan->cursor.began;
        (void)tbd_scan_resumed_pc(scan, &event.pc);
    }
    return event;
}

/* Writes by the kernel, or by the engine on the program's behalf, are stores of the block's last
 * instruction; a signal's frame is written before the handler's first instruction. */
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
            tbd_scan_deliver(scan, &event);
        }
        if (scan->probes != NULL)
            tbd_probes_store(scan->probes, at->position.time, view.address, view.bytes,
                             view.old_bytes);
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
    tbd_scan_deliver(scan, &event);
}

/* The address at which the interrupted code goes on: the saved rip in the frame's ucontext (see
 * sigframe: return address, then uc_flags, uc_link, uc_stack, then the general registers with rip
 * as the 17th). */
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

/* A handler is entered with the registers that the kernel gives it: they follow the frame's writes. */
static void deliver_handler(struct tbd_scan *scan, const struct tbd_msg_signal *signal,
                            const uint8_t *payload, uint32_t bytes, const struct tbd_event *at)
{
    struct tbd_event event = *at;
    struct tbd_write_cursor writes;
    struct tbd_write_view view;
    struct tbd_regs regs;

    tbd_writes_first(TBD_MSG_SIGNAL, payload, bytes, &writes);
    while (tbd_writes_next(&writes, &view))
        continue;
    memcpy(&regs, writes.at, sizeof(regs)); /* the reader has checked that they are there */
    event.type = TBD_EVENT_FUNC_ENTER;
    event.from = interrupted_rip(signal, payload, bytes);
    event.sp = signal->frame;
    event.args[0] = regs.gpr[TBD_RDI];
    event.args[1] = regs.gpr[TBD_RSI];
    event.args[2] = regs.gpr[TBD_RDX];
    event.args[3] = regs.gpr[TBD_RCX];
    event.args[4] = regs.gpr[TBD_R8];
    event.args[5] = regs.gpr[TBD_R9];
    event.flags = TBD_EVENT_HAS_SP;
    tbd_scan_deliver(scan, &event);
}

/* The handler's block comes next; the target of a waiting call comes when the handler is done. */
static void at_signal(struct tbd_scan *scan, const struct tbd_message *message,
                      const uint8_t *payload)
{
    struct tbd_msg_signal signal;
    struct tbd_event event = { 0 };

    memcpy(&signal, payload, sizeof(signal));
    if (scan->waiting.is_there)
        scan->waiting.target = interrupted_rip(&signal, payload, message->bytes);
    tbd_scan_hold_jump(scan, interrupted_rip(&signal, payload, message->bytes));
    event.position.time =
        scan->cursor.block == NULL ? scan->window->first_time : scan->cursor.time + 1;
    event.pc = signal.handler;
    if (scan->callers != NULL)
        (void)tbd_callers_call(scan->callers, signal.frame,
                               interrupted_rip(&signal, payload, message->bytes),
                               event.position.time);
    event.thread = scan->cursor.thread;
    deliver_writes(scan, TBD_MSG_SIGNAL, payload, message->bytes, &event);
    if (scan->type != TBD_EVENT_SIGNAL && scan->type != TBD_EVENT_FUNC_ENTER)
        return;
    tbd_scan_settle(scan);
    if (scan->type == TBD_EVENT_FUNC_ENTER) {
        deliver_handler(scan, &signal, payload, message->bytes, &event);
        return;
    }
    event.type = TBD_EVENT_SIGNAL;
    event.number = signal.signo;
    event.from = interrupted_rip(&signal, payload, message->bytes);
    tbd_signal_take_info(&event, signal.siginfo);
    tbd_scan_deliver(scan, &event);
}

/* The window that has the program's last block has the signal that ended it. */
void tbd_scan_deliver_fatal(struct tbd_scan *scan)
{
    const struct tbd_window *window = scan->window;
    const struct tbd_trace_info *info =
        window->trace == NULL ? NULL : tbd_trace_info(window->trace);
    struct tbd_event event = { .type = TBD_EVENT_SIGNAL, .thread = scan->cursor.thread };
    struct tbd_block_insn insn;
    struct tbd_cursor last;
    uint64_t limit;

    if (scan->type != TBD_EVENT_SIGNAL || info == NULL || info->blocks == 0 ||
        !tbd_signal_take_fatal(&event, info) || info->blocks - 1 < window->first_time ||
        !tbd_cursor_seek(window, info->blocks - 1, &last))
        return;
    event.position.time = info->blocks - 1;
    event.pc = last.block->def.start;
    limit = tbd_cursor_insn_limit(&last);
    if (last.block->def.insn_count != 0) /* none: it begins with what is no instruction */
        event.position.offset = last.block->def.insn_count - 1u;
    if (limit < event.position.offset)
        event.position.offset = (uint32_t)limit;
    if (tbd_disas_insn(scan->disas, last.id, event.position.offset, &insn))
        event.pc = insn.pc;
    event.from = event.pc;
    tbd_scan_deliver(scan, &event);
}

/* Stores by others to the code of the block that is entered next. */
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

/* Stores of the kernel before the block that is entered next. */
static void at_rseq(struct tbd_scan *scan, const struct tbd_message *message,
                    const uint8_t *payload)
{
    struct tbd_event event = { .type = TBD_EVENT_STORE, .thread = scan->cursor.thread };
    struct tbd_msg_rseq rseq;

    memcpy(&rseq, payload, sizeof(rseq));
    if (rseq.flags & TBD_RSEQ_ABORTED)
        scan->waiting.is_there = false;
    event.position.time =
        scan->cursor.block == NULL ? scan->window->first_time : scan->cursor.time + 1;
    event.pc = rseq.rip;
    deliver_writes(scan, TBD_MSG_RSEQ, payload, message->bytes, &event);
}

/* A load of the block's last instruction. */
static void at_read(struct tbd_scan *scan, const uint8_t *payload)
{
    struct tbd_event event;
    struct tbd_msg_read read;

    if (scan->type != TBD_EVENT_LOAD)
        return;
    memcpy(&read, payload, sizeof(read));
    event = make_message_event(scan, TBD_EVENT_LOAD);
    event.addr = read.address;
    event.size = read.bytes;
    event.flags |= TBD_EVENT_BY_ENGINE;
    tbd_scan_deliver(scan, &event);
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
    tbd_scan_deliver_switch(scan, next, 0); /* the turn before entered no block */
    scan->has_switch = true;
    scan->switched = (struct tbd_event){ .type = TBD_EVENT_THREAD_SWITCH,
                                         .thread = message.thread,
                                         .previous = message.from,
                                         .reason = message.reason };
}

void tbd_scan_at_message(struct tbd_scan *scan)
{
    struct tbd_message message;
    const uint8_t *payload = payload_of(scan->cursor.message, &message);
    struct tbd_event event;

    tbd_scan_deliver_insns(scan, UINT32_MAX);
    if (message.kind != TBD_MSG_INTERRUPTED)
        tbd_scan_settle(scan);
    if (message.kind == TBD_MSG_SIGNAL) {
        at_signal(scan, &message, payload);
        return;
    }
    if (message.kind == TBD_MSG_CODE) {
        at_code(scan, &message, payload);
        return;
    }
    if (message.kind == TBD_MSG_RSEQ) {
        at_rseq(scan, &message, payload);
        return;
    }
    if (message.kind == TBD_MSG_THREAD) {
        at_thread(scan);
        return;
    }
    if (message.kind == TBD_MSG_READ) {
        at_read(scan, payload);
        return;
    }
    if ((scan->cursor.block == NULL && !is_resumed(scan)) ||
        (message.kind != TBD_MSG_SYSCALL && message.kind != TBD_MSG_SPECIAL &&
         message.kind != TBD_MSG_UNLOGGED))
        return;
    if (message.kind == TBD_MSG_SYSCALL)
        deliver_syscall(scan, payload);
    if (scan->type != TBD_EVENT_STORE && scan->probes == NULL)
        return;
    event = make_message_event(scan, TBD_EVENT_STORE);
    deliver_writes(scan, message.kind, payload, message.bytes, &event);
}
