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

/* Sends the pages touched in the window, of all mappings; called at its end. */
void tbd_memory_send_touched(struct tbd_thread *thread);
/* Sends the pages that a replay of this window needs if it ends here without a WINDOW_END. */
void tbd_memory_send_unknown(struct tbd_thread *thread);

#endif
