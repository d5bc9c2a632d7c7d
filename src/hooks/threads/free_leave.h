// SPDX-License-Identifier: MIT
/* free_leave.h - lets a program go whose threads run at the same time
 *
 * The first thread that has to asks all others, by a signal, to come to their next boundary.  There each
 * waits until the last one has come; then the program's handlers are installed and all go on natively
 * from where they are.
 *
 *     told --> nudged --> arrived (all wait) --> handlers restored --> gone
 *
 * FREE_LEAVE-1  The handlers are the engine's as long as any thread is in translated code. (not checked:
 *     the last one to arrive restores them)
 *
 * Context: APP, with or without the engine lock. */
#ifndef TBD_HOOKS_FREE_LEAVE_H
#define TBD_HOOKS_FREE_LEAVE_H

#include "hooks/stream/leaving.h"
#include "patcher/thread.h"

#include <stdbool.h>

#pragma GCC visibility push(hidden)

extern const struct tbd_leaving tbd_leaving_free;

/* The program dies in this thread.  Returns with the lock, when all others wait at a boundary for the end of the
 * process; their state is in their saved contexts. */
void tbd_free_stop_others(struct tbd_thread *thread);
/* They go on natively for the moment that is left: so a core file shows them where they are. */
void tbd_free_let_others_go(void);

/* From here until _resume_others() all other threads are at a boundary, with their state in their saved contexts.
 * The caller has the lock. */
void tbd_free_pause_others(struct tbd_thread *thread);
void tbd_free_resume_others(void);
bool tbd_free_is_pausing(void);
/* At a boundary, with the lock: waits for the end of the pause. */
void tbd_free_pause(struct tbd_thread *thread);

#pragma GCC visibility pop

#endif
