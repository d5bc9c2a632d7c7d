// SPDX-License-Identifier: MIT
/* page_numbers.c - a number for each of many pages: a table by address, never more than half full */
#include "format/files/page_numbers.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 4096u

static size_t slot_of(const struct tbd_page_numbers *table, uint64_t key)
{
    size_t slot = (size_t)((key * 0x9e3779b97f4a7c15ull) >> 20) & (table->slots - 1);

    while (table->keys[slot] && table->keys[slot] != key)
        slot = (slot + 1) & (table->slots - 1);
    return slot;
}

void tbd_page_numbers_free(struct tbd_page_numbers *table)
{
    free(table->keys);
    free(table->numbers);
    *table = (struct tbd_page_numbers){ 0 };
}

void tbd_page_numbers_clear(struct tbd_page_numbers *table)
{
    if (table->used)
        memset(table->keys, 0, table->slots * sizeof(*table->keys));
    table->used = 0;
}

static bool grow(struct tbd_page_numbers *table)
{
    struct tbd_page_numbers bigger = { .slots = table->slots ? table->slots * 2 : SLOTS_FIRST,
                                       .used = table->used };

    bigger.keys = calloc(bigger.slots, sizeof(*bigger.keys));
    bigger.numbers = calloc(bigger.slots, sizeof(*bigger.numbers));
    if (!bigger.keys || !bigger.numbers) {
        tbd_page_numbers_free(&bigger);
        return false;
    }
    for (size_t i = 0; i < table->slots; i++) {
        size_t slot = table->keys[i] ? slot_of(&bigger, table->keys[i]) : 0;

        if (!table->keys[i])
            continue;
        bigger.keys[slot] = table->keys[i];
        bigger.numbers[slot] = table->numbers[i];
    }
    tbd_page_numbers_free(table);
    *table = bigger;
    return true;
}

uint32_t *tbd_page_numbers_at(struct tbd_page_numbers *table, uint64_t address)
{
    size_t slot;

    if (table->used * 2 >= table->slots && !grow(table))
        return NULL;
    slot = slot_of(table, address + 1);
    if (!table->keys[slot]) {
        table->used++;
        table->keys[slot] = address + 1;
        table->numbers[slot] = 0;
    }
    return &table->numbers[slot];
}

bool tbd_page_numbers_put(struct tbd_page_numbers *table, uint64_t address, uint32_t number)
{
    uint32_t *at = tbd_page_numbers_at(table, address);

    if (at)
        *at = number;
    return at;
}

uint32_t tbd_page_numbers_take(struct tbd_page_numbers *table, uint64_t address)
{
    size_t slot = table->slots ? slot_of(table, address + 1) : 0;
    uint32_t number = 0;

    if (table->slots && table->keys[slot]) {
        number = table->numbers[slot];
        table->numbers[slot] = 0;
    }
    return number;
}

const uint32_t *tbd_page_numbers_find(const struct tbd_page_numbers *table, uint64_t address)
{
    size_t slot = table->slots ? slot_of(table, address + 1) : 0;

    return table->slots && table->keys[slot] ? &table->numbers[slot] : NULL;
}
