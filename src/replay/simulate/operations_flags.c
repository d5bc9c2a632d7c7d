// SPDX-License-Identifier: MIT
/* operations_flags.c - what flags say of operands, and operands of flags
 *
 * With a, b and the result r of an addition or a subtraction, carries and overflow are functions of their top bits
 * alone, whatever came in as carry; the auxiliary carry is a ^ b ^ r at bit 4. */
#include "replay/simulate/operations.h"

static void learn_flag(struct tbd_solver *s, unsigned slot, uint64_t flag, struct tbd_bits bit)
{
    if (bit.known & 1)
        tbd_solver_learn(s, slot, (struct tbd_bits){ bit.value & 1 ? flag : 0, flag });
}

static void learn_bit(struct tbd_solver *s, unsigned slot, unsigned index, bool value)
{
    tbd_solver_learn(s, slot, (struct tbd_bits){ (uint64_t)value << index, 1ull << index });
}

static bool is_known(struct tbd_bits flags, uint64_t flag)
{
    return (flags.known & flag) != 0;
}

static void solve_sign(struct tbd_solver *s, unsigned flags, unsigned result, unsigned width)
{
    learn_flag(s, flags, TBD_SF, tbd_bits_bit(s->slot[result], width - 1));
    if (is_known(s->slot[flags], TBD_SF))
        learn_bit(s, result, width - 1, (s->slot[flags].value & TBD_SF) != 0);
}

static void solve_zero(struct tbd_solver *s, unsigned flags, unsigned result)
{
    struct tbd_bits r = s->slot[result], f;

    if (r.value != 0)
        learn_flag(s, flags, TBD_ZF, tbd_bits_of(0));
    else if (tbd_bits_full(r))
        learn_flag(s, flags, TBD_ZF, tbd_bits_of(1));
    f = s->slot[flags];
    if (!is_known(f, TBD_ZF))
        return;
    if (f.value & TBD_ZF)
        tbd_solver_learn(s, result, tbd_bits_of(0));
    else if (r.value == 0 && __builtin_popcountll(~r.known) == 1)
        tbd_solver_learn(s, result, (struct tbd_bits){ ~r.known, ~r.known });
}

/* PF is 1 if the low 8 bits have an even number of ones. */
static void solve_parity(struct tbd_solver *s, unsigned flags, unsigned result)
{
    struct tbd_bits r = s->slot[result], f = s->slot[flags];
    uint64_t unknown = ~r.known & 0xff;
    bool even = __builtin_parityll(r.value & 0xff) == 0;

    if (unknown == 0)
        learn_flag(s, flags, TBD_PF, tbd_bits_of(even));
    else if ((unknown & (unknown - 1)) == 0 && is_known(f, TBD_PF))
        tbd_solver_learn(
            s, result,
            (struct tbd_bits){ even == ((f.value & TBD_PF) != 0) ? 0 : unknown, unknown });
}

static void solve_result_flags(struct tbd_solver *s, const struct tbd_insn_op *op, unsigned result)
{
    if (op->mask & TBD_SF)
        solve_sign(s, op->d, result, op->width);
    if (op->mask & TBD_ZF)
        solve_zero(s, op->d, result);
    if (op->mask & TBD_PF)
        solve_parity(s, op->d, result);
}

/* AF = a4 ^ b4 ^ r4: whichever of the four is unknown. */
static void solve_auxiliary(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    unsigned slots[3] = { op->a, op->b, op->c };
    struct tbd_bits flag = tbd_bits_bit(s->slot[op->d], 4);
    unsigned missing = 3, unknown = !tbd_bits_full(flag), parity = (unsigned)flag.value;

    for (unsigned i = 0; i < 3; i++) {
        struct tbd_bits bit = tbd_bits_bit(s->slot[slots[i]], 4);

        parity ^= (unsigned)bit.value;
        if (!tbd_bits_full(bit)) {
            missing = i;
            unknown++;
        }
    }
    if (unknown != 1)
        return;
    if (missing == 3)
        learn_flag(s, op->d, TBD_AF, tbd_bits_of(parity));
    else
        learn_bit(s, slots[missing], 4, parity != 0);
}

/* The same in which a and b stand for what is added: a - b borrows where ~a + b carries. */
static void solve_carries(struct tbd_solver *s, const struct tbd_insn_op *op, bool sub)
{
    unsigned top = op->width - 1u;
    struct tbd_bits a = tbd_bits_bit(s->slot[op->a], top), b = tbd_bits_bit(s->slot[op->b], top);
    struct tbd_bits r = tbd_bits_bit(s->slot[op->c], top), one = tbd_bits_of(1), x, carry, over;

    x = sub ? tbd_bits_xor(a, one) : a;
    carry = tbd_bits_or(tbd_bits_and(x, b),
                        tbd_bits_and(tbd_bits_or(x, b), sub ? r : tbd_bits_xor(r, one)));
    over = tbd_bits_and(tbd_bits_xor(a, r), sub ? tbd_bits_xor(a, b) : tbd_bits_xor(b, r));
    if (op->mask & TBD_CF)
        learn_flag(s, op->d, TBD_CF, carry);
    if (op->mask & TBD_OF)
        learn_flag(s, op->d, TBD_OF, over);
}

/* Without a carry coming in, a - b borrows exactly if a < b. */
static void solve_less(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    struct tbd_bits a = s->slot[op->a], b = s->slot[op->b], f;

    if ((a.value | ~a.known) < b.value)
        learn_flag(s, op->d, TBD_CF, tbd_bits_of(1));
    else if (a.value >= (b.value | ~b.known))
        learn_flag(s, op->d, TBD_CF, tbd_bits_of(0));
    f = s->slot[op->d];
    if (is_known(f, TBD_CF) && (f.value & TBD_CF) && tbd_bits_full(b) && b.value != 0) {
        uint64_t most = b.value - 1;
        unsigned used = most ? 64u - (unsigned)__builtin_clzll(most) : 0;

        tbd_solver_learn(s, op->a, (struct tbd_bits){ 0, ~tbd_bits_low(used) });
    }
}

/* The flags that each pair of conditions looks at, and when the first of the pair holds. */
static bool condition_holds(unsigned condition, uint64_t flags)
{
    bool holds = false, less = !(flags & TBD_SF) != !(flags & TBD_OF);

    switch (condition >> 1) {
    case 0: holds = (flags & TBD_OF) != 0; break;
    case 1: holds = (flags & TBD_CF) != 0; break;
    case 2: holds = (flags & TBD_ZF) != 0; break;
    case 3: holds = (flags & (TBD_CF | TBD_ZF)) != 0; break;
    case 4: holds = (flags & TBD_SF) != 0; break;
    case 5: holds = (flags & TBD_PF) != 0; break;
    case 6: holds = less; break;
    default: holds = less || (flags & TBD_ZF); break;
    }
    return holds != (condition & 1);
}

/* Tries every value of the flags that the condition looks at. */
static void solve_condition(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    static const uint16_t looks_at[8] = {
        TBD_OF, TBD_CF, TBD_ZF,          TBD_CF | TBD_ZF,
        TBD_SF, TBD_PF, TBD_SF | TBD_OF, TBD_ZF | TBD_SF | TBD_OF
    };
    uint64_t mask = looks_at[op->aux >> 1], ones = UINT64_MAX, zeros = UINT64_MAX, try = 0;
    struct tbd_bits f = s->slot[op->a], d = s->slot[op->d];
    bool may[2] = { false, false };

    do {
        bool holds = condition_holds(op->aux, try);

        if (((try ^ f.value) & f.known & mask) == 0 && !(tbd_bits_full(d) && d.value != holds)) {
            ones &= try;
            zeros &= ~try;
            may[holds] = true;
        }
        try = (try - mask) & mask; /* the next subset of the mask */
    } while (try != 0);
    if (!may[0] && !may[1]) {
        s->conflict = true;
        return;
    }
    if (may[0] != may[1])
        tbd_solver_learn(s, op->d, tbd_bits_of(may[1]));
    tbd_solver_learn(s, op->a, (struct tbd_bits){ ones & mask, (ones | zeros) & mask });
}

void tbd_solve_flags(struct tbd_solver *s, const struct tbd_insn_op *op)
{
    switch ((enum tbd_operation)op->code) {
    case TBD_OP_CONDITION: solve_condition(s, op); break;
    case TBD_OP_ADDFLAGS:
    case TBD_OP_SUBFLAGS:
        solve_result_flags(s, op, op->c);
        solve_carries(s, op, op->code == TBD_OP_SUBFLAGS);
        if (op->mask & TBD_AF)
            solve_auxiliary(s, op);
        if (op->code == TBD_OP_SUBFLAGS && op->aux == 0 && (op->mask & TBD_CF))
            solve_less(s, op);
        break;
    case TBD_OP_LOGICFLAGS:
        solve_result_flags(s, op, op->a);
        tbd_solver_learn(s, op->d, (struct tbd_bits){ 0, op->mask & (TBD_CF | TBD_OF) });
        break;
    default: tbd_solve_shift(s, op); break;
    }
}
