// SPDX-License-Identifier: MIT
/* address_table.c - see address_table.h */
#include "base/address_table.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_PLACES 256u

struct address_key {
    uint64_t address;
    uint32_t more;
};

/* Where the key is, or the free place for it. */
static uint8_t *place_of(const struct tbd_address_table *table, uint64_t address, uint32_t more)
{
    size_t at = (size_t)(((address + more) * 0x9e3779b97f4a7c15ull) >> 32) & table->mask;

    TBD_INVARIANT("ADDRESS_TABLE-1", table->count <= table->mask);
    for (;; at = (at + 1) & table->mask) {
        uint8_t *entry = (uint8_t *)table->entries + at * table->element;
        struct address_key key = { 0 };

        memcpy(&key, entry, sizeof(key.address) + (table->has_more ? sizeof(key.more) : 0));
        if (key.address == 0 || (key.address == address && key.more == more))
            return entry;
    }
}

static bool is_free(const uint8_t *entry)
{
    uint64_t address;

    memcpy(&address, entry, sizeof(address));
    return address == 0;
}

void *tbd_address_table_find(const struct tbd_address_table *table, uint64_t address, uint32_t more)
{
    uint8_t *entry;

    if (table->entries == NULL || address == 0)
        return NULL;
    entry = place_of(table, address, more);
    return is_free(entry) ? NULL : entry;
}

/* Makes place for one more entry. */
static bool grow(struct tbd_address_table *table)
{
    uint8_t *old = table->entries;
    size_t places = old == NULL ? 0 : table->mask + 1;
    size_t capacity = places == 0 ? FIRST_PLACES : places * 2;

    if (places != 0 && table->count * 2 < places)
        return true;
    table->entries = calloc(capacity, table->element);
    if (table->entries == NULL) {
        table->entries = old;
        return false;
    }
    table->mask = capacity - 1;
    for (size_t i = 0; i < places; i++) {
        const uint8_t *entry = old + i * table->element;
        struct address_key key = { 0 };

        memcpy(&key, entry, sizeof(key.address) + (table->has_more ? sizeof(key.more) : 0));
        if (key.address != 0)
            memcpy(place_of(table, key.address, key.more), entry, table->element);
    }
    free(old);
    return true;
}

void *tbd_address_table_add(struct tbd_address_table *table, uint64_t address, uint32_t more)
{
    struct address_key key = { address, more };
    uint8_t *entry;

    if (address == 0 || !grow(table))
        return NULL;
    entry = place_of(table, address, more);
    if (!is_free(entry))
        return entry;
    memcpy(entry, &key, sizeof(key.address) + (table->has_more ? sizeof(key.more) : 0));
    table->count++;
    return entry;
}

void tbd_address_table_clear(struct tbd_address_table *table)
{
    if (table->entries != NULL)
        memset(table->entries, 0, (table->mask + 1) * table->element);
    table->count = 0;
}

void tbd_address_table_free(struct tbd_address_table *table)
{
    free(table->entries);
    table->entries = NULL;
    table->count = table->mask = 0;
}
