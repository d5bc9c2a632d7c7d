// SPDX-License-Identifier: MIT
/* register_moves.c - see register_moves.h
 *
 * Each register is a number, or a register at the block's start to which a number was added, or lost: any instruction that
 * is not described here loses all registers that it may write.  What it stores is taken not to hit the return address unless it is
 * addressed by way of the stack pointer: a function that does that some other way returns elsewhere, and calls nobody. */
#include "query/session/code/register_moves.h"

#include "format/stream/stream.h"

#include <Zydis/Zydis.h>

#define REGISTERS 16u

static const uint8_t arguments[TBD_OPERAND_ARGS] = { TBD_RDI, TBD_RSI, TBD_RDX,
                                                     TBD_RCX, TBD_R8,  TBD_R9 };

struct moving_insn {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    uint64_t pc;
};

struct moves {
    struct tbd_moved all[REGISTERS];
    bool is_lost; /* of all, and of the return address */
};

static const struct tbd_moved lost = { .kind = TBD_MOVED_LOST };

/* ---- values ---- */

static struct tbd_moved number(uint64_t value)
{
    return (struct tbd_moved){ .kind = TBD_MOVED_NUMBER, .by = value };
}

static struct tbd_moved low(struct tbd_moved value)
{
    if (value.kind == TBD_MOVED_NUMBER)
        value.by = (uint32_t)value.by;
    else if (value.kind == TBD_MOVED_WHOLE)
        value.kind = TBD_MOVED_LOW;
    return value;
}

/* The sum of 64 bits; of 32, if only its low bits are used then. */
static struct tbd_moved sum(struct tbd_moved value, uint64_t by, bool is_low)
{
    if (value.kind == TBD_MOVED_LOST || (value.kind == TBD_MOVED_LOW && !is_low && by != 0))
        return lost;
    value.by += by;
    return is_low ? low(value) : value;
}

/* ---- operands ---- */

/* The number of a general register of 64 or 32 bits; false: it is none. */
static bool general(ZydisRegister reg, unsigned *out)
{
    ZydisRegisterClass class = ZydisRegisterGetClass(reg);

    *out = (unsigned char)ZydisRegisterGetId(reg);
    return (class == ZYDIS_REGCLASS_GPR64 || class == ZYDIS_REGCLASS_GPR32) && *out < REGISTERS;
}
_Static_assert(TBD_RCX == 1 && TBD_RDX == 2 && TBD_RSP == 4 && TBD_RSI == 6 && TBD_RDI == 7 &&
                   TBD_R8 == 8 && TBD_R9 == 9,
               "registers are numbered as the processor does");

static bool is_register(const ZydisDecodedOperand *operand, unsigned *out)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && general(operand->reg.value, out);
}

static bool is_number(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

/* `is_low`: only its low 32 bits are used. */
static struct tbd_moved address_of(const struct moves *m, const struct moving_insn *d,
                                   const ZydisDecodedOperand *operand, bool is_low)
{
    uint64_t by = (uint64_t)operand->mem.disp.value;
    unsigned base;

    if (operand->mem.index != ZYDIS_REGISTER_NONE || d->insn.address_width != 64)
        return lost;
    if (operand->mem.base == ZYDIS_REGISTER_RIP)
        return number(d->pc + d->insn.length + by);
    return general(operand->mem.base, &base) ? sum(m->all[base], by, is_low) : lost;
}

/* ---- what is written ---- */

/* The registers, of any width. */
static void lose_registers(struct moves *m, const struct moving_insn *d)
{
    for (uint8_t i = 0; i < d->insn.operand_count; i++) {
        const ZydisDecodedOperand *operand = &d->operands[i];
        unsigned reg;

        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
            general(
                ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand->reg.value),
                &reg))
            m->all[reg] = lost;
    }
}

static bool is_of_stack(const struct moves *m, ZydisRegister reg)
{
    unsigned number_of;

    return general(reg, &number_of) && m->all[number_of].kind != TBD_MOVED_LOST &&
           m->all[number_of].kind != TBD_MOVED_NUMBER && m->all[number_of].from == TBD_RSP;
}

/* Does it store to the return address, which lies at the stack pointer of the start? */
static bool may_hit_return(const struct moves *m, const struct moving_insn *d)
{
    for (uint8_t i = 0; i < d->insn.operand_count; i++) {
        const ZydisDecodedOperand *operand = &d->operands[i];
        struct tbd_moved to;
        int64_t from, bytes = operand->size / 8;

        if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY ||
            (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0 ||
            d->insn.mnemonic == ZYDIS_MNEMONIC_PUSH ||
            (!is_of_stack(m, operand->mem.base) && !is_of_stack(m, operand->mem.index)))
            continue;
        to = address_of(m, d, operand, false);
        from = (int64_t)to.by;
        if (to.kind != TBD_MOVED_WHOLE || bytes == 0 || (from < 8 && from > -bytes))
            return true;
    }
    return false;
}

/* ---- one instruction ---- */

/* mov, lea, add, sub, xor, inc and dec of whole registers; false: it is none of these. */
static bool move(struct moves *m, const struct moving_insn *d)
{
    const ZydisDecodedOperand *to = &d->operands[0], *from = &d->operands[1];
    bool is_low = to->size == 32, has_two = d->insn.operand_count_visible == 2;
    struct tbd_moved value = lost;
    unsigned reg, other;

    if (d->insn.operand_count_visible == 0 || !is_register(to, &reg))
        return false;
    switch (d->insn.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
        if (is_number(from))
            value = number(from->imm.value.u);
        else if (is_register(from, &other))
            value = m->all[other];
        break;
    case ZYDIS_MNEMONIC_LEA: value = address_of(m, d, from, is_low); break;
    case ZYDIS_MNEMONIC_ADD:
        if (is_number(from))
            value = sum(m->all[reg], from->imm.value.u, is_low);
        break;
    case ZYDIS_MNEMONIC_SUB:
        if (is_number(from)) {
            value = sum(m->all[reg], -from->imm.value.u, is_low);
            break;
        }
        __attribute__((fallthrough));
    case ZYDIS_MNEMONIC_XOR:
        if (has_two && is_register(from, &other) && other == reg)
            value = number(0);
        break;
    case ZYDIS_MNEMONIC_INC: value = sum(m->all[reg], 1, is_low); break;
    case ZYDIS_MNEMONIC_DEC: value = sum(m->all[reg], UINT64_MAX, is_low); break;
    default: return false;
    }
    m->all[reg] = is_low ? low(value) : value;
    return true;
}

static bool ends_all(const struct moving_insn *d)
{
    switch (d->insn.meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_INTERRUPT: return true;
    default: return false;
    }
}

static void step(struct moves *m, const struct moving_insn *d)
{
    const struct tbd_moved sp = m->all[TBD_RSP];

    m->is_lost |= ends_all(d) || may_hit_return(m, d);
    if (!move(m, d))
        lose_registers(m, d);
    if (d->insn.mnemonic == ZYDIS_MNEMONIC_PUSH && d->insn.operand_width == 64)
        m->all[TBD_RSP] = sum(sp, (uint64_t)-8, false);
    else if (d->insn.mnemonic == ZYDIS_MNEMONIC_POP && d->insn.operand_width == 64 &&
             d->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
             d->operands[0].reg.value != ZYDIS_REGISTER_RSP)
        m->all[TBD_RSP] = sum(sp, 8, false);
    m->is_lost |= m->all[TBD_RSP].kind != TBD_MOVED_WHOLE || m->all[TBD_RSP].from != TBD_RSP ||
                  (int64_t)m->all[TBD_RSP].by > 0;
}

/* ---- a block ---- */

static bool decode(const ZydisDecoder *decoder, const struct tbd_block *block, uint32_t at,
                   struct moving_insn *out)
{
    out->pc = block->def.start + at;
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(
        decoder, block->code + at, block->def.code_bytes - at, &out->insn, out->operands));
}

static void begin(struct moves *m)
{
    for (uint32_t i = 0; i < TBD_OPERAND_ARGS; i++)
        m->all[arguments[i]] = (struct tbd_moved){ .kind = TBD_MOVED_WHOLE, .from = arguments[i] };
    m->all[TBD_RSP] = (struct tbd_moved){ .kind = TBD_MOVED_WHOLE, .from = TBD_RSP };
}

void tbd_register_moves_of(const struct tbd_block *block, struct tbd_register_moves *out)
{
    struct moves m = { 0 };
    ZydisDecoder decoder;
    struct moving_insn d;

    *out = (struct tbd_register_moves){ 0 };
    if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        return;
    begin(&m);
    for (uint32_t at = 0; at < block->def.code_bytes && !m.is_lost; at += d.insn.length) {
        if (!decode(&decoder, block, at, &d))
            return;
        step(&m, &d);
    }
    out->is_known = !m.is_lost && m.all[TBD_RSP].by == 0;
    for (uint32_t i = 0; i < TBD_OPERAND_ARGS; i++) {
        out->args[i] = m.all[arguments[i]];
        out->is_known &= out->args[i].kind != TBD_MOVED_LOST;
    }
}

static uint64_t value_at_start(const struct tbd_call_operands *operands, uint32_t reg)
{
    for (uint32_t i = 0; i < TBD_OPERAND_ARGS; i++) {
        if (arguments[i] == reg)
            return operands->args[i];
    }
    return operands->sp;
}

void tbd_register_moves_apply(const struct tbd_register_moves *moves,
                              struct tbd_call_operands *operands)
{
    const struct tbd_call_operands start = *operands;

    for (uint32_t i = 0; i < TBD_OPERAND_ARGS; i++) {
        const struct tbd_moved *moved = &moves->args[i];
        uint64_t from = moved->kind == TBD_MOVED_NUMBER ? 0 : value_at_start(&start, moved->from);
        uint64_t value = from + moved->by;

        operands->args[i] = moved->kind == TBD_MOVED_LOW ? (uint32_t)value : value;
    }
}
