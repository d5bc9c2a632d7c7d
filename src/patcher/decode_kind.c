// SPDX-License-Identifier: MIT
/* decode_kind.c - classifies instructions: where they lead, and whether the engine must execute
 * them
 *
 * An instruction that is not fully understood is TBD_INSN_SPECIAL, so that the engine executes it;
 * nothing is guessed. */
#include "patcher/decode_private.h"

static uint8_t special_by_mnemonic(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_RDTSC: return TBD_SPECIAL_RDTSC;
    case ZYDIS_MNEMONIC_RDTSCP: return TBD_SPECIAL_RDTSCP;
    case ZYDIS_MNEMONIC_CPUID: return TBD_SPECIAL_CPUID;
    case ZYDIS_MNEMONIC_RDRAND: return TBD_SPECIAL_RDRAND;
    case ZYDIS_MNEMONIC_RDSEED: return TBD_SPECIAL_RDSEED;
    case ZYDIS_MNEMONIC_RDPID: return TBD_SPECIAL_RDPID;
    case ZYDIS_MNEMONIC_XGETBV: return TBD_SPECIAL_XGETBV;
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEC:
    case ZYDIS_MNEMONIC_XSAVEC64:
    case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64: return TBD_SPECIAL_XSAVE;
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FNSTENV:
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_CLZERO:
    case ZYDIS_MNEMONIC_MOVDIR64B:
    case ZYDIS_MNEMONIC_STTILECFG: return TBD_SPECIAL_OTHER_STORE;
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
    case ZYDIS_MNEMONIC_TILESTORED: return TBD_SPECIAL_MASKED_STORE;
    case ZYDIS_MNEMONIC_TILELOADD:
    case ZYDIS_MNEMONIC_TILELOADDT1: return TBD_SPECIAL_LOADS;
    case ZYDIS_MNEMONIC_RDFSBASE: return TBD_SPECIAL_RDFSBASE;
    case ZYDIS_MNEMONIC_WRFSBASE: return TBD_SPECIAL_WRFSBASE;
    case ZYDIS_MNEMONIC_RDGSBASE: return TBD_SPECIAL_RDGSBASE;
    case ZYDIS_MNEMONIC_WRGSBASE: return TBD_SPECIAL_WRGSBASE;
    case ZYDIS_MNEMONIC_XEND:
    case ZYDIS_MNEMONIC_XTEST:
    case ZYDIS_MNEMONIC_XABORT:
    case ZYDIS_MNEMONIC_LAR:
    case ZYDIS_MNEMONIC_LSL:
    case ZYDIS_MNEMONIC_VERR:
    case ZYDIS_MNEMONIC_VERW:
    case ZYDIS_MNEMONIC_SLDT:
    case ZYDIS_MNEMONIC_STR:
    case ZYDIS_MNEMONIC_SMSW:
    case ZYDIS_MNEMONIC_SGDT: /* differs between processors */
    case ZYDIS_MNEMONIC_SIDT:
    case ZYDIS_MNEMONIC_RDPMC:
    case ZYDIS_MNEMONIC_RDPRU: return TBD_SPECIAL_STATE;
    case ZYDIS_MNEMONIC_XBEGIN: return TBD_SPECIAL_XBEGIN;
    case ZYDIS_MNEMONIC_LFS:
    case ZYDIS_MNEMONIC_LGS:
    case ZYDIS_MNEMONIC_LSS: return TBD_SPECIAL_SEGMENT;
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_ENQCMD:
    case ZYDIS_MNEMONIC_VMCALL:
    case ZYDIS_MNEMONIC_VMMCALL: return TBD_SPECIAL_OTHER;
    default: return 0;
    }
}

static bool raises_signal(const struct tbd_zinsn *z)
{
    switch (z->i.mnemonic) {
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3: return true;
    case ZYDIS_MNEMONIC_INT: return z->op[0].imm.value.u != 0x80;
    case ZYDIS_MNEMONIC_INCSSPD: /* there are no shadow stacks here */
    case ZYDIS_MNEMONIC_INCSSPQ:
    case ZYDIS_MNEMONIC_RSTORSSP:
    case ZYDIS_MNEMONIC_SAVEPREVSSP:
    case ZYDIS_MNEMONIC_WRSSD:
    case ZYDIS_MNEMONIC_WRSSQ: return true;
    default:
        return (z->i.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) ||
               z->i.meta.category == ZYDIS_CATEGORY_IO ||
               z->i.meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
    }
}

static bool is_string_store(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSD: /* also the SSE one, whose rep prefix does not repeat */
    case ZYDIS_MNEMONIC_MOVSQ:
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSW:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ: return true;
    default: return false;
    }
}

bool tbd_decode_is_bit_test(ZydisMnemonic m)
{
    return m == ZYDIS_MNEMONIC_BT || m == ZYDIS_MNEMONIC_BTS || m == ZYDIS_MNEMONIC_BTR ||
           m == ZYDIS_MNEMONIC_BTC;
}

/* Is it a store whose bytes depend on a mask? */
static bool is_masked_store(const struct tbd_zinsn *z, const ZydisDecodedOperand *op)
{
    if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
        return false;
    if (op->mem.type == ZYDIS_MEMOP_TYPE_VSIB)
        return true;
    switch (z->i.mnemonic) {
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ: return true;
    default: break;
    }
    return z->i.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX &&
           z->i.avx.mask.reg != ZYDIS_REGISTER_NONE && z->i.avx.mask.reg != ZYDIS_REGISTER_K0;
}

static uint8_t special_by_operand(const struct tbd_zinsn *z, const ZydisDecodedOperand *op)
{
    if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
        if (op->reg.value < ZYDIS_REGISTER_ES || op->reg.value > ZYDIS_REGISTER_GS ||
            op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
            return 0;
        return op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? TBD_SPECIAL_SEGMENT
                                                             : TBD_SPECIAL_STATE;
    }
    if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
        return 0;
    if (is_masked_store(z, op))
        return TBD_SPECIAL_MASKED_STORE;
    if (op->mem.type == ZYDIS_MEMOP_TYPE_VSIB && z->i.meta.category != ZYDIS_CATEGORY_PREFETCH)
        return TBD_SPECIAL_LOADS;
    if (op->mem.type == ZYDIS_MEMOP_TYPE_MIB && z->i.meta.category != ZYDIS_CATEGORY_MPX)
        return TBD_SPECIAL_OTHER;
    return 0;
}

bool tbd_decode_has_segment_prefix(const struct tbd_zinsn *z)
{
    for (unsigned n = 0; n < z->i.raw.prefix_count; n++)
        switch (z->i.raw.prefixes[n].value) {
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0x64:
        case 0x65: return true;
        default: break;
        }
    return false;
}

static bool is_string_load(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_LODSB:
    case ZYDIS_MNEMONIC_LODSW:
    case ZYDIS_MNEMONIC_LODSD:
    case ZYDIS_MNEMONIC_LODSQ:
    case ZYDIS_MNEMONIC_SCASB:
    case ZYDIS_MNEMONIC_SCASW:
    case ZYDIS_MNEMONIC_SCASD:
    case ZYDIS_MNEMONIC_SCASQ:
    case ZYDIS_MNEMONIC_CMPSB:
    case ZYDIS_MNEMONIC_CMPSW:
    case ZYDIS_MNEMONIC_CMPSD:
    case ZYDIS_MNEMONIC_CMPSQ: return true;
    default: return false;
    }
}

bool tbd_decode_only_names_memory(const struct tbd_zinsn *z)
{
    switch (z->i.meta.category) {
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1:
    case ZYDIS_CATEGORY_CLDEMOTE:
    case ZYDIS_CATEGORY_CLFLUSHOPT:
    case ZYDIS_CATEGORY_CLWB:
    case ZYDIS_CATEGORY_MPX: /* nops: the kernel does not enable it any more */ return true;
    default: return z->i.mnemonic == ZYDIS_MNEMONIC_CLFLUSH;
    }
}

const ZydisDecodedOperand *tbd_decode_gs_operand(const struct tbd_zinsn *z)
{
    switch (z->i.meta.category) {
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1: return NULL;
    default: break;
    }
    for (unsigned n = 0; n < z->i.operand_count; n++)
        if (z->op[n].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            z->op[n].mem.type != ZYDIS_MEMOP_TYPE_AGEN && z->op[n].mem.segment == ZYDIS_REGISTER_GS)
            return &z->op[n];
    return NULL;
}

/* Is it one address, known before the instruction, that can be put into a register
 * (patcher/reencode.c)? */
static bool is_simple_gs(const struct tbd_zinsn *z, const ZydisDecodedOperand *op)
{
    if (op->mem.type != ZYDIS_MEMOP_TYPE_MEM || is_masked_store(z, op) ||
        tbd_decode_only_names_memory(z))
        return false;
    if (z->i.mnemonic == ZYDIS_MNEMONIC_XLAT)
        return z->i.address_width == 64;
    return op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM ||
           op->encoding == ZYDIS_OPERAND_ENCODING_DISP16_32_64;
}

/* The processor keeps the operand's address (FDP), which must not be relative to a substitute
 * register. */
static bool is_x87(const struct tbd_zinsn *z)
{
    return z->i.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
           z->i.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && z->i.opcode >= 0xd8 &&
           z->i.opcode <= 0xdf;
}

static uint8_t special_string(const struct tbd_zinsn *z)
{
    bool repeats =
        z->i.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);

    if (!repeats || z->i.meta.category != ZYDIS_CATEGORY_STRINGOP)
        return 0;
    return is_string_store(z->i.mnemonic)  ? TBD_SPECIAL_REP_STORE
           : is_string_load(z->i.mnemonic) ? TBD_SPECIAL_LOADS
                                           : 0;
}

static uint8_t special_of(const struct tbd_zinsn *z)
{
    const ZydisDecodedOperand *gs = tbd_decode_gs_operand(z);
    uint8_t special = special_by_mnemonic(z->i.mnemonic);

    if (!special)
        special = special_string(z);
    for (unsigned n = 0; n < z->i.operand_count && !special; n++)
        special = special_by_operand(z, &z->op[n]);
    if (!special && gs && (!is_simple_gs(z, gs) || is_x87(z)))
        special = TBD_SPECIAL_APART;
    return special;
}

static uint8_t transfer_kind(const struct tbd_zinsn *z)
{
    bool direct = z->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

    switch (z->i.meta.category) {
    case ZYDIS_CATEGORY_UNCOND_BR: return direct ? TBD_INSN_JUMP : TBD_INSN_JUMP_INDIRECT;
    case ZYDIS_CATEGORY_CALL: return direct ? TBD_INSN_CALL : TBD_INSN_CALL_INDIRECT;
    case ZYDIS_CATEGORY_RET: return TBD_INSN_RETURN;
    case ZYDIS_CATEGORY_COND_BR:
        return z->i.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && z->i.opcode >= 0xe0
                   ? TBD_INSN_BRANCH_RCX
                   : TBD_INSN_BRANCH;
    default: return TBD_INSN_PLAIN;
    }
}

/* 90 and 0f 1f; other reserved encodings called nop are undefined on some processors. */
static bool has_no_effect(const struct tbd_zinsn *z)
{
    if (z->i.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
        return true;
    return z->i.mnemonic == ZYDIS_MNEMONIC_NOP &&
           z->i.opcode == (z->i.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ? 0x90 : 0x1f);
}

void tbd_decode_classify(struct tbd_insn *out, const struct tbd_zinsn *z)
{
    bool is_nop = has_no_effect(z);

    out->kind = transfer_kind(z);
    if (z->i.mnemonic == ZYDIS_MNEMONIC_SYSCALL)
        out->kind = TBD_INSN_SYSCALL;
    if (is_nop)
        out->kind = TBD_INSN_NOP;
    out->special = is_nop || out->kind == TBD_INSN_SYSCALL ? 0 : special_of(z);
    if (out->kind != TBD_INSN_PLAIN && out->kind != TBD_INSN_NOP && out->kind != TBD_INSN_SYSCALL &&
        (z->i.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || z->i.operand_width == 16))
        out->special = TBD_SPECIAL_OTHER;
    if (out->special)
        out->kind = TBD_INSN_SPECIAL;
    if (raises_signal(z))
        out->kind = TBD_INSN_BAD;
}
