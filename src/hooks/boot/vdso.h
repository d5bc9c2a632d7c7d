// SPDX-License-Identifier: MIT
/* vdso.h - replaces the vDSO's functions by system calls.  Context: BOOT; tbd_vdso_undo() APP. */
#ifndef TBD_HOOKS_VDSO_H
#define TBD_HOOKS_VDSO_H

#include "format/stream/messages.h"

#include <stdbool.h>
#include <stdint.h>

/* Overwrites the entry points of the vDSO mapped at [start, end) with stubs that make the real
 * system call, so that results are recorded.  False if the vDSO cannot be written or understood.  `runs`: the
 * program has begun, and has been told that there is a getrandom. */
bool tbd_vdso_patch(uint64_t start, uint64_t end, bool runs);
/* The program goes on natively: a thread at these registers is taken out of a stub, to its function's beginning or return.  Then,
 * with NULL, the functions are what they were. */
__attribute__((visibility("hidden"))) void tbd_vdso_undo(struct tbd_regs *regs);

#endif
