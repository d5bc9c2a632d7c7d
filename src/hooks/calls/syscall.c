// SPDX-License-Identifier: MIT
/* syscall.c - finds the family of a system call of the program, and performs it
 *
 * Context: APP. */
#include "base/linux.h"
#include "hooks/calls/call_families.h"
#include "hooks/calls/growth.h"
#include "hooks/calls/seccomp.h"
#include "hooks/calls/user_dispatch.h"
#include "hooks/instructions/vector.h"
#include "hooks/stream/wall_clock.h"
#include "hooks/stream/recording.h"
#include "hooks/table/sys_table.h"
#include "hooks/threads/threads.h"

/* Index of the block's last instruction: the number of instructions that ran if the call was not
 * made. */
static uint64_t before_last(const struct tbd_thread *thread)
{
    uint32_t count = tbd_recording_last_insns(thread);

    return count ? count - 1 : 0; /* 0: hooks/calls/vsyscall.h */
}

typedef void (*tbd_call_function)(struct tbd_call *call);

/* For rows that say MAP or SPECIAL. */
static const tbd_call_function functions[TBD_SYS_COUNT] = {
#define X(number, name, mode, ...) TBD_SYS_IF_OWN(mode, [number] = tbd_call_##name, )
#include "hooks/table/syscalls.def"
#undef X
};

/* Chaos: a signal that waited comes before the call.  True: the call is made again after it. */
static bool was_delayed(struct tbd_call *call)
{
    struct tbd_saved_context *saved = tbd_context_now();

    if (!saved->signal_due)
        return false;
    saved->signal_due = 0;
    call->result = TBD_CALL_INTERRUPTED;
    tbd_call_finish(call);
    return true;
}

static void refuse(struct tbd_call *call)
{
    call->result = -ENOSYS;
    tbd_call_finish(call);
}

static void perform(struct tbd_call *call)
{
    switch (tbd_syscall_mode(call->sys.number)) {
    case TBD_SYS_MAP:
        tbd_x87_settle(); /* while the code is still there */
        functions[call->sys.number](call);
        tbd_growth_update(call->thread);
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
        .insns_before = before_last(thread),
    };

    if (!call.effects)
        tbd_call_detach(&call, "no memory for the old bytes of system calls");
    tbd_effects_clear(call.effects);
    tbd_wall_clock_note_begin(thread);
    if (was_delayed(&call))
        return;
    if (tbd_threads.chaos.is_on)
        tbd_arrivals_before(&call.sys);
    if (!tbd_user_dispatch_takes(&call) && !tbd_seccomp_refuses(&call))
        perform(&call);
}
