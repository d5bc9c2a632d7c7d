// SPDX-License-Identifier: MIT
/* program_memory.h - the program's memory as this process knows it: mappings, pages, heap
 *
 * One instance, tbd_memory, in play and in a replay process.  Written at boot and by the thread that holds the turn lock;
 * signal handlers read it.  Contexts: BOOT, APP. */
#ifndef TBD_HOOKS_PROGRAM_MEMORY_H
#define TBD_HOOKS_PROGRAM_MEMORY_H

#include "hooks/memory/regions.h"
#include "hooks/memory/window_pages.h"

struct tbd_program_memory {
    struct tbd_regions regions;
    struct tbd_pages pages;
    uint64_t brk_start;
    uint64_t brk_end;
};

extern struct tbd_program_memory tbd_memory;

/* At a window's end: the pages touched in it, in all mappings. */
void tbd_memory_send_touched(struct tbd_thread *thread);
/* Sends what a replay of this window would lack if it ended here without a WINDOW_END. */
void tbd_memory_send_unknown(struct tbd_thread *thread);
/* The lowest address to which the stack can grow with this limit: pages from there to its first
 * region will be zero. */
uint64_t tbd_memory_stack_start(uint64_t limit);

#endif
