// SPDX-License-Identifier: MIT
/* child.h - a forked child gets a trace of its own.  Context: FORK_CHILD. */
#ifndef TBD_HOOKS_CHILD_H
#define TBD_HOOKS_CHILD_H

#include "patcher/thread.h"

#include <stdbool.h>

/* The image is linked far above 2 GiB: only hidden functions have addresses that need no table. */
#pragma GCC visibility push(hidden)

/* In the new process, with every signal blocked and thread->regs what it goes on with.  True: a new
 * stream is open and all that belongs before the first block is in it; only the five signals of the
 * processor are not blocked.  False: it must go on natively (said why, unless that is what the
 * options want). */
bool tbd_child_record(struct tbd_thread *thread);

#pragma GCC visibility pop

#endif
