// SPDX-License-Identifier: MIT
/* registers.h - a thread's registers as a message.  Contexts: BOOT, APP; in a replay process too. */
#ifndef TBD_HOOKS_REGISTERS_H
#define TBD_HOOKS_REGISTERS_H

#include "hooks/instructions/vector.h"
#include "hooks/stream/ring.h"

/* Sends REGS for the running thread. */
void tbd_registers_send(struct tbd_ring *ring, struct tbd_thread *thread,
                        const struct tbd_vector_info *vector);

#endif
