// SPDX-License-Identifier: MIT
/* why_inputs.c - see why_inputs.h; Zydis says which operands are read and written */
#include "query/why/why_inputs.h"

ZydisRegister tbd_why_whole(ZydisRegister reg)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

    return whole == ZYDIS_REGISTER_NONE ? reg : whole; /* k0 to k7 are in no other */
}

static bool is_in(ZydisMnemonic mnemonic, const ZydisMnemonic *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == mnemonic)
            return true;
    }
    return false;
}
#define IS_IN(mnemonic, list) is_in(mnemonic, list, sizeof(list) / sizeof((list)[0]))

/* Does the instruction copy its second operand to its first? */
static bool is_move(const ZydisDecodedInstruction *insn)
{
    static const ZydisMnemonic moves[] = {
        ZYDIS_MNEMONIC_MOV,      ZYDIS_MNEMONIC_MOVZX,   ZYDIS_MNEMONIC_MOVSX,
        ZYDIS_MNEMONIC_MOVSXD,   ZYDIS_MNEMONIC_MOVAPS,  ZYDIS_MNEMONIC_MOVUPS,
        ZYDIS_MNEMONIC_MOVAPD,   ZYDIS_MNEMONIC_MOVUPD,  ZYDIS_MNEMONIC_MOVDQA,
        ZYDIS_MNEMONIC_MOVDQU,   ZYDIS_MNEMONIC_MOVQ,    ZYDIS_MNEMONIC_MOVD,
        ZYDIS_MNEMONIC_MOVSS,    ZYDIS_MNEMONIC_MOVNTI,  ZYDIS_MNEMONIC_VMOVDQU,
        ZYDIS_MNEMONIC_VMOVDQA,  ZYDIS_MNEMONIC_VMOVUPS, ZYDIS_MNEMONIC_VMOVAPS,
        ZYDIS_MNEMONIC_VMOVQ,    ZYDIS_MNEMONIC_VMOVD,   ZYDIS_MNEMONIC_VMOVDQU64,
        ZYDIS_MNEMONIC_VMOVDQU8, ZYDIS_MNEMONIC_MOVBE,   ZYDIS_MNEMONIC_BSWAP,
    };

    if (insn->mnemonic == ZYDIS_MNEMONIC_MOVSD) /* two instructions have this name */
        return insn->meta.category != ZYDIS_CATEGORY_STRINGOP;
    return IS_IN(insn->mnemonic, moves);
}

/* `xor eax, eax` and the like, which give 0 whatever the register held. */
static bool is_zeroing(const struct tbd_why_insn *i)
{
    static const ZydisMnemonic zeroing[] = {
        ZYDIS_MNEMONIC_XOR,    ZYDIS_MNEMONIC_SUB,    ZYDIS_MNEMONIC_PXOR,   ZYDIS_MNEMONIC_XORPS,
        ZYDIS_MNEMONIC_XORPD,  ZYDIS_MNEMONIC_VPXOR,  ZYDIS_MNEMONIC_VXORPS, ZYDIS_MNEMONIC_VXORPD,
        ZYDIS_MNEMONIC_VPXORD, ZYDIS_MNEMONIC_VPXORQ,
    };
    size_t last = i->insn.operand_count_visible - 1u;

    return IS_IN(i->insn.mnemonic, zeroing) && i->insn.operand_count_visible >= 2 &&
           i->operands[last].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           i->operands[last - 1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           i->operands[last].reg.value == i->operands[last - 1].reg.value;
}

/* A register that holds values: neither the instruction nor the stack pointer. */
static bool is_value_register(ZydisRegister reg)
{
    switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_GPR64: return reg != ZYDIS_REGISTER_RSP;
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM:
    case ZYDIS_REGCLASS_MASK: return true;
    default: return false;
    }
}

static void add(struct tbd_why_inputs *out, struct tbd_why_input input)
{
    for (size_t i = 0; i < out->count; i++) {
        if (out->inputs[i].place == input.place && input.place == TBD_WHY_REGISTER &&
            out->inputs[i].reg == input.reg)
            return;
    }
    if (out->count < TBD_WHY_INPUTS_MAX)
        out->inputs[out->count++] = input;
}

static void add_register(struct tbd_why_inputs *out, ZydisRegister reg)
{
    if (reg != ZYDIS_REGISTER_NONE && is_value_register(tbd_why_whole(reg)))
        add(out, (struct tbd_why_input){
                     .place = TBD_WHY_REGISTER,
                     .reg = tbd_why_whole(reg),
                     .named = reg,
                     .first = reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH,
                     .bytes = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) / 8 });
}

static void add_operand(struct tbd_why_inputs *out, const ZydisDecodedOperand *operand)
{
    if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
        add_register(out, operand->reg.value);
    } else if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        add(out,
            (struct tbd_why_input){ .place = TBD_WHY_CONSTANT, .constant = operand->imm.value.s });
    } else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
               operand->mem.type == ZYDIS_MEMOP_TYPE_AGEN) { /* lea */
        add_register(out, operand->mem.base);
        add_register(out, operand->mem.index);
    } else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        add(out, (struct tbd_why_input){
                     .place = TBD_WHY_MEMORY, .operand = operand, .bytes = operand->size / 8 });
    }
}

static struct tbd_why_inputs copy_of(const ZydisDecodedOperand *operand)
{
    struct tbd_why_inputs out = { .is_copy = true };

    add_operand(&out, operand);
    return out;
}

const ZydisDecodedOperand *tbd_why_memory_read(const struct tbd_why_insn *i)
{
    for (size_t k = 0; k < i->insn.operand_count; k++) {
        if (i->operands[k].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            (i->operands[k].actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0)
            return &i->operands[k];
    }
    return NULL;
}

static bool is_mask(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           ZydisRegisterGetClass(operand->reg.value) == ZYDIS_REGCLASS_MASK;
}

/* Instructions that copy a value unchanged from one place to another. */
static bool copied(const struct tbd_why_insn *i, enum tbd_why_place place, ZydisRegister reg,
                   struct tbd_why_inputs *out)
{
    const ZydisDecodedOperand *first = &i->operands[0], *second = &i->operands[1];

    switch (i->insn.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH: *out = copy_of(first); return true;
    case ZYDIS_MNEMONIC_XCHG:
        *out = copy_of((place == TBD_WHY_MEMORY) == (first->type == ZYDIS_OPERAND_TYPE_MEMORY) &&
                               (place == TBD_WHY_MEMORY || tbd_why_whole(first->reg.value) == reg)
                           ? second
                           : first);
        return true;
    case ZYDIS_MNEMONIC_CBW:
    case ZYDIS_MNEMONIC_CWDE:
    case ZYDIS_MNEMONIC_CDQE:
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSW:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ:
        *out = (struct tbd_why_inputs){ .is_copy = true };
        add_register(out, ZYDIS_REGISTER_RAX);
        return true;
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_LEAVE:
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSQ:
    case ZYDIS_MNEMONIC_MOVSD:
        if (is_move(&i->insn) || tbd_why_memory_read(i) == NULL)
            break;
        *out = copy_of(tbd_why_memory_read(i));
        return true;
    default: break;
    }
    if (!is_move(&i->insn))
        return false;
    if (i->insn.operand_count_visible >= 3 && is_mask(second)) /* vmovdqu64 [mem], k0, ymm16 */
        second = &i->operands[2];
    *out = copy_of(i->insn.operand_count_visible >= 2 ? second : first);
    return true;
}

bool tbd_why_writes_register(const struct tbd_why_insn *i, ZydisRegister whole)
{
    if (i->insn.mnemonic == ZYDIS_MNEMONIC_SYSCALL && whole == ZYDIS_REGISTER_RAX)
        return true;
    for (size_t k = 0; k < i->insn.operand_count; k++) {
        if (i->operands[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (i->operands[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
            tbd_why_whole(i->operands[k].reg.value) == whole)
            return true;
    }
    return false;
}

bool tbd_why_writes_flags(const struct tbd_why_insn *i, ZydisAccessedFlagsMask flags)
{
    const ZydisAccessedFlags *access = i->insn.cpu_flags;

    return access != NULL && ((access->modified | access->set_0 | access->set_1) & flags) != 0;
}

struct tbd_why_inputs tbd_why_inputs_of(const struct tbd_why_insn *i, enum tbd_why_place place,
                                        ZydisRegister reg)
{
    struct tbd_why_inputs out;

    if (place != TBD_WHY_FLAGS && copied(i, place, reg, &out))
        return out;
    out = (struct tbd_why_inputs){ .is_copy = is_zeroing(i) };
    if (out.is_copy) {
        add(&out, (struct tbd_why_input){ .place = TBD_WHY_CONSTANT });
        return out;
    }
    for (size_t k = 0; k < i->insn.operand_count; k++) {
        const ZydisDecodedOperand *operand = &i->operands[k];

        /* A conditional write (cmov) may keep the old value, which is an input, too. */
        if ((operand->actions &
             (ZYDIS_OPERAND_ACTION_MASK_READ | ZYDIS_OPERAND_ACTION_CONDWRITE)) != 0 ||
            (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
             operand->mem.type == ZYDIS_MEMOP_TYPE_AGEN))
            add_operand(&out, operand);
    }
    if (i->insn.cpu_flags != NULL && i->insn.cpu_flags->tested != 0)
        add(&out,
            (struct tbd_why_input){ .place = TBD_WHY_FLAGS, .flags = i->insn.cpu_flags->tested });
    return out;
}
