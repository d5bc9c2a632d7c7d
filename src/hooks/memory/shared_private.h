// SPDX-License-Identifier: MIT
/* shared_private.h - what the files of shared.h share: shared_views.c (what the log knows of such memory),
 * shared_guards.c (the touch map), shared.c and shared_others.c.  Context: APP, BOOT, FORK_CHILD. */
#ifndef TBD_HOOKS_SHARED_PRIVATE_H
#define TBD_HOOKS_SHARED_PRIVATE_H

#include "base/layout.h"
#include "hooks/memory/shared.h"

/* Pages of memory that a page of cells stands for, as a shift. */
#define TBD_SHARED_CELL_SHIFT (TBD_PAGE_SHIFT - 1)

/* There is, or was, shared memory; never in a replay process. */
bool tbd_shared_is_needed(void);
/* From now on.  False: no memory for views. */
bool tbd_shared_need(void);
void tbd_shared_drop_views(void);
bool tbd_shared_is_page(uint64_t page);
/* NULL: there is none. */
uint8_t *tbd_shared_find_view(uint64_t page);
/* Taken now if there is none.  NULL: it is not there, or too many. */
uint8_t *tbd_shared_take_view(uint64_t page);
/* The same, and the trace gets it at once. */
uint8_t *tbd_shared_view(uint64_t page);
void tbd_shared_drop_guards(void);

/* How much of the bytes lies in the page of `address`. */
static inline uint64_t tbd_shared_page_part(uint64_t address, uint64_t bytes)
{
    uint64_t part = TBD_PAGE_SIZE - (address & (TBD_PAGE_SIZE - 1));

    return part < bytes ? part : bytes;
}

#endif
