// SPDX-License-Identifier: MIT
/* triggers.h - what leaves a dump of a program that goes on (mode=crash): places, conditions, signals
 *
 * They come as requests in the rings' memory (format/probe/trigger.h), from the collector before the program
 * runs and from `tbd set` later, and replace those before.  Places are asked places (patcher/asked_places.h).
 *
 * TRIGGERS-1  The tables are complete and checked whenever a thread can be at an asked place: they change
 *     while all are at boundaries.
 *
 * Context: APP. */
#ifndef TBD_HOOKS_TRIGGERS_H
#define TBD_HOOKS_TRIGGERS_H

#include "format/probe/trigger.h"
#include "patcher/thread.h"

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

#define TBD_TRIGGER_NONE (-1)

/* With the lock, all other threads at a boundary: carries out the request that is posted, if there is one, and
 * answers.  False: it was refused; all is as before, and *why (which may be NULL) says what is wrong. */
bool tbd_triggers_take(struct tbd_thread *thread, char *why, size_t bytes);
/* With the lock: is a request posted that is to be carried out?  One that changes nothing is answered at once. */
bool tbd_triggers_are_due(void);
/* What is asked for now: triggers, ranges of parts, the loader's function.  Changes while all threads are at boundaries. */
const struct tbd_crash_request *tbd_triggers_now(void);
/* The index of a trigger at regs->rip whose condition holds, and which has dumps left.  Without the lock. */
int32_t tbd_triggers_at(const struct tbd_regs *regs);
/* Records what triggers want that record at regs.rip, where the thread, which has this index, is about to go on.  Without the lock. */
void tbd_triggers_record(struct tbd_thread *thread, uint32_t index);
/* The same of a load that is about to happen there (patcher/asked_loads.h). */
void tbd_triggers_record_load(struct tbd_thread *thread, uint32_t index, uint64_t address,
                              uint64_t bytes);
int32_t tbd_triggers_for_signal(uint32_t signo);
/* With the lock: one dump less is left.  False: none was.  *why: what the dump is to say, *keeps: what it is to have (struct tbd_crash). */
bool tbd_triggers_use(uint32_t trigger, char *why, size_t bytes, uint32_t *keeps);

#pragma GCC visibility pop

#endif
