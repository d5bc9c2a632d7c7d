// SPDX-License-Identifier: MIT
/* take_threads.h - the threads of a process that runs already come under the engine
 *
 * Part of a take-over (format/probe/takeover.h says what happens when): all threads are stopped, one of them runs
 * this code.  Each thread gets a saved context and goes on by itself from there: it takes its signal stack, then, perhaps after
 * waiting for its turn, its signal mask, and runs translated.
 *
 * Context: BOOT. */
#ifndef TBD_HOOKS_TAKE_THREADS_H
#define TBD_HOOKS_TAKE_THREADS_H

#include "format/probe/takeover.h"
#include "patcher/thread.h"

#include <stdbool.h>

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

/* Free run: makes contexts for all threads; `first` is that of the calling one.  False: no memory. */
bool tbd_take_threads_free(struct tbd_thread *first, struct tbd_takeover *takeover);

/* In turns, before the image is sent: contexts, registers, restartable sequences; the calling thread has its vector state again. */
bool tbd_take_threads_prepare(struct tbd_thread *first, struct tbd_takeover *takeover);
/* After it: START of each other thread, which is ready. */
void tbd_take_threads_in_turn(struct tbd_thread *first, const struct tbd_takeover *takeover);

#pragma GCC visibility pop

#endif
