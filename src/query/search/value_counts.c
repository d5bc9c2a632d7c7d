// SPDX-License-Identifier: MIT
/* value_counts.c - see value_counts.h */
#include "query/search/value_counts.h"

#include <stdlib.h>

#define CELLS_LEAST 1024u

static struct tbd_value_count *cell_of(const struct tbd_value_counts *counts, uint64_t value)
{
    size_t i = (size_t)((value * 0x9e3779b97f4a7c15ull) >> 32) & (counts->capacity - 1);

    while (counts->cells[i].count != 0 && counts->cells[i].value != value)
        i = (i + 1) & (counts->capacity - 1);
    return &counts->cells[i];
}

static bool grow(struct tbd_value_counts *counts)
{
    struct tbd_value_counts grown = { .count = counts->count,
                                      .capacity = counts->capacity == 0 ? CELLS_LEAST
                                                                        : 2 * counts->capacity };

    grown.cells = calloc(grown.capacity, sizeof(*grown.cells));
    if (grown.cells == NULL)
        return false;
    for (size_t i = 0; i < counts->capacity; i++) {
        if (counts->cells[i].count != 0)
            *cell_of(&grown, counts->cells[i].value) = counts->cells[i];
    }
    free(counts->cells);
    *counts = grown;
    return true;
}

bool tbd_value_counts_add(struct tbd_value_counts *counts, uint64_t value)
{
    struct tbd_value_count *cell;

    if (2 * counts->count >= counts->capacity && !grow(counts))
        return false;
    cell = cell_of(counts, value);
    counts->count += cell->count == 0;
    cell->value = value;
    cell->count++;
    return true;
}

void tbd_value_counts_free(struct tbd_value_counts *counts)
{
    free(counts->cells);
    *counts = (struct tbd_value_counts){ 0 };
}
