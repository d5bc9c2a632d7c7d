// SPDX-License-Identifier: MIT
/* vdso.h - replaces the vDSO's functions by system calls.  Context: BOOT. */
#ifndef TBD_HOOKS_VDSO_H
#define TBD_HOOKS_VDSO_H

#include <stdbool.h>
#include <stdint.h>

/* Overwrites the entry points of the vDSO mapped at [start, end) with stubs that make the real
 * system call, so that results are recorded.  False if the vDSO cannot be written or understood. */
bool tbd_vdso_patch(uint64_t start, uint64_t end);

#endif
