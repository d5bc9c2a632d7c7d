// SPDX-License-Identifier: MIT
/* branching.h - the value of the branches that one call of a function has taken, the same in engine and tools
 *
 * A branch is a conditional jump (jcc) in the function's code; the first one by address has index 0.  What jumps is
 * counted, what falls through is not.  A value begins anew with each call of the function.
 *
 *     counts    a field of 64 / N bits for each of the N branches; a full field stays as it is
 *     xor, sum  a number for each branch, made of its file's name and its offset there
 *     product   a prime for each branch; 0: more than 64 bits
 *
 * No state.  Any context. */
#ifndef TBD_BASE_BRANCHING_H
#define TBD_BASE_BRANCHING_H

#include "base/hash.h"

#include <stdbool.h>

#define TBD_BRANCH_MAX 64u /* in a function: a bit for each, and primes of 9 bits */

enum tbd_branch_scheme {
    TBD_BRANCH_COUNTS,
    TBD_BRANCH_XOR,
    TBD_BRANCH_SUM,
    TBD_BRANCH_PRODUCT,
    TBD_BRANCH_SCHEMES
};

/* A function whose branches count; offsets are those in its file. */
struct tbd_branch_function {
    uint64_t module; /* tbd_calling_module() of its file's name */
    uint64_t start, end;
    bool begins_again; /* it jumps to its first instruction */
    uint32_t count;
    uint32_t at[TBD_BRANCH_MAX]; /* of its branches, relative to `start`, ascending */
};

/* TBD_BRANCH_MAX: no branch of the function is there. */
static inline unsigned tbd_branch_index(const struct tbd_branch_function *f, uint64_t offset)
{
    for (unsigned i = 0; i < f->count; i++)
        if (f->start + f->at[i] == offset)
            return i;
    return TBD_BRANCH_MAX;
}

static inline uint64_t tbd_branch_number(const struct tbd_branch_function *f, unsigned index)
{
    return tbd_hash64_mix(tbd_hash64_mix(f->module + 0x9e3779b97f4a7c15ull) +
                          (f->start + f->at[index]) * 0x9fb21c651e98df25ull);
}

static inline uint32_t tbd_branch_prime(unsigned index)
{
    static const uint16_t primes[TBD_BRANCH_MAX] = {
        2,   3,   5,   7,   11,  13,  17,  19,  23,  29,  31,  37,  41,  43,  47,  53,
        59,  61,  67,  71,  73,  79,  83,  89,  97,  101, 103, 107, 109, 113, 127, 131,
        137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193, 197, 199, 211, 223,
        227, 229, 233, 239, 241, 251, 257, 263, 269, 271, 277, 281, 283, 293, 307, 311,
    };

    return primes[index];
}

/* Says that the function goes on at its first instruction. */
static inline uint64_t tbd_branch_mark(const struct tbd_branch_function *f)
{
    return tbd_hash64_mix(f->module ^ tbd_hash64_mix(f->start + 0x7462646d61726b73ull)) | 1;
}

/* The bits of a branch's field. */
static inline uint64_t tbd_branch_field(const struct tbd_branch_function *f, unsigned index)
{
    unsigned bits = 64 / f->count;

    return (bits == 64 ? ~0ull : (1ull << bits) - 1) << (index * bits);
}

/* The value of a call that has taken none. */
static inline uint64_t tbd_branch_initial(enum tbd_branch_scheme scheme)
{
    return scheme == TBD_BRANCH_PRODUCT;
}

static inline uint64_t tbd_branch_take(enum tbd_branch_scheme scheme, uint64_t value,
                                       const struct tbd_branch_function *f, unsigned index)
{
    uint64_t field, product;

    switch (scheme) {
    case TBD_BRANCH_COUNTS:
        field = tbd_branch_field(f, index);
        return (value & field) == field ? value : value + (field & (~field + 1));
    case TBD_BRANCH_XOR: return value ^ tbd_branch_number(f, index);
    case TBD_BRANCH_SUM: return value + tbd_branch_number(f, index);
    case TBD_BRANCH_PRODUCT:
        return __builtin_mul_overflow(value, (uint64_t)tbd_branch_prime(index), &product) ? 0
                                                                                          : product;
    case TBD_BRANCH_SCHEMES:
    default: return value;
    }
}

#endif
