// SPDX-License-Identifier: MIT
/* register_moves.c - see register_moves.h
 *
 * What an instruction does says the simulation's table.  What it stores is taken not to hit the return address unless it is
 * addressed by way of the stack pointer: a function that does that some other way returns elsewhere, and calls nobody. */
#include "query/session/code/register_moves.h"

#include "format/stream/stream.h"

#include <Zydis/Zydis.h>

#define REGISTERS 16u

static const uint8_t arguments[TBD_OPERAND_ARGS] = { TBD_RDI, TBD_RSI, TBD_RDX,
                                                     TBD_RCX, TBD_R8,  TBD_R9 };

/* Values are told by registers at the block's start. */
struct moves {
    struct tbd_moved all[REGISTERS];
    bool is_lost; /* of all, and of the return address */
};

static struct tbd_moved itself(uint32_t reg)
{
    return (struct tbd_moved){ .kind = TBD_MOVED_WHOLE, .from = reg };
}

/* `moved` is of places before the instruction. */
static struct tbd_moved since_start(const struct moves *before, struct tbd_moved moved)
{
    bool has_place = moved.kind == TBD_MOVED_WHOLE || moved.kind == TBD_MOVED_LOW;

    if (has_place && moved.from >= REGISTERS)
        return (struct tbd_moved){ .kind = TBD_MOVED_LOST };
    return tbd_moved_both(before->all[has_place ? moved.from : 0], moved);
}

static bool is_of_stack(struct tbd_moved value)
{
    return (value.kind == TBD_MOVED_WHOLE || value.kind == TBD_MOVED_LOW) && value.from == TBD_RSP;
}

static bool reads_stack_pointer(const struct moves *before, const struct tbd_sim_insn *insn)
{
    for (size_t i = 0; i < insn->read_count; i++) {
        if (insn->reads[i].place < REGISTERS && is_of_stack(before->all[insn->reads[i].place]))
            return true;
    }
    return false;
}

/* Does it store to the return address, which lies at the stack pointer of the start? */
static bool may_hit_return(const struct moves *before, const struct tbd_sim_insn *insn)
{
    for (size_t i = 0; i < insn->memory_count; i++) {
        const struct tbd_insn_memory *memory = &insn->memory[i];
        struct tbd_moved to = since_start(before, tbd_moved_to_slot(insn, memory->address));
        int64_t from = (int64_t)(to.by + memory->offset);

        if (!memory->write)
            continue;
        if (to.kind == TBD_MOVED_LOST && reads_stack_pointer(before, insn))
            return true;
        if (is_of_stack(to) &&
            (to.kind == TBD_MOVED_LOW || memory->range || (from < 8 && from > -memory->bytes)))
            return true;
    }
    return insn->barrier;
}

static bool ends_all(const struct tbd_sim_insn *insn)
{
    return insn->kind == TBD_INSN_HAVOC || insn->kind == TBD_INSN_SYSCALL ||
           insn->mnemonic == ZYDIS_MNEMONIC_CALL || insn->mnemonic == ZYDIS_MNEMONIC_RET;
}

static void step(struct moves *m, const struct tbd_sim_insn *insn)
{
    const struct moves before = *m;

    for (uint32_t i = 0; i < REGISTERS; i++)
        m->all[i] = since_start(&before, tbd_moved_to_place(insn, i));
    m->is_lost |= ends_all(insn) || may_hit_return(&before, insn) ||
                  m->all[TBD_RSP].kind != TBD_MOVED_WHOLE || m->all[TBD_RSP].from != TBD_RSP ||
                  (int64_t)m->all[TBD_RSP].by > 0;
}

/* ---- a block ---- */

static void begin(struct moves *m)
{
    for (uint32_t i = 0; i < TBD_OPERAND_ARGS; i++)
        m->all[arguments[i]] = itself(arguments[i]);
    m->all[TBD_RSP] = itself(TBD_RSP);
}

void tbd_register_moves_of(const struct tbd_block *block, struct tbd_register_moves *out)
{
    struct moves m = { 0 };
    struct tbd_sim_insn *insn;
    uint32_t length;

    *out = (struct tbd_register_moves){ 0 };
    begin(&m);
    for (uint32_t at = 0; at < block->def.code_bytes && !m.is_lost; at += length) {
        if (tbd_insn_make(block->def.start + at, block->code + at, block->def.code_bytes - at,
                          &insn) != TBD_OK)
            return;
        step(&m, insn);
        length = insn->length;
        tbd_insn_free(insn);
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
