// SPDX-License-Identifier: MIT
/* page_difference.h - pages as differences to other pages */
#ifndef TBD_FORMAT_PAGE_DIFFERENCE_H
#define TBD_FORMAT_PAGE_DIFFERENCE_H

#include <stddef.h>
#include <stdint.h>

static inline void tbd_page_xor(uint8_t *restrict page, const uint8_t *restrict with)
{
    for (size_t i = 0; i < 4096; i++)
        page[i] ^= with[i];
}

static inline void tbd_page_difference(uint8_t *restrict out, const uint8_t *restrict a,
                                       const uint8_t *restrict b)
{
    for (size_t i = 0; i < 4096; i++)
        out[i] = a[i] ^ b[i];
}

#endif
