// SPDX-License-Identifier: MIT
/* decode_memory.c - which memory an instruction reads and writes, and how its address is formed
 *
 * Keeps DECODE-2: an address is a function of registers before the instruction. */
#include "patcher/decode_private.h"

static bool is_relative(const ZydisDecodedOperand *op)
{
    return op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_EIP;
}

/* With address-size prefix the sum is truncated to 32 bits. */
static struct tbd_ea make_ea(const struct tbd_zinsn *z, const struct tbd_insn *insn,
                             const ZydisDecodedOperand *op)
{
    struct tbd_ea ea = {
        .disp = op->mem.disp.has_displacement ? op->mem.disp.value : 0,
        .base = tbd_decode_gpr(op->mem.base),
        .index = tbd_decode_gpr(op->mem.index),
        .scale = op->mem.scale ? op->mem.scale : 1,
        .fs = op->mem.segment == ZYDIS_REGISTER_FS,
        .gs = op->mem.segment == ZYDIS_REGISTER_GS,
        .addr32 = z->i.address_width == 32,
    };

    if (is_relative(op))
        ea.disp += (int64_t)(insn->pc + insn->length);
    if (ea.addr32 && ea.base == TBD_NO_REG && ea.index == TBD_NO_REG)
        ea.disp = (uint32_t)ea.disp;
    return ea;
}

static void add_access(struct tbd_insn *out, struct tbd_ea ea, unsigned size, unsigned flags)
{
    struct tbd_access *a = &out->access[out->access_count];

    if (out->access_count == TBD_INSN_MAX_ACCESSES || size == 0)
        return;
    *a = (struct tbd_access){ .ea = ea, .size = (uint16_t)size, .flags = (uint8_t)flags };
    a->bit_reg = TBD_NO_REG;
    out->access_count++;
}

static struct tbd_ea stack_ea(uint8_t base, int64_t disp)
{
    return (struct tbd_ea){ .disp = disp, .base = base, .index = TBD_NO_REG, .scale = 1 };
}

static bool is_aligned_move(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVNTDQ:
    case ZYDIS_MNEMONIC_MOVNTPS:
    case ZYDIS_MNEMONIC_MOVNTPD:
    case ZYDIS_MNEMONIC_VMOVAPS:
    case ZYDIS_MNEMONIC_VMOVAPD:
    case ZYDIS_MNEMONIC_VMOVDQA:
    case ZYDIS_MNEMONIC_VMOVDQA32:
    case ZYDIS_MNEMONIC_VMOVDQA64:
    case ZYDIS_MNEMONIC_VMOVNTDQ:
    case ZYDIS_MNEMONIC_VMOVNTPS:
    case ZYDIS_MNEMONIC_VMOVNTPD:
    case ZYDIS_MNEMONIC_CMPXCHG16B: return true;
    default: return false;
    }
}

static void add_memory_operand(struct tbd_insn *out, const struct tbd_zinsn *z,
                               const ZydisDecodedOperand *op)
{
    struct tbd_ea ea = make_ea(z, out, op);
    unsigned flags = 0;

    if (op->mem.type != ZYDIS_MEMOP_TYPE_MEM)
        return;
    if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
        flags |= TBD_ACCESS_READ;
    if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
        flags |= TBD_ACCESS_WRITE;
    if (is_aligned_move(z->i.mnemonic) || op->size == 8)
        flags |= TBD_ACCESS_ALIGNED;
    if (z->i.mnemonic == ZYDIS_MNEMONIC_XLAT)
        flags |= TBD_ACCESS_XLAT;
    if (z->i.mnemonic == ZYDIS_MNEMONIC_POP && ea.base == TBD_RSP)
        ea.disp += z->i.operand_width / 8; /* the address is formed after the pop */
    add_access(out, ea, op->size / 8u, flags);
    if (tbd_decode_is_bit_test(z->i.mnemonic) && z->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
        out->access[out->access_count - 1].flags |= TBD_ACCESS_BITS;
        out->access[out->access_count - 1].bit_reg = tbd_decode_gpr(z->op[1].reg.value);
    }
}

/* Stack accesses, which the library describes as hidden operands, from the mnemonic. */
static bool add_stack_access(struct tbd_insn *out, const struct tbd_zinsn *z)
{
    unsigned size = z->i.operand_width / 8u;

    switch (z->i.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFQ:
        add_access(out, stack_ea(TBD_RSP, -(int64_t)size), size, TBD_ACCESS_WRITE);
        return true;
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
        add_access(out, stack_ea(TBD_RSP, 0), size, TBD_ACCESS_READ);
        return true;
    case ZYDIS_MNEMONIC_LEAVE:
        add_access(out, stack_ea(TBD_RBP, 0), size, TBD_ACCESS_READ);
        return true;
    case ZYDIS_MNEMONIC_CALL:
        add_access(out, stack_ea(TBD_RSP, -8), 8, TBD_ACCESS_WRITE);
        return true;
    case ZYDIS_MNEMONIC_RET: add_access(out, stack_ea(TBD_RSP, 0), 8, TBD_ACCESS_READ); return true;
    default: return false;
    }
}

/* Loads come before stores: `push [mem]` reads mem first, `pop [mem]` reads the stack first. */
void tbd_decode_accesses(struct tbd_insn *out, const struct tbd_zinsn *z)
{
    bool stack_first = z->i.mnemonic == ZYDIS_MNEMONIC_POP;
    bool stack = stack_first && add_stack_access(out, z);
    bool hidden_is_stack = false;

    if (tbd_decode_only_names_memory(z))
        return;
    switch (z->i.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFQ:
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_LEAVE:
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_RET: hidden_is_stack = true; break;
    default: break;
    }
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned n = 0; n < z->i.operand_count; n++) {
            const ZydisDecodedOperand *op = &z->op[n];
            bool writes = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;

            if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || writes != (pass == 1))
                continue;
            if (hidden_is_stack && !tbd_decode_is_visible_memory(op))
                continue;
            add_memory_operand(out, z, op);
        }
    if (!stack)
        add_stack_access(out, z);
}

/* Registers that can be the base in a ModRM byte alone, without an extension bit. */
#define PLAIN_BASES                                                                                \
    (TBD_BIT(TBD_RAX) | TBD_BIT(TBD_RCX) | TBD_BIT(TBD_RDX) | TBD_BIT(TBD_RBX) |                   \
     TBD_BIT(TBD_RSI) | TBD_BIT(TBD_RDI))

void tbd_decode_gs(struct tbd_insn *out, const struct tbd_zinsn *z)
{
    if (!tbd_decode_gs_operand(z))
        return;
    out->gs = true;
    if (out->kind != TBD_INSN_SPECIAL && !(PLAIN_BASES & ~(out->reads | out->writes))) {
        out->kind = TBD_INSN_SPECIAL;
        out->special = TBD_SPECIAL_APART;
    }
}

void tbd_decode_rip_relative(struct tbd_insn *out, const struct tbd_zinsn *z)
{
    for (unsigned n = 0; n < z->i.operand_count; n++)
        if (z->op[n].type == ZYDIS_OPERAND_TYPE_MEMORY && is_relative(&z->op[n])) {
            out->rip_relative = true;
            out->cuts_target = z->op[n].mem.base == ZYDIS_REGISTER_EIP;
            out->disp_at = z->i.raw.disp.offset;
            out->target = out->pc + out->length + (uint64_t)z->op[n].mem.disp.value;
            if (out->cuts_target)
                out->target = (uint32_t)out->target;
        }
}
