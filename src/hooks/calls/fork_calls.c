// SPDX-License-Identifier: MIT
/* fork_calls.c - clone, clone3, fork and vfork: a forked child is recorded by itself (boot/child.c)
 *
 * The parts that do not depend on the mode are shared with free run (free_fork.c).  Threads are in
 * thread_calls.c.  Context: APP; the child's side is FORK_CHILD. */
#include "hooks/calls/fork_calls.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/child_maps.h"
#include "hooks/calls/program_limits.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/userfault.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/native.h"
#include "patcher/patcher.h"

static void finish(struct tbd_call *call, int64_t result)
{
    call->result = result;
    tbd_call_finish(call);
}

/* ---- what is asked for ---- */

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

/* Is a field set that is not known here, or has the structure too many? */
static bool has_more(const struct tbd_sys_call *sys)
{
    uint64_t word = 0;

    if (sys->args[1] > TBD_PAGE_SIZE)
        return true;
    for (uint64_t at = TBD_CLONE_WORDS * 8; at < sys->args[1] && !word; at += 8) {
        uint64_t left = sys->args[1] - at;

        tbd_copy_from_program(&word, sys->args[0] + at, left < 8 ? left : 8);
    }
    return word;
}

/* copy_process() and clone3_args_valid() of the kernel */
static bool is_impossible(const struct tbd_clone *arguments, bool is_clone3)
{
    const uint64_t known = CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP | CLONE_NEWTIME | 0xffffff00ull;
    uint64_t flags = arguments->flags;

    return (is_clone3 && flags & ~known) || (flags & CLONE_THREAD && !(flags & CLONE_SIGHAND)) ||
           (flags & CLONE_SIGHAND && !(flags & CLONE_VM)) ||
           (flags & CLONE_FS && flags & (CLONE_NEWNS | CLONE_NEWUSER)) ||
           (flags & CLONE_THREAD && flags & (CLONE_NEWPID | CLONE_NEWUSER));
}

int64_t tbd_fork_refuses(const struct tbd_call *call, const struct tbd_clone *arguments)
{
    bool is_clone3 = call->sys.number == __NR_clone3;

    if (is_clone3 && has_more(&call->sys))
        return -E2BIG;
    return is_impossible(arguments, is_clone3) ? -EINVAL : 0;
}

/* ---- the child ---- */

void tbd_fork_child_registers(struct tbd_regs *regs, const struct tbd_clone *arguments,
                              uint32_t insn_bytes)
{
    regs->rip += insn_bytes;
    regs->gpr[TBD_RAX] = 0;
    regs->gpr[TBD_RCX] = regs->rip;
    regs->gpr[TBD_R11] = regs->rflags;
    if (arguments->stack)
        regs->gpr[TBD_RSP] = arguments->stack;
    if (arguments->flags & CLONE_SETTLS)
        regs->fs_base = arguments->tls;
}

void tbd_fork_become_child(struct tbd_call *call, const struct tbd_clone *arguments, uint64_t mask)
{
    bool shares_memory = arguments->flags & CLONE_VM;

    tbd_fork_child_registers(&call->thread->regs, arguments, call->insn_bytes);
    if (!shares_memory) {
        tbd_call_policy->alone(call->thread);
        tbd_signals_forget_held();
    }
    if (clears_handlers(arguments) && !shares_memory)
        tbd_signals_clear_handlers();
    if (may_record(arguments) && tbd_call_policy->record_child(call->thread)) {
        tbd_signals_set_kernel_mask(mask);
        tbd_call_policy->run(call->thread);
    }
    tbd_signals_set_kernel_mask(mask);
    if (shares_memory)
        tbd_program_limits_before_exec();
    else
        tbd_signals_repeat_last_fault();
    tbd_detach_child(call->thread, shares_memory, clears_handlers(arguments));
}

/* ---- the call that the engine makes ---- */

bool tbd_fork_engine_call(const struct tbd_call *call, const struct tbd_clone *arguments,
                          struct tbd_sys_call *out, uint64_t *block)
{
    *out = call->sys;
    if (out->number == __NR_clone) {
        out->args[1] = 0;
    } else if (out->number == __NR_clone3) {
        if (out->args[1] > TBD_CLONE_WORDS * 8)
            out->args[1] = TBD_CLONE_WORDS * 8;
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

    if (!(arguments->flags & CLONE_VM)) {
        tbd_effects_watch(call->effects, may,
                          tbd_syscall_may_write(&call->sys, may, TBD_SYS_MAX_RANGES));
        return;
    }
    tbd_effects_watch_all(call->effects);
    tbd_child_maps_note();
}

bool tbd_fork_block_signals(bool shares_memory, uint64_t *mask)
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
    uint64_t block[TBD_CLONE_WORDS] = { 0 };
    struct tbd_regs before = call->thread->regs;
    struct tbd_saved_context *saved = tbd_threads.holder;
    uint64_t mask;

    if (!tbd_call_read_clone(call, &arguments) ||
        !tbd_fork_engine_call(call, &arguments, &sys, block)) {
        call->result = tbd_call_perform(&call->sys); /* the kernel returns the error */
        tbd_call_finish(call);
        return;
    }
    call->result = tbd_fork_refuses(call, &arguments);
    if (call->result) {
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
    tbd_shared_fork(); /* a snapshot shares such memory with a child of vfork, too */
    if (!tbd_fork_block_signals(arguments.flags & CLONE_VM, &mask)) {
        finish(call, TBD_CALL_INTERRUPTED); /* the parent delivers it before there is a child */
        return;
    }
    if (arguments.flags & CLONE_VM)
        tbd_call_step_out(call); /* the child may wait for another thread */
    call->result = tbd_sys6((long)sys.number, sys.args[0], sys.args[1], sys.args[2], sys.args[3],
                            sys.args[4], sys.args[5]); /* inline: the child must not return */
    if (call->result == 0)
        tbd_fork_become_child(call, &arguments, mask);
    if ((arguments.flags & CLONE_VM) && !tbd_threads_step_in(saved))
        tbd_call_stolen(call, saved, &before);
    call->thread->regs = before;
    tbd_signals_set_kernel_mask(mask);
    if (arguments.flags & CLONE_VM)
        tbd_child_maps_compare(call);
    tbd_effects_compare(call->effects);
    if (tbd_effects_is_cut(call->effects))
        tbd_recording_note(1, "what a child process wrote to shared memory is partly missing");
    tbd_call_finish(call);
    if (arguments.flags & CLONE_VM)
        tbd_child_maps_finish(call);
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
