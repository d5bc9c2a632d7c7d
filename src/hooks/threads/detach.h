// SPDX-License-Identifier: MIT
/* detach.h - letting the program go on natively, exactly where it is
 *
 * Context: APP. */
#ifndef TBD_HOOKS_DETACH_H
#define TBD_HOOKS_DETACH_H

#include "hooks/stream/leaving.h"

/* For use in play: sends a note and END, writes a line to stderr, restores the program's handlers,
 * and lets all threads go on natively. */
extern const struct tbd_leaving tbd_leaving_play;

/* BOOT: before all threads leave because somebody has asked for it (`tbd stop`), this is called, with the registers of each, which it
 * may change, and then with NULL. */
__attribute__((visibility("hidden"))) void tbd_detach_undoes(void (*undo)(struct tbd_regs *regs));

#endif
