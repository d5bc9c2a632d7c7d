// SPDX-License-Identifier: MIT
/* random_numbers.h - numbers for tests of random programs, the same for the same `seed` (xorshift*, never 0) */
#ifndef TBD_TEST_RANDOM_NUMBERS_H
#define TBD_TEST_RANDOM_NUMBERS_H

#include <stdint.h>

static uint64_t seed = 1;

static inline uint64_t random64(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x2545f4914f6cdd1dull;
}

static inline unsigned below(unsigned n)
{
    return (unsigned)((random64() >> 33) % n);
}

#endif
