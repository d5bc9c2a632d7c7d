// SPDX-License-Identifier: MIT
/* userfault_private.h - what userfault.c (ranges, pages) and userfault_calls.c (descriptors, system calls) share
 *
 * Context: APP. */
#ifndef TBD_HOOKS_USERFAULT_PRIVATE_H
#define TBD_HOOKS_USERFAULT_PRIVATE_H

#include "hooks/memory/userfault.h"

struct tbd_userfault_range {
    uint64_t start, end;
    uint64_t modes;
    uint64_t features; /* of the descriptor that it is registered with */
};

static inline uint64_t tbd_userfault_page_of(uint64_t address)
{
    return address & ~(TBD_PAGE_SIZE - 1);
}

/* userfault.c: in place of what is known of the addresses. */
void tbd_userfault_register(const struct tbd_userfault_range *range);
/* Is it in such memory, in a page that is not logged? */
bool tbd_userfault_may_miss(uint64_t address);

/* userfault_calls.c: in a forked child. */
void tbd_userfault_forget_descriptors(void);

#endif
