// SPDX-License-Identifier: MIT
/* engine_lock.h - the lock of an engine whose threads run at the same time
 *
 * In free run threads execute translated code in parallel, without any lock.  Whoever is in the
 * engine and touches what threads share (the cache, regions, slots, the program's handlers) has this
 * lock.  In all other modes one thread runs at a time, and the functions do nothing.
 *
 * Code that has run may be reused only after all threads have left it: a thread says in its block
 * (`in_code`) whether it is in translated code.  tbd_engine_lock_drain() waits until nobody is.
 *
 *     translated code --> leave --> lock --> find or make the next block --> enter --> translated code
 *
 * ENGINE_LOCK-1  The owner alone changes what the lock protects.  It may take the lock again.
 * ENGINE_LOCK-2  While somebody drains, no thread enters translated code, so threads only leave it.
 * ENGINE_LOCK-3  A thread in translated code does not have the lock: so a signal handler that
 *     interrupts it there may wait for the lock. (not checked: tbd_engine_enter_code() gives it up)
 *
 * Contexts: APP; _sigsafe SIG too, for a thread that was interrupted in translated code. */
#ifndef TBD_PATCHER_ENGINE_LOCK_H
#define TBD_PATCHER_ENGINE_LOCK_H

#include "patcher/thread.h"

#include <stdbool.h>

/* BOOT: from now on threads run at the same time. */
void tbd_engine_lock_init(void);
/* FORK_CHILD: the caller is the only thread, and has the lock if it had it before. */
void tbd_engine_lock_after_fork(void);

void tbd_engine_lock(struct tbd_thread *thread);
void tbd_engine_unlock(struct tbd_thread *thread);
/* Gives it up if the thread has it, however often it was taken. */
void tbd_engine_unlock_all(struct tbd_thread *thread);
/* Like tbd_engine_lock(), for a thread that has not left translated code: does not wait for one
 * that drains. */
void tbd_engine_lock_sigsafe(struct tbd_thread *thread);

/* The owner has changed links: every processor drops what it has fetched before. */
void tbd_engine_sync_code(void);

/* The owner enters translated code next, and gives up the lock. */
void tbd_engine_enter_code(struct tbd_thread *thread);
/* The thread has left translated code, and refers to no block any more.  Returns how often all code
 * had been forgotten by then: the number of a block or an exit means something only as long as
 * tbd_engine_forgotten() returns the same. */
uint32_t tbd_engine_leave_code(struct tbd_thread *thread);
uint32_t tbd_engine_forgotten(void);

/* The owner waits until none of the threads is in translated code; then it may reuse all of it, and
 * calls tbd_engine_drain_end(). */
void tbd_engine_drain(struct tbd_thread *thread, struct tbd_thread *const *threads, uint32_t count);
void tbd_engine_drain_end(void);

#endif
