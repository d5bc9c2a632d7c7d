// SPDX-License-Identifier: MIT
/* own_blocks.h - native play: a block for each stopping instruction
 *
 * Contexts: APP. */
#ifndef TBD_HOOKS_OWN_BLOCKS_H
#define TBD_HOOKS_OWN_BLOCKS_H

#include "patcher/decode.h"
#include "patcher/thread.h"

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

/* The stop's block, of `bytes` at the thread's rip, is entered. */
void tbd_own_enter_block(struct tbd_thread *thread, uint32_t bytes, enum tbd_end end);
/* BOOT, FORK_CHILD: the stream knows none yet. */
void tbd_own_forget_blocks(void);

#pragma GCC visibility pop

#endif
