// SPDX-License-Identifier: MIT
/* forms_elements.c - see forms.h: elements of vector registers taken out, put in, widened, chosen, and pieces of 16 or 32 bytes */
#include "replay/simulate/forms.h"

#include "replay/simulate/bits.h"
#include "replay/simulate/lanes.h"

static unsigned immediate(const struct tbd_build *b)
{
    return (unsigned)b->operand[tbd_lanes_last_operand(b)].imm.value.u & 0xff;
}

static bool has_immediate(const struct tbd_build *b)
{
    return b->operand[tbd_lanes_last_operand(b)].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

/* pinsrb and the like; aux: the logarithm of the element's bytes. */
FORM(vector_put_element)
{
    unsigned width = 8u << aux, bit, last = tbd_lanes_last_operand(b);
    struct tbd_lanes x;

    (void)operation;
    if (last < 2 || !has_immediate(b) || !tbd_lanes_are_in(b, 0) || tbd_lanes_bytes(b) != 16 ||
        tbd_lanes_are_in(b, last - 1))
        return false;
    bit = immediate(b) * width % 128;
    x = tbd_lanes_read(b, tbd_lanes_are_legacy(b) ? 0 : last - 2, 16);
    x.slot[bit / 64] =
        tbd_build_put(b, x.slot[bit / 64], bit % 64, width, tbd_build_read(b, last - 1));
    tbd_lanes_write(b, 0, &x);
    return true;
}

/* pextrb and the like; zeros above it in a register. */
FORM(vector_take_element)
{
    unsigned width = 8u << aux, bit;
    struct tbd_lanes x;

    (void)operation;
    if (b->insn.operand_count_visible != 3 || !has_immediate(b) || !tbd_lanes_are_in(b, 1) ||
        b->operand[1].size != 128 || tbd_lanes_are_in(b, 0))
        return false;
    bit = immediate(b) * width % 128;
    x = tbd_lanes_read(b, 1, 16);
    tbd_build_write(b, 0, tbd_build_field(b, x.slot[bit / 64], bit % 64, width));
    return true;
}

/* insertps: an element of 4 bytes to another place, and zeros where bits of the number say so. */
FORM(vector_insert_single)
{
    unsigned last = tbd_lanes_last_operand(b), control, from;
    struct tbd_lanes x, y;
    uint8_t bits;

    (void)operation;
    (void)aux;
    if (last < 2 || !has_immediate(b) || !tbd_lanes_are_in(b, 0))
        return false;
    control = immediate(b);
    from = tbd_lanes_are_in(b, last - 1) ? control >> 6 : 0;
    y = tbd_lanes_read(b, last - 1, tbd_lanes_are_in(b, last - 1) ? 16 : 4);
    x = tbd_lanes_read(b, tbd_lanes_are_legacy(b) ? 0 : last - 2, 16);
    bits = tbd_build_field(b, y.slot[from / 2], from % 2 * 32, 32);
    x.slot[control >> 5 & 1] =
        tbd_build_put(b, x.slot[control >> 5 & 1], (control >> 4 & 1) * 32, 32, bits);
    for (unsigned n = 0; n < 4; n++)
        if (control >> n & 1)
            x.slot[n / 2] =
                tbd_build_put(b, x.slot[n / 2], n % 2 * 32, 32, tbd_build_constant(b, 0));
    tbd_lanes_write(b, 0, &x);
    return true;
}

/* An element of `from` bits as one of `to` bits: with zeros above it, or its sign. */
static uint8_t widened(struct tbd_build *b, enum tbd_operation operation, uint8_t element,
                       unsigned from, unsigned to)
{
    uint8_t d;

    if (operation != TBD_OP_SEXT)
        return element;
    d = tbd_build_slot(b);
    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_SEXT,
                                          .width = (uint8_t)to,
                                          .aux = (uint8_t)from,
                                          .d = d,
                                          .a = element });
    return d;
}

/* pmovzx and pmovsx; aux: 16 * the logarithm of the bytes before + that after. */
FORM(vector_widen)
{
    unsigned from = 8u << (aux >> 4), to = 8u << (aux & 15), bytes = tbd_lanes_bytes(b);
    struct tbd_lanes x, out = { .count = bytes / 8 };

    if (!tbd_lanes_fit(b) || !tbd_lanes_are_in(b, 0) || bytes < 16)
        return false;
    x = tbd_lanes_read(b, tbd_lanes_last_operand(b), bytes * from / to);
    for (unsigned k = 0; k < out.count; k++) {
        out.slot[k] = tbd_build_constant(b, 0);
        for (unsigned n = 0; n < 64 / to; n++) {
            unsigned bit = (k * (64 / to) + n) * from;
            uint8_t element = tbd_build_field(b, x.slot[bit / 64], bit % 64, from);

            element = widened(b, operation, element, from, to);
            out.slot[k] = to == 64 ? element : tbd_build_put(b, out.slot[k], n * to, to, element);
        }
    }
    tbd_lanes_write(b, 0, &out);
    return true;
}

/* Bits of lane k where elements come from the second source, as the number says. */
static uint64_t chosen_bits(unsigned control, unsigned k, unsigned width)
{
    uint64_t bits = 0;

    for (unsigned n = 0; n < 64 / width; n++)
        if (control >> ((k * (64 / width) + n) % 8) & 1)
            bits |= tbd_bits_low(width) << (n * width);
    return bits;
}

/* pblendw and the like, by the bits of a number; aux: the logarithm of an element's bytes. */
FORM(vector_blend)
{
    unsigned last = tbd_lanes_last_operand(b), bytes = tbd_lanes_bytes(b);
    struct tbd_lanes x, y;

    (void)operation;
    if (!tbd_lanes_fit(b) || last < 2 || !has_immediate(b) || !tbd_lanes_are_in(b, 0) ||
        bytes < 16 || bytes > 32)
        return false;
    x = tbd_lanes_read(b, tbd_lanes_are_legacy(b) ? 0 : last - 2, bytes);
    y = tbd_lanes_read(b, last - 1, bytes);
    for (unsigned k = 0; k < x.count; k++)
        x.slot[k] =
            tbd_lanes_choose(b, tbd_build_constant(b, chosen_bits(immediate(b), k, 8u << aux)),
                             y.slot[k], x.slot[k]);
    tbd_lanes_write(b, 0, &x);
    return true;
}

/* The register that chooses: xmm0 of older instructions, else the last operand. */
static struct tbd_lanes choosing(struct tbd_build *b, unsigned bytes)
{
    struct tbd_lanes out = { .count = bytes / 8 };

    if (!tbd_lanes_are_legacy(b))
        return tbd_lanes_read(b, tbd_lanes_last_operand(b), bytes);
    for (unsigned k = 0; k < out.count; k++)
        out.slot[k] = tbd_build_read_place(b, TBD_PLACE_VECTOR + k);
    return out;
}

/* pblendvb and the like, by the elements' signs. */
FORM(vector_blend_by)
{
    unsigned bytes = tbd_lanes_bytes(b), width = 8u << aux;
    bool legacy = tbd_lanes_are_legacy(b);
    struct tbd_lanes x, y, by;
    uint64_t every = 0;

    (void)operation;
    if (!tbd_lanes_fit(b) || !tbd_lanes_are_in(b, 0) || bytes < 16 || bytes > 32 ||
        (!legacy && b->insn.operand_count_visible != 4))
        return false;
    for (unsigned at = 0; at < 64; at += width)
        every |= (uint64_t)(width - 1) << at;
    x = tbd_lanes_read(b, legacy ? 0 : 1, bytes);
    y = tbd_lanes_read(b, legacy ? 1 : 2, bytes);
    by = choosing(b, bytes);
    for (unsigned k = 0; k < x.count; k++) {
        uint8_t bits = tbd_build_slot(b);

        tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_LANES,
                                              .aux = TBD_LANE_SAR,
                                              .shift = (uint8_t)width,
                                              .d = bits,
                                              .a = by.slot[k],
                                              .b = tbd_build_constant(b, every) });
        x.slot[k] = tbd_lanes_choose(b, bits, y.slot[k], x.slot[k]);
    }
    tbd_lanes_write(b, 0, &x);
    return true;
}

/* vpblendm: the second source where the mask has ones, else the first one, or 0. */
FORM(vector_blend_mask)
{
    unsigned last = tbd_lanes_last_operand(b), bytes = tbd_lanes_bytes(b);
    struct tbd_lanes x, y;

    (void)operation;
    (void)aux;
    if (!tbd_lanes_fit(b) || !tbd_lanes_are_masked(b) || last < 2 || bytes > 32)
        return false;
    x = tbd_lanes_read(b, last - 1, bytes);
    y = tbd_lanes_read(b, last, bytes);
    tbd_lanes_merge(b, &y, tbd_lanes_are_zeroed(b) ? NULL : &x);
    for (unsigned k = 0; k < y.count; k++)
        tbd_build_write_place(b, tbd_lanes_place(b, 0, k), y.slot[k]);
    tbd_lanes_clear_above(b, 0, y.count);
    return true;
}

/* movddup, movsldup and movshdup: each element twice; aux: the logarithm of its bytes, + 8 for the odd ones. */
FORM(vector_double)
{
    unsigned width = 8u << (aux & 7), bytes = tbd_lanes_bytes(b), each = 64 / width;
    unsigned last = tbd_lanes_last_operand(b);
    struct tbd_lanes x, out;

    (void)operation;
    if (!tbd_lanes_fit(b) || !tbd_lanes_are_in(b, 0) || bytes < 16)
        return false;
    out = x = tbd_lanes_read(b, last, b->operand[last].size / 8u);
    out.count = bytes / 8;
    for (unsigned k = 0; k < out.count; k++) {
        uint8_t from = x.slot[each == 1 ? k & ~1u : k];
        uint8_t element = tbd_build_field(b, from, aux & 8 ? width : 0, width);

        out.slot[k] = each == 1 ? from : tbd_build_put(b, element, width, width, element);
    }
    tbd_lanes_write(b, 0, &out);
    return true;
}

/* vbroadcasti128 and the like: a piece of aux bytes again and again. */
FORM(vector_repeat)
{
    unsigned bytes = tbd_lanes_bytes(b);
    struct tbd_lanes x, out = { .count = bytes / 8 };

    (void)operation;
    if (!tbd_lanes_are_in(b, 0) || bytes < aux)
        return false;
    x = tbd_lanes_read(b, tbd_lanes_last_operand(b), aux);
    for (unsigned k = 0; k < out.count; k++)
        out.slot[k] = x.slot[k % x.count];
    tbd_lanes_write(b, 0, &out);
    return true;
}

/* vinserti128 and the like: one piece of aux bytes is another one. */
FORM(vector_insert)
{
    unsigned last = tbd_lanes_last_operand(b), bytes = tbd_lanes_bytes(b), first;
    struct tbd_lanes x, y;

    (void)operation;
    if (!tbd_lanes_fit(b) || last < 3 || !has_immediate(b) || bytes <= aux)
        return false;
    first = immediate(b) % (bytes / aux) * (aux / 8);
    x = tbd_lanes_read(b, last - 2, bytes);
    y = tbd_lanes_read(b, last - 1, aux);
    for (unsigned k = 0; k < aux / 8; k++)
        x.slot[first + k] = y.slot[k];
    tbd_lanes_write(b, 0, &x);
    return true;
}

/* vextracti128 and the like. */
FORM(vector_extract)
{
    unsigned from = tbd_lanes_last_operand(b) - 1, first;
    struct tbd_lanes x, out = { .count = aux / 8 };

    (void)operation;
    if (!tbd_lanes_fit(b) || b->insn.operand_count_visible < 3 || !has_immediate(b) ||
        tbd_lanes_bytes(b) != aux || b->operand[from].size <= 8 * aux)
        return false;
    x = tbd_lanes_read(b, from, b->operand[from].size / 8u);
    first = immediate(b) % (x.count * 8 / aux) * (aux / 8);
    for (unsigned k = 0; k < out.count; k++)
        out.slot[k] = x.slot[first + k];
    tbd_lanes_write(b, 0, &out);
    return true;
}

/* vpermq and vpermpd with a number: any of the four lanes of each 32 bytes. */
FORM(vector_permute)
{
    unsigned last = tbd_lanes_last_operand(b), bytes = tbd_lanes_bytes(b);
    struct tbd_lanes x, out;

    (void)operation;
    (void)aux;
    if (!tbd_lanes_fit(b) || last < 2 || !has_immediate(b) || bytes < 32)
        return false;
    out = x = tbd_lanes_read(b, last - 1, bytes);
    for (unsigned k = 0; k < x.count; k++)
        out.slot[k] = x.slot[(k & ~3u) + (immediate(b) >> (2 * (k & 3)) & 3)];
    tbd_lanes_write(b, 0, &out);
    return true;
}

/* vperm2i128: each half is one of four, or 0. */
FORM(vector_permute_halves)
{
    struct tbd_lanes x, y, out = { .count = 4 };

    (void)operation;
    (void)aux;
    if (!tbd_lanes_fit(b) || b->insn.operand_count_visible != 4 || !has_immediate(b) ||
        tbd_lanes_bytes(b) != 32)
        return false;
    x = tbd_lanes_read(b, 1, 32);
    y = tbd_lanes_read(b, 2, 32);
    for (unsigned k = 0; k < 4; k++) {
        unsigned control = immediate(b) >> (k / 2 * 4);
        const struct tbd_lanes *from = control & 2 ? &y : &x;

        out.slot[k] =
            control & 8 ? tbd_build_constant(b, 0) : from->slot[(control & 1) * 2 + k % 2];
    }
    tbd_lanes_write(b, 0, &out);
    return true;
}

/* vshufi32x4 and the like: pieces of 16 bytes, the lower half of the result from the first source. */
FORM(vector_shuffle_pieces)
{
    unsigned last = tbd_lanes_last_operand(b), bytes = tbd_lanes_bytes(b), pieces = bytes / 16;
    struct tbd_lanes x, y, out;

    (void)operation;
    (void)aux;
    if (!tbd_lanes_fit(b) || last < 3 || !has_immediate(b) || bytes < 32)
        return false;
    out = x = tbd_lanes_read(b, last - 2, bytes);
    y = tbd_lanes_read(b, last - 1, bytes);
    for (unsigned n = 0; n < pieces; n++) {
        unsigned from = immediate(b) >> (n * (pieces / 2)) & (pieces - 1);
        const struct tbd_lanes *source = n < pieces / 2 ? &x : &y;

        out.slot[2 * n] = source->slot[2 * from];
        out.slot[2 * n + 1] = source->slot[2 * from + 1];
    }
    tbd_lanes_write(b, 0, &out);
    return true;
}
