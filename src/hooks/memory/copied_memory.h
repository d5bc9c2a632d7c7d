// SPDX-License-Identifier: MIT
/* copied_memory.h - memory of a program with rings, copied beside a ring when the ring is full (format/stream/crash_values.h)
 *
 * What a program wrote far before its end, and wrote over since, follows neither from its end nor from its registers.  So some laps' ends have all that the
 * program may write, if that is little: from there on everything is known.  A part of it would not do: the first address that is not known leads
 * to a store that may have changed anything.
 *
 * Context: APP, with the lock. */
#ifndef TBD_HOOKS_COPIED_MEMORY_H
#define TBD_HOOKS_COPIED_MEMORY_H

#include "patcher/thread.h"

#include <stdint.h>

/* The thread, the only one of the process, is about to enter the block at regs.rip, and its registers are exact.  Copies memory if it is due there. */
void tbd_copy_memory_if_due(struct tbd_thread *thread, uint32_t index);

#endif
