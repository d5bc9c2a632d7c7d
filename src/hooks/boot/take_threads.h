// SPDX-License-Identifier: MIT
/* take_threads.h - a process that runs already comes under the engine, in free run
 *
 * The second half of a take-over (format/probe/takeover.h says what happens when): all threads are stopped, one of them runs
 * this code.  Each thread gets a saved context and goes on by itself from there: it takes its signal stack and its
 * restartable sequences, then its signal mask, then it runs translated.
 *
 * Context: BOOT. */
#ifndef TBD_HOOKS_TAKE_THREADS_H
#define TBD_HOOKS_TAKE_THREADS_H

#include "format/probe/takeover.h"
#include "patcher/thread.h"

#include <stdbool.h>

/* Makes contexts for all threads; `first` is that of the calling one.  False: no memory. */
__attribute__((visibility("hidden"))) bool tbd_takeover_threads(struct tbd_thread *first,
                                                                struct tbd_takeover *takeover);

#endif
