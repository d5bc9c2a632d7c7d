// SPDX-License-Identifier: MIT
/* fixed.h - the hand-written routines between translated code and C (fixed_x86_64.S) */
#ifndef TBD_PATCHER_FIXED_H
#define TBD_PATCHER_FIXED_H

#include "patcher/thread.h"

/* From translated code: all program registers in place but r14, r15; saves them and calls
 * tbd_patcher_dispatch() on the engine stack. */
extern const char tbd_fixed_exit[];
/* From a table jump without a target: r11 = target. */
extern const char tbd_fixed_miss[];
/* From the guard-fault handler: thread->resume holds the entry store's address. */
extern const char tbd_fixed_boundary[];
/* In the first: leaves with the target, whose register rcx is in the thread block. */
extern const char tbd_fixed_leave[];
/* From here on translated code is about to be entered at thread->resume; goes back to the
 * dispatcher instead. */
extern const char tbd_fixed_enter[], tbd_fixed_again[];
/* One past the last of these routines. */
extern const char tbd_fixed_end[];
extern const char tbd_fixed_start[];

/* Switches to the engine stack and runs the program. */
_Noreturn void tbd_fixed_run(struct tbd_thread *thread);

/* Called by the routines: returns the cache address to go on at. */
uint64_t tbd_patcher_dispatch(struct tbd_thread *thread);

#endif
