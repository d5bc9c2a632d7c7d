// SPDX-License-Identifier: MIT
/* grow.h - arrays that have no capacity of their own: their room is the power of two that holds `count`
 *
 * Any thread; an array has one owner. */
#ifndef TBD_QUERY_GROW_H
#define TBD_QUERY_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Room for one more element of `item` bytes in *array, which has `count`; false without memory. */
static inline bool tbd_grow(void **array, uint32_t count, size_t item)
{
    void *bigger;

    if ((count & (count - 1)) != 0)
        return true;
    bigger = realloc(*array, (count == 0 ? 1 : (size_t)count * 2) * item);
    if (bigger == NULL)
        return false;
    *array = bigger;
    return true;
}

#endif
