// SPDX-License-Identifier: MIT
/* userfault_private.h - what userfault_ranges.c gives userfault.c.  Context: APP. */
#ifndef TBD_HOOKS_USERFAULT_PRIVATE_H
#define TBD_HOOKS_USERFAULT_PRIVATE_H

#include "hooks/memory/userfault.h"

/* The range that holds it; NULL: none. */
const struct tbd_userfault_range *tbd_userfault_find(uint64_t address);
/* In place of what was there; what is there now is logged.  False: it cannot be followed. */
bool tbd_userfault_set_range(const struct tbd_userfault_range *range);
void tbd_userfault_remove_range(uint64_t start, uint64_t end);
/* Pages of ranges in it are not logged any more; were there any? */
bool tbd_userfault_drop_pages(uint64_t start, uint64_t end);
void tbd_userfault_drop_ranges(void);

/* Is it there, though it is not logged? */
bool tbd_userfault_has_come(uint64_t page);
void tbd_userfault_set_logged(uint64_t page);
/* The page of the touch map that stands for it, as an index. */
uint64_t tbd_userfault_cells_of(uint64_t page);

#endif
