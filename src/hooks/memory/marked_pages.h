// SPDX-License-Identifier: MIT
/* marked_pages.h - which parts of the touch map may hold marks
 *
 * Programs reserve terabytes and use little.  The touch map has a cell for each page of such a reservation all the
 * same; most pages of the map, which have the cells of 8 MiB each, were never written. */
#ifndef TBD_HOOKS_MARKED_PAGES_H
#define TBD_HOOKS_MARKED_PAGES_H

#include "hooks/memory/window_pages.h"

/* Finds the first pages of the touch map that may hold marks, at least; false: none does.  All numbers are offsets in
 * the map, multiples of a page. */
typedef bool (*tbd_marked_cells)(uint64_t start, uint64_t end, struct tbd_range *out);

/* The program's pages whose cells these are. */
bool tbd_marked_find(tbd_marked_cells find, uint64_t start, uint64_t end, struct tbd_range *out);

/* For struct tbd_pages in play: the kernel says which pages of the touch map exist.  "hidden" because otherwise its
 * address needs a table. */
__attribute__((visibility("hidden"))) bool tbd_marked_next(uint64_t start, uint64_t end,
                                                           struct tbd_range *out);

#endif
