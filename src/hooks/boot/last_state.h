// SPDX-License-Identifier: MIT
/* last_state.h - what a dump has of a program that dies of a signal: its state at that moment (mode=crash)
 *
 * Context: APP. */
#ifndef TBD_HOOKS_LAST_STATE_H
#define TBD_HOOKS_LAST_STATE_H

#include "patcher/thread.h"

#include <stdbool.h>
#include <stdint.h>

/* For struct tbd_signal_exits.  The collector is told, and becomes the organizer of a trace that has this
 * state alone (TBD_START_DUMP).  False: there are no rings, and nothing is sent. */
__attribute__((visibility("hidden"))) bool tbd_last_state_send(struct tbd_thread *thread);
/* SIG: a dump is wanted (TBD_CRASH_ASKED), or something is to be changed (TBD_CRASH_SET); the next thread at a boundary
 * does it (tbd_last_state_if_asked(), with the lock), and the program goes on. */
__attribute__((visibility("hidden"))) void tbd_last_state_ask_sigsafe(uint64_t what);
__attribute__((visibility("hidden"))) bool tbd_last_state_is_asked(void);
__attribute__((visibility("hidden"))) void tbd_last_state_if_asked(struct tbd_thread *thread);
/* Makes a dump now, with the lock; the program goes on.  `why`: one clause. */
__attribute__((visibility("hidden"))) void tbd_last_state_take(struct tbd_thread *thread,
                                                               const char *why);
/* With the lock, which others may have meanwhile: triggers and parts that wait for a module are looked for again
 * (hooks/probes/late_places.h).  Returns early if the program is to be let go. */
__attribute__((visibility("hidden"))) void tbd_last_state_look(struct tbd_thread *thread);
/* For struct tbd_call_policy: the same, if the option `dump` asks for it.  Returns when the trace is written. */
__attribute__((visibility("hidden"))) void tbd_last_state_at_exit(struct tbd_thread *thread,
                                                                  uint32_t status);

#endif
