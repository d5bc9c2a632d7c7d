// SPDX-License-Identifier: MIT
/* array.c - see array.h.  Capacities double, so that n elements cost O(n) in all. */
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool resize(void *array, size_t elements, size_t element)
{
    void **at = array;
    void *resized = reallocarray(*at, elements, element);

    if (!resized)
        return false;
    *at = resized;
    return true;
}

bool tbd_array_reserve(void *array, size_t need, size_t *capacity, size_t element)
{
    size_t wanted = *capacity * 2 + 64;

    if (need <= *capacity)
        return true;
    if (wanted < need)
        wanted = need;
    if (!resize(array, wanted, element))
        return false;
    *capacity = wanted;
    return true;
}

bool tbd_array_grow(void *array, size_t count, size_t *capacity, size_t element)
{
    return tbd_array_reserve(array, count + 1, capacity, element);
}

bool tbd_array_double(void *array, size_t count, size_t element)
{
    return (count & (count - 1)) != 0 || resize(array, count ? count * 2 : 1, element);
}

bool tbd_array_reach(void *array, size_t index, size_t *capacity, size_t element)
{
    size_t before = *capacity, wanted = index + index / 2 + 1024;
    void **at = array;

    if (index < before)
        return true;
    if (wanted < index || !resize(array, wanted, element))
        return false;
    memset((uint8_t *)*at + before * element, 0, (wanted - before) * element);
    *capacity = wanted;
    return true;
}

bool tbd_array_reach_both(void *array, size_t element, void *other, size_t other_element,
                          size_t index, size_t *capacity)
{
    size_t reached = *capacity, other_reached = *capacity;

    if (!tbd_array_reach(array, index, &reached, element) ||
        !tbd_array_reach(other, index, &other_reached, other_element))
        return false;
    *capacity = reached;
    return true;
}

int tbd_compare_words(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}
