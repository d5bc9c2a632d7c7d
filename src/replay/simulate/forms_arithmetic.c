// SPDX-License-Identifier: MIT
/* forms_arithmetic.c - see forms.h */
#include "replay/simulate/forms.h"

#include "replay/simulate/bits.h"

static void flags_of(struct tbd_build *b, enum tbd_operation code, struct tbd_insn_op op)
{
    op.code = (uint8_t)code;
    op.d = tbd_build_flags(b, TBD_STATUS_FLAGS & ~op.mask);
    tbd_build_op(b, op);
}

/* Flags of a logical result; which of AF and PF are undefined is in `mask`. */
static void logic_flags(struct tbd_build *b, unsigned width, uint8_t result, uint64_t mask)
{
    uint8_t d = tbd_build_flags(b, 0);

    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_LOGICFLAGS,
                                          .width = (uint8_t)width,
                                          .d = d,
                                          .a = result,
                                          .mask = mask & ~(uint64_t)TBD_AF });
}

/* x op y, with flags; a register with itself is 0 or twice itself. */
static uint8_t result_of(struct tbd_build *b, enum tbd_operation operation, uint64_t mask,
                         uint8_t x, uint8_t y)
{
    unsigned width = tbd_build_width(b, 0);
    bool sub = operation == TBD_OP_SUB;
    uint8_t d;

    if (x == y && sub)
        x = y = tbd_build_constant(b, 0);
    d = tbd_build_binary(b, operation, width, x, y);
    if (x == y && !sub)
        tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_SHL,
                                              .width = (uint8_t)width,
                                              .d = d,
                                              .a = x,
                                              .b = tbd_build_constant(b, 1) });
    flags_of(b, sub ? TBD_OP_SUBFLAGS : TBD_OP_ADDFLAGS,
             (struct tbd_insn_op){ .width = (uint8_t)width, .a = x, .b = y, .c = d, .mask = mask });
    return d;
}

/* The same operand twice is the same slot. */
static void read_both(struct tbd_build *b, uint8_t *x, uint8_t *y)
{
    *x = tbd_build_read(b, 0);
    *y = tbd_build_same(b, 0, 1) ? *x : tbd_build_read(b, 1);
}

FORM(binary)
{
    uint8_t x, y;

    (void)aux;
    read_both(b, &x, &y);
    tbd_build_write(b, 0, result_of(b, operation, TBD_STATUS_FLAGS, x, y));
    return true;
}

FORM(compare)
{
    uint8_t x, y;

    (void)aux;
    read_both(b, &x, &y);
    result_of(b, operation, TBD_STATUS_FLAGS, x, y);
    return true;
}

FORM(step)
{
    (void)aux;
    tbd_build_write(b, 0,
                    result_of(b, operation, TBD_STATUS_FLAGS & ~TBD_CF, tbd_build_read(b, 0),
                              tbd_build_constant(b, 1)));
    return true;
}

FORM(negate)
{
    (void)aux;
    tbd_build_write(
        b, 0,
        result_of(b, operation, TBD_STATUS_FLAGS, tbd_build_constant(b, 0), tbd_build_read(b, 0)));
    return true;
}

FORM(complement)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x = tbd_build_read(b, 0);

    (void)aux;
    tbd_build_write(b, 0, tbd_build_binary(b, operation, width, x, x));
    return true;
}

/* aux: the flags that it sets. */
FORM(carry)
{
    uint8_t x, y, carry, d = tbd_build_slot(b);
    unsigned width = tbd_build_width(b, 0);
    struct tbd_insn_op op;

    read_both(b, &x, &y);
    if (x == y && operation == TBD_OP_SBB)
        x = y = tbd_build_constant(b, 0);
    carry = tbd_build_field(b, tbd_build_read_place(b, TBD_PLACE_FLAGS), 0, 1);
    op = (struct tbd_insn_op){ .code = (uint8_t)operation,
                               .width = (uint8_t)width,
                               .aux = 1,
                               .d = d,
                               .a = x,
                               .b = y,
                               .c = carry };
    tbd_build_op(b, op);
    op.c = d;
    op.mask = aux;
    flags_of(b, operation == TBD_OP_SBB ? TBD_OP_SUBFLAGS : TBD_OP_ADDFLAGS, op);
    tbd_build_write(b, 0, d);
    return true;
}

static uint8_t logic_result(struct tbd_build *b, enum tbd_operation operation)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x, y, d;

    read_both(b, &x, &y);
    if (x == y)
        d = operation == TBD_OP_XOR ? tbd_build_constant(b, 0) : x;
    else
        d = tbd_build_binary(b, operation, width, x, y);
    logic_flags(b, width, d, TBD_STATUS_FLAGS);
    return d;
}

FORM(logic)
{
    (void)aux;
    tbd_build_write(b, 0, logic_result(b, operation));
    return true;
}

FORM(test)
{
    (void)aux;
    logic_result(b, operation);
    return true;
}

static ZydisRegister part(unsigned number, unsigned width)
{
    static const ZydisRegister a[4] = { ZYDIS_REGISTER_AL, ZYDIS_REGISTER_AX, ZYDIS_REGISTER_EAX,
                                        ZYDIS_REGISTER_RAX };
    static const ZydisRegister d[4] = { ZYDIS_REGISTER_AH, ZYDIS_REGISTER_DX, ZYDIS_REGISTER_EDX,
                                        ZYDIS_REGISTER_RDX };
    unsigned i = width == 64 ? 3 : width / 16;

    return number == 0 ? a[i] : d[i];
}

/* CF and OF are set if the upper half matters; the others are undefined. */
static void overflow_flags(struct tbd_build *b, uint8_t over)
{
    uint8_t d = tbd_build_flags(b, 0);

    tbd_build_op(b, (struct tbd_insn_op){
                        .code = TBD_OP_MOVEBITS, .width = 1, .shift = 0, .d = d, .a = over });
    tbd_build_op(b, (struct tbd_insn_op){
                        .code = TBD_OP_MOVEBITS, .width = 1, .shift = 11, .d = d, .a = over });
}

static uint8_t inverted(struct tbd_build *b, uint8_t bit)
{
    return tbd_build_binary(b, TBD_OP_NOT, 1, bit, bit);
}

static bool widening(struct tbd_build *b, unsigned high_function)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x = tbd_build_read(b, 0), y = tbd_build_read_register(b, part(0, width));
    const uint8_t in[3] = { x, y, TBD_INSN_NO_SLOT };
    uint8_t low = tbd_build_binary(b, TBD_OP_MUL, width, x, y);
    uint8_t high = tbd_build_pure(b, (enum tbd_pure)high_function, width, in);

    if (high_function == TBD_PURE_IMULHI)
        overflow_flags(b, tbd_build_pure(b, TBD_PURE_IMULOVER, width, in));
    else
        overflow_flags(b, inverted(b, tbd_build_binary(b, TBD_OP_ISZERO, width, high, high)));
    tbd_build_write_register(b, part(0, width), low);
    tbd_build_write_register(b, part(1, width), high);
    return true;
}

FORM(widening)
{
    (void)operation;
    return widening(b, aux);
}

FORM(multiply)
{
    unsigned width = tbd_build_width(b, 0), last = b->insn.operand_count_visible - 1u;
    uint8_t x, y;

    if (last == 0)
        return widening(b, aux);
    y = tbd_build_read(b, last);
    x = tbd_build_same(b, last - 1, last) ? y : tbd_build_read(b, last - 1);
    overflow_flags(b, tbd_build_pure(b, TBD_PURE_IMULOVER, width,
                                     (const uint8_t[3]){ x, y, TBD_INSN_NO_SLOT }));
    tbd_build_write(b, 0, tbd_build_binary(b, operation, width, x, y));
    return true;
}

FORM(mulx)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x = tbd_build_read(b, 2), y = tbd_build_read_register(b, part(1, width));
    uint8_t low = tbd_build_binary(b, operation, width, x, y);

    tbd_build_write(b, 1, low);
    tbd_build_write(
        b, 0,
        tbd_build_pure(b, (enum tbd_pure)aux, width, (const uint8_t[3]){ x, y, TBD_INSN_NO_SLOT }));
    return true;
}

/* What is divided is quotient * divisor + rest, so it can be solved for, too. */
FORM(divide)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t by = tbd_build_read(b, 0), low = tbd_build_read_register(b, part(0, width));
    uint8_t high = tbd_build_read_register(b, part(1, width));
    const uint8_t in[3] = { high, low, by };
    uint8_t quotient = tbd_build_pure(b, (enum tbd_pure)aux, width, in);
    uint8_t rest =
        tbd_build_pure(b, aux == TBD_PURE_DIVQ ? TBD_PURE_DIVR : TBD_PURE_IDIVR, width, in);
    uint8_t product = tbd_build_binary(b, TBD_OP_MUL, width, quotient, by);

    (void)operation;
    tbd_build_op(
        b, (struct tbd_insn_op){
               .code = TBD_OP_ADD, .width = (uint8_t)width, .d = low, .a = product, .b = rest });
    tbd_build_flags(b, 0);
    tbd_build_write_register(b, part(0, width), quotient);
    tbd_build_write_register(b, part(1, width), rest);
    return true;
}

/* rcl, and with aux 1 rcr, by 1; OF is not described. */
FORM(rotate_carry)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x, carry, d = tbd_build_slot(b);

    if (b->operand[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || b->operand[1].imm.value.u != 1)
        return false;
    x = tbd_build_read(b, 0);
    carry = tbd_build_field(b, tbd_build_read_place(b, TBD_PLACE_FLAGS), 0, 1);
    tbd_build_op(b, (struct tbd_insn_op){ .code = (uint8_t)operation,
                                          .width = (uint8_t)(aux ? 1 : width - 1),
                                          .shift = (uint8_t)(aux ? width - 1 : 1),
                                          .d = d,
                                          .a = aux ? tbd_build_field(b, x, 1, width - 1) : carry,
                                          .b = aux ? carry : tbd_build_field(b, x, 0, width - 1) });
    tbd_build_op(
        b, (struct tbd_insn_op){ .code = TBD_OP_MOVEBITS,
                                 .width = 1,
                                 .d = tbd_build_flags(b, TBD_STATUS_FLAGS & ~(TBD_CF | TBD_OF)),
                                 .a = tbd_build_field(b, x, aux ? 0 : width - 1, 1) });
    tbd_build_write(b, 0, d);
    return true;
}

FORM(shift)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x = tbd_build_read(b, 0), count = tbd_build_read(b, 1), d;
    uint8_t before = tbd_build_read_place(b, TBD_PLACE_FLAGS);

    (void)aux;
    d = tbd_build_binary(b, operation, width, x, count);
    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_SHIFTFLAGS,
                                          .width = (uint8_t)width,
                                          .aux = (uint8_t)operation,
                                          .d = tbd_build_flags(b, 0),
                                          .a = x,
                                          .b = count,
                                          .c = d,
                                          .e = before });
    tbd_build_write(b, 0, d);
    return true;
}

FORM(double_shift)
{
    unsigned width = tbd_build_width(b, 0);
    const uint8_t in[3] = { tbd_build_read(b, 0), tbd_build_read(b, 1), tbd_build_read(b, 2) };

    (void)operation;
    if (width < 32) /* a count above the width is undefined */
        return false;
    tbd_build_flags(b, 0);
    tbd_build_write(b, 0, tbd_build_pure(b, (enum tbd_pure)aux, width, in));
    return true;
}

FORM(shift_by)
{
    unsigned width = tbd_build_width(b, 0);
    uint8_t x = tbd_build_read(b, 1), count = tbd_build_read(b, 2);

    (void)aux;
    tbd_build_write(b, 0, tbd_build_binary(b, operation, width, x, count));
    return true;
}
