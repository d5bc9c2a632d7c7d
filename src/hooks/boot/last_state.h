// SPDX-License-Identifier: MIT
/* last_state.h - what a dump has of a program that dies of a signal: its state at that moment (mode=crash)
 *
 * Context: APP. */
#ifndef TBD_HOOKS_LAST_STATE_H
#define TBD_HOOKS_LAST_STATE_H

#include "patcher/thread.h"

#include <stdbool.h>

/* For struct tbd_signal_exits.  The collector is told, and becomes the organizer of a trace that has this
 * state alone (TBD_START_DUMP).  False: there are no rings, and nothing is sent. */
__attribute__((visibility("hidden"))) bool tbd_last_state_send(struct tbd_thread *thread);

#endif
