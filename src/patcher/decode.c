// SPDX-License-Identifier: MIT
/* decode.c - one instruction as the translator needs it
 *
 * The only file that knows the decoder library's types.  What it does not understand in full it
 * classifies as TBD_INSN_SPECIAL, so that the engine executes it; it never guesses.
 *
 * D1  reads contains every register whose old value can reach the new state; a register that is
 *     written only in part, or only sometimes, is in reads too.
 * D2  An access' address is a function of registers before the instruction.
 */
#include "patcher/decode.h"

#include "patcher/patcher.h"

#include <Zydis/Decoder.h>

static struct {
    struct tbd_decoder_api api;
    ZydisDecoder decoder;
} state;

struct zinsn {
    ZydisDecodedInstruction i;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

void tbd_decode_set_api(const struct tbd_decoder_api *api)
{
    state.api = *api;
}

void tbd_decode_init(void)
{
    state.api.init(&state.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

/* General register number of any width; TBD_NO_REG for others. */
static uint8_t gpr_number(ZydisRegister r)
{
    if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15)
        return (uint8_t)(r - ZYDIS_REGISTER_RAX);
    if (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D)
        return (uint8_t)(r - ZYDIS_REGISTER_EAX);
    if (r >= ZYDIS_REGISTER_AX && r <= ZYDIS_REGISTER_R15W)
        return (uint8_t)(r - ZYDIS_REGISTER_AX);
    if (r >= ZYDIS_REGISTER_AL && r <= ZYDIS_REGISTER_BL)
        return (uint8_t)(r - ZYDIS_REGISTER_AL);
    if (r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH)
        return (uint8_t)(r - ZYDIS_REGISTER_AH);
    if (r >= ZYDIS_REGISTER_SPL && r <= ZYDIS_REGISTER_R15B)
        return (uint8_t)(r - ZYDIS_REGISTER_SPL + 4);
    return TBD_NO_REG;
}

static bool is_wide(ZydisRegister r)
{
    return (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15) ||
           (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D);
}

static bool is_visible_memory(const ZydisDecodedOperand *op)
{
    return op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
           op->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
}

/* ---- what kind of instruction ---- */

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
    case ZYDIS_MNEMONIC_TILESTORED:
    case ZYDIS_MNEMONIC_STTILECFG: return TBD_SPECIAL_OTHER_STORE;
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU: return TBD_SPECIAL_MASKED_STORE;
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
    case ZYDIS_MNEMONIC_SGDT: /* another one on every processor */
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

static bool raises_signal(const struct zinsn *z)
{
    switch (z->i.mnemonic) {
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3: return true;
    case ZYDIS_MNEMONIC_INT: return z->op[0].imm.value.u != 0x80;
    case ZYDIS_MNEMONIC_INCSSPD: /* there are no shadow stacks here (D9) */
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
    case ZYDIS_MNEMONIC_MOVSD: /* also the SSE one, which takes no rep prefix as repetition */
    case ZYDIS_MNEMONIC_MOVSQ:
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSW:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ: return true;
    default: return false;
    }
}

static bool is_bit_test(ZydisMnemonic m)
{
    return m == ZYDIS_MNEMONIC_BT || m == ZYDIS_MNEMONIC_BTS || m == ZYDIS_MNEMONIC_BTR ||
           m == ZYDIS_MNEMONIC_BTC;
}

/* A store of which the bytes depend on a mask. */
static bool is_masked_store(const struct zinsn *z, const ZydisDecodedOperand *op)
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

static uint8_t special_by_operand(const struct zinsn *z, const ZydisDecodedOperand *op)
{
    if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
        if (op->reg.value < ZYDIS_REGISTER_ES || op->reg.value > ZYDIS_REGISTER_GS ||
            op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
            return 0;
        return op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? TBD_SPECIAL_SEGMENT : TBD_SPECIAL_STATE;
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

/* Any of the six, also where it means nothing: before a memory operand gs would not count. */
static bool has_segment_prefix(const struct zinsn *z)
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

/* Hints and cache maintenance name memory but do not access it. */
static bool only_names_memory(const struct zinsn *z)
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

/* The operand that is relative to gs base; NULL if there is none, or it is never accessed. */
static const ZydisDecodedOperand *gs_operand(const struct zinsn *z)
{
    switch (z->i.meta.category) {
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1: return NULL;
    default: break;
    }
    for (unsigned n = 0; n < z->i.operand_count; n++)
        if (z->op[n].type == ZYDIS_OPERAND_TYPE_MEMORY && z->op[n].mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
            z->op[n].mem.segment == ZYDIS_REGISTER_GS)
            return &z->op[n];
    return NULL;
}

/* One address, known before the instruction, which can stand in a register (patcher/reencode.c). */
static bool is_simple_gs(const struct zinsn *z, const ZydisDecodedOperand *op)
{
    if (op->mem.type != ZYDIS_MEMOP_TYPE_MEM || is_masked_store(z, op) || only_names_memory(z))
        return false;
    if (z->i.mnemonic == ZYDIS_MNEMONIC_XLAT)
        return z->i.address_width == 64;
    return op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM ||
           op->encoding == ZYDIS_OPERAND_ENCODING_DISP16_32_64;
}

/* The processor keeps the operand's address: it must not be that of another register, which has the base in it. */
static bool is_x87(const struct zinsn *z)
{
    return z->i.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && z->i.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
           z->i.opcode >= 0xd8 && z->i.opcode <= 0xdf;
}

static uint8_t special_string(const struct zinsn *z)
{
    bool repeats =
        z->i.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);

    if (!repeats || z->i.meta.category != ZYDIS_CATEGORY_STRINGOP)
        return 0;
    return is_string_store(z->i.mnemonic)  ? TBD_SPECIAL_REP_STORE
           : is_string_load(z->i.mnemonic) ? TBD_SPECIAL_LOADS
                                           : 0;
}

static uint8_t special_of(const struct zinsn *z)
{
    const ZydisDecodedOperand *gs = gs_operand(z);
    uint8_t special = special_by_mnemonic(z->i.mnemonic);

    if (!special)
        special = special_string(z);
    for (unsigned n = 0; n < z->i.operand_count && !special; n++)
        special = special_by_operand(z, &z->op[n]);
    if (!special && gs && (!is_simple_gs(z, gs) || is_x87(z)))
        special = TBD_SPECIAL_APART;
    return special;
}

static uint8_t transfer_kind(const struct zinsn *z)
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
static bool has_no_effect(const struct zinsn *z)
{
    if (z->i.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
        return true;
    return z->i.mnemonic == ZYDIS_MNEMONIC_NOP &&
           z->i.opcode == (z->i.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ? 0x90 : 0x1f);
}

static void classify(struct tbd_insn *out, const struct zinsn *z)
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

/* ---- registers ---- */

static void add_register(struct tbd_insn *out, const ZydisDecodedOperand *op)
{
    uint8_t r = gpr_number(op->reg.value);
    bool writes = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    bool always = (op->actions & ZYDIS_OPERAND_ACTION_WRITE) && is_wide(op->reg.value);

    if (r == TBD_NO_REG)
        return;
    if (writes)
        out->writes |= TBD_BIT(r);
    if (writes && always)
        out->kills |= TBD_BIT(r);
    if ((op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) || !always)
        out->reads |= TBD_BIT(r);
}

static void add_address_registers(struct tbd_insn *out, const ZydisDecodedOperand *op)
{
    uint8_t base = gpr_number(op->mem.base);
    uint8_t index = gpr_number(op->mem.index);

    if (base != TBD_NO_REG)
        out->reads |= TBD_BIT(base);
    if (index != TBD_NO_REG)
        out->reads |= TBD_BIT(index);
}

/* bsf, bsr with a zero source leave the destination as it was, and so does rdssp without a shadow stack. */
static bool keeps_destination(ZydisMnemonic m)
{
    return m == ZYDIS_MNEMONIC_BSF || m == ZYDIS_MNEMONIC_BSR || m == ZYDIS_MNEMONIC_RDSSPD ||
           m == ZYDIS_MNEMONIC_RDSSPQ;
}

static bool is_zeroing(const struct zinsn *z)
{
    return (z->i.mnemonic == ZYDIS_MNEMONIC_XOR || z->i.mnemonic == ZYDIS_MNEMONIC_SUB) &&
           z->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           z->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           z->op[0].reg.value == z->op[1].reg.value && is_wide(z->op[0].reg.value);
}

/* f3 49 90: the library says pause, processors exchange rax and r8. */
static bool is_hidden_exchange(const struct zinsn *z)
{
    return z->i.mnemonic == ZYDIS_MNEMONIC_PAUSE && (z->i.attributes & ZYDIS_ATTRIB_HAS_REX) &&
           z->i.raw.rex.B;
}

/* String instructions step their pointers; the library does not say so. */
static void add_stepped_pointers(struct tbd_insn *out, const struct zinsn *z)
{
    for (unsigned n = 0; n < z->i.operand_count; n++)
        if (z->op[n].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            gpr_number(z->op[n].mem.base) != TBD_NO_REG)
            out->writes |= TBD_BIT(gpr_number(z->op[n].mem.base));
}

static void collect_registers(struct tbd_insn *out, const struct zinsn *z)
{
    for (unsigned n = 0; n < z->i.operand_count; n++) {
        if (z->op[n].type == ZYDIS_OPERAND_TYPE_REGISTER)
            add_register(out, &z->op[n]);
        else if (z->op[n].type == ZYDIS_OPERAND_TYPE_MEMORY)
            add_address_registers(out, &z->op[n]);
    }
    if (z->i.meta.category == ZYDIS_CATEGORY_STRINGOP)
        add_stepped_pointers(out, z);
    if (keeps_destination(z->i.mnemonic))
        out->reads |= out->writes;
    if (is_hidden_exchange(z))
        out->reads = out->writes = TBD_BIT(TBD_RAX) | TBD_BIT(TBD_R8);
    if (is_zeroing(z))
        out->reads = 0;
    out->kills &= (uint16_t)~out->reads;
}

/* Reserved nops: what looks like a register can be part of the opcode of a later hint. */
static bool only_names_registers(const struct zinsn *z)
{
    return z->i.meta.category == ZYDIS_CATEGORY_NOP || z->i.meta.category == ZYDIS_CATEGORY_WIDENOP;
}

static void collect_fields(struct tbd_insn *out, const struct zinsn *z)
{
    static const uint8_t field_of[] = {
        [ZYDIS_OPERAND_ENCODING_MODRM_REG] = TBD_FIELD_REG,
        [ZYDIS_OPERAND_ENCODING_MODRM_RM] = TBD_FIELD_RM,
        [ZYDIS_OPERAND_ENCODING_OPCODE] = TBD_FIELD_OPCODE,
        [ZYDIS_OPERAND_ENCODING_NDSNDD] = TBD_FIELD_VVVV,
    };

    for (unsigned n = 0; n < TBD_FIELD_COUNT; n++)
        out->field[n] = TBD_NO_REG;
    if (only_names_registers(z))
        return;
    for (unsigned n = 0; n < z->i.operand_count; n++) {
        const ZydisDecodedOperand *op = &z->op[n];

        if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
            op->encoding >= ZYDIS_OPERAND_ENCODING_MODRM_REG &&
            op->encoding <= ZYDIS_OPERAND_ENCODING_NDSNDD) {
            uint8_t r = gpr_number(op->reg.value);

            if (r != TBD_NO_REG)
                out->field[field_of[op->encoding]] = r;
        }
        if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
            op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM) {
            out->field[TBD_FIELD_BASE] = gpr_number(op->mem.base);
            out->field[TBD_FIELD_INDEX] = gpr_number(op->mem.index);
        }
    }
}

static void collect_bytes(struct tbd_insn *out, const ZydisDecodedInstruction *i)
{
    out->opcode = i->opcode;
    out->modrm_at = (i->attributes & ZYDIS_ATTRIB_HAS_MODRM) ? i->raw.modrm.offset : 0;
    out->opcode_at = (uint8_t)(i->raw.imm[0].size ? i->raw.imm[0].offset - 1 : i->length - 1);
    out->prefix_at = TBD_NO_REG;
    if (i->attributes & ZYDIS_ATTRIB_HAS_VEX) {
        out->prefix_at = i->raw.vex.offset;
        out->prefix_bytes = i->raw.vex.size;
    } else if (i->attributes & ZYDIS_ATTRIB_HAS_EVEX) {
        out->prefix_at = i->raw.evex.offset;
        out->prefix_bytes = 4;
    } else if (i->attributes & ZYDIS_ATTRIB_HAS_XOP) {
        out->prefix_at = i->raw.xop.offset;
        out->prefix_bytes = 3;
    } else if (i->attributes & ZYDIS_ATTRIB_HAS_REX) {
        out->prefix_at = i->raw.rex.offset;
        out->prefix_bytes = 1;
    }
}

/* ---- memory ---- */

/* With address-size prefix the sum is cut to 32 bits. */
static bool is_relative(const ZydisDecodedOperand *op)
{
    return op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_EIP;
}

static struct tbd_ea make_ea(const struct zinsn *z, const struct tbd_insn *insn,
                             const ZydisDecodedOperand *op)
{
    struct tbd_ea ea = {
        .disp = op->mem.disp.has_displacement ? op->mem.disp.value : 0,
        .base = gpr_number(op->mem.base),
        .index = gpr_number(op->mem.index),
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

static void add_memory_operand(struct tbd_insn *out, const struct zinsn *z,
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
    if (is_bit_test(z->i.mnemonic) && z->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
        out->access[out->access_count - 1].flags |= TBD_ACCESS_BITS;
        out->access[out->access_count - 1].bit_reg = gpr_number(z->op[1].reg.value);
    }
}

/* Stack accesses, which the library describes as hidden operands, from the mnemonic. */
static bool add_stack_access(struct tbd_insn *out, const struct zinsn *z)
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
static void collect_accesses(struct tbd_insn *out, const struct zinsn *z)
{
    bool stack_first = z->i.mnemonic == ZYDIS_MNEMONIC_POP;
    bool stack = stack_first && add_stack_access(out, z);
    bool hidden_is_stack = false;

    if (only_names_memory(z))
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
            if (hidden_is_stack && !is_visible_memory(op))
                continue;
            add_memory_operand(out, z, op);
        }
    if (!stack)
        add_stack_access(out, z);
}

/* For the address of an operand: what can stand as a base in a ModRM byte alone, without an extension bit. */
#define PLAIN_BASES                                                                                \
    (TBD_BIT(TBD_RAX) | TBD_BIT(TBD_RCX) | TBD_BIT(TBD_RDX) | TBD_BIT(TBD_RBX) | TBD_BIT(TBD_RSI) | \
     TBD_BIT(TBD_RDI))

static void collect_gs(struct tbd_insn *out, const struct zinsn *z)
{
    if (!gs_operand(z))
        return;
    out->gs = true;
    if (out->kind != TBD_INSN_SPECIAL && !(PLAIN_BASES & ~(out->reads | out->writes))) {
        out->kind = TBD_INSN_SPECIAL;
        out->special = TBD_SPECIAL_APART;
    }
}

static void collect_rip_relative(struct tbd_insn *out, const struct zinsn *z)
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

/* ---- copies, for addresses relative to a recorded one ---- */

static void set_copy(struct tbd_insn *out, uint8_t dst, uint8_t src, int64_t add)
{
    out->copy_dst = dst;
    out->copy_src = src;
    out->copy_add = add;
}

static bool is_gpr64(const ZydisDecodedOperand *op)
{
    return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value >= ZYDIS_REGISTER_RAX &&
           op->reg.value <= ZYDIS_REGISTER_R15;
}

static void collect_copy(struct tbd_insn *out, const struct zinsn *z)
{
    const ZydisDecodedOperand *a = &z->op[0];
    const ZydisDecodedOperand *b = &z->op[1];
    bool immediate = b->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

    out->copy_dst = TBD_NO_REG;
    if (z->i.operand_count < 2 || !is_gpr64(a))
        return;
    switch (z->i.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
        if (is_gpr64(b))
            set_copy(out, gpr_number(a->reg.value), gpr_number(b->reg.value), 0);
        break;
    case ZYDIS_MNEMONIC_LEA:
        if (gpr_number(b->mem.base) != TBD_NO_REG && b->mem.index == ZYDIS_REGISTER_NONE &&
            z->i.address_width == 64)
            set_copy(out, gpr_number(a->reg.value), gpr_number(b->mem.base), b->mem.disp.value);
        break;
    case ZYDIS_MNEMONIC_ADD:
        if (immediate)
            set_copy(out, gpr_number(a->reg.value), gpr_number(a->reg.value), b->imm.value.s);
        break;
    case ZYDIS_MNEMONIC_SUB:
        if (immediate)
            set_copy(out, gpr_number(a->reg.value), gpr_number(a->reg.value), -b->imm.value.s);
        break;
    default: break;
    }
}

static void collect_stack_add(struct tbd_insn *out, const struct zinsn *z)
{
    int size = z->i.operand_width / 8;

    switch (z->i.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFQ: out->stack_add = (int8_t)-size; break;
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
        if (!is_gpr64(&z->op[0]) || z->op[0].reg.value != ZYDIS_REGISTER_RSP)
            out->stack_add = (int8_t)size;
        break;
    default: break;
    }
}

/* ---- r14 and r15 as memory operands ---- */

static bool takes_memory_alike(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_TEST:
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
    case ZYDIS_MNEMONIC_NEG:
    case ZYDIS_MNEMONIC_NOT:
    case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR: return true;
    default: return false;
    }
}

static bool is_named_once(const struct tbd_insn *insn, uint8_t r)
{
    unsigned count = 0;

    for (unsigned f = 0; f < TBD_FIELD_COUNT; f++)
        count += insn->field[f] == r;
    return count == 1;
}

/* A write of 32 bits clears the upper half of a register but not of memory; a segment register is
 * 16 bits in memory (mov, opcode 8c). */
static bool same_effect_in_memory(const struct zinsn *z, const ZydisDecodedOperand *op)
{
    if (z->i.mnemonic == ZYDIS_MNEMONIC_MOV && z->i.opcode == 0x8c)
        return false;
    return !(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) || op->size != 32;
}

static uint8_t find_slot_form(const struct tbd_insn *insn, const struct zinsn *z)
{
    if (z->i.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || !takes_memory_alike(z->i.mnemonic) ||
        (z->i.attributes & ZYDIS_ATTRIB_HAS_LOCK) || has_segment_prefix(z) || z->i.address_width != 64)
        return TBD_NO_REG;
    for (unsigned n = 0; n < z->i.operand_count_visible; n++) {
        const ZydisDecodedOperand *op = &z->op[n];
        bool push_pop =
            op->encoding == ZYDIS_OPERAND_ENCODING_OPCODE && insn->stack_add != 0 && op->size == 64;
        uint8_t r =
            op->type == ZYDIS_OPERAND_TYPE_REGISTER ? gpr_number(op->reg.value) : TBD_NO_REG;

        if ((r == TBD_R14 || r == TBD_R15) &&
            (op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM || push_pop) &&
            is_named_once(insn, r) && same_effect_in_memory(z, op))
            return r;
    }
    return TBD_NO_REG;
}

static void collect_target(struct tbd_insn *out, const struct zinsn *z)
{
    if (z->op[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return;
    if (out->kind == TBD_INSN_RETURN)
        out->pop_bytes = (uint16_t)z->op[0].imm.value.u;
    else if (z->op[0].imm.is_relative)
        out->target = out->pc + out->length + z->op[0].imm.value.u;
}

/* No base: mod 00 and SIB base 101, whatever the extension bit.  With address-size prefix the library (4.0)
 * says r13d and forgets the displacement. */
static void correct_base(struct zinsn *z)
{
    if (!z->i.raw.sib.offset || z->i.raw.modrm.mod != 0 || z->i.raw.sib.base != 5)
        return;
    for (unsigned n = 0; n < z->i.operand_count; n++) {
        if (z->op[n].type != ZYDIS_OPERAND_TYPE_MEMORY ||
            z->op[n].encoding != ZYDIS_OPERAND_ENCODING_MODRM_RM)
            continue;
        z->op[n].mem.base = ZYDIS_REGISTER_NONE;
        z->op[n].mem.disp.has_displacement = true;
        z->op[n].mem.disp.value = z->i.raw.disp.value;
    }
}

uint32_t tbd_decode_operand_bytes(const uint8_t *modrm)
{
    uint32_t mod = modrm[0] >> 6;
    bool has_sib = (modrm[0] & 7) == 4;
    bool has_disp32 = mod == 2 || (mod == 0 && ((modrm[0] & 7) == 5 || (has_sib && (modrm[1] & 7) == 5)));

    return (has_sib ? 1u : 0u) + (mod == 1 ? 1u : has_disp32 ? 4u : 0u);
}

bool tbd_decode_is_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65:
    case 0x66: case 0x67: case 0xf0: case 0xf2: case 0xf3:
        return true;
    default:
        return false;
    }
}

bool tbd_decode(struct tbd_insn *out, uint64_t pc, const uint8_t *bytes, size_t limit)
{
    struct zinsn z;

    *out = (struct tbd_insn){ .pc = pc, .bytes = bytes };
    if (state.api.decode_full(&state.decoder, bytes, limit, &z.i, z.op) & 0x80000000u)
        return false;
    correct_base(&z);
    out->length = z.i.length;
    classify(out, &z);
    collect_registers(out, &z);
    collect_fields(out, &z);
    collect_bytes(out, &z.i);
    collect_target(out, &z);
    collect_copy(out, &z);
    collect_stack_add(out, &z);
    out->slot_form = find_slot_form(out, &z);
    if (out->kind == TBD_INSN_NOP || out->kind == TBD_INSN_BAD || out->kind == TBD_INSN_SYSCALL)
        return true;
    collect_accesses(out, &z);
    collect_gs(out, &z);
    if (!out->gs)
        collect_rip_relative(out, &z);
    return true;
}
