// SPDX-License-Identifier: MIT
/* bits.h - 64-bit values of which some bits are known
 *
 * Arithmetic over them gives each bit of the result that is the same whatever the unknown bits are, as far as
 * a carry can be followed; never one that might differ.  So all rules here are sound, and some are not complete.
 *
 * Invariant: a bit that is not known is 0 in `value`. */
#ifndef TBD_REPLAY_SIMULATE_BITS_H
#define TBD_REPLAY_SIMULATE_BITS_H

#include <stdbool.h>
#include <stdint.h>

struct tbd_bits {
    uint64_t value;
    uint64_t known;
};

/* The low `width` bits, 0 to 64. */
static inline uint64_t tbd_bits_low(unsigned width)
{
    return width >= 64 ? UINT64_MAX : (1ull << width) - 1;
}

static inline struct tbd_bits tbd_bits_of(uint64_t value)
{
    return (struct tbd_bits){ value, UINT64_MAX };
}

static inline bool tbd_bits_full(struct tbd_bits a)
{
    return a.known == UINT64_MAX;
}

/* The low `width` bits of it; the others are 0, and known to be. */
static inline struct tbd_bits tbd_bits_cut(struct tbd_bits a, unsigned width)
{
    uint64_t low = tbd_bits_low(width);

    return (struct tbd_bits){ a.value & low, a.known | ~low };
}

/* Only the bits of `mask`; the others are unknown. */
static inline struct tbd_bits tbd_bits_only(struct tbd_bits a, uint64_t mask)
{
    return (struct tbd_bits){ a.value & mask, a.known & mask };
}

static inline struct tbd_bits tbd_bits_left(struct tbd_bits a, unsigned shift)
{
    if (shift >= 64)
        return tbd_bits_of(0);
    return (struct tbd_bits){ a.value << shift, (a.known << shift) | tbd_bits_low(shift) };
}

static inline struct tbd_bits tbd_bits_right(struct tbd_bits a, unsigned shift)
{
    if (shift >= 64)
        return tbd_bits_of(0);
    return (struct tbd_bits){ a.value >> shift, (a.known >> shift) | ~(UINT64_MAX >> shift) };
}

/* Bit `index` alone, as a value of 0 or 1. */
static inline struct tbd_bits tbd_bits_bit(struct tbd_bits a, unsigned index)
{
    return tbd_bits_cut(tbd_bits_right(a, index), 1);
}

static inline struct tbd_bits tbd_bits_not(struct tbd_bits a)
{
    return (struct tbd_bits){ ~a.value & a.known, a.known };
}

static inline struct tbd_bits tbd_bits_and(struct tbd_bits a, struct tbd_bits b)
{
    uint64_t zero = (a.known & ~a.value) | (b.known & ~b.value);

    return (struct tbd_bits){ a.value & b.value, zero | (a.known & b.known) };
}

static inline struct tbd_bits tbd_bits_or(struct tbd_bits a, struct tbd_bits b)
{
    return (struct tbd_bits){ a.value | b.value, (a.known & b.known) | a.value | b.value };
}

static inline struct tbd_bits tbd_bits_xor(struct tbd_bits a, struct tbd_bits b)
{
    uint64_t known = a.known & b.known;

    return (struct tbd_bits){ (a.value ^ b.value) & known, known };
}

/* The sum with all unknown bits 0 and the sum with all of them 1 differ where a carry may. */
static inline struct tbd_bits tbd_bits_add(struct tbd_bits a, struct tbd_bits b)
{
    uint64_t least = a.value + b.value, most = least + ~a.known + ~b.known;
    uint64_t known = ~(least ^ most) & a.known & b.known;

    return (struct tbd_bits){ least & known, known };
}

static inline struct tbd_bits tbd_bits_sub(struct tbd_bits a, struct tbd_bits b)
{
    uint64_t difference = a.value - b.value;
    uint64_t known = ~((difference + ~a.known) ^ (difference - ~b.known)) & a.known & b.known;

    return (struct tbd_bits){ difference & known, known };
}

#endif
