// SPDX-License-Identifier: MIT
/* vdso.h - the kernel's user-space time functions, turned into system calls.  Context: BOOT. */
#ifndef TBD_HOOKS_VDSO_H
#define TBD_HOOKS_VDSO_H

#include <stdbool.h>
#include <stdint.h>

/* Overwrites the entry points of the vDSO mapped at [start, end) by stubs that make the real
 * call, so that what they return is seen and recorded.  False when it cannot be written
 * or understood. */
bool tbd_vdso_patch(uint64_t start, uint64_t end);

#endif
