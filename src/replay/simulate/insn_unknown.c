// SPDX-License-Identifier: MIT
/* insn_unknown.c - an instruction that the table does not have: what it writes is unknown after it
 *
 * The decoder knows the operands, hidden ones too, and the flags.  Where its list is not all (state that is loaded from
 * memory, segment registers, system instructions) nothing at all is known afterwards. */
#include "replay/simulate/insn_build.h"

enum { MEMORY_BYTES_MAX = 64 };

static void write_general(struct tbd_build *b, ZydisRegister reg)
{
    tbd_build_write_register(b, reg, tbd_build_slot(b));
}

/* All lanes, also those that some instructions leave alone. */
static void write_vector(struct tbd_build *b, ZydisRegister reg)
{
    unsigned number = (unsigned)ZydisRegisterGetId(reg);

    for (unsigned lane = 0; lane < 8; lane++)
        tbd_build_write_place(b, TBD_PLACE_VECTOR + number * 8 + lane, tbd_build_slot(b));
}

static void write_register(struct tbd_build *b, ZydisRegister reg)
{
    switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_GPR8:
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64: write_general(b, reg); break;
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM: write_vector(b, reg); break;
    case ZYDIS_REGCLASS_MASK:
        tbd_build_write_place(b, TBD_PLACE_MASK + (unsigned)ZydisRegisterGetId(reg),
                              tbd_build_slot(b));
        break;
    case ZYDIS_REGCLASS_SEGMENT: b->out.kind = TBD_INSN_HAVOC; break;
    default: break; /* flags come below; other state is not followed */
    }
}

static bool is_vector_index(const ZydisDecodedOperandMem *mem)
{
    return mem->index != ZYDIS_REGISTER_NONE &&
           ZydisRegisterGetClass(mem->index) != ZYDIS_REGCLASS_GPR64 &&
           ZydisRegisterGetClass(mem->index) != ZYDIS_REGCLASS_GPR32;
}

/* Is what it writes exactly the operand, at the address that it names? */
static bool is_bounded(const struct tbd_build *b, unsigned i)
{
    const ZydisDecodedOperand *operand = &b->operand[i];

    return operand->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
           operand->mem.type == ZYDIS_MEMOP_TYPE_MEM && !is_vector_index(&operand->mem) &&
           operand->size % 8 == 0 && operand->size > 0 && operand->size <= 8 * MEMORY_BYTES_MAX &&
           b->insn.meta.category != ZYDIS_CATEGORY_XSAVE &&
           b->insn.meta.category != ZYDIS_CATEGORY_XSAVEOPT &&
           b->insn.meta.category != ZYDIS_CATEGORY_BITBYTE &&
           operand->mem.base != ZYDIS_REGISTER_RSP;
}

static void write_memory(struct tbd_build *b, unsigned i)
{
    unsigned bytes = b->operand[i].size / 8u;
    uint8_t address;

    if (!is_bounded(b, i)) {
        b->out.barrier = true;
        return;
    }
    address = tbd_build_address(b, i, true);
    for (unsigned at = 0; at < bytes; at += 8)
        tbd_build_store(b, address, at, bytes - at < 8 ? bytes - at : 8, tbd_build_slot(b));
}

static void write_operand(struct tbd_build *b, unsigned i)
{
    if (!(b->operand[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
        return;
    if (b->operand[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
        write_register(b, b->operand[i].reg.value);
    else if (b->operand[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
        write_memory(b, i);
}

/* The decoder does not say of all of these that they move. */
static void write_string_registers(struct tbd_build *b)
{
    static const ZydisRegister registers[3] = { ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_RSI,
                                                ZYDIS_REGISTER_RDI };

    for (unsigned i = 0; i < 3; i++)
        write_general(b, registers[i]);
}

/* The decoder does not say of these that they clear flags, too. */
static bool clears_flags(ZydisMnemonic mnemonic)
{
    return mnemonic == ZYDIS_MNEMONIC_PTEST || mnemonic == ZYDIS_MNEMONIC_VPTEST ||
           mnemonic == ZYDIS_MNEMONIC_VTESTPS || mnemonic == ZYDIS_MNEMONIC_VTESTPD;
}

static void write_flags(struct tbd_build *b)
{
    const ZydisAccessedFlags *flags = b->insn.cpu_flags;
    uint64_t written = flags ? flags->modified | flags->set_0 | flags->set_1 | flags->undefined : 0;

    if (clears_flags(b->insn.mnemonic))
        written |= TBD_STATUS_FLAGS;
    if (written & TBD_STATUS_FLAGS)
        tbd_build_flags(b, TBD_STATUS_FLAGS & ~written);
    if (written & (1u << 10))
        tbd_build_write_place(b, TBD_PLACE_DF, tbd_build_slot(b));
}

/* Writes more than its operands say. */
static bool is_system(const struct tbd_build *b)
{
    switch (b->insn.meta.category) {
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_RDWRFSGS:
    case ZYDIS_CATEGORY_SEGOP:
    case ZYDIS_CATEGORY_VTX:
    case ZYDIS_CATEGORY_AMX_TILE:
    case ZYDIS_CATEGORY_UINTR:
    case ZYDIS_CATEGORY_MOVDIR:
    case ZYDIS_CATEGORY_ENQCMD:
    case ZYDIS_CATEGORY_CLZERO:
    case ZYDIS_CATEGORY_PADLOCK:
    case ZYDIS_CATEGORY_KEYLOCKER:
    case ZYDIS_CATEGORY_KEYLOCKER_WIDE:
    case ZYDIS_CATEGORY_SGX: break;
    default: return b->insn.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    }
    return b->insn.mnemonic != ZYDIS_MNEMONIC_RDTSC && b->insn.mnemonic != ZYDIS_MNEMONIC_RDTSCP &&
           b->insn.mnemonic != ZYDIS_MNEMONIC_RDFSBASE &&
           b->insn.mnemonic != ZYDIS_MNEMONIC_RDGSBASE;
}

void tbd_build_unknown(struct tbd_build *b)
{
    if (is_system(b)) {
        b->out.kind = TBD_INSN_HAVOC;
        b->out.barrier = true;
        return;
    }
    b->out.kind = TBD_INSN_UNKNOWN;
    b->out.repeats = (b->insn.attributes &
                      (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
    b->out.indirect = b->insn.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE;
    for (unsigned i = 0; i < b->insn.operand_count; i++)
        write_operand(b, i);
    if (b->insn.meta.category == ZYDIS_CATEGORY_STRINGOP)
        write_string_registers(b);
    write_flags(b);
    if (b->full) {
        b->out = (struct tbd_sim_insn){ .address = b->address,
                                        .length = b->insn.length,
                                        .kind = TBD_INSN_HAVOC,
                                        .mnemonic = (uint16_t)b->insn.mnemonic,
                                        .barrier = true,
                                        .next = TBD_INSN_NO_SLOT };
    }
}
