/* SPDX-License-Identifier: MIT */
/* thread_asm.h - displacements of struct tbd_thread's fields from gs, for slot_x86_64.S
 *
 * Checked against patcher/thread.h in hooks/instructions/slot.c. */
#ifndef TBD_HOOKS_THREAD_ASM_H
#define TBD_HOOKS_THREAD_ASM_H

#include "patcher/offsets.h"

#define TBD_ASM_GS_REGS    TBD_GS_GPR
#define TBD_ASM_GS_RFLAGS  TBD_GS_RFLAGS
#define TBD_ASM_GS_GS_BASE (TBD_GS_GPR + 152)
#define TBD_ASM_GS_SCRATCH (TBD_GS_EXIT_KIND - 16) /* scratch[4], [5]: the hooks' */

#endif
