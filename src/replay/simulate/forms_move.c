// SPDX-License-Identifier: MIT
/* forms_move.c - see forms.h */
#include "replay/simulate/forms.h"

#include "replay/simulate/bits.h"

static bool is_whole_register(const struct tbd_build *b, unsigned i)
{
    return tbd_build_is_register(b, i) && b->operand[i].reg.value >= ZYDIS_REGISTER_RAX &&
           b->operand[i].reg.value <= ZYDIS_REGISTER_R15;
}

static unsigned place_of(const struct tbd_build *b, unsigned i)
{
    return (unsigned)(b->operand[i].reg.value - ZYDIS_REGISTER_RAX);
}

FORM(move)
{
    (void)operation;
    (void)aux;
    if (is_whole_register(b, 0) && is_whole_register(b, 1))
        tbd_build_copy(b, place_of(b, 0), place_of(b, 1));
    else
        tbd_build_write(b, 0, tbd_build_read(b, 1));
    return true;
}

/* A movsxd to 16 bits cuts its operand. */
FORM(move_signed)
{
    uint8_t d = tbd_build_slot(b), x = tbd_build_read(b, 1);

    (void)aux;
    if (tbd_build_width(b, 0) < tbd_build_width(b, 1))
        return false;
    tbd_build_op(b, (struct tbd_insn_op){ .code = (uint8_t)operation,
                                          .width = (uint8_t)tbd_build_width(b, 0),
                                          .aux = (uint8_t)tbd_build_width(b, 1),
                                          .d = d,
                                          .a = x });
    tbd_build_write(b, 0, d);
    return true;
}

FORM(move_swapped)
{
    uint8_t x = tbd_build_read(b, 1);

    (void)aux;
    tbd_build_write(b, 0, tbd_build_binary(b, operation, tbd_build_width(b, 0), x, x));
    return true;
}

FORM(swap)
{
    uint8_t x = tbd_build_read(b, 0);

    (void)aux;
    if (tbd_build_width(b, 0) < 32)
        return false;
    tbd_build_write(b, 0, tbd_build_binary(b, operation, tbd_build_width(b, 0), x, x));
    return true;
}

static uint8_t selected(struct tbd_build *b, uint8_t condition, uint8_t yes, uint8_t no)
{
    uint8_t d = tbd_build_slot(b);

    tbd_build_op(b, (struct tbd_insn_op){
                        .code = TBD_OP_SELECT, .d = d, .a = yes, .b = no, .c = condition });
    return d;
}

FORM(move_if)
{
    uint8_t condition = tbd_build_slot(b), yes = tbd_build_read(b, 1), no = tbd_build_read(b, 0);

    tbd_build_op(b, (struct tbd_insn_op){ .code = (uint8_t)operation,
                                          .aux = (uint8_t)aux,
                                          .d = condition,
                                          .a = tbd_build_read_place(b, TBD_PLACE_FLAGS) });
    tbd_build_write(b, 0, selected(b, condition, yes, no));
    return true;
}

FORM(address)
{
    uint8_t at = tbd_build_address(b, 1, false);
    unsigned width = tbd_build_width(b, 0);

    (void)operation;
    (void)aux;
    tbd_build_write(b, 0, width == 64 ? at : tbd_build_field(b, at, 0, width));
    return true;
}

FORM(exchange)
{
    uint8_t x, y;

    (void)operation;
    (void)aux;
    if (is_whole_register(b, 0) && is_whole_register(b, 1)) {
        tbd_build_copy(b, place_of(b, 0), place_of(b, 1));
        tbd_build_copy(b, place_of(b, 1), place_of(b, 0));
        return true;
    }
    x = tbd_build_read(b, 0);
    y = tbd_build_read(b, 1);
    tbd_build_write(b, 0, y);
    tbd_build_write(b, 1, x);
    return true;
}

static void sum_flags(struct tbd_build *b, enum tbd_operation code, uint8_t x, uint8_t y,
                      uint8_t result)
{
    tbd_build_op(b, (struct tbd_insn_op){ .code = (uint8_t)code,
                                          .width = (uint8_t)tbd_build_width(b, 0),
                                          .d = tbd_build_flags(b, 0),
                                          .a = x,
                                          .b = y,
                                          .c = result,
                                          .mask = TBD_STATUS_FLAGS });
}

/* The source gets the old destination first: of a register with itself the sum stays. */
FORM(exchange_add)
{
    uint8_t x = tbd_build_read(b, 0), y = tbd_build_read(b, 1);
    uint8_t d = tbd_build_binary(b, operation, tbd_build_width(b, 0), x, y);

    (void)aux;
    sum_flags(b, TBD_OP_ADDFLAGS, x, y, d);
    tbd_build_write(b, 1, x);
    tbd_build_write(b, 0, d);
    return true;
}

/* If rax = 0 then 0 = 1, else rax = 0.  Of 32 bits the one that is not changed keeps its upper half, which
 * this does not describe: so the registers' upper halves must not matter. */
FORM(compare_exchange)
{
    static const ZydisRegister accumulators[4] = { ZYDIS_REGISTER_AL, ZYDIS_REGISTER_AX,
                                                   ZYDIS_REGISTER_EAX, ZYDIS_REGISTER_RAX };
    unsigned width = tbd_build_width(b, 0);
    ZydisRegister accumulator = accumulators[width == 64 ? 3 : width / 16];
    uint8_t x = tbd_build_read(b, 0), y = tbd_build_read(b, 1), equal, difference, rax;

    (void)operation;
    (void)aux;
    if (width == 32 && tbd_build_is_register(b, 0))
        return false;
    rax = tbd_build_read_register(b, accumulator);
    difference = tbd_build_binary(b, TBD_OP_SUB, width, rax, x);
    sum_flags(b, TBD_OP_SUBFLAGS, rax, x, difference);
    equal = tbd_build_binary(b, TBD_OP_ISZERO, width, difference, difference);
    if (width == 32) { /* all of rax stays if the values are equal */
        rax = tbd_build_read_register(b, ZYDIS_REGISTER_RAX);
        accumulator = ZYDIS_REGISTER_RAX;
    }
    tbd_build_write_register(b, accumulator, selected(b, equal, rax, x));
    tbd_build_write(b, 0, selected(b, equal, y, x));
    return true;
}

/* rax and rdx are what memory had, whether they were so or not. */
FORM(compare_exchange_pair)
{
    static const unsigned compared[2] = { 0, 2 }, stored[2] = { 3, 1 }; /* rax, rdx; rbx, rcx */
    uint8_t old[2], difference[2], equal, d, address = tbd_build_address(b, 0, true);

    (void)operation;
    (void)aux;
    for (unsigned k = 0; k < 2; k++) {
        old[k] = tbd_build_load(b, address, 8 * k, 8);
        difference[k] =
            tbd_build_binary(b, TBD_OP_XOR, 64, old[k], tbd_build_read_place(b, compared[k]));
    }
    equal = tbd_build_binary(b, TBD_OP_OR, 64, difference[0], difference[1]);
    equal = tbd_build_binary(b, TBD_OP_ISZERO, 64, equal, equal);
    for (unsigned k = 0; k < 2; k++) {
        tbd_build_store(b, address, 8 * k, 8,
                        selected(b, equal, tbd_build_read_place(b, stored[k]), old[k]));
        tbd_build_write_place(b, compared[k], old[k]);
    }
    d = tbd_build_flags(b, TBD_STATUS_FLAGS & ~TBD_ZF);
    tbd_build_op(b, (struct tbd_insn_op){
                        .code = TBD_OP_MOVEBITS, .width = 1, .shift = 6, .d = d, .a = equal });
    return true;
}

FORM(translate)
{
    uint8_t rax = tbd_build_read_place(b, 0), rbx = tbd_build_read_place(b, 3);

    (void)operation;
    (void)aux;
    if (b->insn.address_width != 64 || (b->insn.attributes & ZYDIS_ATTRIB_HAS_SEGMENT))
        return false;
    rax = tbd_build_binary(b, TBD_OP_ADD, 64, rbx, tbd_build_field(b, rax, 0, 8));
    tbd_build_write_register(b, ZYDIS_REGISTER_AL, tbd_build_load(b, rax, 0, 1));
    return true;
}

FORM(segment_base)
{
    (void)operation;
    tbd_build_write(b, 0,
                    tbd_build_field(b, tbd_build_read_place(b, aux), 0, tbd_build_width(b, 0)));
    return true;
}

/* al to ax and so on; aux: the width before. */
FORM(widen)
{
    static const ZydisRegister to[3] = { ZYDIS_REGISTER_AX, ZYDIS_REGISTER_EAX,
                                         ZYDIS_REGISTER_RAX };
    uint8_t d = tbd_build_slot(b),
            x = tbd_build_field(b, tbd_build_read_register(b, ZYDIS_REGISTER_RAX), 0, aux);

    tbd_build_op(b, (struct tbd_insn_op){ .code = (uint8_t)operation,
                                          .width = (uint8_t)(2 * aux),
                                          .aux = (uint8_t)aux,
                                          .d = d,
                                          .a = x });
    tbd_build_write_register(b, to[aux / 16], d);
    return true;
}

/* aux: the width. */
FORM(sign_into)
{
    static const ZydisRegister to[3] = { ZYDIS_REGISTER_DX, ZYDIS_REGISTER_EDX,
                                         ZYDIS_REGISTER_RDX };
    uint8_t rax = tbd_build_read_register(b, ZYDIS_REGISTER_RAX);
    uint8_t x = aux == 64 ? rax : tbd_build_field(b, rax, 0, aux);

    tbd_build_write_register(
        b, to[aux / 32],
        tbd_build_binary(b, operation, aux, x, tbd_build_constant(b, aux == 64 ? 63 : 31)));
    return true;
}
