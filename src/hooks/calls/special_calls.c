// SPDX-License-Identifier: MIT
/* special_calls.c - system calls that the engine takes part in (TBD_SYS_SPECIAL)
 *
 * Exits end the trace first.  execve is made after the stream is complete, because nothing can be
 * sent afterwards. A forked child is recorded by itself (boot/child.c); threads are in
 * thread_calls.c; threads/signals_calls.c answers signal calls.
 *
 * Context: APP; the child's side of a fork is FORK_CHILD. */
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/calls/debugged.h"
#include "hooks/calls/exec_environment.h"
#include "hooks/calls/seccomp.h"
#include "hooks/calls/program_limits.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/registers.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/userfault.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/native.h"
#include "hooks/threads/seccomp_state.h"
#include "hooks/threads/window_end.h"
#include "patcher/patcher.h"

const struct tbd_call_policy *tbd_call_policy;

static void finish(struct tbd_call *call, int64_t result)
{
    call->result = result;
    tbd_call_finish(call);
}

/* ---- signals ---- */

void tbd_call_rt_sigaction(struct tbd_call *call)
{
    const uint64_t *args = call->sys.args;
    struct tbd_action set;
    struct tbd_action old;
    int64_t result;

    if (args[3] != sizeof(uint64_t)) {
        finish(call, -EINVAL);
        return;
    }
    if (args[1] && !tbd_copy_from_program(&set, args[1], sizeof(set))) {
        finish(call, -EFAULT);
        return;
    }
    result = tbd_signals_action(args[0], args[1] ? &set : NULL, &old);
    if (result == 0 && args[2] && !tbd_call_answer(call, args[2], &old, sizeof(old)))
        result = -EFAULT;
    finish(call, result);
}

void tbd_call_rt_sigprocmask(struct tbd_call *call)
{
    const uint64_t *args = call->sys.args;
    uint64_t set;
    uint64_t old;
    int64_t result;

    if (args[3] != sizeof(set)) {
        finish(call, -EINVAL);
        return;
    }
    if (args[1] && !tbd_copy_from_program(&set, args[1], sizeof(set))) {
        finish(call, -EFAULT);
        return;
    }
    result = tbd_signals_procmask(args[0], args[1] ? &set : NULL, &old);
    if (result == 0 && args[2] && !tbd_call_answer(call, args[2], &old, sizeof(old)))
        result = -EFAULT;
    finish(call, result);
}

void tbd_call_sigaltstack(struct tbd_call *call)
{
    const uint64_t *args = call->sys.args;
    struct tbd_altstack set;
    struct tbd_altstack old;
    int64_t result;

    if (args[0] && !tbd_copy_from_program(&set, args[0], sizeof(set))) {
        finish(call, -EFAULT);
        return;
    }
    result = tbd_signals_altstack(call->thread, args[0] ? &set : NULL, &old);
    if (result == 0 && args[1] && !tbd_call_answer(call, args[1], &old, sizeof(old)))
        result = -EFAULT;
    finish(call, result);
}

void tbd_call_rt_sigsuspend(struct tbd_call *call)
{
    struct tbd_signals *signals = tbd_signals_now();

    signals->has_temporary =
        tbd_copy_from_program(&signals->temporary_mask, call->sys.args[0], sizeof(uint64_t));
    if (tbd_threads_are_many())
        tbd_call_wait_plainly(call);
    else
        call->result = tbd_call_perform(&call->sys);
    if (call->result != -EINTR)
        signals->has_temporary = false;
    tbd_call_finish(call);
}

/* Afterwards the registers are those of the frame; a message of their own reports them. */
void tbd_call_rt_sigreturn(struct tbd_call *call)
{
    struct tbd_regs *regs = &call->thread->regs;
    bool is_good;

    tbd_signals_block_all(); /* until the frame's mask is set */
    if (__atomic_load_n(&tbd_signals_now()->pending, __ATOMIC_ACQUIRE)) {
        finish(call, TBD_CALL_INTERRUPTED);
        return;
    }
    regs->rip += call->insn_bytes; /* stays there if the frame is bad */
    regs->gpr[TBD_RCX] = regs->rip;
    regs->gpr[TBD_R11] = regs->rflags;
    is_good = tbd_signals_return(call->thread);
    call->flags |= TBD_SYSCALL_NORETURN;
    call->result = is_good ? 0 : -EFAULT; /* tells a replay */
    tbd_call_send(call);
    tbd_registers_send(&tbd_recording.ring, call->thread, &tbd_processor.vector);
    if (!is_good)
        tbd_signals_force_segv(call->thread);
}

/* ---- segment bases ---- */

#define TASK_BYTES 0x7ffffffff000ull /* with five levels of page tables the kernel allows more */

/* What the kernel says of components that need a permission; the hidden ones are not there. */
static void answer_components(struct tbd_call *call)
{
    uint64_t components = 0;
    int64_t result = tbd_sys3(__NR_arch_prctl, call->sys.args[0], tbd_sys_pointer(&components), 0);

    components &= TBD_VECTOR_V3;
    if (!result && !tbd_call_answer(call, call->sys.args[1], &components, sizeof(components)))
        result = -EFAULT;
    finish(call, result);
}

/* The program must not set the processor's gs base: that is the engine's. */
void tbd_call_arch_prctl(struct tbd_call *call)
{
    struct tbd_regs *regs = &call->thread->regs;
    uint64_t value = call->sys.args[1];

    switch (call->sys.args[0]) {
    case ARCH_SET_GS:
        if (value < TASK_BYTES)
            regs->gs_base = value;
        finish(call, value < TASK_BYTES ? 0 : -EPERM);
        break;
    case ARCH_GET_GS:
        finish(call, tbd_call_answer(call, value, &regs->gs_base, sizeof(uint64_t)) ? 0 : -EFAULT);
        break;
    case ARCH_SET_FS:
        call->result = tbd_call_perform(&call->sys);
        if (call->result == 0)
            regs->fs_base = value;
        tbd_call_finish(call);
        break;
    case ARCH_GET_FS:
        finish(call, tbd_call_answer(call, value, &regs->fs_base, sizeof(uint64_t)) ? 0 : -EFAULT);
        break;
    case ARCH_REQ_XCOMP_PERM:
        if (value != TBD_VECTOR_TILES)
            tbd_call_plain(call);
        else
            finish(call,
                   tbd_processor.is_hidden ? -EOPNOTSUPP : tbd_signals_request_tiles(call->thread));
        break;
    case ARCH_GET_XCOMP_SUPP:
    case ARCH_GET_XCOMP_PERM:
        if (tbd_processor.is_hidden)
            answer_components(call);
        else
            tbd_call_plain(call);
        break;
    default: tbd_call_plain(call); break;
    }
}

/* ---- ends ---- */

/* After all threads have left one by one, the process has the main thread's status. */
static uint32_t exit_status(const struct tbd_call *call)
{
    if (call->sys.number == __NR_exit && call->thread->tid != tbd_recording.pid)
        return tbd_threads.leader_status;
    return (uint32_t)call->sys.args[0] & 0xff;
}

_Noreturn static void end_call(struct tbd_call *call)
{
    call->flags |= TBD_SYSCALL_NORETURN;
    tbd_call_send(call);
    tbd_window_send_last(TBD_ENDED_EXIT, exit_status(call), TBD_END_WHOLE, "");
    tbd_recording_wait_done();
    for (;;)
        tbd_sys3((long)call->sys.number, call->sys.args[0], 0, 0);
}

void tbd_call_exit(struct tbd_call *call)
{
    if (!tbd_threads_are_many())
        end_call(call);
    tbd_call_thread_exit(call);
}

void tbd_call_exit_group(struct tbd_call *call)
{
    end_call(call);
}

/* A child has no list until it sets one; if the call fails, an empty list does no harm. */
static struct tbd_robust_list *own_robust_list(void)
{
    static struct tbd_robust_list own;

    own.next = tbd_sys_pointer(&own);
    tbd_sys3(__NR_set_robust_list, tbd_sys_pointer(&own), sizeof(own), 0);
    return &own;
}

/* engine_state is EXEC while the call is in progress.  If execve succeeds, the kernel walks the
 * list of robust futexes, finds engine_lock as the pending entry, and marks it as that of a dead
 * owner: so the organizer knows that the program is gone although its process is not. */
static struct tbd_robust_list *exec_begin(struct tbd_thread *thread)
{
    struct tbd_stream_head *head = tbd_recording.ring.head;
    struct tbd_robust_list *robust = NULL;
    uint64_t bytes = 0;

    if (!tbd_crash_is_on() && (!tbd_recording.is_on || tbd_recording.ring.discard))
        return NULL;
    if (!tbd_crash_is_on()) {
        tbd_memory_send_unknown(thread);
        tbd_ring_turn(&tbd_recording.ring, thread, 0);
    }
    tbd_sys3(__NR_get_robust_list, 0, tbd_sys_pointer(&robust), tbd_sys_pointer(&bytes));
    if (!robust)
        robust = own_robust_list();
    /* the pending entry must hold the thread's id when the kernel gets there */
    __atomic_store_n(&head->engine_lock, tbd_recording.pid, __ATOMIC_RELEASE);
    __atomic_store_n(&head->engine_state, TBD_ENGINE_EXEC, __ATOMIC_RELEASE);
    tbd_sys_futex_wake(&head->published);
    robust->pending = tbd_sys_pointer(&head->engine_lock) - (uint64_t)robust->offset;
    return robust;
}

static void exec_failed(struct tbd_robust_list *robust)
{
    if (!robust)
        return;
    robust->pending = 0;
    __atomic_store_n(&tbd_recording.ring.head->engine_state, TBD_ENGINE_RUNNING, __ATOMIC_RELEASE);
}

static void exec_plainly(struct tbd_call *call, const struct tbd_sys_call *sys)
{
    struct tbd_robust_list *robust = exec_begin(call->thread);

    tbd_signals_before_exec();
    tbd_program_limits_before_exec();
    call->result = tbd_call_perform(sys);
    tbd_program_limits_after_exec();
    tbd_signals_after_exec();
    exec_failed(robust);
    tbd_call_finish(call);
}

/* Only a guess: most calls fail because the file cannot be executed, as shells try one folder after
 * another. */
static bool can_execute(const struct tbd_sys_call *sys)
{
    bool has_folder = sys->number == __NR_execveat;
    uint64_t folder = has_folder ? sys->args[0] : (uint64_t)AT_FDCWD;
    uint64_t flags = AT_EACCESS | (has_folder ? sys->args[4] : 0);

    return tbd_sys4(__NR_faccessat2, folder, sys->args[has_folder ? 1 : 0], X_OK, flags) == 0;
}

/* The new program runs under the thread's filters in the kernel.  If execve fails after all, the
 * program is let go, because the filters now hold for the engine too. */
static void exec_filtered(struct tbd_call *call)
{
    struct tbd_seccomp *filters = &tbd_threads.holder->seccomp;
    struct tbd_sys_call sys = call->sys;
    uint64_t *environment = &sys.args[sys.number == __NR_execveat ? 3 : 2];

    if (__atomic_load_n(&tbd_signals_now()->pending, __ATOMIC_ACQUIRE)) {
        finish(call, TBD_CALL_INTERRUPTED);
        return;
    }
    if (!tbd_seccomp_lets_record(filters) && *environment)
        *environment = tbd_seccomp_environment(*environment);
    if (!*environment)
        /* the kernel returns the error */
        *environment = call->sys.args[sys.number == __NR_execveat ? 3 : 2];
    tbd_seccomp_install(filters);
    *filters = (struct tbd_seccomp){ 0 };
    tbd_leave_soon("it is under its own filters for system calls (seccomp)");
    exec_plainly(call, &sys);
}

static void execute(struct tbd_call *call)
{
    struct tbd_sys_call sys = call->sys;

    if (tbd_threads.holder->seccomp.newest && can_execute(&sys)) {
        exec_filtered(call);
        return;
    }
    tbd_exec_environment_extend(&sys);
    exec_plainly(call, &sys);
}

void tbd_call_execve(struct tbd_call *call)
{
    execute(call);
}

void tbd_call_execveat(struct tbd_call *call)
{
    execute(call);
}

/* ---- threads, and being debugged ---- */

/* The list is used only when the thread ends. */
void tbd_call_set_robust_list(struct tbd_call *call)
{
    call->result = tbd_call_perform(&call->sys);
    tbd_call_finish(call);
}

/* hooks/calls/debugged.h */
void tbd_call_ptrace(struct tbd_call *call)
{
    if (call->sys.args[0] == PTRACE_TRACEME)
        tbd_call_detach(call, "it has its parent watch it (ptrace)");
    if (call->sys.args[0] == PTRACE_ATTACH || call->sys.args[0] == PTRACE_SEIZE)
        tbd_debugged_release((uint32_t)call->sys.args[1]);
    tbd_call_plain(call);
}
