// SPDX-License-Identifier: MIT
/* userfault_ranges.h - memory that others fill (userfault.h): ranges, logged pages, missing pages
 *
 * Reads the kernel's page map, and does not access the pages.  Context: APP. */
#ifndef TBD_HOOKS_USERFAULT_RANGES_H
#define TBD_HOOKS_USERFAULT_RANGES_H

#include "base/layout.h"
#include "hooks/table/syscalls.h"

/* The number of registered ranges; if 0, the functions below need not be called. */
extern uint32_t tbd_userfault_count;

/* Does a page of the touch map (an index, modulo their number) stand for memory that translated
 * code must not use? */
bool tbd_userfault_needs_guard(uint64_t index);

/* Is any byte of [start, end) registered? */
bool tbd_userfault_holds(uint64_t start, uint64_t end);
/* The number of bytes, from the start, that can be read without waiting. */
size_t tbd_userfault_readable(uint64_t address, size_t bytes);
/* Would the access wait?  `*address`: the first byte at which it would. */
bool tbd_userfault_misses(const struct tbd_sys_range *range, bool is_write, uint64_t *address);
/* Does `address` lie in a page of such memory that is not logged? */
bool tbd_userfault_may_miss(uint64_t address);
/* Waiting for this page has failed: the next access is made without waiting, so that the
 * instruction gets the error itself. */
void tbd_userfault_set_run_once(uint64_t page);

static inline uint64_t tbd_userfault_page_of(uint64_t address)
{
    return address & ~(TBD_PAGE_SIZE - 1);
}

#endif
