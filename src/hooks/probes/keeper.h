// SPDX-License-Identifier: MIT
/* keeper.h - the process that waits beside an armed program, and places its probes
 *
 * It sleeps in poll() until its user connects (format/probe/probe.h), the program has ended, or executes
 * another one.  It runs with the program's memory, a thread pointer of its own, and all signals blocked.
 * Contexts: BOOT to prepare and await; keeper. */
#ifndef TBD_HOOKS_KEEPER_H
#define TBD_HOOKS_KEEPER_H

#include <stdint.h>

/* In the process that will become the keeper's parent: opens the socket, and what tells of the program's
 * end.  0, or -errno. */
long tbd_keeper_prepare(uint32_t program);
_Noreturn void tbd_keeper_run(void);

/* In the program: waits until the first session has started, or ended. */
void tbd_keeper_await(void);
/* The same, if a consumer follows the process from the program before, as long as that one is there. */
void tbd_keeper_await_follower(void);

#endif
