// SPDX-License-Identifier: MIT
/* free_calls.c - see free_calls.h
 *
 * Most calls are made directly, without a lock.  The others are made as in traced play, by a thread that
 * has the engine lock; none of these waits for another thread. */
#include "hooks/calls/free_calls.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/calls/seccomp.h"
#include "hooks/calls/user_dispatch.h"
#include "hooks/calls/waiting_mask.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/threads/free_threads.h"

enum way {
    DIRECT, /* the kernel alone */
    LOCKED, /* as in traced play, with the engine lock */
    FORK,
    EXIT,
    EXIT_ALL,
    RESUME,
};

/* A debugger and the process that it debugs go on natively (hooks/calls/debugged.h). */
static bool watches(uint64_t request)
{
    return request == PTRACE_TRACEME || request == PTRACE_ATTACH || request == PTRACE_SEIZE;
}

/* That of the stack changes what the engine knows (growth.h), for two it answers (program_limits.h). */
static bool is_own_limit(uint32_t resource)
{
    return resource == RLIMIT_STACK || resource == RLIMIT_AS || resource == RLIMIT_DATA;
}

/* Options with memory of the program, but nothing of the engine's. */
static bool is_plain_option(uint32_t option)
{
    return option == PR_SET_NAME || option == PR_GET_NAME || option == PR_GET_PDEATHSIG ||
           option == PR_GET_CHILD_SUBREAPER;
}

/* Calls that traced play handles in a way of its own, and that are nobody's business here. */
static enum way way_of(const struct tbd_sys_call *sys)
{
    switch (sys->number) {
    case __NR_clone:
    case __NR_clone3:
    case __NR_fork:
    case __NR_vfork: return FORK;
    case __NR_exit: return EXIT;
    case __NR_exit_group: return EXIT_ALL;
    case __NR_restart_syscall: return RESUME;
    case __NR_rt_sigsuspend:
    case __NR_futex:
    case __NR_ioctl:
    case __NR_io_cancel:
    case __NR_io_destroy:
    case __NR_io_getevents:
    case __NR_io_pgetevents:
    case __NR_io_setup:
    case __NR_io_submit:
    case __NR_io_uring_enter:
    case __NR_io_uring_register:
    case __NR_io_uring_setup:
    case __NR_set_robust_list:
    case __NR_set_tid_address:
    case __NR_userfaultfd:
    case __NR_wait4:
    case __NR_waitid: return DIRECT;
    case __NR_ptrace: return watches(sys->args[0]) ? LOCKED : DIRECT;
    case __NR_prctl: return is_plain_option((uint32_t)sys->args[0]) ? DIRECT : LOCKED;
    case __NR_getrlimit:
    case __NR_setrlimit: return is_own_limit((uint32_t)sys->args[0]) ? LOCKED : DIRECT;
    case __NR_prlimit64: return is_own_limit((uint32_t)sys->args[1]) ? LOCKED : DIRECT;
    default: break;
    }
    switch (tbd_syscall_mode(sys->number)) {
    case TBD_SYS_MAP:
    case TBD_SYS_SPECIAL:
    case TBD_SYS_REFUSED: return LOCKED;
    case TBD_SYS_EMULATE:
    case TBD_SYS_UNKNOWN:
    default: return DIRECT;
    }
}

static void finish(struct tbd_call *call)
{
    struct tbd_regs *regs = &call->thread->regs;

    if (call->result == TBD_CALL_INTERRUPTED)
        return;
    regs->rip += call->insn_bytes;
    regs->gpr[TBD_RAX] = (uint64_t)call->result;
    regs->gpr[TBD_RCX] = regs->rip;
    regs->gpr[TBD_R11] = regs->rflags;
}

/* What traced play refuses says nothing of waiting. */
static bool may_have_mask(uint64_t number)
{
    return number == __NR_io_pgetevents || number == __NR_io_uring_enter ||
           (tbd_syscall_flags(number) & TBD_SYS_BLOCKS);
}

static void perform_directly(struct tbd_call *call)
{
    if (may_have_mask(call->sys.number))
        tbd_call_note_temporary_mask(&call->sys);
    call->result = tbd_call_perform(&call->sys);
    finish(call);
}

/* The thread was taken over in a call that the kernel resumes for the rest of its time, once.  After that it is made
 * again. */
static void resume(struct tbd_call *call)
{
    struct tbd_saved_context *saved = tbd_context_now();

    if (saved->can_resume || !saved->resumes)
        perform_directly(call);
    else
        call->result = TBD_CALL_INTERRUPTED;
    if (call->result == TBD_CALL_INTERRUPTED && saved->resumes)
        call->thread->regs.gpr[TBD_RAX] = saved->resumes;
    saved->resumes = 0;
}

/* What the kernel reads first, and the engine with the lock. */
static struct tbd_sys_range reads_first(const struct tbd_sys_call *sys)
{
    const uint64_t *args = sys->args;
    uint64_t address = args[1], bytes = 0;

    switch (sys->number) {
    case __NR_rt_sigprocmask: bytes = args[3] == 8 ? sizeof(uint64_t) : 0; break;
    case __NR_rt_sigaction: bytes = args[3] == 8 ? sizeof(struct tbd_action) : 0; break;
    case __NR_setrlimit: bytes = sizeof(struct rlimit); break;
    case __NR_prlimit64:
        address = args[2];
        bytes = sizeof(struct rlimit);
        break;
    case __NR_sigaltstack:
        address = args[0];
        bytes = sizeof(struct tbd_altstack);
        break;
    default: break;
    }
    return (struct tbd_sys_range){ address, address ? bytes : 0 };
}

/* A page of the program may be missing until one of its threads fills it (userfaultfd, or a file that the program itself serves), and that thread
 * may need the lock.  So what a call reads is read once before, where it is then, and its answer is written afterwards. */
static void perform_locked(struct tbd_thread *thread, const struct tbd_sys_call *sys,
                           uint32_t insn_bytes)
{
    struct tbd_sys_range first = reads_first(sys);
    struct tbd_late_answer late = { .bytes = 0 };
    uint8_t ignored[sizeof(struct tbd_action)];

    if (first.bytes)
        tbd_copy_prefix_from_program(ignored, first.address, first.bytes);
    tbd_free_lock(thread);
    tbd_context_now()->late_answer = &late;
    tbd_syscall_perform(thread, insn_bytes);
    tbd_context_now()->late_answer = NULL;
    tbd_free_unlock(thread);
    if (late.bytes && !tbd_copy_to_program(late.address, late.data, late.bytes))
        thread->regs.gpr[TBD_RAX] = (uint64_t)-EFAULT;
}

/* By what the program has asked the kernel for, and what the engine has kept (seccomp.h,
 * user_dispatch.h). */
static bool is_refused(struct tbd_call *call)
{
    const struct tbd_saved_context *saved = tbd_context_now();
    bool refused;

    if (!saved->seccomp.newest && !saved->seccomp.is_strict && !saved->user_dispatch.is_on)
        return false;
    tbd_free_lock(call->thread);
    call->effects = tbd_effects_get();
    refused = call->effects && (tbd_user_dispatch_takes(call) || tbd_seccomp_refuses(call));
    tbd_free_unlock(call->thread);
    return refused;
}

/* A signal that comes meanwhile comes too late, as one just after the call does: a dump may have been made, for which the other
 * threads have stopped, and its thread cannot go on. */
_Noreturn static void end_all(const struct tbd_call *call)
{
    tbd_call_policy->ends(call->thread, (uint32_t)call->sys.args[0]);
    tbd_crash_ends();
    tbd_sys_exit_group((int)call->sys.args[0]);
}

void tbd_free_syscall(struct tbd_thread *thread, uint32_t insn_bytes)
{
    const struct tbd_regs *regs = &thread->regs;
    struct tbd_call call = {
        .sys = { regs->gpr[TBD_RAX],
                 { regs->gpr[TBD_RDI], regs->gpr[TBD_RSI], regs->gpr[TBD_RDX], regs->gpr[TBD_R10],
                   regs->gpr[TBD_R8], regs->gpr[TBD_R9] } },
        .thread = thread,
        .insn_bytes = insn_bytes,
    };
    enum way way = way_of(&call.sys);

    if (way == LOCKED) {
        perform_locked(thread, &call.sys, insn_bytes);
        return;
    }
    if (is_refused(&call))
        return;
    switch (way) {
    case FORK: tbd_free_fork(&call); break;
    case EXIT: tbd_free_exit(&call); break;
    case EXIT_ALL: end_all(&call);
    case RESUME: resume(&call); break;
    case DIRECT:
    case LOCKED:
    default: perform_directly(&call); break;
    }
}
