// SPDX-License-Identifier: MIT
/* child.h - a forked child gets a trace of its own.  Context: FORK_CHILD. */
#ifndef TBD_HOOKS_CHILD_H
#define TBD_HOOKS_CHILD_H

#include "patcher/thread.h"

#include <stdbool.h>

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

/* Called in the new process, with every signal blocked; thread->regs is its state.  True: a new
 * stream is open and has everything that precedes the first block; only the five signals of
 * processor faults are not blocked.  False: it must run natively (the reason was reported, unless
 * the options ask for this). */
bool tbd_child_record(struct tbd_thread *thread);

#pragma GCC visibility pop

#endif
