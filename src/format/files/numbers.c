// SPDX-License-Identifier: MIT
/* numbers.c - lists of addresses and other 64-bit numbers */
#include "format/files/numbers.h"

#include <stdlib.h>

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

size_t tbd_numbers_sort_unique(uint64_t *numbers, size_t count)
{
    size_t kept = 0;

    if (count)
        qsort(numbers, count, sizeof(*numbers), compare);
    for (size_t i = 0; i < count; i++)
        if (!kept || numbers[kept - 1] != numbers[i])
            numbers[kept++] = numbers[i];
    return kept;
}
