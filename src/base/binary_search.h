// SPDX-License-Identifier: MIT
/* binary_search.h - the one binary search of engine and tools
 *
 * Any context: no state, no allocation. */
#ifndef TBD_BASE_BINARY_SEARCH_H
#define TBD_BASE_BINARY_SEARCH_H

#include <stddef.h>

/* The first index in [0, count) for which `before`, an expression of the index `i`, is false;
 * `count` if none; a size_t.  `before` must be true for all indices below it, and false from there
 * on. */
#define TBD_COUNT_BEFORE(i, count, before)                                                         \
    __extension__({                                                                                \
        size_t tbd_low = 0;                                                                        \
        size_t tbd_high = (count);                                                                 \
                                                                                                   \
        while (tbd_low < tbd_high) {                                                               \
            const size_t i = tbd_low + (tbd_high - tbd_low) / 2;                                   \
                                                                                                   \
            if (before)                                                                            \
                tbd_low = i + 1;                                                                   \
            else                                                                                   \
                tbd_high = i;                                                                      \
        }                                                                                          \
        tbd_low;                                                                                   \
    })

#endif
