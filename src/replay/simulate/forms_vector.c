// SPDX-License-Identifier: MIT
/* forms_vector.c - see forms.h: moves and bitwise or per-element operations of vector registers, and mask registers */
#include "replay/simulate/forms.h"

#include "replay/simulate/bits.h"
#include "replay/simulate/lanes.h"
#include "replay/simulate/strings.h"

FORM(vector_move)
{
    unsigned last = tbd_lanes_last_operand(b);
    struct tbd_lanes lanes;

    (void)operation;
    (void)aux;
    if (!tbd_lanes_fit(b) || b->operand[last].size != b->operand[0].size)
        return false;
    if (tbd_lanes_are_in(b, 0) && tbd_lanes_are_in(b, last) && !tbd_lanes_are_masked(b)) {
        for (unsigned k = 0; k < tbd_lanes_bytes(b) / 8; k++)
            tbd_build_copy(b, tbd_lanes_place(b, 0, k), tbd_lanes_place(b, last, k));
        tbd_lanes_clear_above(b, 0, tbd_lanes_bytes(b) / 8);
        return true;
    }
    lanes = tbd_lanes_read(b, last, tbd_lanes_bytes(b));
    tbd_lanes_write(b, 0, &lanes);
    return true;
}

/* movd and movq: the lowest aux bytes, zeros above; one side may be a general register. */
FORM(vector_low)
{
    uint8_t slot;

    (void)operation;
    if (b->insn.operand_count_visible != 2 || !tbd_lanes_are_plain(b) ||
        (!tbd_lanes_are_in(b, 0) && !tbd_lanes_are_in(b, 1)))
        return false;
    if (tbd_lanes_are_in(b, 1))
        slot = tbd_lanes_read(b, 1, aux).slot[0];
    else if (b->operand[1].size == 8 * aux)
        slot = tbd_build_read(b, 1);
    else
        return false;
    if (tbd_lanes_are_in(b, 0)) {
        const struct tbd_lanes lanes = { .slot = { slot, tbd_build_constant(b, 0) }, .count = 2 };

        tbd_lanes_write(b, 0, &lanes);
    } else if (b->operand[0].size == 8 * aux) {
        tbd_build_write(b, 0, slot);
    } else {
        return false;
    }
    return true;
}

/* movss and movsd, the vector one (the string one has the same name): a load clears the rest, a move between registers takes it from the operand before the last. */
FORM(scalar_move)
{
    unsigned last = tbd_lanes_last_operand(b), first = tbd_lanes_first_source(b);
    struct tbd_lanes low, lanes = { .count = 2 };

    if (b->insn.meta.category == ZYDIS_CATEGORY_STRINGOP)
        return tbd_form_string_move(b, operation, aux);
    if (!tbd_lanes_are_plain(b))
        return false;
    low = tbd_lanes_read(b, last, aux);
    if (!tbd_lanes_are_in(b, 0)) {
        tbd_build_store(b, tbd_build_address(b, 0, true), 0, aux, low.slot[0]);
        return true;
    }
    lanes.slot[0] = low.slot[0];
    lanes.slot[1] = tbd_build_constant(b, 0);
    if (tbd_lanes_are_in(b, last)) {
        const struct tbd_lanes old = tbd_lanes_read(b, first, 16);

        lanes.slot[1] = old.slot[1];
        if (aux == 4)
            lanes.slot[0] = tbd_build_put(b, old.slot[0], 0, 32, low.slot[0]);
    }
    tbd_lanes_write(b, 0, &lanes);
    return true;
}

/* movlps and movhps: lane aux of 0 is loaded or stored; movhlps and movlhps: lane aux is the other lane of the source. */
FORM(vector_half)
{
    unsigned last = tbd_lanes_last_operand(b), first = tbd_lanes_first_source(b);
    struct tbd_lanes from, lanes;

    (void)operation;
    if (!tbd_lanes_are_plain(b))
        return false;
    if (!tbd_lanes_are_in(b, 0)) {
        from = tbd_lanes_read(b, last, 16);
        tbd_build_store(b, tbd_build_address(b, 0, true), 0, 8, from.slot[aux]);
        return true;
    }
    from = tbd_lanes_read(b, last, tbd_lanes_are_in(b, last) ? 16 : 8);
    lanes = tbd_lanes_read(b, first, 16);
    lanes.slot[aux] = from.slot[tbd_lanes_are_in(b, last) ? 1 - aux : 0];
    tbd_lanes_write(b, 0, &lanes);
    return true;
}

/* The sign bits of all elements of `width` bits, the first one lowest, zeros above. */
static uint8_t signs_of(struct tbd_build *b, const struct tbd_lanes *x, unsigned width)
{
    uint8_t d = tbd_build_slot(b);
    unsigned each = 64 / width;

    for (unsigned k = 0; k < x->count; k++)
        tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_SIGNS,
                                              .shift = (uint8_t)width,
                                              .aux = (uint8_t)(each * k),
                                              .d = d,
                                              .a = x->slot[k] });
    tbd_build_link(b, d, tbd_build_constant(b, 0), ~tbd_bits_low(each * x->count));
    return d;
}

/* ---- mask registers (AVX-512) ---- */

static bool is_mask(const struct tbd_build *b, unsigned i)
{
    return tbd_build_is_register(b, i) && b->operand[i].reg.value >= ZYDIS_REGISTER_K0 &&
           b->operand[i].reg.value <= ZYDIS_REGISTER_K7;
}

static unsigned mask_place(ZydisRegister reg)
{
    return TBD_PLACE_MASK + (unsigned)ZydisRegisterGetId(reg);
}

/* The mask's lowest `bits`, of those that the instruction's own mask has. */
static void write_mask(struct tbd_build *b, uint8_t slot)
{
    if (tbd_lanes_are_masked(b))
        slot = tbd_build_binary(b, TBD_OP_AND, 64, slot, tbd_lanes_mask(b));
    tbd_build_write_place(b, mask_place(b->operand[0].reg.value), slot);
}

static uint8_t lanes_op(struct tbd_build *b, unsigned function, unsigned log, uint8_t x, uint8_t y)
{
    uint8_t d = tbd_build_slot(b);

    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_LANES,
                                          .aux = (uint8_t)function,
                                          .shift = (uint8_t)(8u << log),
                                          .d = d,
                                          .a = x,
                                          .b = y });
    return d;
}

/* The lanes that two sources have; false: not in this shape. */
static bool mask_sources(struct tbd_build *b, unsigned last, struct tbd_lanes *x,
                         struct tbd_lanes *y)
{
    unsigned bytes = b->operand[last].size / 8u;

    if (!is_mask(b, 0) || last < 2 || !tbd_lanes_are_in(b, last - 1) ||
        b->insn.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID || bytes % 8 != 0 ||
        bytes < 16 || bytes > 8 * TBD_LANES_MAX ||
        b->operand[last - 1].size != b->operand[last].size)
        return false;
    *x = tbd_lanes_read(b, last - 1, bytes);
    *y = tbd_lanes_read(b, last, bytes);
    return true;
}

/* A bit of a mask for each element; `negated`: of those that are not. */
static void write_signs(struct tbd_build *b, const struct tbd_lanes *out, unsigned log,
                        bool negated)
{
    unsigned each = 8u >> log;
    uint8_t sum = signs_of(b, out, 8u << log);

    if (negated)
        sum = tbd_build_binary(b, TBD_OP_XOR, 64, sum,
                               tbd_build_constant(b, tbd_bits_low(each * out->count)));
    write_mask(b, sum);
}

/* How elements are compared: 1 with 2, or 2 with 1; what is so, or what is not. */
struct lane_order {
    bool swapped, negated;
};

/* k = the elements of 1 and 2 compare; aux as of LANES. */
static bool compare_into_mask(struct tbd_build *b, unsigned aux, unsigned last,
                              struct lane_order how)
{
    struct tbd_lanes x, y;

    if (!mask_sources(b, last, &x, &y))
        return false;
    for (unsigned k = 0; k < x.count; k++)
        x.slot[k] = how.swapped ? lanes_op(b, aux >> 4, aux & 15, y.slot[k], x.slot[k])
                                : lanes_op(b, aux >> 4, aux & 15, x.slot[k], y.slot[k]);
    write_signs(b, &x, aux & 15, how.negated);
    return true;
}

static bool is_zeroing(const struct tbd_build *b, enum tbd_operation operation, unsigned aux)
{
    return tbd_build_same(b, tbd_lanes_first_source(b), tbd_lanes_last_operand(b)) &&
           (operation == TBD_OP_XOR || operation == TBD_OP_ANDN ||
            (operation == TBD_OP_LANES && (aux >> 4) == TBD_LANE_SUB));
}

/* aux: for LANES the function * 16 + the logarithm of an element's bytes; zero without reading for x ^ x. */
FORM(vector_binary)
{
    unsigned last = tbd_lanes_last_operand(b), bytes = tbd_lanes_bytes(b);
    struct tbd_lanes x, y, out = { .count = bytes / 8 };

    if (is_mask(b, 0))
        return operation == TBD_OP_LANES &&
               compare_into_mask(b, aux, last, (struct lane_order){ 0 });
    if (!tbd_lanes_fit(b) || !tbd_lanes_are_in(b, 0))
        return false;
    if (is_zeroing(b, operation, aux)) {
        for (unsigned k = 0; k < out.count; k++)
            out.slot[k] = tbd_build_constant(b, 0);
        tbd_lanes_write(b, 0, &out);
        return true;
    }
    x = tbd_lanes_read(b, tbd_lanes_first_source(b), bytes);
    y = tbd_lanes_read(b, last, bytes);
    for (unsigned k = 0; k < out.count; k++) {
        if (operation == TBD_OP_LANES) {
            out.slot[k] = tbd_build_slot(b);
            tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_LANES,
                                                  .aux = (uint8_t)(aux >> 4),
                                                  .shift = (uint8_t)(8u << (aux & 15)),
                                                  .d = out.slot[k],
                                                  .a = x.slot[k],
                                                  .b = y.slot[k] });
        } else {
            out.slot[k] = x.slot[k] == y.slot[k]
                              ? x.slot[k]
                              : tbd_build_binary(b, operation, 64, x.slot[k], y.slot[k]);
        }
    }
    tbd_lanes_write(b, 0, &out);
    return true;
}

/* The sign bits of all elements, in a general register; aux: an element's bits. */
FORM(vector_signs)
{
    struct tbd_lanes x;

    (void)operation;
    if (b->insn.operand_count_visible != 2 || !tbd_lanes_are_in(b, 1))
        return false;
    x = tbd_lanes_read(b, 1, b->operand[1].size / 8u);
    tbd_build_write_register(
        b,
        ZydisRegisterEncode(ZYDIS_REGCLASS_GPR32,
                            (ZyanU8)ZydisRegisterGetId(b->operand[0].reg.value)),
        signs_of(b, &x, aux));
    return true;
}

/* Intel SDM, VPCMP: what the predicates are; those that are always or never true are seldom used. */
static const struct {
    bool is_known, is_equal;
    struct lane_order how;
} predicates[8] = {
    [0] = { .is_known = true, .is_equal = true },
    [1] = { .is_known = true, .how = { .swapped = true } },
    [2] = { .is_known = true, .how = { .negated = true } },
    [4] = { .is_known = true, .is_equal = true, .how = { .negated = true } },
    [5] = { .is_known = true, .how = { .swapped = true, .negated = true } },
    [6] = { .is_known = true },
};

/* aux: the logarithm of an element's bytes, + 16 if they are unsigned. */
FORM(mask_compare)
{
    unsigned last = tbd_lanes_last_operand(b);
    unsigned predicate = (unsigned)b->operand[last].imm.value.u & 7;
    unsigned greater = aux & 16 ? TBD_LANE_GTU : TBD_LANE_GT;

    (void)operation;
    return last >= 3 && predicates[predicate].is_known &&
           compare_into_mask(
               b, 16 * (predicates[predicate].is_equal ? TBD_LANE_EQ : greater) + (aux & 15),
               last - 1, predicates[predicate].how);
}

/* k = elements of 1 & 2 that are not 0, or with operation ISZERO are. */
FORM(mask_test)
{
    uint8_t zero = tbd_build_constant(b, 0);
    struct tbd_lanes x, y;

    if (!mask_sources(b, tbd_lanes_last_operand(b), &x, &y))
        return false;
    for (unsigned k = 0; k < x.count; k++)
        x.slot[k] = lanes_op(b, TBD_LANE_EQ, aux,
                             x.slot[k] == y.slot[k]
                                 ? x.slot[k]
                                 : tbd_build_binary(b, TBD_OP_AND, 64, x.slot[k], y.slot[k]),
                             zero);
    write_signs(b, &x, aux, operation != TBD_OP_ISZERO);
    return true;
}

/* The lowest aux bits, zeros above. */
FORM(mask_move)
{
    uint8_t slot = is_mask(b, 1) ? tbd_build_read_place(b, mask_place(b->operand[1].reg.value))
                                 : tbd_build_read(b, 1);

    (void)operation;
    slot = tbd_build_field(b, slot, 0, aux);
    if (is_mask(b, 0))
        tbd_build_write_place(b, mask_place(b->operand[0].reg.value), slot);
    else
        tbd_build_write(b, 0, slot);
    return true;
}

/* psllw and the like with a number; aux: the logarithm of an element's bytes, 16 * the function. */
FORM(vector_shift)
{
    unsigned last = tbd_lanes_last_operand(b), width = 8u << (aux & 15);
    uint64_t by = b->operand[last].imm.value.u & 0xff, every = 0;
    struct tbd_lanes x;

    (void)operation;
    if (!tbd_lanes_fit(b) || !tbd_lanes_are_in(b, 0) ||
        b->operand[last].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return false;
    for (unsigned at = 0; at < 64; at += width)
        every |= by << at;
    x = tbd_lanes_read(b, last - 1, tbd_lanes_bytes(b));
    for (unsigned k = 0; k < x.count; k++)
        x.slot[k] = lanes_op(b, aux >> 4, aux & 15, x.slot[k], tbd_build_constant(b, every));
    tbd_lanes_write(b, 0, &x);
    return true;
}

/* vpternlog. */
FORM(vector_choice)
{
    unsigned bytes = tbd_lanes_bytes(b), last = tbd_lanes_last_operand(b);
    struct tbd_lanes x, y, z, out = { .count = bytes / 8 };

    (void)operation;
    (void)aux;
    if (!tbd_lanes_fit(b) || last < 3)
        return false;
    x = tbd_lanes_read(b, 0, bytes);
    y = tbd_lanes_read(b, last - 2, bytes);
    z = tbd_lanes_read(b, last - 1, bytes);
    for (unsigned k = 0; k < out.count; k++) {
        out.slot[k] = tbd_build_slot(b);
        tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_TERNARY,
                                              .aux = (uint8_t)b->operand[last].imm.value.u,
                                              .d = out.slot[k],
                                              .a = x.slot[k],
                                              .b = y.slot[k],
                                              .c = z.slot[k] });
    }
    tbd_lanes_write(b, 0, &out);
    return true;
}

/* Flags: ZF if the first slot is 0, CF if the second is; the others are 0. */
static void write_zero_flags(struct tbd_build *b, uint8_t zero, uint8_t carry)
{
    const struct {
        uint8_t slot;
        unsigned bit;
    } flags[2] = { { carry, 0 }, { zero, 6 } };
    uint8_t sum = tbd_build_constant(b, 0);

    for (unsigned i = 0; i < 2; i++) {
        uint8_t flag = tbd_build_slot(b);

        tbd_build_op(b,
                     (struct tbd_insn_op){ .code = TBD_OP_ISZERO, .d = flag, .a = flags[i].slot });
        sum = tbd_build_put(b, sum, flags[i].bit, 1, flag);
    }
    tbd_build_link(b, tbd_build_flags(b, 0), sum, TBD_STATUS_FLAGS);
}

/* ptest. */
FORM(vector_test)
{
    unsigned bytes = tbd_lanes_bytes(b);
    uint8_t both = tbd_build_constant(b, 0), second = both;
    struct tbd_lanes x, y;

    (void)operation;
    (void)aux;
    if (!tbd_lanes_fit(b) || bytes > 32)
        return false;
    x = tbd_lanes_read(b, 0, bytes);
    y = tbd_lanes_read(b, 1, bytes);
    for (unsigned k = 0; k < x.count; k++) {
        both = tbd_build_binary(b, TBD_OP_OR, 64, both,
                                tbd_build_binary(b, TBD_OP_AND, 64, x.slot[k], y.slot[k]));
        second = tbd_build_binary(b, TBD_OP_OR, 64, second,
                                  tbd_build_binary(b, TBD_OP_ANDN, 64, x.slot[k], y.slot[k]));
    }
    write_zero_flags(b, both, second);
    return true;
}

static uint8_t read_mask(struct tbd_build *b, unsigned i, unsigned width)
{
    return tbd_build_field(b, tbd_build_read_place(b, mask_place(b->operand[i].reg.value)), 0,
                           width);
}

/* aux: the bits that count. */
FORM(mask_binary)
{
    uint8_t x = read_mask(b, 1, aux), y = read_mask(b, 2, aux);

    tbd_build_write_place(b, mask_place(b->operand[0].reg.value),
                          tbd_build_binary(b, operation, aux, x, y));
    return true;
}

FORM(mask_not)
{
    (void)operation;
    tbd_build_write_place(b, mask_place(b->operand[0].reg.value),
                          tbd_build_binary(b, TBD_OP_XOR, aux, read_mask(b, 1, aux),
                                           tbd_build_constant(b, tbd_bits_low(aux))));
    return true;
}

FORM(mask_same)
{
    uint8_t differ =
        tbd_build_binary(b, operation, aux, read_mask(b, 1, aux), read_mask(b, 2, aux));

    tbd_build_write_place(
        b, mask_place(b->operand[0].reg.value),
        tbd_build_binary(b, TBD_OP_XOR, aux, differ, tbd_build_constant(b, tbd_bits_low(aux))));
    return true;
}

FORM(mask_shift)
{
    unsigned by = (unsigned)b->operand[2].imm.value.u & 0xff;
    uint8_t zero = tbd_build_constant(b, 0);

    tbd_build_write_place(b, mask_place(b->operand[0].reg.value),
                          by >= aux ? zero
                                    : tbd_build_binary(b, operation, aux, read_mask(b, 1, aux),
                                                       tbd_build_constant(b, by)));
    return true;
}

FORM(mask_test_both)
{
    uint8_t x = read_mask(b, 0, aux), y = read_mask(b, 1, aux);

    write_zero_flags(b, tbd_build_binary(b, operation, aux, x, y),
                     tbd_build_binary(b, TBD_OP_ANDN, aux, x, y));
    return true;
}

/* aux: the bits of each half. */
FORM(mask_unpack)
{
    uint8_t high = read_mask(b, 1, aux), low = read_mask(b, 2, aux);

    (void)operation;
    tbd_build_write_place(b, mask_place(b->operand[0].reg.value),
                          tbd_build_put(b, low, aux, aux, high));
    return true;
}

/* kortest: CF if all bits are 1. */
FORM(mask_or_test)
{
    uint8_t any = tbd_build_binary(b, TBD_OP_OR, aux, read_mask(b, 0, aux), read_mask(b, 1, aux));

    (void)operation;
    write_zero_flags(
        b, any,
        tbd_build_binary(b, TBD_OP_XOR, aux, any, tbd_build_constant(b, tbd_bits_low(aux))));
    return true;
}

/* vzeroupper: registers 0 to 15 above lane 1; vzeroall: all of them. */
FORM(vector_zero)
{
    (void)operation;
    for (unsigned reg = 0; reg < 16; reg++)
        for (unsigned lane = aux; lane < TBD_LANES_MAX; lane++)
            tbd_build_copy(b, TBD_PLACE_VECTOR + 8 * reg + lane, TBD_PLACE_COUNT);
    return true;
}

/* What comparing strings x and y gives. */
static struct tbd_insn_op strings_op(const struct tbd_build *b, const struct tbd_lanes *x,
                                     const struct tbd_lanes *y, enum tbd_strings result, uint8_t d)
{
    return (struct tbd_insn_op){ .code = TBD_OP_STRINGS,
                                 .aux = (uint8_t)b->operand[2].imm.value.u,
                                 .shift = (uint8_t)result,
                                 .d = d,
                                 .a = x->slot[0],
                                 .b = x->slot[1],
                                 .c = y->slot[0],
                                 .e = y->slot[1] };
}

/* pcmpistri and, with aux 1, pcmpistrm. */
FORM(vector_strings)
{
    struct tbd_lanes x, y;

    (void)operation;
    if (b->insn.operand_count_visible != 3 || !tbd_lanes_are_in(b, 0) || b->operand[1].size != 128)
        return false;
    x = tbd_lanes_read(b, 0, 16);
    y = tbd_lanes_read(b, 1, 16);
    if (aux == 0) {
        uint8_t index = tbd_build_slot(b);

        tbd_build_op(b, strings_op(b, &x, &y, TBD_STRINGS_INDEX, index));
        tbd_build_write_register(b, ZYDIS_REGISTER_ECX, index);
    }
    for (unsigned lane = 0; aux == 1 && lane < TBD_LANES_MAX; lane++) {
        unsigned place = TBD_PLACE_VECTOR + lane; /* of xmm0 */
        uint8_t part;

        if (lane >= 2) {
            if (!tbd_lanes_are_legacy(b))
                tbd_build_copy(b, place, TBD_PLACE_COUNT);
            continue;
        }
        part = tbd_build_slot(b);
        tbd_build_op(b,
                     strings_op(b, &x, &y, lane == 0 ? TBD_STRINGS_LOW : TBD_STRINGS_HIGH, part));
        tbd_build_write_place(b, place, part);
    }
    tbd_build_op(b, strings_op(b, &x, &y, TBD_STRINGS_FLAGS, tbd_build_flags(b, 0)));
    return true;
}
