// SPDX-License-Identifier: MIT
/* page_parts.h - which of several windows has a page: a table by address */
#ifndef TBD_FORMAT_PAGE_PARTS_H
#define TBD_FORMAT_PAGE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tbd_page_parts {
    uint64_t *keys;  /* owned; 0: free, addresses are kept + 1 */
    uint32_t *parts; /* owned */
    size_t slots, used;
};
/* In place of the one that was put before.  False: no memory. */
bool tbd_page_parts_put(struct tbd_page_parts *table, uint64_t address, uint32_t part);
/* NULL: none. */
const uint32_t *tbd_page_parts_find(const struct tbd_page_parts *table, uint64_t address);
void tbd_page_parts_free(struct tbd_page_parts *table);

#endif
