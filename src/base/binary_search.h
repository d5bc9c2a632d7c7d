// SPDX-License-Identifier: MIT
/* binary_search.h - the one binary search of engine and tools
 *
 * Any context: no state, no allocation. */
#ifndef TBD_BASE_BINARY_SEARCH_H
#define TBD_BASE_BINARY_SEARCH_H

#include <stddef.h>

/* How many of [0, count) lie before the place looked for, as a size_t: the first index for which
 * `before`, an expression of the index `i`, is false.  It must be true up to there, and false
 * from there on. */
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
