// SPDX-License-Identifier: MIT
/* free_threads.h - threads that run at the same time (free run)
 *
 * Every thread has a thread block of its own, at the gs base of its saved context, and translated code
 * uses nothing else: so threads need no lock there.  A thread that touches what is common to all takes
 * the engine lock (patcher/engine_lock.h) and is then, for all code of hooks, what the holder of the
 * turn lock is in traced play.  The kernel keeps what it keeps natively: the word that it clears at a
 * thread's end, the list of robust futexes, all of which are the program's own.
 *
 * FREE_THREADS-1  The owner of the engine lock is tbd_threads.holder and .runner.
 * FREE_THREADS-2  A saved context is used again when the kernel knows its thread no more: its stack is free
 *     then.  Its thread block stays as it was, with all indirect targets that are still valid.
 *     (not checked: only the kernel knows)
 * FREE_THREADS-3  A new thread begins with every signal blocked, until it has its own gs base and signal stack.
 *     (not checked: the kernel's masks are not seen from here)
 *
 * Context: APP, unless noted. */
#ifndef TBD_HOOKS_FREE_THREADS_H
#define TBD_HOOKS_FREE_THREADS_H

#include "hooks/threads/threads.h"

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

/* BOOT: from now on threads run at the same time. */
void tbd_free_init(void);

void tbd_free_lock(struct tbd_thread *thread);
void tbd_free_unlock(struct tbd_thread *thread);

/* A saved context, with its thread block, for a thread or process that shares this memory.  It starts
 * with `regs` and with the caller's signal mask and filters.  NULL: too many, or no memory.  With the
 * lock. */
struct tbd_saved_context *tbd_free_new_context(struct tbd_thread *thread,
                                               const struct tbd_regs *regs);
static inline uint64_t tbd_free_stack_top(const struct tbd_saved_context *saved)
{
    return (uint64_t)(uintptr_t)saved + TBD_STACK_SLOT_BYTES / 2;
}
struct tbd_thread *tbd_free_block_of(const struct tbd_saved_context *saved);

/* Makes a call of clone or clone3 that names the context's stack; the child calls
 * `begin(saved context)`, which does not return.  The result, for the parent. */
int64_t tbd_free_clone(const struct tbd_sys_call *call, struct tbd_saved_context *saved,
                       void (*begin)(void *saved));
/* The first function of a new thread; runs the program's code. */
void tbd_free_begin(void *saved);

/* Gives the context back; the calling thread ends, or the clone has failed (`tid` 0).  With the lock. */
void tbd_free_end(struct tbd_saved_context *saved, uint32_t tid);
/* Have all threads ended?  With the lock. */
bool tbd_free_is_over(void);
/* FORK_CHILD, with the lock: the calling thread is the only one. */
void tbd_free_after_fork(struct tbd_thread *thread);

#pragma GCC visibility pop

#endif
