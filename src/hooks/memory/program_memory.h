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

/* Memory can be read from now on: forgets its marks, which accesses that failed there have left, also in windows
 * before.  They have touched no page. */
void tbd_memory_becomes_readable(uint64_t start, uint64_t end);
/* These do so for what they add to the table of regions (false: it is full), and for what can be read with the new
 * protection only. */
bool tbd_memory_add_region(const struct tbd_msg_region *map, const char *path);
bool tbd_memory_protect_regions(uint64_t start, uint64_t end, uint32_t prot);

/* Sends the pages touched in the window, of all mappings; called at its end. */
void tbd_memory_send_touched(struct tbd_thread *thread);
/* Sends the pages that a replay of this window needs if it ends here without a WINDOW_END. */
void tbd_memory_send_unknown(struct tbd_thread *thread);

#endif
