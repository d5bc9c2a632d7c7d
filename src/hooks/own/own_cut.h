// SPDX-License-Identifier: MIT
/* own_cut.h - native play: a computation that does not stop is cut, where a block begins
 *
 *     tick, or a signal that waits --> wherever the program is
 *         --> int3 in place of the next control transfer --> there: this one instruction is single-stepped
 *         --> where it has led to: the cut
 *
 * Whatever way a replay came there, it begins a block at that address, because each block ends with its
 * first control transfer.  So the replay compares its state with the cut's only where a block begins there, and the
 * signal that has waited is delivered between two blocks, as ever.
 *
 * Contexts: APP; _sigsafe SIG. */
#ifndef TBD_HOOKS_OWN_CUT_H
#define TBD_HOOKS_OWN_CUT_H

#include "hooks/threads/signals.h"
#include "hooks/threads/threads.h"
#include "patcher/thread.h"

#include <stdbool.h>

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

enum tbd_cut_step {
    TBD_CUT_NOT,      /* it does not concern a cut */
    TBD_CUT_TICK,     /* some processor time has passed */
    TBD_CUT_LATE,     /* a signal has waited for some time, or a thread for its turn */
    TBD_CUT_TRANSFER, /* the thread is at the control transfer */
    TBD_CUT_REACHED,  /* and here after it */
};

/* BOOT, FORK_CHILD, and in each new thread: makes its timers; a tick comes each time `tick_ns` have passed. */
void tbd_cut_begin(uint64_t tick_ns);
/* The thread is about to end. */
void tbd_cut_end_thread(void);
/* Before the program is let go. */
void tbd_cut_end(void);

/* What does the signal mean, which came in the program's own code at `rip`? */
enum tbd_cut_step tbd_cut_step_sigsafe(int signo, const uint8_t *info, uint64_t rip);
/* Where the calling thread is: the engine's work begins, or ends. */
void tbd_cut_leave_program(void);
void tbd_cut_enter_program(void);
/* By another thread, with the lock of the queue: if the holder of the turn lock runs the program's code, TBD_CUT_LATE comes to it. */
void tbd_cut_ask(const struct tbd_saved_context *holder);
/* A signal waits: TBD_CUT_LATE comes soon, unless the program stops before. */
void tbd_cut_soon_sigsafe(void);

/* After each of these steps, which are no stops.  True: the thread is at a cut.  Else the program goes on. */
bool tbd_cut_take(struct tbd_thread *thread, enum tbd_cut_step step, bool wants_cut);
/* The ticks of the thread with these signals pause, or go on.  APP, also without the turn lock. */
void tbd_cut_pause(const struct tbd_signals *signals, bool pauses);
/* The program has stopped for another reason: there is nothing to cut. */
void tbd_cut_forget(struct tbd_thread *thread);
/* The flags that the program goes on with. */
uint64_t tbd_cut_flags(uint64_t rflags);

#pragma GCC visibility pop

#endif
