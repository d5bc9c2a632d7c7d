// SPDX-License-Identifier: MIT
/* turn_lock.h - what the files of threads.h need of each other
 *
 * The lock is that of the queue of ready threads and of the holder: it is held for a few instructions only.
 *
 * Context: APP. */
#ifndef TBD_HOOKS_TURN_LOCK_H
#define TBD_HOOKS_TURN_LOCK_H

#include "hooks/threads/threads.h"

/* ---- turn_lock.c ---- */

void tbd_turns_lock(void);
void tbd_turns_unlock(void);
/* A thread that is ready queues after all others. */
void tbd_turns_append_locked(struct tbd_saved_context *saved);
bool tbd_turns_have(const struct tbd_saved_context *saved);
/* The thread is in the queue, at a block boundary; it goes on natively if the program is let go. */
void tbd_turns_await(struct tbd_thread *thread, struct tbd_saved_context *saved);
/* The holder gives the turn lock to whoever is next. */
void tbd_turns_pass(void);
/* A turn begins at the time `now`. */
void tbd_turns_set_tick(uint64_t now);

/* ---- thread_registers.c ---- */

/* Top of the thread's engine stack. */
uint64_t tbd_threads_stack_top(const struct tbd_saved_context *saved);
/* The thread block is this thread's from now on. */
void tbd_threads_use(struct tbd_thread *thread, struct tbd_saved_context *saved);
/* The registers of the thread that has run, into its saved context. */
void tbd_threads_save(struct tbd_thread *thread, struct tbd_saved_context *saved);
/* The saved context has the turn lock, so it gets the processor. */
void tbd_threads_load(struct tbd_thread *thread, struct tbd_saved_context *saved);
void tbd_threads_send(struct tbd_thread *thread, const struct tbd_msg_thread *message);

#endif
