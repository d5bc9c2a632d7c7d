// SPDX-License-Identifier: MIT
/* operations_vector.c - bytes and bits chosen by other operands */
#include "replay/simulate/operations.h"

/* Byte `to` of d is byte `from` of a, or unknown. */
static void move_byte(struct tbd_solver *s, unsigned d, unsigned to, unsigned a, unsigned from)
{
    struct tbd_bits forward = tbd_bits_only(tbd_bits_right(s->slot[a], 8 * from), 0xff);
    struct tbd_bits back = tbd_bits_only(tbd_bits_right(s->slot[d], 8 * to), 0xff);

    tbd_solver_learn(s, d, (struct tbd_bits){ forward.value << 8 * to, forward.known << 8 * to });
    tbd_solver_learn(s, a, (struct tbd_bits){ back.value << 8 * from, back.known << 8 * from });
}

/* Intel SDM, PSHUFB: a control byte has bit 7 for zero, and else a number of 4 bits. */
void tbd_solve_shuffle(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    for (unsigned to = 0; to < 8; to++) {
        struct tbd_bits control = tbd_bits_right(s->slot[op->c], 8 * to);

        if (control.value & 0x80)
            tbd_solver_learn(s, op->d, (struct tbd_bits){ 0, 0xffull << 8 * to });
        else if ((control.known & 0x8f) == 0x8f)
            move_byte(s, op->d, to, control.value & 8 ? op->b : op->a, (unsigned)control.value & 7);
    }
}

void tbd_solve_spread(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    uint64_t low = tbd_bits_low(op->shift);

    for (unsigned at = 0; at < 64; at += op->shift) {
        unsigned from = op->aux + at / op->shift;
        struct tbd_bits bit = tbd_bits_bit(s->slot[op->a], from);
        struct tbd_bits copies = tbd_bits_only(tbd_bits_right(s->slot[op->d], at), low);

        if (tbd_bits_full(bit))
            tbd_solver_learn(s, op->d, (struct tbd_bits){ bit.value ? low << at : 0, low << at });
        if (copies.known != 0) /* any of them */
            tbd_solver_learn(
                s, op->a, (struct tbd_bits){ (uint64_t)(copies.value != 0) << from, 1ull << from });
    }
}

/* Bit `to` of one slot is bit `from` of another. */
static void same_bit(struct tbd_solver *s, unsigned d, unsigned to, unsigned a, unsigned from)
{
    struct tbd_bits forward = tbd_bits_only(tbd_bits_right(s->slot[a], from), 1);
    struct tbd_bits back = tbd_bits_only(tbd_bits_right(s->slot[d], to), 1);

    tbd_solver_learn(s, d, (struct tbd_bits){ forward.value << to, forward.known << to });
    tbd_solver_learn(s, a, (struct tbd_bits){ back.value << from, back.known << from });
}

void tbd_solve_signs(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    for (unsigned n = 0; n < 64u / op->shift; n++)
        same_bit(s, op->d, op->aux + n, op->a, n * op->shift + op->shift - 1u);
}

/* The bits that may be as bit `wanted` of `index`. */
static uint64_t may_be(struct tbd_bits bits, unsigned wanted)
{
    return wanted ? bits.value | ~bits.known : ~bits.value;
}

void tbd_solve_ternary(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    uint64_t zero = 0, one = 0; /* bits that may be so */

    for (unsigned index = 0; index < 8; index++) {
        uint64_t possible = may_be(s->slot[op->a], index & 4) & may_be(s->slot[op->b], index & 2) &
                            may_be(s->slot[op->c], index & 1);

        if (op->aux >> index & 1)
            one |= possible;
        else
            zero |= possible;
    }
    tbd_solver_learn(s, op->d, (struct tbd_bits){ one & ~zero, one ^ zero });
}
