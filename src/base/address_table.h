// SPDX-License-Identifier: MIT
/* address_table.h - entries found by an address, with open addressing
 *
 * An entry begins with its key: an address (uint64_t; 0: the place is free), and where `has_more` is set a
 * uint32_t that tells apart entries of the same address.  For ordinary processes: it allocates.  Any thread; a table has
 * one owner, who frees it.
 *
 * ADDRESS_TABLE-1  At least half of the places are free, so each search ends. */
#ifndef TBD_BASE_ADDRESS_TABLE_H
#define TBD_BASE_ADDRESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tbd_address_table {
    void *entries;  /* owned; NULL at first */
    size_t element; /* bytes of an entry */
    size_t count;   /* entries that are not free */
    size_t mask;    /* `mask` + 1 places, if there are any */
    bool has_more;
};

/* The entry with the key; NULL: there is none.  Borrowed until the next one is added. `more`: 0 without has_more. */
void *tbd_address_table_find(const struct tbd_address_table *table, uint64_t address,
                             uint32_t more);
/* The entry with the key, which is a new one, with zeros after the key, if there was none.  NULL: no memory, or the address
 * is 0. */
void *tbd_address_table_add(struct tbd_address_table *table, uint64_t address, uint32_t more);
/* Keeps the places for new entries. */
void tbd_address_table_clear(struct tbd_address_table *table);
void tbd_address_table_free(struct tbd_address_table *table);

#endif
