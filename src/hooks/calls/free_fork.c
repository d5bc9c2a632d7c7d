// SPDX-License-Identifier: MIT
/* free_fork.c - threads and processes that begin and end in free run
 *
 *     thread                       a saved context and a thread block of its own; translated from its first instruction
 *     process, memory of its own   goes on translated, alone, in its copy of everything
 *     vfork                        runs natively; the calling thread sleeps in the kernel, the others go on
 *     process that shares memory   runs natively, at the same time: the engine's stack for its first steps is its own
 *
 * The kernel makes all of them as it is asked, writes the ids where it is told and clears the word at a
 * thread's end.  Context: APP; the child's side is FORK_CHILD. */
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/fork_calls.h"
#include "hooks/calls/free_calls.h"
#include "hooks/instructions/processor.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/free_threads.h"
#include "hooks/threads/native.h"
#include "patcher/engine_lock.h"

static void finish(struct tbd_call *call, int64_t result)
{
    struct tbd_regs *regs = &call->thread->regs;

    if (result == TBD_CALL_INTERRUPTED)
        return;
    regs->rip += call->insn_bytes;
    regs->gpr[TBD_RAX] = (uint64_t)result;
    regs->gpr[TBD_RCX] = regs->rip;
    regs->gpr[TBD_R11] = regs->rflags;
}

/* ---- threads, and processes that share memory ---- */

/* The child begins on the engine's stack. */
static void name_stack(struct tbd_sys_call *sys, uint64_t *block,
                       const struct tbd_saved_context *saved)
{
    const uint64_t half = TBD_STACK_SLOT_BYTES / 2 - 4 * TBD_PAGE_SIZE; /* above the context */

    if (sys->number == __NR_clone3) {
        block[5] = tbd_free_stack_top(saved) - half;
        block[6] = half;
    } else {
        sys->args[1] = tbd_free_stack_top(saved);
    }
}

/* The first function of a process that shares memory: its handlers are a copy of the program's. */
static void begin_natively(void *context)
{
    struct tbd_saved_context *saved = context;

    tbd_set_gs_base(saved->gs_base);
    tbd_signals_restore_handlers();
    tbd_threads_leave(saved);
}

static struct tbd_saved_context *new_context(struct tbd_call *call,
                                             const struct tbd_clone *arguments)
{
    struct tbd_regs regs = call->thread->regs;
    struct tbd_saved_context *saved;

    tbd_fork_child_registers(&regs, arguments, call->insn_bytes);
    saved = tbd_free_new_context(call->thread, &regs);
    if (saved)
        saved->regs = regs;
    return saved;
}

/* The context of a process is never used again: nobody would say when. */
static int64_t start(struct tbd_call *call, const struct tbd_clone *arguments,
                     struct tbd_sys_call *sys, uint64_t *block)
{
    struct tbd_saved_context *saved;
    int64_t tid;

    tbd_free_lock(call->thread);
    saved = new_context(call, arguments);
    tbd_free_unlock(call->thread);
    if (!saved)
        return -EAGAIN;
    name_stack(sys, block, saved);
    tid = tbd_free_clone(sys, saved,
                         arguments->flags & CLONE_THREAD ? tbd_free_begin : begin_natively);
    if (tid < 0) {
        tbd_free_lock(call->thread);
        tbd_free_end(saved, 0);
        tbd_free_unlock(call->thread);
    }
    return tid;
}

static void share(struct tbd_call *call, const struct tbd_clone *arguments,
                  struct tbd_sys_call *sys, uint64_t *block)
{
    uint64_t mask;

    if (!tbd_fork_block_signals(false, &mask))
        return; /* the signal is delivered first */
    finish(call, start(call, arguments, sys, block));
    tbd_signals_set_kernel_mask(mask);
}

/* ---- processes with memory of their own, and vfork ---- */

/* The lock is free for the others while the parent of a vfork sleeps; in a fork it is taken, so that
 * the child's copy is whole. */
static void fork_process(struct tbd_call *call, const struct tbd_clone *arguments,
                         const struct tbd_sys_call *sys)
{
    struct tbd_regs before = call->thread->regs;
    bool shares_memory = arguments->flags & CLONE_VM;
    uint64_t mask;
    int64_t result;

    if (!tbd_fork_block_signals(shares_memory, &mask))
        return;
    if (!shares_memory)
        tbd_free_lock(call->thread);
    result = tbd_sys6((long)sys->number, sys->args[0], sys->args[1], sys->args[2], sys->args[3],
                      sys->args[4], sys->args[5]); /* inline: the child must not return */
    if (result == 0)
        tbd_fork_become_child(call, arguments, mask);
    if (!shares_memory)
        tbd_free_unlock(call->thread);
    call->thread->regs = before;
    finish(call, result);
    tbd_signals_set_kernel_mask(mask);
}

void tbd_free_fork(struct tbd_call *call)
{
    struct tbd_clone arguments;
    struct tbd_sys_call sys;
    uint64_t block[TBD_CLONE_WORDS] = { 0 };
    int64_t error;

    if (!tbd_call_read_clone(call, &arguments) ||
        !tbd_fork_engine_call(call, &arguments, &sys, block)) {
        finish(call, tbd_call_perform(&call->sys)); /* the kernel returns the error */
        return;
    }
    error = tbd_fork_refuses(call, &arguments);
    if (error) {
        finish(call, error);
        return;
    }
    if ((arguments.flags & CLONE_THREAD) ||
        (arguments.flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM)
        share(call, &arguments, &sys, block);
    else
        fork_process(call, &arguments, &sys);
}

/* ---- a thread ends ---- */

/* With or without the lock. */
static void end(struct tbd_thread *thread, uint64_t status)
{
    uint32_t tid = thread->tid;

    tbd_signals_block_all(); /* a signal for the process must find another thread */
    if (__atomic_load_n(&tbd_signals_now()->pending, __ATOMIC_ACQUIRE))
        return; /* it is delivered first */
    tbd_signals_set_kernel_mask(~0ull);
    tbd_free_lock(thread);
    tbd_free_end(tbd_context_now(), tid);
    if (tbd_free_is_over())
        tbd_crash_ends();
    tbd_engine_unlock_all(thread);
    for (;;)
        tbd_sys3(__NR_exit, status, 0, 0);
}

void tbd_free_exit(struct tbd_call *call)
{
    end(call->thread, call->sys.args[0]);
}

void tbd_free_thread_killed(struct tbd_call *call)
{
    end(call->thread, 0);
}
