// SPDX-License-Identifier: MIT
/* play.h - the callbacks that translated code leaves for during play; each ends at the next
 * boundary
 *
 * Context: APP. */
#ifndef TBD_HOOKS_PLAY_H
#define TBD_HOOKS_PLAY_H

#include "patcher/patcher.h"

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

extern const struct tbd_patcher_callbacks tbd_play_callbacks;

/* Called before translated code is entered again; thread->regs is exact.  May not return (detach). */
void tbd_play_settle(struct tbd_thread *thread);
/* The callback `executable`. */
uint64_t tbd_play_executable(struct tbd_app_pc pc, uint64_t want, bool *out_changes);
/* The callback `word`. */
bool tbd_play_word(uint64_t address, uint64_t *out, bool *out_constant);

/* A signal handler continues here after it has put the program's registers into the thread
 * block. */
_Noreturn void tbd_play_after_fault(struct tbd_thread *thread);
/* A new thread begins here when it has the turn lock. */
_Noreturn void tbd_play_begin_thread(struct tbd_thread *thread);

#pragma GCC visibility pop

#endif
