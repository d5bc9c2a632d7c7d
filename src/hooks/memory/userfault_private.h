// SPDX-License-Identifier: MIT
/* userfault_private.h - functions of userfault_ranges.c for userfault.c.  Context: APP. */
#ifndef TBD_HOOKS_USERFAULT_PRIVATE_H
#define TBD_HOOKS_USERFAULT_PRIVATE_H

#include "hooks/memory/userfault.h"

/* The range that contains `address`; NULL: none. */
const struct tbd_userfault_range *tbd_userfault_find(uint64_t address);
/* Replaces earlier ranges there; pages that are present now become logged.  False: too many ranges,
 * or no memory. */
bool tbd_userfault_set_range(const struct tbd_userfault_range *range);
void tbd_userfault_remove_range(uint64_t start, uint64_t end);
/* Makes the registered pages in [start, end) not logged.  Returns whether there are any. */
bool tbd_userfault_drop_pages(uint64_t start, uint64_t end);
void tbd_userfault_drop_ranges(void);

/* Is the page present, although it is not logged? */
bool tbd_userfault_is_filled(uint64_t page);
void tbd_userfault_set_logged(uint64_t page);
/* The index of the page of the touch map that has its cell. */
uint64_t tbd_userfault_cells_of(uint64_t page);

#endif
