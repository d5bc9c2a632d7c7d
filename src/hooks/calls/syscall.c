// SPDX-License-Identifier: MIT
/* syscall.c - a system call of the program: old bytes, the call, what it wrote, the message
 *
 * The registers afterwards are the kernel's: rax = result, rcx = address behind the instruction, r11 =
 * rflags.  A call that a signal came before is not made: rip stays on the instruction, and the block
 * is reported as interrupted before it; that is also what a restarted call looks like.
 *
 * Context: APP. */
#include "base/linux.h"
#include "base/log.h"
#include "base/string.h"
#include "hooks/calls/call_families.h"
#include "hooks/memory/userfault.h"
#include "hooks/memory/own_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/calls/seccomp.h"
#include "hooks/table/sys_table.h"

int64_t tbd_call_perform(const struct tbd_sys_call *sys)
{
    return tbd_program_syscall(sys, &tbd_runtime.signals->pending);
}

/* Index of the block's last instruction: what ran of it when the call was not made. */
static uint64_t instructions_before_call(const struct tbd_thread *thread)
{
    const struct tbd_stream_head *head = tbd_runtime.ring.head;
    uint32_t id = tbd_ring_last_block(&tbd_runtime.ring, thread);
    const struct tbd_block_def *defs =
        (const struct tbd_block_def *)((const uint8_t *)head + head->defs_offset);

    if (tbd_runtime.ring.discard || id == 0 || id > head->def_count)
        return 0;
    return defs[id - 1].insn_count ? defs[id - 1].insn_count - 1u : 0; /* 0: vsyscall.h */
}

void tbd_call_send(struct tbd_call *call)
{
    struct tbd_msg_syscall message = {
        .number = call->sys.number,
        .result = (uint64_t)call->result,
        .flags = call->flags,
    };
    struct tbd_effect_head head = {
        .kind = TBD_MSG_SYSCALL,
        .data = &message,
        .bytes = sizeof(message),
        .write_count = &message.write_count,
        .flags = &message.flags,
        .more = TBD_SYSCALL_MORE,
        .continued = TBD_SYSCALL_CONTINUED,
    };

    memcpy(message.args, call->sys.args, sizeof(message.args));
    tbd_effects_send(call->effects, &tbd_runtime.ring, call->thread, &tbd_runtime.pages, &head,
                     NULL, 0);
}

bool tbd_call_answer(struct tbd_call *call, uint64_t address, const void *data, size_t bytes)
{
    struct tbd_sys_range range = { address, bytes };

    tbd_effects_watch(call->effects, &range, 1);
    if (!tbd_copy_to_program(address, data, bytes))
        return false;
    tbd_effects_written(call->effects, &range, 1);
    return true;
}

void tbd_call_finish(struct tbd_call *call)
{
    struct tbd_regs *regs = &call->thread->regs;

    if (call->result == TBD_CALL_INTERRUPTED) {
        tbd_runtime_send_interrupted(call->insns_before);
        return;
    }
    regs->rip += call->insn_bytes;
    regs->gpr[TBD_RAX] = (uint64_t)call->result;
    regs->gpr[TBD_RCX] = regs->rip;
    regs->gpr[TBD_R11] = regs->rflags;
    TBD_LOG(TBD_LOG_DEBUG, "syscall", "%s(%lx, %lx, %lx) = %ld",
            tbd_syscall_name(call->sys.number) ? tbd_syscall_name(call->sys.number) : "?",
            call->sys.args[0], call->sys.args[1], call->sys.args[2], (long)call->result);
    tbd_call_send(call);
}

void tbd_call_detach(struct tbd_call *call, const char *why)
{
    tbd_detach(call->thread, why, call->insns_before);
}

/* With the baton in hand, though it may wait (THREADS-6). */
static void perform_outside(struct tbd_call *call)
{
    struct tbd_seat *seat = tbd_runtime.threads.holder;
    struct tbd_regs regs;

    if (!tbd_threads_are_many()) {
        call->result = tbd_call_perform(&call->sys);
        return;
    }
    regs = call->thread->regs;
    tbd_threads_step_out(call->thread, call);
    call->result = tbd_call_perform(&call->sys);
    if (!tbd_threads_step_in(seat))
        tbd_call_robbed(call, seat, &regs);
}

/* ---- calls whose effects the table does not describe ---- */

#define SAID_BYTES 128u

/* A number's first time in `said`. */
static bool is_first(uint8_t said[SAID_BYTES], uint64_t number)
{
    uint64_t bit = number % (SAID_BYTES * 8);
    bool first = !(said[bit / 8] >> (bit % 8) & 1);

    said[bit / 8] |= (uint8_t)(1u << (bit % 8));
    return first;
}

static void note_unknown(uint64_t number)
{
    static uint8_t said[SAID_BYTES];

    if (is_first(said, number))
        tbd_runtime_note(0, "system call %lu is not described: its writes are found by comparison",
                         number);
}

static void perform_unknown(struct tbd_call *call)
{
    note_unknown(call->sys.number);
    tbd_runtime.unknown_calls++;
    tbd_effects_watch_all(call->effects);
    perform_outside(call);
    if (call->result == TBD_CALL_INTERRUPTED)
        return;
    tbd_effects_compare(call->effects);
    if (tbd_effects_is_cut(call->effects))
        tbd_runtime_note(1, "system call %lu: some of its writes are missing", call->sys.number);
    call->flags |= TBD_SYSCALL_UNKNOWN;
}

/* ---- calls whose effects the table describes ---- */

/* The mask that a call waits with, or 0. */
static uint64_t mask_of(const struct tbd_sys_call *sys)
{
    const struct tbd_sys_row *row = tbd_sys_row(sys->number);
    uint64_t pointer = 0;

    for (unsigned i = 0; row && i < 6; i++) {
        if (row->args[i].show == TBD_SHOW_MASK)
            pointer = sys->args[i];
        else if (row->args[i].show == TBD_SHOW_MASK_IN && sys->args[i])
            tbd_copy_from_program(&pointer, sys->args[i], sizeof(pointer));
    }
    return pointer;
}

/* The mask that holds while the call waits is the one a handler's own mask is added to. */
static void note_temporary_mask(const struct tbd_sys_call *sys)
{
    struct tbd_signals *signals = tbd_runtime.signals;
    uint64_t pointer = mask_of(sys);

    signals->has_temporary = false;
    if (pointer)
        signals->has_temporary = tbd_copy_from_program(&signals->temporary_mask, pointer,
                                                       sizeof(signals->temporary_mask));
}

void tbd_call_perform_here(struct tbd_call *call)
{
    static struct tbd_sys_range may[TBD_SYS_MAX_RANGES];
    static struct tbd_sys_range did[TBD_SYS_MAX_RANGES];
    size_t may_count = tbd_syscall_may_write(&call->sys, may, TBD_SYS_MAX_RANGES);
    size_t did_count;

    if (may_count == TBD_SYS_MAX_RANGES) { /* perhaps not all of them */
        perform_unknown(call);
        return;
    }
    tbd_effects_watch(call->effects, may, may_count);
    if (tbd_syscall_flags(call->sys.number) & TBD_SYS_BLOCKS)
        perform_outside(call);
    else
        call->result = tbd_call_perform(&call->sys);
    if (call->result == TBD_CALL_INTERRUPTED)
        return;
    did_count =
        tbd_syscall_did_write(&call->sys, call->result, may, may_count, did, TBD_SYS_MAX_RANGES);
    if (call->result == -EFAULT)
        tbd_effects_compare(call->effects); /* any part, or none, of what may be written */
    else
        tbd_effects_written(call->effects, did, did_count);
}

/* For other threads, or for somebody who fills pages that the kernel is about to use. */
static bool gives_way(const struct tbd_sys_call *sys)
{
    return (tbd_threads_are_many() && tbd_syscall_may_wait(sys)) || tbd_userfault_has_pointer(sys);
}

void tbd_call_described(struct tbd_call *call)
{
    note_temporary_mask(&call->sys);
    if (!gives_way(&call->sys) || !tbd_call_wait(call))
        tbd_call_perform_here(call);
    if (call->result != -EINTR)
        tbd_runtime.signals->has_temporary = false;
    if (call->result != TBD_CALL_INTERRUPTED && tbd_effects_is_cut(call->effects))
        tbd_runtime_note(1, "system call %lu: some old bytes are missing", call->sys.number);
}

static void note_asynchronous(uint64_t number)
{
    static uint8_t said[SAID_BYTES];

    if (is_first(said, number))
        tbd_runtime_note(1, "system call %lu lets the kernel write memory later: not recorded",
                         number);
}

void tbd_call_plain(struct tbd_call *call)
{
    uint32_t flags = tbd_syscall_flags(call->sys.number);

    if (flags & TBD_SYS_WRITES && tbd_own_memory_write(call)) {
        tbd_call_finish(call);
        return;
    }
    if (tbd_syscall_is_described(&call->sys))
        tbd_call_described(call);
    else
        perform_unknown(call);
    if (flags & TBD_SYS_OPENS)
        tbd_own_memory_note(call);
    if (flags & TBD_SYS_ASYNC)
        note_asynchronous(call->sys.number);
    tbd_call_finish(call);
}

/* ---- all ---- */

typedef void (*tbd_call_function)(struct tbd_call *call);

/* Of rows that say MAP or SPECIAL. */
static const tbd_call_function functions[TBD_SYS_COUNT] = {
#define X(number, name, mode, ...) TBD_SYS_IF_OWN(mode, [number] = tbd_call_##name, )
#include "hooks/table/syscalls.def"
#undef X
};

static void refuse(struct tbd_call *call)
{
    call->result = -ENOSYS;
    tbd_call_finish(call);
}

static void perform(struct tbd_call *call)
{
    switch (tbd_syscall_mode(call->sys.number)) {
    case TBD_SYS_MAP:
        tbd_x87_settle(); /* as long as the code is there */
        functions[call->sys.number](call);
        break;
    case TBD_SYS_SPECIAL: functions[call->sys.number](call); break;
    case TBD_SYS_REFUSED: refuse(call); break;
    case TBD_SYS_EMULATE:
    case TBD_SYS_UNKNOWN: tbd_call_plain(call); break;
    }
}

void tbd_syscall_perform(struct tbd_thread *thread, uint32_t insn_bytes)
{
    const struct tbd_regs *regs = &thread->regs;
    struct tbd_call call = {
        .sys = { regs->gpr[TBD_RAX],
                 { regs->gpr[TBD_RDI], regs->gpr[TBD_RSI], regs->gpr[TBD_RDX], regs->gpr[TBD_R10],
                   regs->gpr[TBD_R8], regs->gpr[TBD_R9] } },
        .thread = thread,
        .effects = tbd_effects_get(),
        .insn_bytes = insn_bytes,
        .insns_before = instructions_before_call(thread),
    };

    if (!call.effects)
        tbd_call_detach(&call, "no memory for the old bytes of system calls");
    tbd_effects_clear(call.effects);
    if (!tbd_seccomp_refuses(&call))
        perform(&call);
}
