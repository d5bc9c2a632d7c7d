// SPDX-License-Identifier: MIT
/* late_places.h - triggers and parts whose code is in no module yet: looked for again when the dynamic loader has mapped one
 *
 * The loader calls a function of its own, for debuggers, before and after it has mapped or unmapped something.  A thread that comes there
 * while somebody waits, or while the code of a place has gone, has the collector look again (struct tbd_crash_look), before the
 * new module's first instruction runs.  All other threads go on; they wait at a boundary if something has been found.
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
/* With the lock: the collector is asked to look.  What it finds comes as a request (hooks/probes/triggers.h). */
void tbd_late_places_ask(void);
/* With the lock: has it looked, or does it not answer, which is said? */
bool tbd_late_places_are_over(void);
/* Without the lock: some milliseconds at most. */
void tbd_late_places_wait(void);
/* The process ends: one line for triggers that have waited for nothing, and one for parts. */
void tbd_late_places_say_missing(void);
/* FORK_CHILD, its rings have begun: they have what the parent's had. */
void tbd_late_places_inherit(void);

#pragma GCC visibility pop

#endif
