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
#include "hooks/instructions/processor.h"
#include "hooks/instructions/registers.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/userfault.h"
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

    if (!tbd_recording.is_on || tbd_recording.ring.discard)
        return NULL;
    tbd_memory_send_unknown(thread);
    tbd_ring_turn(&tbd_recording.ring, thread, 0);
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
    call->result = tbd_call_perform(sys);
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

/* ---- forks ---- */

/* struct clone_args of clone3: flags, pidfd, child_tid, parent_tid, exit_signal, stack,
 * stack_size, tls */
bool tbd_call_read_clone(const struct tbd_call *call, struct tbd_clone *out)
{
    const uint64_t *args = call->sys.args;
    uint64_t block[8] = { 0 };

    *out = (struct tbd_clone){ 0 };
    switch (call->sys.number) {
    case __NR_clone:
        *out = (struct tbd_clone){ args[0], args[2], args[3], args[1], args[4] };
        return true;
    case __NR_clone3:
        if (args[1] < sizeof(block) || !tbd_copy_from_program(block, args[0], sizeof(block)))
            return false;
        *out = (struct tbd_clone){ block[0], block[3], block[2], block[5] ? block[5] + block[6] : 0,
                                   block[7] };
        return true;
    case __NR_vfork: out->flags = CLONE_VM | CLONE_VFORK; return true;
    default: return true;
    }
}

/* A child with its own memory gets its own trace (for exceptions see tbd_child_record). */
static bool may_record(const struct tbd_clone *arguments)
{
    return !(arguments->flags & (CLONE_VM | CLONE_NEWPID));
}

/* Only clone3 takes it; shared handlers cannot be cleared, and the kernel returns the error. */

static bool clears_handlers(const struct tbd_clone *arguments)
{
    return (arguments->flags & CLONE_CLEAR_SIGHAND) && !(arguments->flags & CLONE_SIGHAND);
}

/* The new process goes on after the system call: recorded, or natively.  It has its own copy of the
 * thread block, unless it shares the parent's memory; then the parent sleeps until the child is
 * gone and finds its own registers changed, so the caller keeps a copy.  This is a function of its
 * own so that the parent's frame is not touched. */
_Noreturn __attribute__((noinline)) static void
become_child(struct tbd_call *call, const struct tbd_clone *arguments, uint64_t mask)
{
    struct tbd_regs *regs = &call->thread->regs;

    regs->rip += call->insn_bytes;
    regs->gpr[TBD_RAX] = 0;
    regs->gpr[TBD_RCX] = regs->rip;
    regs->gpr[TBD_R11] = regs->rflags;
    if (arguments->stack)
        regs->gpr[TBD_RSP] = arguments->stack;
    if (arguments->flags & CLONE_SETTLS)
        regs->fs_base = arguments->tls;
    if (!(arguments->flags & CLONE_VM)) {
        tbd_threads_after_fork(call->thread);
        tbd_signals_forget_held();
    }
    if (clears_handlers(arguments) && !(arguments->flags & CLONE_VM))
        tbd_signals_clear_handlers();
    if (may_record(arguments) && tbd_call_policy->record_child(call->thread)) {
        tbd_signals_set_kernel_mask(mask);
        tbd_patcher_run(call->thread);
    }
    tbd_signals_set_kernel_mask(mask);
    if (!(arguments->flags & CLONE_VM))
        tbd_signals_repeat_last_fault();
    tbd_detach_child(call->thread, arguments->flags & CLONE_VM, clears_handlers(arguments));
}

#define CLONE_ARGS_WORDS 11

/* Builds the call that the engine makes.  Its differences from the program's: parent and child keep
 * the engine's stack (the child's registers get the program's stack argument); the child keeps the
 * engine's handlers (the engine clears the program's); vfork becomes the equivalent clone. */
static bool engine_call(const struct tbd_call *call, const struct tbd_clone *arguments,
                        struct tbd_sys_call *out, uint64_t *block)
{
    *out = call->sys;
    if (out->number == __NR_clone) {
        out->args[1] = 0;
    } else if (out->number == __NR_clone3) {
        if (out->args[1] > CLONE_ARGS_WORDS * 8)
            out->args[1] = CLONE_ARGS_WORDS * 8;
        if (!tbd_copy_from_program(block, out->args[0], (size_t)out->args[1]))
            return false;
        block[5] = 0;
        block[6] = 0;
        if (clears_handlers(arguments))
            block[0] &= ~CLONE_CLEAR_SIGHAND;
        out->args[0] = tbd_sys_pointer(block);
    } else if (out->number == __NR_vfork) {
        out->number = __NR_clone;
        memset(out->args, 0, sizeof(out->args));
        out->args[0] = CLONE_VM | CLONE_VFORK | SIGCHLD;
    }
    return true;
}

/* A child that shares memory writes to it natively: a comparison finds the changes.  For other
 * children only the described outputs (parent_tid, pidfd) are written here. */
static void watch_child(struct tbd_call *call, const struct tbd_clone *arguments)
{
    static struct tbd_sys_range may[TBD_SYS_MAX_RANGES];

    if (arguments->flags & CLONE_VM)
        tbd_effects_watch_all(call->effects);
    else
        tbd_effects_watch(call->effects, may,
                          tbd_syscall_may_write(&call->sys, may, TBD_SYS_MAX_RANGES));
}

/* No signal may come between the two processes: in a child of vfork a handler would write the
 * engine's state, and any other child has no stream until one is made.  `mask`: the mask to
 * restore.  False: a signal came before. */
static bool block_for_fork(bool shares_memory, uint64_t *mask)
{
    *mask = tbd_signals_block_all();
    if (!shares_memory)
        tbd_signals_set_kernel_mask(~0ull);
    if (!__atomic_load_n(&tbd_signals_now()->pending, __ATOMIC_ACQUIRE))
        return true;
    tbd_signals_block_all(); /* lets through the five of the processor again */
    return false;
}

static void note_child(const struct tbd_call *call, const struct tbd_clone *arguments)
{
    if (call->result > 0 && !(may_record(arguments) && tbd_call_policy->children))
        tbd_recording_note(0, "process %u was started: untraced until it executes a program",
                           (unsigned)call->result);
}

static void fork_call(struct tbd_call *call)
{
    struct tbd_clone arguments;
    struct tbd_sys_call sys;
    uint64_t block[CLONE_ARGS_WORDS] = { 0 };
    struct tbd_regs before = call->thread->regs;
    struct tbd_saved_context *saved = tbd_threads.holder;
    uint64_t mask;

    if (!tbd_call_read_clone(call, &arguments) || !engine_call(call, &arguments, &sys, block)) {
        call->result = tbd_call_perform(&call->sys); /* the kernel returns the error */
        tbd_call_finish(call);
        return;
    }
    if (arguments.flags & CLONE_THREAD) {
        tbd_call_thread(call, &arguments);
        return;
    }
    if ((arguments.flags & CLONE_VM) && !(arguments.flags & CLONE_VFORK))
        tbd_call_detach(call, "it starts a process that shares its memory");
    if (tbd_userfault_follows_forks()) /* the kernel waits in the middle of the call */
        tbd_call_detach(call, "it handles the page faults of its children (userfaultfd)");
    tbd_x87_settle();
    watch_child(call, &arguments);
    if (!(arguments.flags & CLONE_VM))
        tbd_shared_fork();
    if (!block_for_fork(arguments.flags & CLONE_VM, &mask)) {
        finish(call, TBD_CALL_INTERRUPTED); /* the parent delivers it before there is a child */
        return;
    }
    if (arguments.flags & CLONE_VM)
        tbd_call_step_out(call); /* the child may wait for another thread */
    call->result = tbd_sys6((long)sys.number, sys.args[0], sys.args[1], sys.args[2], sys.args[3],
                            sys.args[4], sys.args[5]); /* inline: the child must not return */
    if (call->result == 0)
        become_child(call, &arguments, mask);
    if ((arguments.flags & CLONE_VM) && !tbd_threads_step_in(saved))
        tbd_call_stolen(call, saved, &before);
    call->thread->regs = before;
    tbd_signals_set_kernel_mask(mask);
    tbd_effects_compare(call->effects);
    if (tbd_effects_is_cut(call->effects))
        tbd_recording_note(1, "what a child process wrote to shared memory is partly missing");
    tbd_call_finish(call);
    note_child(call, &arguments);
}

void tbd_call_clone(struct tbd_call *call)
{
    fork_call(call);
}

void tbd_call_clone3(struct tbd_call *call)
{
    fork_call(call);
}

void tbd_call_fork(struct tbd_call *call)
{
    fork_call(call);
}

void tbd_call_vfork(struct tbd_call *call)
{
    fork_call(call);
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
