// SPDX-License-Identifier: MIT
/* operations_shift.c - shifts and rotations, whose count must be known, and their flags */
#include "replay/simulate/operations.h"

/* A shift count of 8-bit and 16-bit operands may be up to 31. */
static unsigned count_of(struct tbd_bits count, unsigned width)
{
    return (unsigned)count.value & (width == 64 ? 63u : 31u);
}

/* Only the low bits of a count matter. */
static bool has_count(struct tbd_bits count, unsigned width)
{
    uint64_t used = width == 64 ? 63 : 31;

    return (count.known & used) == used;
}

static struct tbd_bits rotated(struct tbd_bits a, unsigned left, unsigned width)
{
    struct tbd_bits high, low;

    left %= width;
    if (left == 0)
        return a;
    high = tbd_bits_cut(tbd_bits_left(a, left), width);
    low = tbd_bits_right(tbd_bits_cut(a, width), width - left);
    return tbd_bits_or(high, low);
}

static void solve_left(struct tbd_solver *s, const struct tbd_insn_op *op, unsigned n)
{
    struct tbd_bits a = s->slot[op->a], d = s->slot[op->d];

    tbd_solver_learn(s, op->d, tbd_bits_cut(tbd_bits_left(a, n), op->width));
    if (n < op->width)
        tbd_solver_learn(s, op->a,
                         tbd_bits_only(tbd_bits_right(d, n), tbd_bits_low(op->width - n)));
}

static void solve_right(struct tbd_solver *s, const struct tbd_insn_op *op, unsigned n)
{
    uint64_t low = tbd_bits_low(op->width), sign = low ^ (low >> 1);
    struct tbd_bits a = s->slot[op->a], d = s->slot[op->d];
    struct tbd_bits moved = n < op->width ? tbd_bits_right(a, n) : tbd_bits_of(0);
    uint64_t filled = n < op->width ? low & ~(low >> n) : low;

    if (op->code == TBD_OP_SAR) { /* the sign comes in from above */
        tbd_solver_learn(s, op->d, tbd_bits_only(moved, ~filled));
        if (a.known & sign)
            tbd_solver_learn(s, op->d, (struct tbd_bits){ a.value & sign ? filled : 0, filled });
        if (d.known & (filled | sign))
            tbd_solver_learn(s, op->a,
                             (struct tbd_bits){ d.value & (filled | sign) ? sign : 0, sign });
    } else {
        tbd_solver_learn(s, op->d, moved);
    }
    if (n < op->width) {
        uint64_t kept = low & ~filled;

        tbd_solver_learn(s, op->a,
                         (struct tbd_bits){ (d.value & kept) << n, (d.known & kept) << n });
    }
}

/* Flags after a shift by n, n > 0: its last bit out is the carry. */
static void shift_flags(struct tbd_solver *s, const struct tbd_insn_op *op, unsigned n)
{
    struct tbd_bits a = s->slot[op->a], r = s->slot[op->c], carry = { 0, 0 }, over = { 0, 0 };
    struct tbd_bits top = tbd_bits_bit(r, op->width - 1u), first = tbd_bits_bit(a, op->width - 1u);
    struct tbd_insn_op result = { .code = TBD_OP_LOGICFLAGS,
                                  .width = op->width,
                                  .d = op->d,
                                  .a = op->c,
                                  .mask = TBD_SF | TBD_ZF | TBD_PF };

    tbd_solve_flags(s, &result);
    if (n > op->width || (n == op->width && op->aux != TBD_OP_SHL))
        return; /* the carry is undefined, or the sign */
    carry = op->aux == TBD_OP_SHL ? tbd_bits_bit(a, op->width - n) : tbd_bits_bit(a, n - 1);
    if (op->aux == TBD_OP_SHL)
        over = tbd_bits_xor(top, carry);
    else
        over = op->aux == TBD_OP_SHR ? first : tbd_bits_of(0);
    tbd_solver_learn(s, op->d, (struct tbd_bits){ carry.value & 1, carry.known & 1 });
    if (n == 1 && (over.known & 1))
        tbd_solver_learn(s, op->d, (struct tbd_bits){ over.value & 1 ? TBD_OF : 0, TBD_OF });
}

static void rotate_flags(struct tbd_solver *s, const struct tbd_insn_op *op, unsigned n)
{
    uint64_t kept = TBD_SF | TBD_ZF | TBD_PF | TBD_AF;
    unsigned top = op->width - 1u;
    struct tbd_bits r = s->slot[op->c], over;
    struct tbd_bits carry = tbd_bits_bit(r, op->aux == TBD_OP_ROL ? 0 : top);

    tbd_solver_learn(s, op->d, tbd_bits_only(s->slot[op->e], kept));
    tbd_solver_learn(s, op->e, tbd_bits_only(s->slot[op->d], kept));
    tbd_solver_learn(s, op->d, (struct tbd_bits){ carry.value & 1, carry.known & 1 });
    over = tbd_bits_xor(tbd_bits_bit(r, top),
                        op->aux == TBD_OP_ROL ? carry : tbd_bits_bit(r, top - 1u));
    if (n == 1 && (over.known & 1))
        tbd_solver_learn(s, op->d, (struct tbd_bits){ over.value & 1 ? TBD_OF : 0, TBD_OF });
}

static void solve_shift_flags(struct tbd_solver *s, const struct tbd_insn_op *op, unsigned n)
{
    if (n == 0) {
        tbd_solver_learn(s, op->d, tbd_bits_only(s->slot[op->e], TBD_STATUS_FLAGS));
        tbd_solver_learn(s, op->e, tbd_bits_only(s->slot[op->d], TBD_STATUS_FLAGS));
    } else if (op->aux == TBD_OP_ROL || op->aux == TBD_OP_ROR) {
        rotate_flags(s, op, n);
    } else {
        shift_flags(s, op, n);
    }
}

/* `n`: to the left. */
static void solve_rotated(struct tbd_solver *s, const struct tbd_insn_op *op, unsigned n)
{
    tbd_solver_learn(s, op->d, rotated(s->slot[op->a], n, op->width));
    tbd_solver_learn(s, op->a, rotated(s->slot[op->d], op->width - n % op->width, op->width));
}

void tbd_solve_shift(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    unsigned n;

    if (!has_count(s->slot[op->b], op->width))
        return;
    n = count_of(s->slot[op->b], op->width);
    switch ((enum tbd_operation)op->code) {
    case TBD_OP_SHL: solve_left(s, op, n); break;
    case TBD_OP_SHR:
    case TBD_OP_SAR: solve_right(s, op, n); break;
    case TBD_OP_ROR: solve_rotated(s, op, op->width - n % op->width); break;
    case TBD_OP_ROL: solve_rotated(s, op, n); break;
    default: solve_shift_flags(s, op, n); break;
    }
}
