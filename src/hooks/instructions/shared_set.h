// SPDX-License-Identifier: MIT
/* shared_set.h - the instructions that the engine executes because they use memory which others may write
 * (hooks/memory/shared.h, patcher/forced_specials.h)
 *
 * Context: APP. */
#ifndef TBD_HOOKS_SHARED_SET_H
#define TBD_HOOKS_SHARED_SET_H

#include "patcher/thread.h"

/* Called after a guarded cell has stopped translated code before the instruction at
 * thread->regs.rip, number `insn` of its block. */
void tbd_shared_found(struct tbd_thread *thread, uint32_t insn);
/* Called when a window begins. */
void tbd_shared_begin_window(struct tbd_thread *thread);

#endif
