// SPDX-License-Identifier: MIT
/* operations_pure.c - functions that are only computed forward, when all of their inputs are known */
#include "replay/simulate/operations.h"
#include "replay/simulate/pure.h"

static int64_t sign_of(uint64_t value, unsigned width)
{
    return (int64_t)(value << (64 - width)) >> (64 - width);
}

/* What xsavec writes at most: the components that are named follow the header (SDM vol. 1, 13.4.3).  Linux has not enabled those of
 * MPX, 3 and 4, since 5.6. */
static uint64_t saved_words(uint64_t components)
{
    static const uint16_t bytes[8] = { [2] = 256, [5] = 64, [6] = 512, [7] = 1024 };
    uint64_t sum = 512 + 64;

    for (unsigned i = 0; i < 8; i++)
        sum += components >> i & 1 ? bytes[i] : 0;
    return sum / 8;
}

/* (high:low) / divisor, unsigned.  What would fault gives 0: it did not, so the inputs are other ones. */
static uint64_t divide(uint64_t high, uint64_t low, uint64_t divisor, unsigned width, bool rest)
{
    unsigned __int128 whole = ((unsigned __int128)high << width) | low;

    if (divisor == 0)
        return 0;
    return (uint64_t)(rest ? whole % divisor : whole / divisor);
}

static uint64_t idivide(uint64_t high, uint64_t low, uint64_t divisor, unsigned width, bool rest)
{
    __int128 whole = (__int128)(((unsigned __int128)(__int128)sign_of(high, width) << width) | low);
    int64_t by = sign_of(divisor, width);

    if (by == 0)
        return 0;
    if (by == -1) /* the least number has no opposite */
        return rest ? 0 : (uint64_t)(0 - (unsigned __int128)whole);
    return (uint64_t)(rest ? whole % by : whole / by);
}

static uint64_t extract_bits(uint64_t from, uint64_t mask)
{
    uint64_t result = 0;

    for (unsigned at = 0; mask != 0; at++, mask &= mask - 1)
        result |= ((from >> __builtin_ctzll(mask)) & 1) << at;
    return result;
}

static uint64_t deposit_bits(uint64_t from, uint64_t mask)
{
    uint64_t result = 0;

    for (; mask != 0; from >>= 1, mask &= mask - 1)
        result |= (from & 1) << __builtin_ctzll(mask);
    return result;
}

static uint64_t function(unsigned name, const uint64_t in[3], unsigned w)
{
    uint64_t a = in[0], b = in[1], c = in[2];

    switch ((enum tbd_pure)name) {
#define X(name, expression)                                                                        \
    case TBD_PURE_##name:                                                                          \
        return (expression);
#include "replay/simulate/functions.def"
#undef X
    }
    (void)c;
    return 0;
}

void tbd_solve_pure(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    unsigned slots[3] = { op->a, op->b, op->c };
    uint64_t in[3] = { 0, 0, 0 };

    for (unsigned i = 0; i < 3; i++) {
        if (slots[i] == TBD_INSN_NO_SLOT)
            continue;
        if (!tbd_bits_full(s->slot[slots[i]]))
            return;
        in[i] = s->slot[slots[i]].value;
    }
    tbd_solver_learn(s, op->d,
                     tbd_bits_cut(tbd_bits_of(function(op->aux, in, op->width)), op->width));
}

static uint64_t lane(unsigned name, uint64_t a, uint64_t b, unsigned e)
{
    int64_t sa = sign_of(a, e), sb = sign_of(b, e);

    switch ((enum tbd_lane)name) {
#define X(name, expression)                                                                        \
    case TBD_LANE_##name:                                                                          \
        return (expression);
#include "replay/simulate/lanes.def"
#undef X
    }
    return 0;
}

void tbd_solve_lanes(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = s->slot[op->a], b = s->slot[op->b];
    uint64_t low = tbd_bits_low(op->shift);

    for (unsigned at = 0; at < 64; at += op->shift) {
        uint64_t value;

        if (((a.known & b.known) >> at & low) != low)
            continue;
        value = lane(op->aux, (a.value >> at) & low, (b.value >> at) & low, op->shift) & low;
        tbd_solver_learn(s, op->d, (struct tbd_bits){ value << at, low << at });
    }
}
