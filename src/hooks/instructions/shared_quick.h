// SPDX-License-Identifier: MIT
/* shared_quick.h - a short way for the usual accesses to memory that other processes may write
 *
 * Most such accesses are one load, store, comparison, addition or atomic operation of 1 to 8 bytes, on memory that contains what
 * the log knows, and of which nothing is logged where block entries are only counted (TBD_MSG_UNLOGGED).  Only play uses this.
 * Context: APP. */
#ifndef TBD_HOOKS_SHARED_QUICK_H
#define TBD_HOOKS_SHARED_QUICK_H

#include "patcher/thread.h"

#include <stdbool.h>

/* Executes the instruction at regs.rip, of kind TBD_SPECIAL_SHARED.  False: it has done nothing, tbd_special_perform() must. */
bool tbd_shared_quick(struct tbd_thread *thread, uint32_t insn_bytes);

/* Stores `now` in one atomic access if the memory, which was mapped a moment ago, contains `old`.  False: it contains something
 * else. */
bool tbd_shared_exchange(uint64_t address, const uint8_t *old, const uint8_t *now, uint64_t bytes);

#endif
