// SPDX-License-Identifier: MIT
/* forms_shuffle.c - see forms.h: elements of vector registers in another order */
#include "replay/simulate/forms.h"

#include "replay/simulate/bits.h"
#include "replay/simulate/lanes.h"

/* An element of the result: where it comes from. */
struct element {
    uint8_t slot;  /* NO_SLOT: zero */
    uint8_t shift; /* in bits */
};

/* The result's elements of `width` bits, one for one. */
static void write_pieces(struct tbd_build *b, const struct element *pieces, unsigned width,
                         unsigned bytes)
{
    struct tbd_lanes out = { .count = bytes / 8 };
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
    tbd_lanes_write(b, 0, &out);
}

static struct element piece_of(const struct tbd_lanes *lanes, unsigned element, unsigned width)
{
    unsigned bit = element * width;

    return (struct element){ .slot = lanes->slot[bit / 64], .shift = (uint8_t)(bit % 64) };
}

/* punpckl and punpckh; aux: the logarithm of an element's bytes, + 8 for the upper half. */
FORM(vector_unpack)
{
    unsigned width = 8u << (aux & 7), bytes = tbd_lanes_bytes(b), each = 128 / width;
    struct element pieces[64];
    struct tbd_lanes x, y;

    (void)operation;
    if (!tbd_lanes_fit(b))
        return false;
    x = tbd_lanes_read(b, tbd_lanes_first_source(b), bytes);
    y = tbd_lanes_read(b, tbd_lanes_last_operand(b), bytes);
    for (unsigned half = 0; half < bytes / 16; half++)
        for (unsigned n = 0; n < each; n++)
            pieces[half * each + n] =
                piece_of(n & 1 ? &y : &x, half * each + n / 2 + (aux & 8 ? each / 2 : 0), width);
    write_pieces(b, pieces, width, bytes);
    return true;
}

/* pshufd, and vpermilps and vpermilpd with a number; aux: the logarithm of an element's bytes. */
FORM(vector_shuffle)
{
    unsigned bytes = tbd_lanes_bytes(b), width = 8u << aux, control;
    struct element pieces[16];
    struct tbd_lanes x;

    (void)operation;
    if (!tbd_lanes_fit(b) || b->insn.operand_count_visible < 3 ||
        b->operand[tbd_lanes_last_operand(b)].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return false;
    control = (unsigned)b->operand[tbd_lanes_last_operand(b)].imm.value.u;
    x = tbd_lanes_read(b, tbd_lanes_last_operand(b) - 1, bytes);
    for (unsigned n = 0; n < 8 * bytes / width; n++)
        pieces[n] = width == 64 ? piece_of(&x, (n & ~1u) + (control >> n & 1), 64)
                                : piece_of(&x, (n & ~3u) + (control >> (2 * (n & 3)) & 3), 32);
    write_pieces(b, pieces, width, bytes);
    return true;
}

/* pshuflw and pshufhw: aux: 1 for the upper half; the other one stays. */
FORM(vector_shuffle_words)
{
    unsigned bytes = tbd_lanes_bytes(b), control;
    struct element pieces[32];
    struct tbd_lanes x;

    (void)operation;
    if (!tbd_lanes_fit(b) || !tbd_lanes_are_in(b, 0) || b->insn.operand_count_visible < 3 ||
        bytes < 16)
        return false;
    control = (unsigned)b->operand[tbd_lanes_last_operand(b)].imm.value.u;
    x = tbd_lanes_read(b, tbd_lanes_last_operand(b) - 1, bytes);
    for (unsigned n = 0; n < bytes / 2; n++) {
        bool chosen = (n >> 2 & 1) == aux;

        pieces[n] = piece_of(&x, chosen ? (n & ~3u) + (control >> (2 * (n & 3)) & 3) : n, 16);
    }
    write_pieces(b, pieces, 16, bytes);
    return true;
}

/* The first of two sources before a number: operand 0 of an older instruction. */
static unsigned first_of_three(const struct tbd_build *b)
{
    return tbd_lanes_are_legacy(b) ? 0 : tbd_lanes_last_operand(b) - 2u;
}

/* shufps and shufpd: the lower half of each 128 bits comes from the first source, the upper one from the second; aux: the logarithm
 * of an element's bytes. */
FORM(vector_shuffle_two)
{
    unsigned bytes = tbd_lanes_bytes(b), width = 8u << aux, each = 128 / width, control;
    unsigned first = first_of_three(b);
    struct element pieces[16];
    struct tbd_lanes x, y;

    (void)operation;
    if (!tbd_lanes_fit(b) || b->insn.operand_count_visible < 3)
        return false;
    control = (unsigned)b->operand[first + 2].imm.value.u & 0xff;
    x = tbd_lanes_read(b, first, bytes);
    y = tbd_lanes_read(b, first + 1, bytes);
    for (unsigned n = 0; n < 8 * bytes / width; n++) {
        unsigned from = aux == 3 ? control >> n & 1 : control >> (2 * (n % 4)) & 3;

        pieces[n] = piece_of(n % each < each / 2 ? &x : &y, n / each * each + from, width);
    }
    write_pieces(b, pieces, width, bytes);
    return true;
}

/* pshufb. */
FORM(vector_shuffle_bytes)
{
    unsigned bytes = tbd_lanes_bytes(b);
    struct tbd_lanes x, control, out;

    (void)operation;
    (void)aux;
    if (!tbd_lanes_fit(b) || !tbd_lanes_are_in(b, 0) || bytes < 16)
        return false;
    x = tbd_lanes_read(b, tbd_lanes_first_source(b), bytes);
    control = tbd_lanes_read(b, tbd_lanes_last_operand(b), bytes);
    out = (struct tbd_lanes){ .count = x.count };
    for (unsigned k = 0; k < out.count; k++) {
        out.slot[k] = tbd_build_slot(b);
        tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_SHUFFLE,
                                              .d = out.slot[k],
                                              .a = x.slot[k & ~1u],
                                              .b = x.slot[k | 1u],
                                              .c = control.slot[k] });
    }
    tbd_lanes_write(b, 0, &out);
    return true;
}

/* palignr: 16 of the 32 bytes of first:second, in each 128 bits. */
FORM(vector_align)
{
    unsigned bytes = tbd_lanes_bytes(b), by;
    unsigned first = first_of_three(b);
    struct element pieces[64];
    struct tbd_lanes x, y;

    (void)operation;
    (void)aux;
    if (!tbd_lanes_fit(b) || !tbd_lanes_are_in(b, 0) || b->insn.operand_count_visible < 3 ||
        bytes < 16)
        return false;
    by = (unsigned)b->operand[first + 2].imm.value.u & 0xff;
    x = tbd_lanes_read(b, first, bytes);
    y = tbd_lanes_read(b, first + 1, bytes);
    for (unsigned n = 0; n < bytes; n++) {
        unsigned from = n % 16 + by, half = n & ~15u;

        if (from < 16)
            pieces[n] = piece_of(&y, half + from, 8);
        else if (from < 32)
            pieces[n] = piece_of(&x, half + from - 16, 8);
        else
            pieces[n] = (struct element){ .slot = TBD_INSN_NO_SLOT };
    }
    write_pieces(b, pieces, 8, bytes);
    return true;
}

/* valignd and valignq: elements of first:second; aux: the logarithm of their bytes. */
FORM(vector_align_elements)
{
    unsigned bytes = tbd_lanes_bytes(b), width = 8u << aux, count = 8 * bytes / width, by;
    unsigned last = tbd_lanes_last_operand(b);
    struct element pieces[16];
    struct tbd_lanes x, y;

    (void)operation;
    if (!tbd_lanes_fit(b) || !tbd_lanes_are_in(b, 0) || last < 3 || bytes < 16)
        return false;
    by = (unsigned)b->operand[last].imm.value.u & (count - 1);
    x = tbd_lanes_read(b, last - 2, bytes);
    y = tbd_lanes_read(b, last - 1, bytes);
    for (unsigned n = 0; n < count; n++)
        pieces[n] =
            n + by < count ? piece_of(&y, n + by, width) : piece_of(&x, n + by - count, width);
    write_pieces(b, pieces, width, bytes);
    return true;
}

/* pslldq and psrldq move whole bytes within 128 bits; aux: 1 to the right. */
FORM(vector_shift_bytes)
{
    unsigned bytes = tbd_lanes_bytes(b), by;
    struct element pieces[64];
    struct tbd_lanes x;

    (void)operation;
    if (!tbd_lanes_fit(b))
        return false;
    by = (unsigned)b->operand[tbd_lanes_last_operand(b)].imm.value.u & 0xff;
    x = tbd_lanes_read(b, tbd_lanes_last_operand(b) - 1, bytes);
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
    unsigned width = 8u << aux, bytes = tbd_lanes_bytes(b), last = tbd_lanes_last_operand(b);
    struct element pieces[64];
    struct tbd_lanes x;

    (void)operation;
    if (!tbd_lanes_are_in(b, 0))
        return false;
    if (tbd_build_is_register(b, last) && !tbd_lanes_are_in(b, last))
        x = (struct tbd_lanes){ .slot = { tbd_build_read(b, last) }, .count = 1 };
    else
        x = tbd_lanes_read(b, last, width / 8);
    for (unsigned n = 0; n < 8 * bytes / width; n++)
        pieces[n] = piece_of(&x, 0, width);
    write_pieces(b, pieces, width, bytes);
    return true;
}
