// SPDX-License-Identifier: MIT
/* shared_private.h - shared by the files that implement shared.h: shared_views.c (the views),
 * shared_guards.c (the touch map), shared.c and shared_others.c.  Context: APP, BOOT,
 * FORK_CHILD. */
#ifndef TBD_HOOKS_SHARED_PRIVATE_H
#define TBD_HOOKS_SHARED_PRIVATE_H

#include "base/layout.h"
#include "hooks/memory/shared.h"

/* Base-2 logarithm of the number of pages that a page of cells covers. */
#define TBD_SHARED_CELL_SHIFT (TBD_PAGE_SHIFT - 1)

/* There is, or was, shared memory; never in a replay process. */
bool tbd_shared_is_needed(void);
/* Makes tbd_shared_is_needed() true from now on.  False: no memory for views. */
bool tbd_shared_need(void);
void tbd_shared_drop_views(void);
bool tbd_shared_is_page(uint64_t page);
/* The page's view; NULL: there is none. */
uint8_t *tbd_shared_find_view(uint64_t page);
/* Likewise, but takes a view if there is none.  NULL: the page is not mapped, or there are too many
 * views. */
uint8_t *tbd_shared_take_view(uint64_t page);
/* Likewise, and sends a new view to the trace at once. */
uint8_t *tbd_shared_view(uint64_t page);
void tbd_shared_drop_guards(void);

/* The number of the bytes at `address` that lie in its page. */
static inline uint64_t tbd_shared_page_part(uint64_t address, uint64_t bytes)
{
    uint64_t part = TBD_PAGE_SIZE - (address & (TBD_PAGE_SIZE - 1));

    return part < bytes ? part : bytes;
}

#endif
