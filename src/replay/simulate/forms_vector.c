// SPDX-License-Identifier: MIT
/* forms_vector.c - see forms.h: moves and bitwise or per-element operations of vector registers
 *
 * A vector is its lanes of 64 bits.  An instruction with a VEX or EVEX prefix makes all lanes above its operand 0; an
 * older one leaves them alone.  Masked instructions are not described. */
#include "replay/simulate/forms.h"

#include "replay/simulate/bits.h"
#include "replay/simulate/strings.h"

enum { LANES_MAX = 8 };

/* The lanes of one operand; `count` of them are used. */
struct lanes {
    uint8_t slot[LANES_MAX];
    unsigned count;
};

static bool is_vector(const struct tbd_build *b, unsigned i)
{
    return tbd_build_is_register(b, i) && b->operand[i].reg.value >= ZYDIS_REGISTER_XMM0 &&
           b->operand[i].reg.value <= ZYDIS_REGISTER_ZMM31;
}

static bool is_legacy(const struct tbd_build *b)
{
    return b->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
}

static bool is_masked(const struct tbd_build *b)
{
    return b->insn.avx.mask.reg != ZYDIS_REGISTER_NONE && b->insn.avx.mask.reg != ZYDIS_REGISTER_K0;
}

/* With a mask or a broadcast it is another instruction. */
static bool is_plain(const struct tbd_build *b)
{
    return !is_masked(b) && b->insn.avx.broadcast.mode == ZYDIS_BROADCAST_MODE_INVALID;
}

static unsigned place_of(const struct tbd_build *b, unsigned i, unsigned lane)
{
    return TBD_PLACE_VECTOR + 8u * (unsigned)ZydisRegisterGetId(b->operand[i].reg.value) + lane;
}

/* The lowest `bytes` of operand i, a vector register or memory; the last lane may be narrower. */
static struct lanes read_lanes(struct tbd_build *b, unsigned i, unsigned bytes)
{
    struct lanes out = { .count = (bytes + 7) / 8 };

    for (unsigned k = 0; k < out.count && k < LANES_MAX; k++) {
        unsigned width = bytes - 8 * k < 8 ? bytes - 8 * k : 8;

        if (!is_vector(b, i)) {
            out.slot[k] = tbd_build_load(b, tbd_build_address(b, i, true), 8 * k, width);
            continue;
        }
        out.slot[k] = tbd_build_read_place(b, place_of(b, i, k));
        if (width < 8)
            out.slot[k] = tbd_build_field(b, out.slot[k], 0, 8 * width);
    }
    return out;
}

/* Zeros above the lanes, unless the instruction leaves them alone. */
static void clear_above(struct tbd_build *b, unsigned i, unsigned lane)
{
    for (; !is_legacy(b) && lane < LANES_MAX; lane++)
        tbd_build_copy(b, place_of(b, i, lane), TBD_PLACE_COUNT);
}

static void write_lanes(struct tbd_build *b, unsigned i, const struct lanes *lanes)
{
    if (!is_vector(b, i)) {
        for (unsigned k = 0; k < lanes->count; k++)
            tbd_build_store(b, tbd_build_address(b, i, true), 8 * k, 8, lanes->slot[k]);
        return;
    }
    for (unsigned k = 0; k < lanes->count; k++)
        tbd_build_write_place(b, place_of(b, i, k), lanes->slot[k]);
    clear_above(b, i, lanes->count);
}

static unsigned bytes_of(const struct tbd_build *b)
{
    return b->operand[0].size / 8u;
}

/* Operands that a two-operand form reads: 0 and 1; with three operands 1 and 2. */
static unsigned first_source(const struct tbd_build *b)
{
    return b->insn.operand_count_visible > 2 && !is_legacy(b) ? b->insn.operand_count_visible - 2u
                                                              : 0;
}

static unsigned last_operand(const struct tbd_build *b)
{
    return b->insn.operand_count_visible - 1u;
}

static bool has_operands(const struct tbd_build *b)
{
    return b->insn.operand_count_visible >= 2 && is_plain(b) && bytes_of(b) % 8 == 0 &&
           bytes_of(b) >= 8 && bytes_of(b) <= 8 * LANES_MAX;
}

FORM(vector_move)
{
    unsigned last = last_operand(b);
    struct lanes lanes;

    (void)operation;
    (void)aux;
    if (!has_operands(b) || b->operand[last].size != b->operand[0].size)
        return false;
    if (is_vector(b, 0) && is_vector(b, last)) {
        for (unsigned k = 0; k < bytes_of(b) / 8; k++)
            tbd_build_copy(b, place_of(b, 0, k), place_of(b, last, k));
        clear_above(b, 0, bytes_of(b) / 8);
        return true;
    }
    lanes = read_lanes(b, last, bytes_of(b));
    write_lanes(b, 0, &lanes);
    return true;
}

/* movd and movq: the lowest aux bytes, zeros above; one side may be a general register. */
FORM(vector_low)
{
    uint8_t slot;

    (void)operation;
    if (b->insn.operand_count_visible != 2 || !is_plain(b) ||
        (!is_vector(b, 0) && !is_vector(b, 1)))
        return false;
    if (is_vector(b, 1))
        slot = read_lanes(b, 1, aux).slot[0];
    else if (b->operand[1].size == 8 * aux)
        slot = tbd_build_read(b, 1);
    else
        return false;
    if (is_vector(b, 0)) {
        const struct lanes lanes = { .slot = { slot, tbd_build_constant(b, 0) }, .count = 2 };

        write_lanes(b, 0, &lanes);
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
    unsigned last = last_operand(b), first = first_source(b);
    struct lanes low, lanes = { .count = 2 };

    if (b->insn.meta.category == ZYDIS_CATEGORY_STRINGOP)
        return tbd_form_string_move(b, operation, aux);
    if (!is_plain(b))
        return false;
    low = read_lanes(b, last, aux);
    if (!is_vector(b, 0)) {
        tbd_build_store(b, tbd_build_address(b, 0, true), 0, aux, low.slot[0]);
        return true;
    }
    lanes.slot[0] = low.slot[0];
    lanes.slot[1] = tbd_build_constant(b, 0);
    if (is_vector(b, last)) {
        const struct lanes old = read_lanes(b, first, 16);

        lanes.slot[1] = old.slot[1];
        if (aux == 4) {
            lanes.slot[0] = tbd_build_slot(b);
            tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_PUT,
                                                  .width = 32,
                                                  .d = lanes.slot[0],
                                                  .a = old.slot[0],
                                                  .b = low.slot[0] });
        }
    }
    write_lanes(b, 0, &lanes);
    return true;
}

/* movlps and movhps: lane aux of 0 is loaded or stored; movhlps and movlhps: lane aux is the other lane of the source. */
FORM(vector_half)
{
    unsigned last = last_operand(b), first = first_source(b);
    struct lanes from, lanes;

    (void)operation;
    if (!is_plain(b))
        return false;
    if (!is_vector(b, 0)) {
        from = read_lanes(b, last, 16);
        tbd_build_store(b, tbd_build_address(b, 0, true), 0, 8, from.slot[aux]);
        return true;
    }
    from = read_lanes(b, last, is_vector(b, last) ? 16 : 8);
    lanes = read_lanes(b, first, 16);
    lanes.slot[aux] = from.slot[is_vector(b, last) ? 1 - aux : 0];
    write_lanes(b, 0, &lanes);
    return true;
}

/* The sign bits of all elements of `width` bits, the first one lowest. */
static uint8_t signs_of(struct tbd_build *b, const struct lanes *x, enum tbd_pure function,
                        unsigned each)
{
    uint8_t sum = tbd_build_constant(b, 0);

    for (unsigned k = 0; k < x->count; k++) {
        uint8_t part = tbd_build_pure(
            b, function, 64, (const uint8_t[3]){ x->slot[k], TBD_INSN_NO_SLOT, TBD_INSN_NO_SLOT });
        uint8_t d = tbd_build_slot(b);

        tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_PUT,
                                              .width = (uint8_t)each,
                                              .shift = (uint8_t)(each * k),
                                              .d = d,
                                              .a = sum,
                                              .b = part });
        sum = d;
    }
    return sum;
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
    if (is_masked(b))
        slot = tbd_build_binary(b, TBD_OP_AND, 64, slot,
                                tbd_build_read_place(b, mask_place(b->insn.avx.mask.reg)));
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
static bool mask_sources(struct tbd_build *b, unsigned last, struct lanes *x, struct lanes *y)
{
    unsigned bytes = b->operand[last].size / 8u;

    if (!is_mask(b, 0) || last < 2 || !is_vector(b, last - 1) ||
        b->insn.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID || bytes % 8 != 0 ||
        bytes < 16 || bytes > 8 * LANES_MAX || b->operand[last - 1].size != b->operand[last].size)
        return false;
    *x = read_lanes(b, last - 1, bytes);
    *y = read_lanes(b, last, bytes);
    return true;
}

/* A bit of a mask for each element; `negated`: of those that are not. */
static void write_signs(struct tbd_build *b, const struct lanes *out, unsigned log, bool negated)
{
    static const enum tbd_pure functions[4] = { TBD_PURE_BYTESIGNS, TBD_PURE_WORDSIGNS,
                                                TBD_PURE_DWORDSIGNS, TBD_PURE_QWORDSIGNS };
    unsigned each = 8u >> log;
    uint8_t sum = signs_of(b, out, functions[log], each);

    if (negated)
        sum = tbd_build_binary(b, TBD_OP_XOR, 64, sum,
                               tbd_build_constant(b, tbd_bits_low(each * out->count)));
    write_mask(b, sum);
}

/* k = the elements of 1 and 2 compare; aux as of LANES. */
static bool compare_into_mask(struct tbd_build *b, unsigned aux, unsigned last, bool negated)
{
    struct lanes x, y;

    if (!mask_sources(b, last, &x, &y))
        return false;
    for (unsigned k = 0; k < x.count; k++)
        x.slot[k] = lanes_op(b, aux >> 4, aux & 15, x.slot[k], y.slot[k]);
    write_signs(b, &x, aux & 15, negated);
    return true;
}

static bool is_zeroing(const struct tbd_build *b, enum tbd_operation operation, unsigned aux)
{
    return tbd_build_same(b, first_source(b), last_operand(b)) &&
           (operation == TBD_OP_XOR || operation == TBD_OP_ANDN ||
            (operation == TBD_OP_LANES && (aux >> 4) == TBD_LANE_SUB));
}

/* aux: for LANES the function * 16 + the logarithm of an element's bytes; zero without reading for x ^ x. */
FORM(vector_binary)
{
    unsigned last = last_operand(b), bytes = bytes_of(b);
    struct lanes x, y, out = { .count = bytes / 8 };

    if (is_mask(b, 0))
        return operation == TBD_OP_LANES && compare_into_mask(b, aux, last, false);
    if (!has_operands(b) || !is_vector(b, 0))
        return false;
    if (is_zeroing(b, operation, aux)) {
        for (unsigned k = 0; k < out.count; k++)
            out.slot[k] = tbd_build_constant(b, 0);
        write_lanes(b, 0, &out);
        return true;
    }
    x = read_lanes(b, first_source(b), bytes);
    y = read_lanes(b, last, bytes);
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
    write_lanes(b, 0, &out);
    return true;
}

/* The sign bits of all elements, in a general register; aux: the function. */
FORM(vector_signs)
{
    static const uint8_t bits[4] = { 8, 4, 2, 1 };
    struct lanes x;

    (void)operation;
    if (b->insn.operand_count_visible != 2 || !is_vector(b, 1))
        return false;
    x = read_lanes(b, 1, b->operand[1].size / 8u);
    tbd_build_write_register(
        b,
        ZydisRegisterEncode(ZYDIS_REGCLASS_GPR32,
                            (ZyanU8)ZydisRegisterGetId(b->operand[0].reg.value)),
        signs_of(b, &x, (enum tbd_pure)aux, bits[aux - TBD_PURE_BYTESIGNS]));
    return true;
}

/* With a predicate: equal, or not. */
FORM(mask_compare)
{
    unsigned last = last_operand(b);
    uint64_t predicate = b->operand[last].imm.value.u & 7;

    (void)operation;
    return last >= 3 && (predicate == 0 || predicate == 4) &&
           compare_into_mask(b, 16 * TBD_LANE_EQ + aux, last - 1, predicate == 4);
}

/* k = elements of 1 & 2 that are not 0, or with operation ISZERO are. */
FORM(mask_test)
{
    uint8_t zero = tbd_build_constant(b, 0);
    struct lanes x, y;

    if (!mask_sources(b, last_operand(b), &x, &y))
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

/* An element of the result: where it comes from. */
struct element {
    uint8_t slot;  /* NO_SLOT: zero */
    uint8_t shift; /* in bits */
};

/* The result's elements of `width` bits, one for one. */
static void write_pieces(struct tbd_build *b, const struct element *pieces, unsigned width,
                         unsigned bytes)
{
    struct lanes out = { .count = bytes / 8 };
    unsigned each = 64 / width;

    for (unsigned k = 0; k < out.count; k++) {
        out.slot[k] = tbd_build_slot(b);
        for (unsigned n = 0; n < each; n++) {
            const struct element *piece = &pieces[k * each + n];
            bool zero = piece->slot == TBD_INSN_NO_SLOT;

            tbd_build_op(
                b, (struct tbd_insn_op){ .code = TBD_OP_MOVEBITS,
                                         .width = (uint8_t)width,
                                         .aux = zero ? 0 : piece->shift,
                                         .shift = (uint8_t)(n * width),
                                         .d = out.slot[k],
                                         .a = zero ? tbd_build_constant(b, 0) : piece->slot });
        }
    }
    write_lanes(b, 0, &out);
}

static struct element piece_of(const struct lanes *lanes, unsigned element, unsigned width)
{
    unsigned bit = element * width;

    return (struct element){ .slot = lanes->slot[bit / 64], .shift = (uint8_t)(bit % 64) };
}

/* punpckl and punpckh; aux: the logarithm of an element's bytes, + 8 for the upper half. */
FORM(vector_unpack)
{
    unsigned width = 8u << (aux & 7), bytes = bytes_of(b), each = 128 / width;
    struct element pieces[64];
    struct lanes x, y;

    (void)operation;
    if (!has_operands(b) || bytes > 32)
        return false;
    x = read_lanes(b, first_source(b), bytes);
    y = read_lanes(b, last_operand(b), bytes);
    for (unsigned half = 0; half < bytes / 16; half++)
        for (unsigned n = 0; n < each; n++)
            pieces[half * each + n] =
                piece_of(n & 1 ? &y : &x, half * each + n / 2 + (aux & 8 ? each / 2 : 0), width);
    write_pieces(b, pieces, width, bytes);
    return true;
}

/* pshufd. */
FORM(vector_shuffle)
{
    unsigned bytes = bytes_of(b), control;
    struct element pieces[16];
    struct lanes x;

    (void)operation;
    (void)aux;
    if (!has_operands(b) || b->insn.operand_count_visible < 3 || bytes > 32)
        return false;
    control = (unsigned)b->operand[last_operand(b)].imm.value.u;
    x = read_lanes(b, last_operand(b) - 1, bytes);
    for (unsigned n = 0; n < bytes / 4; n++)
        pieces[n] = piece_of(&x, (n & ~3u) + (control >> (2 * (n & 3)) & 3), 32);
    write_pieces(b, pieces, 32, bytes);
    return true;
}

/* pslldq and psrldq move whole bytes within 128 bits; aux: 1 to the right. */
FORM(vector_shift_bytes)
{
    unsigned bytes = bytes_of(b), by;
    struct element pieces[32];
    struct lanes x;

    (void)operation;
    if (!has_operands(b) || bytes > 32)
        return false;
    by = (unsigned)b->operand[last_operand(b)].imm.value.u & 0xff;
    x = read_lanes(b, last_operand(b) - 1, bytes);
    for (unsigned n = 0; n < bytes; n++) {
        unsigned from = aux ? n % 16 + by : n % 16 - by;

        pieces[n] = from < 16 ? piece_of(&x, (n & ~15u) + from, 8)
                              : (struct element){ .slot = TBD_INSN_NO_SLOT };
    }
    write_pieces(b, pieces, 8, bytes);
    return true;
}

/* vpbroadcast: the lowest element everywhere; aux: the logarithm of its bytes. */
FORM(vector_broadcast)
{
    unsigned width = 8u << aux, bytes = bytes_of(b), last = last_operand(b);
    struct element pieces[32];
    struct lanes x;

    (void)operation;
    if (is_masked(b) || !is_vector(b, 0) || bytes > 32)
        return false;
    if (tbd_build_is_register(b, last) && !is_vector(b, last))
        x = (struct lanes){ .slot = { tbd_build_read(b, last) }, .count = 1 };
    else
        x = read_lanes(b, last, width / 8);
    for (unsigned n = 0; n < 8 * bytes / width; n++)
        pieces[n] = piece_of(&x, 0, width);
    write_pieces(b, pieces, width, bytes);
    return true;
}

/* vinserti128 and vextracti128 with ymm. */
FORM(vector_insert)
{
    unsigned half;
    struct lanes x, y;

    (void)operation;
    (void)aux;
    if (!has_operands(b) || bytes_of(b) != 32 || b->insn.operand_count_visible != 4)
        return false;
    half = (unsigned)b->operand[3].imm.value.u & 1;
    x = read_lanes(b, 1, 32);
    y = read_lanes(b, 2, 16);
    x.slot[2 * half] = y.slot[0];
    x.slot[2 * half + 1] = y.slot[1];
    write_lanes(b, 0, &x);
    return true;
}

FORM(vector_extract)
{
    unsigned half;
    struct lanes x;

    (void)operation;
    (void)aux;
    if (!has_operands(b) || bytes_of(b) != 16 || b->operand[1].size != 256)
        return false;
    half = (unsigned)b->operand[2].imm.value.u & 1;
    x = read_lanes(b, 1, 32);
    x.slot[0] = x.slot[2 * half];
    x.slot[1] = x.slot[2 * half + 1];
    x.count = 2;
    write_lanes(b, 0, &x);
    return true;
}

/* vzeroupper: registers 0 to 15 above lane 1; vzeroall: all of them. */
FORM(vector_zero)
{
    (void)operation;
    for (unsigned reg = 0; reg < 16; reg++)
        for (unsigned lane = aux; lane < LANES_MAX; lane++)
            tbd_build_copy(b, TBD_PLACE_VECTOR + 8 * reg + lane, TBD_PLACE_COUNT);
    return true;
}

/* What comparing strings x and y gives. */
static struct tbd_insn_op strings_op(const struct tbd_build *b, const struct lanes *x,
                                     const struct lanes *y, enum tbd_strings result, uint8_t d)
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
    struct lanes x, y;

    (void)operation;
    if (b->insn.operand_count_visible != 3 || !is_vector(b, 0) || b->operand[1].size != 128)
        return false;
    x = read_lanes(b, 0, 16);
    y = read_lanes(b, 1, 16);
    if (aux == 0) {
        uint8_t index = tbd_build_slot(b);

        tbd_build_op(b, strings_op(b, &x, &y, TBD_STRINGS_INDEX, index));
        tbd_build_write_register(b, ZYDIS_REGISTER_ECX, index);
    }
    for (unsigned lane = 0; aux == 1 && lane < LANES_MAX; lane++) {
        unsigned place = TBD_PLACE_VECTOR + lane; /* of xmm0 */
        uint8_t part;

        if (lane >= 2) {
            if (!is_legacy(b))
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
