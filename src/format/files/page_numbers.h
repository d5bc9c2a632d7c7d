// SPDX-License-Identifier: MIT
/* page_numbers.h - a number for each of many pages: a table by address */
#ifndef TBD_FORMAT_PAGE_NUMBERS_H
#define TBD_FORMAT_PAGE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tbd_page_numbers {
    uint64_t *keys;    /* owned; 0: free, addresses are kept + 1 */
    uint32_t *numbers; /* owned */
    size_t slots, used;
};
/* The page's number, 0 if it had none; valid until the next call.  NULL: no memory. */
uint32_t *tbd_page_numbers_at(struct tbd_page_numbers *table, uint64_t address);
/* Sets or replaces the page's number.  False: no memory. */
bool tbd_page_numbers_put(struct tbd_page_numbers *table, uint64_t address, uint32_t number);
/* The page's number, which it has no more; 0: it had none.  Needs no memory. */
uint32_t tbd_page_numbers_take(struct tbd_page_numbers *table, uint64_t address);
/* NULL: none. */
const uint32_t *tbd_page_numbers_find(const struct tbd_page_numbers *table, uint64_t address);
/* Empties the table, and keeps its memory. */
void tbd_page_numbers_clear(struct tbd_page_numbers *table);
void tbd_page_numbers_free(struct tbd_page_numbers *table);

#endif
