// SPDX-License-Identifier: MIT
/* forms_flow.c - see forms.h
 *
 * Where control went is known: so a branch tells the flags that it looked at, an indirect one its target. */
#include "replay/simulate/forms.h"

#include "replay/simulate/bits.h"

static const unsigned RSP = 4, RBP = 5, RCX = 1, RAX = 0, R11 = 11;

static uint8_t moved_stack(struct tbd_build *b, enum tbd_operation operation, unsigned bytes)
{
    return tbd_build_binary(b, operation, 64, tbd_build_read_place(b, RSP),
                            tbd_build_constant(b, bytes));
}

static void push(struct tbd_build *b, uint8_t slot)
{
    uint8_t rsp = moved_stack(b, TBD_OP_SUB, 8);

    b->out.saves = true;
    tbd_build_store(b, rsp, 0, 8, slot);
    tbd_build_write_place(b, RSP, rsp);
}

static uint8_t popped(struct tbd_build *b, unsigned more)
{
    uint8_t slot = tbd_build_load(b, tbd_build_read_place(b, RSP), 0, 8);

    b->out.saves = true;
    tbd_build_write_place(b, RSP, moved_stack(b, TBD_OP_ADD, 8 + more));
    return slot;
}

FORM(push)
{
    (void)operation;
    (void)aux;
    if (b->insn.operand_width != 64)
        return false;
    if (b->operand[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        push(b, tbd_build_constant(b, (uint64_t)b->operand[0].imm.value.s));
    else
        push(b, tbd_build_read(b, 0));
    return true;
}

/* The address of a popped memory operand is computed after rsp has moved. */
FORM(pop)
{
    (void)operation;
    (void)aux;
    if (b->insn.operand_width != 64 ||
        (!tbd_build_is_register(b, 0) && b->operand[0].mem.base == ZYDIS_REGISTER_RSP))
        return false;
    tbd_build_write(b, 0, popped(b, 0));
    return true;
}

FORM(leave)
{
    uint8_t rbp = tbd_build_read_place(b, RBP);

    (void)operation;
    (void)aux;
    if (b->insn.operand_width != 64)
        return false;
    tbd_build_write_place(b, RBP, tbd_build_load(b, rbp, 0, 8));
    tbd_build_write_place(b, RSP,
                          tbd_build_binary(b, TBD_OP_ADD, 64, rbp, tbd_build_constant(b, 8)));
    return true;
}

/* rflags as far as they are known: status flags, the direction flag. */
static uint8_t all_flags(struct tbd_build *b)
{
    uint8_t d = tbd_build_slot(b);

    tbd_build_link(b, d, tbd_build_read_place(b, TBD_PLACE_FLAGS), TBD_STATUS_FLAGS);
    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_MOVEBITS,
                                          .width = 1,
                                          .shift = 10,
                                          .d = d,
                                          .a = tbd_build_read_place(b, TBD_PLACE_DF) });
    return d;
}

FORM(push_flags)
{
    (void)operation;
    (void)aux;
    push(b, all_flags(b));
    return true;
}

FORM(pop_flags)
{
    uint8_t slot = popped(b, 0);

    (void)operation;
    (void)aux;
    tbd_build_link(b, tbd_build_flags(b, 0), slot, TBD_STATUS_FLAGS);
    tbd_build_write_place(b, TBD_PLACE_DF, tbd_build_field(b, slot, 10, 1));
    return true;
}

/* False: the target is not in the instruction. */
static bool direct(struct tbd_build *b)
{
    if (b->operand[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !b->operand[0].imm.is_relative)
        return false;
    b->out.target = b->address + b->insn.length + b->operand[0].imm.value.u;
    return true;
}

static bool is_near(const struct tbd_build *b)
{
    return b->insn.meta.branch_type != ZYDIS_BRANCH_TYPE_FAR && b->insn.operand_width == 64;
}

static void goes_to(struct tbd_build *b, uint8_t slot)
{
    b->out.indirect = true;
    b->out.next = slot;
}

/* To the address that the operand is, or has. */
static bool transfers(struct tbd_build *b)
{
    if (!is_near(b))
        return false;
    if (!direct(b))
        goes_to(b, tbd_build_read(b, 0));
    return true;
}

FORM(jump)
{
    (void)operation;
    (void)aux;
    return transfers(b);
}

FORM(call)
{
    (void)operation;
    (void)aux;
    if (!transfers(b))
        return false;
    push(b, tbd_build_constant(b, b->address + b->insn.length));
    return true;
}

FORM(ret)
{
    unsigned more = b->insn.operand_count_visible ? (unsigned)b->operand[0].imm.value.u : 0;

    (void)operation;
    (void)aux;
    if (!is_near(b))
        return false;
    goes_to(b, popped(b, more));
    return true;
}

static bool branch(struct tbd_build *b, uint8_t taken)
{
    b->out.conditional = true;
    b->out.next = taken;
    return direct(b);
}

FORM(jump_if)
{
    uint8_t taken = tbd_build_slot(b);

    tbd_build_op(b, (struct tbd_insn_op){ .code = (uint8_t)operation,
                                          .aux = (uint8_t)aux,
                                          .d = taken,
                                          .a = tbd_build_read_place(b, TBD_PLACE_FLAGS) });
    return branch(b, taken);
}

FORM(jump_if_zero)
{
    uint8_t rcx = tbd_build_read_place(b, RCX);

    (void)aux;
    if (b->insn.address_width != 64)
        return false;
    return branch(b, tbd_build_binary(b, operation, 64, rcx, rcx));
}

/* aux: 1 while ZF is set, too, 2 while it is not. */
FORM(loop)
{
    uint8_t rcx, zero, more, equal;

    if (b->insn.address_width != 64)
        return false;
    rcx =
        tbd_build_binary(b, operation, 64, tbd_build_read_place(b, RCX), tbd_build_constant(b, 1));
    zero = tbd_build_binary(b, TBD_OP_ISZERO, 64, rcx, rcx);
    tbd_build_write_place(b, RCX, rcx);
    more = tbd_build_binary(b, TBD_OP_NOT, 1, zero, zero);
    if (aux == 0)
        return branch(b, more);
    equal = tbd_build_field(b, tbd_build_read_place(b, TBD_PLACE_FLAGS), 6, 1);
    return branch(b, aux == 1 ? tbd_build_binary(b, TBD_OP_AND, 1, more, equal)
                              : tbd_build_binary(b, TBD_OP_ANDN, 1, equal, more));
}

static void keep_unless(struct tbd_build *b, unsigned place, uint8_t number, unsigned call)
{
    uint8_t d = tbd_build_slot(b);

    tbd_build_op(b, (struct tbd_insn_op){ .code = TBD_OP_UNLESS,
                                          .d = d,
                                          .a = tbd_build_read_place(b, place),
                                          .b = number,
                                          .mask = call });
    tbd_build_write_place(b, place, d);
}

/* pass.c asks what the call writes, for these registers. */
static void read_arguments(struct tbd_build *b)
{
    static const unsigned places[6] = { 7, 6, 2, 10, 8, 9 };

    for (unsigned i = 0; i < 6; i++)
        tbd_build_read_place(b, places[i]);
}

/* rcx and r11 get the next address and the flags.  aux: the number of arch_prctl(), which may set segment bases. */
FORM(system_call)
{
    uint8_t number = tbd_build_read_place(b, RAX);

    (void)operation;
    b->out.kind = TBD_INSN_SYSCALL;
    read_arguments(b);
    b->out.barrier = true;
    tbd_build_write_place(b, RCX, tbd_build_constant(b, b->address + b->insn.length));
    tbd_build_write_place(b, R11, all_flags(b));
    tbd_build_write_place(b, RAX, tbd_build_slot(b));
    keep_unless(b, TBD_PLACE_FS, number, aux);
    keep_unless(b, TBD_PLACE_GS, number, aux);
    return true;
}

/* The decoder takes f3 41 90 for pause; processors exchange r8 and rax, or do not. */
FORM(nothing)
{
    (void)operation;
    (void)aux;
    if (b->insn.mnemonic == ZYDIS_MNEMONIC_PAUSE && b->insn.raw.rex.B)
        b->out.kind = TBD_INSN_HAVOC;
    return true;
}
