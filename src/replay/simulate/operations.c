// SPDX-License-Identifier: MIT
/* operations.c - see operations.h
 *
 * Each function takes one operation and learns each of its slots from the others: the same code serves the way
 * forward, the way back, and solving for an operand in the middle.  A rule may learn less than follows; it must not
 * learn more. */
#include "replay/simulate/operations.h"

#include <string.h>

void tbd_solver_learn(struct tbd_solver *solver, unsigned slot, struct tbd_bits bits)
{
    struct tbd_bits *at = &solver->slot[slot];
    uint64_t new = bits.known & ~at->known;

    if ((bits.value ^ at->value) & bits.known & at->known)
        solver->conflict = true;
    if (new == 0)
        return;
    at->value |= bits.value & new;
    at->known |= new;
    solver->changed = true;
}

static void solve_link(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    tbd_solver_learn(s, op->d, tbd_bits_only(s->slot[op->a], op->mask));
    tbd_solver_learn(s, op->a, tbd_bits_only(s->slot[op->d], op->mask));
}

/* Bits of `from` at `at` on, moved to `to` on; nothing is known of others. */
static struct tbd_bits moved(struct tbd_bits bits, unsigned from, unsigned to, unsigned width)
{
    struct tbd_bits low = tbd_bits_only(tbd_bits_right(bits, from), tbd_bits_low(width));

    return (struct tbd_bits){ low.value << to, low.known << to };
}

static void solve_field(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    tbd_solver_learn(s, op->d, tbd_bits_cut(tbd_bits_right(s->slot[op->a], op->shift), op->width));
    tbd_solver_learn(s, op->a, moved(s->slot[op->d], 0, op->shift, op->width));
}

static void solve_put(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    uint64_t inside = tbd_bits_low(op->width) << op->shift;

    tbd_solver_learn(s, op->d, tbd_bits_only(s->slot[op->a], ~inside));
    tbd_solver_learn(s, op->d, moved(s->slot[op->b], 0, op->shift, op->width));
    tbd_solver_learn(s, op->a, tbd_bits_only(s->slot[op->d], ~inside));
    tbd_solver_learn(s, op->b, moved(s->slot[op->d], op->shift, 0, op->width));
}

static void solve_movebits(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    tbd_solver_learn(s, op->d, moved(s->slot[op->a], op->aux, op->shift, op->width));
    tbd_solver_learn(s, op->a, moved(s->slot[op->d], op->shift, op->aux, op->width));
}

static void solve_sext(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    uint64_t low = tbd_bits_low(op->aux), high = tbd_bits_low(op->width) & ~low;
    struct tbd_bits d = s->slot[op->d], a = s->slot[op->a];
    struct tbd_bits sign = tbd_bits_bit(a, op->aux - 1u);

    tbd_solver_learn(s, op->d, tbd_bits_only(a, low));
    tbd_solver_learn(s, op->d, (struct tbd_bits){ 0, ~tbd_bits_low(op->width) });
    if (tbd_bits_full(sign))
        tbd_solver_learn(s, op->d, (struct tbd_bits){ sign.value ? high : 0, high });
    tbd_solver_learn(s, op->a, tbd_bits_only(d, low));
    if (d.known & high) /* any of the copies is the sign */
        tbd_solver_learn(
            s, op->a, (struct tbd_bits){ d.value & high ? low ^ (low >> 1) : 0, low ^ (low >> 1) });
}

static void solve_add(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = s->slot[op->a], b = s->slot[op->b];

    tbd_solver_learn(s, op->d, tbd_bits_cut(tbd_bits_add(a, b), op->width));
    tbd_solver_learn(s, op->a, tbd_bits_cut(tbd_bits_sub(s->slot[op->d], b), op->width));
    tbd_solver_learn(s, op->b, tbd_bits_cut(tbd_bits_sub(s->slot[op->d], a), op->width));
}

static void solve_sub(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = s->slot[op->a], b = s->slot[op->b];

    tbd_solver_learn(s, op->d, tbd_bits_cut(tbd_bits_sub(a, b), op->width));
    tbd_solver_learn(s, op->a, tbd_bits_cut(tbd_bits_add(s->slot[op->d], b), op->width));
    tbd_solver_learn(s, op->b, tbd_bits_cut(tbd_bits_sub(a, s->slot[op->d]), op->width));
}

static void solve_adc(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = s->slot[op->a], b = s->slot[op->b], c = s->slot[op->c];
    struct tbd_bits d = s->slot[op->d];

    tbd_solver_learn(s, op->d, tbd_bits_cut(tbd_bits_add(tbd_bits_add(a, b), c), op->width));
    tbd_solver_learn(s, op->a, tbd_bits_cut(tbd_bits_sub(tbd_bits_sub(d, b), c), op->width));
    tbd_solver_learn(s, op->b, tbd_bits_cut(tbd_bits_sub(tbd_bits_sub(d, a), c), op->width));
    tbd_solver_learn(s, op->c, tbd_bits_cut(tbd_bits_sub(tbd_bits_sub(d, a), b), op->width));
}

static void solve_sbb(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = s->slot[op->a], b = s->slot[op->b], c = s->slot[op->c];
    struct tbd_bits d = s->slot[op->d];

    tbd_solver_learn(s, op->d, tbd_bits_cut(tbd_bits_sub(tbd_bits_sub(a, b), c), op->width));
    tbd_solver_learn(s, op->a, tbd_bits_cut(tbd_bits_add(tbd_bits_add(d, b), c), op->width));
    tbd_solver_learn(s, op->b, tbd_bits_cut(tbd_bits_sub(tbd_bits_sub(a, d), c), op->width));
    tbd_solver_learn(s, op->c, tbd_bits_cut(tbd_bits_sub(tbd_bits_sub(a, d), b), op->width));
}

/* What d = a & b says of a. */
static struct tbd_bits and_input(struct tbd_bits d, struct tbd_bits b)
{
    uint64_t zero = d.known & ~d.value & b.value;

    return (struct tbd_bits){ d.value, d.value | zero };
}

static void solve_and(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = s->slot[op->a], b = s->slot[op->b];

    tbd_solver_learn(s, op->d, tbd_bits_and(a, b));
    tbd_solver_learn(s, op->a, and_input(s->slot[op->d], b));
    tbd_solver_learn(s, op->b, and_input(s->slot[op->d], a));
}

static void solve_andn(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = tbd_bits_not(s->slot[op->a]), b = s->slot[op->b];

    tbd_solver_learn(s, op->d, tbd_bits_cut(tbd_bits_and(a, b), op->width));
    tbd_solver_learn(
        s, op->a,
        tbd_bits_only(tbd_bits_not(and_input(s->slot[op->d], b)), tbd_bits_low(op->width)));
    tbd_solver_learn(s, op->b, and_input(s->slot[op->d], a));
}

/* What d = a | b says of a. */
static struct tbd_bits or_input(struct tbd_bits d, struct tbd_bits b)
{
    uint64_t zero = d.known & ~d.value, one = d.value & b.known & ~b.value;

    return (struct tbd_bits){ one, zero | one };
}

static void solve_or(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = s->slot[op->a], b = s->slot[op->b];

    tbd_solver_learn(s, op->d, tbd_bits_or(a, b));
    tbd_solver_learn(s, op->a, or_input(s->slot[op->d], b));
    tbd_solver_learn(s, op->b, or_input(s->slot[op->d], a));
}

static void solve_xor(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = s->slot[op->a], b = s->slot[op->b];

    tbd_solver_learn(s, op->d, tbd_bits_xor(a, b));
    tbd_solver_learn(s, op->a, tbd_bits_xor(s->slot[op->d], b));
    tbd_solver_learn(s, op->b, tbd_bits_xor(s->slot[op->d], a));
}

static void solve_not(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    tbd_solver_learn(s, op->d, tbd_bits_cut(tbd_bits_not(s->slot[op->a]), op->width));
    tbd_solver_learn(s, op->a, tbd_bits_cut(tbd_bits_not(s->slot[op->d]), op->width));
}

/* The number whose product with an odd `n` is 1 modulo 2^64: each step doubles how many bits are right. */
static uint64_t inverse(uint64_t n)
{
    uint64_t x = n;

    for (unsigned bits = 3; bits < 64; bits *= 2)
        x *= 2 - n * x;
    return x;
}

/* a of d = a * b: b is an odd number times 2^k, so all but the top k bits. */
static struct tbd_bits mul_input(struct tbd_bits d, struct tbd_bits b, unsigned width)
{
    unsigned k;

    if (!tbd_bits_full(d) || !tbd_bits_full(b) || b.value == 0)
        return (struct tbd_bits){ 0, 0 };
    k = (unsigned)__builtin_ctzll(b.value);
    return tbd_bits_only(tbd_bits_of((d.value >> k) * inverse(b.value >> k)),
                         tbd_bits_low(width - k));
}

static void solve_mul(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = s->slot[op->a], b = s->slot[op->b];

    if (tbd_bits_full(a) && tbd_bits_full(b))
        tbd_solver_learn(s, op->d, tbd_bits_cut(tbd_bits_of(a.value * b.value), op->width));
    tbd_solver_learn(s, op->a, mul_input(s->slot[op->d], b, op->width));
    tbd_solver_learn(s, op->b, mul_input(s->slot[op->d], a, op->width));
}

static struct tbd_bits swapped(struct tbd_bits a, unsigned width)
{
    unsigned shift = 64u - width;

    return tbd_bits_cut((struct tbd_bits){ __builtin_bswap64(a.value) >> shift,
                                           __builtin_bswap64(a.known) >> shift },
                        width);
}

static void solve_bswap(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    tbd_solver_learn(s, op->d, swapped(s->slot[op->a], op->width));
    tbd_solver_learn(s, op->a, swapped(s->slot[op->d], op->width));
}

static bool differ(struct tbd_bits a, struct tbd_bits b)
{
    return ((a.value ^ b.value) & a.known & b.known) != 0;
}

static void solve_select(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = s->slot[op->a], b = s->slot[op->b], d = s->slot[op->d];
    uint64_t same = a.known & b.known & ~(a.value ^ b.value);

    if (differ(d, a))
        tbd_solver_learn(s, op->c, tbd_bits_of(0));
    else if (differ(d, b))
        tbd_solver_learn(s, op->c, tbd_bits_of(1));
    tbd_solver_learn(s, op->d, tbd_bits_only(a, same));
    if (tbd_bits_full(s->slot[op->c])) {
        unsigned chosen = s->slot[op->c].value ? op->a : op->b;

        tbd_solver_learn(s, op->d, s->slot[chosen]);
        tbd_solver_learn(s, chosen, s->slot[op->d]);
    }
}

static void solve_iszero(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = s->slot[op->a], d = s->slot[op->d];

    if (a.value != 0)
        tbd_solver_learn(s, op->d, tbd_bits_of(0));
    else if (tbd_bits_full(a))
        tbd_solver_learn(s, op->d, tbd_bits_of(1));
    if (tbd_bits_full(d) && d.value == 1)
        tbd_solver_learn(s, op->a, tbd_bits_of(0));
    else if (tbd_bits_full(d) && a.value == 0 && __builtin_popcountll(~a.known) == 1)
        tbd_solver_learn(s, op->a, (struct tbd_bits){ ~a.known, ~a.known });
}

static void solve_unless(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits b = s->slot[op->b];

    if (((b.value ^ op->mask) & b.known) == 0)
        return;
    tbd_solver_learn(s, op->d, s->slot[op->a]);
    tbd_solver_learn(s, op->a, s->slot[op->d]);
}

static void solve_op(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    switch ((enum tbd_operation)op->code) {
    case TBD_OP_LINK: solve_link(s, op); break;
    case TBD_OP_FIELD: solve_field(s, op); break;
    case TBD_OP_PUT: solve_put(s, op); break;
    case TBD_OP_MOVEBITS: solve_movebits(s, op); break;
    case TBD_OP_SEXT: solve_sext(s, op); break;
    case TBD_OP_ADD: solve_add(s, op); break;
    case TBD_OP_SUB: solve_sub(s, op); break;
    case TBD_OP_ADC: solve_adc(s, op); break;
    case TBD_OP_SBB: solve_sbb(s, op); break;
    case TBD_OP_AND: solve_and(s, op); break;
    case TBD_OP_ANDN: solve_andn(s, op); break;
    case TBD_OP_OR: solve_or(s, op); break;
    case TBD_OP_XOR: solve_xor(s, op); break;
    case TBD_OP_NOT: solve_not(s, op); break;
    case TBD_OP_SHL:
    case TBD_OP_SHR:
    case TBD_OP_SAR:
    case TBD_OP_ROL:
    case TBD_OP_ROR: tbd_solve_shift(s, op); break;
    case TBD_OP_MUL: solve_mul(s, op); break;
    case TBD_OP_BSWAP: solve_bswap(s, op); break;
    case TBD_OP_SELECT: solve_select(s, op); break;
    case TBD_OP_CONDITION:
    case TBD_OP_ADDFLAGS:
    case TBD_OP_SUBFLAGS:
    case TBD_OP_LOGICFLAGS:
    case TBD_OP_SHIFTFLAGS: tbd_solve_flags(s, op); break;
    case TBD_OP_ISZERO: solve_iszero(s, op); break;
    case TBD_OP_PURE: tbd_solve_pure(s, op); break;
    case TBD_OP_LANES: tbd_solve_lanes(s, op); break;
    case TBD_OP_SHUFFLE: tbd_solve_shuffle(s, op); break;
    case TBD_OP_SPREAD: tbd_solve_spread(s, op); break;
    case TBD_OP_SIGNS: tbd_solve_signs(s, op); break;
    case TBD_OP_TERNARY: tbd_solve_ternary(s, op); break;
    case TBD_OP_STRINGS: tbd_solve_strings(s, op); break;
    case TBD_OP_UNLESS: solve_unless(s, op); break;
    }
}

void tbd_solver_begin(struct tbd_solver *solver, const struct tbd_sim_insn *insn)
{
    memset(solver->slot, 0, insn->slots * sizeof(solver->slot[0]));
    solver->changed = false;
    solver->conflict = false;
    for (size_t i = 0; i < insn->constant_count; i++)
        solver->slot[insn->constants[i].slot] = tbd_bits_of(insn->constants[i].value);
}

void tbd_solver_solve(struct tbd_solver *solver, const struct tbd_sim_insn *insn)
{
    bool changed = false;

    do {
        solver->changed = false;
        for (size_t i = 0; i < insn->op_count; i++)
            solve_op(solver, &insn->ops[i]);
        if (!solver->changed)
            break;
        changed = true;
        solver->changed = false;
        for (size_t i = insn->op_count; i-- > 0;)
            solve_op(solver, &insn->ops[i]);
    } while (solver->changed);
    solver->changed = changed;
}
