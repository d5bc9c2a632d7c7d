// SPDX-License-Identifier: MIT
/* page_difference.h - pages as differences to other pages */
#ifndef TBD_FORMAT_PAGE_DIFFERENCE_H
#define TBD_FORMAT_PAGE_DIFFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Eight bytes of a page at any alignment. */
typedef uint64_t tbd_page_word __attribute__((aligned(1), may_alias));

static inline bool tbd_page_is_zero(const uint8_t *bytes)
{
    return !bytes[0] && memcmp(bytes, bytes + 1, 4095) == 0;
}

/* Counts words that differ from the word before: the packer has to store these.  Written without a
 * 64-bit comparison, which SSE2 lacks, so that compilers take two words at a time. */
static inline uint64_t tbd_page_news(const uint8_t *bytes)
{
    const tbd_page_word *words = (const tbd_page_word *)bytes;
    uint64_t news = words[511] != words[510];

    for (size_t i = 1; i < 511; i++) {
        uint64_t change = words[i] ^ words[i - 1];

        news += (change | (0 - change)) >> 63;
    }
    return news;
}

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
