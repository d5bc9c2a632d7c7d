// SPDX-License-Identifier: MIT
/* late_places.h - triggers and parts whose code is in no module yet: looked for again when the dynamic loader has mapped one
 *
 * The loader calls a function of its own, for debuggers, before and after it has mapped or unmapped something.  A thread that comes there
 * while somebody waits, or while the code of a place has gone, has the collector look again (struct tbd_crash_look), before the
 * new module's first instruction runs.  All other threads wait at a boundary meanwhile.
 *
 * Context: APP. */
#ifndef TBD_HOOKS_LATE_PLACES_H
#define TBD_HOOKS_LATE_PLACES_H

#include "patcher/thread.h"

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Is it the loader's function, and is there something to look for?  Without the lock. */
bool tbd_late_places_are_due(uint64_t pc);
/* With the lock, all others at a boundary. */
void tbd_late_places_look(struct tbd_thread *thread);
/* The process ends: one line for triggers that have waited for nothing, and one for parts. */
void tbd_late_places_say_missing(void);
/* FORK_CHILD, its rings have begun: they have what the parent's had. */
void tbd_late_places_inherit(void);

#pragma GCC visibility pop

#endif
