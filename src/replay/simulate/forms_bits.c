// SPDX-License-Identifier: MIT
/* forms_bits.c - see forms.h */
#include "replay/simulate/forms.h"

#include "replay/simulate/bits.h"

/* d of one operation; width 1 for flags. */
static uint8_t negated(struct tbd_build *b, uint8_t bit)
{
    return tbd_build_binary(b, TBD_OP_NOT, 1, bit, bit);
}

static void set_flag(struct tbd_build *b, uint8_t flags, unsigned index, uint8_t bit)
{
    tbd_build_op(
        b,
        (struct tbd_insn_op){
            .code = TBD_OP_MOVEBITS, .width = 1, .shift = (uint8_t)index, .d = flags, .a = bit });
}

static uint8_t is_zero(struct tbd_build *b, unsigned width, uint8_t of)
{
    return tbd_build_binary(b, TBD_OP_ISZERO, width, of, of);
}

/* A bit of memory at an index in a register may lie far from the operand. */
FORM(bit_test)
{
    unsigned width = tbd_build_width(b, 0), index_mask = width - 1;
    uint8_t x, index, bit, one;

    (void)aux;
    if (!tbd_build_is_register(b, 0) && tbd_build_is_register(b, 1))
        return false;
    x = tbd_build_read(b, 0);
    index = tbd_build_binary(b, TBD_OP_AND, width, tbd_build_read(b, 1),
                             tbd_build_constant(b, index_mask));
    bit =
        tbd_build_field(b, tbd_build_binary(b, TBD_OP_SHR, width == 64 ? 64 : 32, x, index), 0, 1);
    set_flag(b, tbd_build_flags(b, TBD_ZF), 0, bit);
    if (operation == TBD_OP_SHR)
        return true;
    one = tbd_build_binary(b, TBD_OP_SHL, width == 64 ? 64 : 32, tbd_build_constant(b, 1), index);
    if (operation == TBD_OP_ANDN)
        tbd_build_write(b, 0, tbd_build_binary(b, operation, width, one, x));
    else
        tbd_build_write(b, 0, tbd_build_binary(b, operation, width, x, one));
    return true;
}

FORM(bit_scan)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x = tbd_build_read(b, 1), d = tbd_build_slot(b), found;

    (void)operation;
    found = tbd_build_pure(b, (enum tbd_pure)aux, width,
                           (const uint8_t[3]){ x, TBD_INSN_NO_SLOT, TBD_INSN_NO_SLOT });
    tbd_build_op(
        b, (struct tbd_insn_op){ .code = TBD_OP_UNLESS, .d = d, .a = found, .b = x, .mask = 0 });
    set_flag(b, tbd_build_flags(b, 0), 6, is_zero(b, width, x));
    tbd_build_write(b, 0, d);
    return true;
}

FORM(bit_count)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x = tbd_build_read(b, 1), flags = tbd_build_flags(b, 0), d, zero;

    (void)operation;
    d = tbd_build_pure(b, (enum tbd_pure)aux, width,
                       (const uint8_t[3]){ x, TBD_INSN_NO_SLOT, TBD_INSN_NO_SLOT });
    zero = is_zero(b, width, x);
    if (aux == TBD_PURE_POPCNT) {
        set_flag(b, flags, 6, zero);
        set_flag(b, flags, 0, tbd_build_constant(b, 0));
    } else {
        set_flag(b, flags, 6, is_zero(b, width, d));
        set_flag(b, flags, 0, zero);
    }
    tbd_build_write(b, 0, d);
    return true;
}

static void result_flags(struct tbd_build *b, unsigned width, uint8_t result, uint64_t mask)
{
    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_LOGICFLAGS,
                                          .width = (uint8_t)width,
                                          .d = tbd_build_flags(b, 0),
                                          .a = result,
                                          .mask = mask });
}

FORM(and_not)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x = tbd_build_read(b, 1), y = tbd_build_read(b, 2), d;

    (void)aux;
    d = tbd_build_same(b, 1, 2) ? tbd_build_constant(b, 0)
                                : tbd_build_binary(b, operation, width, x, y);
    result_flags(b, width, d, TBD_SF | TBD_ZF | TBD_CF | TBD_OF);
    tbd_build_write(b, 0, d);
    return true;
}

/* aux 0: x op (x - 1); 1: x op -x. */
FORM(lowest)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x = tbd_build_read(b, 1), other, d, flags, zero = is_zero(b, width, x);

    other = aux ? tbd_build_binary(b, TBD_OP_SUB, width, tbd_build_constant(b, 0), x)
                : tbd_build_binary(b, TBD_OP_SUB, width, x, tbd_build_constant(b, 1));
    d = tbd_build_binary(b, operation, width, x, other);
    flags = tbd_build_flags(b, 0);
    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_LOGICFLAGS,
                                          .width = (uint8_t)width,
                                          .d = flags,
                                          .a = d,
                                          .mask = TBD_SF | TBD_ZF | TBD_OF });
    set_flag(b, flags, 0, aux ? negated(b, zero) : zero);
    tbd_build_write(b, 0, d);
    return true;
}

/* SF of bextr is undefined, as CF of bzhi is not: that says whether the index was too large. */
FORM(bit_field)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x = tbd_build_read(b, 1), y = tbd_build_read(b, 2), d;

    (void)operation;
    d = tbd_build_pure(b, (enum tbd_pure)aux, width, (const uint8_t[3]){ x, y, TBD_INSN_NO_SLOT });
    result_flags(b, width, d,
                 aux == TBD_PURE_BEXTR ? TBD_ZF | TBD_CF | TBD_OF : TBD_ZF | TBD_SF | TBD_OF);
    tbd_build_write(b, 0, d);
    return true;
}

FORM(bit_deposit)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x = tbd_build_read(b, 1), y = tbd_build_read(b, 2);

    (void)operation;
    tbd_build_write(
        b, 0,
        tbd_build_pure(b, (enum tbd_pure)aux, width, (const uint8_t[3]){ x, y, TBD_INSN_NO_SLOT }));
    return true;
}

FORM(carry_flag)
{
    uint8_t before = tbd_build_read_place(b, TBD_PLACE_FLAGS);
    uint8_t flags = tbd_build_flags(b, TBD_STATUS_FLAGS & ~TBD_CF);

    set_flag(b, flags, 0,
             operation == TBD_OP_NOT ? negated(b, tbd_build_field(b, before, 0, 1))
                                     : tbd_build_constant(b, aux));
    return true;
}

FORM(direction)
{
    (void)operation;
    tbd_build_write_place(b, TBD_PLACE_DF, tbd_build_constant(b, aux));
    return true;
}

/* Bit 1 of the flags is always 1, bits 3 and 5 are 0. */
FORM(flags_to_ah)
{
    uint8_t d = tbd_build_slot(b);

    (void)operation;
    (void)aux;
    tbd_build_link(b, d, tbd_build_read_place(b, TBD_PLACE_FLAGS), TBD_STATUS_FLAGS & 0xff);
    tbd_build_link(b, d, tbd_build_constant(b, 2), ~(uint64_t)(TBD_STATUS_FLAGS & 0xff));
    tbd_build_write_register(b, ZYDIS_REGISTER_AH, d);
    return true;
}

FORM(ah_to_flags)
{
    uint8_t ah = tbd_build_read_register(b, ZYDIS_REGISTER_AH);

    (void)operation;
    (void)aux;
    tbd_build_link(b, tbd_build_flags(b, TBD_OF), ah, TBD_STATUS_FLAGS & 0xff);
    return true;
}

FORM(set)
{
    uint8_t d = tbd_build_slot(b);

    tbd_build_op(b, (struct tbd_insn_op){ .code = (uint8_t)operation,
                                          .aux = (uint8_t)aux,
                                          .d = d,
                                          .a = tbd_build_read_place(b, TBD_PLACE_FLAGS) });
    tbd_build_write(b, 0, d);
    return true;
}
