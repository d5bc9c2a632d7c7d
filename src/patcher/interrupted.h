// SPDX-License-Identifier: MIT
/* interrupted.h - from the registers of a signal frame to the program's registers */
#ifndef TBD_PATCHER_INTERRUPTED_H
#define TBD_PATCHER_INTERRUPTED_H

#include "patcher/patcher.h"

struct tbd_interruption tbd_interrupt_find(const struct tbd_patcher_callbacks *callbacks,
                                           const struct tbd_codegen_config *config,
                                           const struct tbd_thread *thread,
                                           const struct tbd_regs *cpu, struct tbd_regs *state);

#endif
