// SPDX-License-Identifier: MIT
/* play.h - what translated code leaves for during play, and where that ends: at the next boundary
 *
 * Context: APP. */
#ifndef TBD_HOOKS_PLAY_H
#define TBD_HOOKS_PLAY_H

#include "patcher/patcher.h"

/* The image is linked far above 2 GiB: only hidden functions have addresses that need no table. */
#pragma GCC visibility push(hidden)

extern const struct tbd_patcher_callbacks tbd_play_callbacks;

/* Where a signal handler goes on that has put the program's registers into the thread block. */
_Noreturn void tbd_play_after_fault(struct tbd_thread *thread);
/* Where a new thread begins, once it is its turn. */
_Noreturn void tbd_play_begin_thread(struct tbd_thread *thread);

#pragma GCC visibility pop

#endif
