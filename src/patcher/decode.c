// SPDX-License-Identifier: MIT
/* decode.c - decodes one instruction for the translator: its registers, fields and copies
 *
 * What kind of instruction it is: decode_kind.c; which memory it touches: decode_memory.c.  In the
 * patcher only these three know the decoder library's types.
 *
 * DECODE-1  reads contains every register whose old value can reach the new state, also a register
 *     that is written only in part, or only sometimes. (not checked: test_patcher_random compares
 *     registers, flags and records with the processor's)
 * DECODE-2  An access' address is a function of registers before the instruction. (not checked:
 *     test_patcher_random compares registers, flags and records with the processor's) */
#include "patcher/decode.h"

#include "patcher/decode_private.h"
#include "patcher/patcher.h"

static struct {
    struct tbd_decoder_api api;
    ZydisDecoder decoder;
} state;

void tbd_decode_set_api(const struct tbd_decoder_api *api)
{
    state.api = *api;
}

void tbd_decode_init(void)
{
    state.api.init(&state.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

static bool is_wide(ZydisRegister r)
{
    return (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15) ||
           (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D);
}

/* ---- registers ---- */

static void add_register(struct tbd_insn *out, const ZydisDecodedOperand *op)
{
    uint8_t r = tbd_decode_gpr(op->reg.value);
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
    uint8_t base = tbd_decode_gpr(op->mem.base);
    uint8_t index = tbd_decode_gpr(op->mem.index);

    if (base != TBD_NO_REG)
        out->reads |= TBD_BIT(base);
    if (index != TBD_NO_REG)
        out->reads |= TBD_BIT(index);
}

/* bsf, bsr with a zero source leave the destination as it was, and so does rdssp without
 * a shadow stack. */
static bool keeps_destination(ZydisMnemonic m)
{
    return m == ZYDIS_MNEMONIC_BSF || m == ZYDIS_MNEMONIC_BSR || m == ZYDIS_MNEMONIC_RDSSPD ||
           m == ZYDIS_MNEMONIC_RDSSPQ;
}

static bool is_zeroing(const struct tbd_zinsn *z)
{
    return (z->i.mnemonic == ZYDIS_MNEMONIC_XOR || z->i.mnemonic == ZYDIS_MNEMONIC_SUB) &&
           z->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           z->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           z->op[0].reg.value == z->op[1].reg.value && is_wide(z->op[0].reg.value);
}

/* f3 49 90: the library says pause, processors exchange rax and r8. */
static bool is_hidden_exchange(const struct tbd_zinsn *z)
{
    return z->i.mnemonic == ZYDIS_MNEMONIC_PAUSE && (z->i.attributes & ZYDIS_ATTRIB_HAS_REX) &&
           z->i.raw.rex.B;
}

/* String instructions step their pointers; the library does not say so. */
static void add_stepped_pointers(struct tbd_insn *out, const struct tbd_zinsn *z)
{
    for (unsigned n = 0; n < z->i.operand_count; n++)
        if (z->op[n].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            tbd_decode_gpr(z->op[n].mem.base) != TBD_NO_REG)
            out->writes |= TBD_BIT(tbd_decode_gpr(z->op[n].mem.base));
}

static void collect_registers(struct tbd_insn *out, const struct tbd_zinsn *z)
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

/* Reserved nops: an apparent register can be part of the opcode of a newer hint. */
static bool only_names_registers(const struct tbd_zinsn *z)
{
    return z->i.meta.category == ZYDIS_CATEGORY_NOP || z->i.meta.category == ZYDIS_CATEGORY_WIDENOP;
}

static void collect_fields(struct tbd_insn *out, const struct tbd_zinsn *z)
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
            uint8_t r = tbd_decode_gpr(op->reg.value);

            if (r != TBD_NO_REG)
                out->field[field_of[op->encoding]] = r;
        }
        if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
            op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM) {
            out->field[TBD_FIELD_BASE] = tbd_decode_gpr(op->mem.base);
            out->field[TBD_FIELD_INDEX] = tbd_decode_gpr(op->mem.index);
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

/* ---- vector state ---- */

static bool is_general(ZydisRegister r)
{
    return tbd_decode_gpr(r) != TBD_NO_REG || r == ZYDIS_REGISTER_NONE ||
           (r >= ZYDIS_REGISTER_FLAGS && r <= ZYDIS_REGISTER_RIP) ||
           (r >= ZYDIS_REGISTER_ES && r <= ZYDIS_REGISTER_GS);
}

/* x87, which names few of its registers, and what saves and restores: 0f 77, 0f ae, 0f c7. */
static bool is_state_opcode(const ZydisDecodedInstruction *i)
{
    switch (i->opcode_map) {
    case ZYDIS_OPCODE_MAP_DEFAULT:
        return (i->opcode >= 0xd8 && i->opcode <= 0xdf) || i->opcode == 0x9b;
    case ZYDIS_OPCODE_MAP_0F:
        return i->opcode == 0x77 || i->opcode == 0xae || i->opcode == 0xc7 || i->opcode == 0x01;
    default: return false;
    }
}

static bool uses_vectors(const struct tbd_zinsn *z)
{
    if (is_state_opcode(&z->i))
        return true;
    for (unsigned n = 0; n < z->i.operand_count; n++)
        if (z->op[n].type == ZYDIS_OPERAND_TYPE_REGISTER && !is_general(z->op[n].reg.value))
            return true;
    return false;
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

static void collect_copy(struct tbd_insn *out, const struct tbd_zinsn *z)
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
            set_copy(out, tbd_decode_gpr(a->reg.value), tbd_decode_gpr(b->reg.value), 0);
        break;
    case ZYDIS_MNEMONIC_LEA:
        if (tbd_decode_gpr(b->mem.base) != TBD_NO_REG && b->mem.index == ZYDIS_REGISTER_NONE &&
            z->i.address_width == 64)
            set_copy(out, tbd_decode_gpr(a->reg.value), tbd_decode_gpr(b->mem.base),
                     b->mem.disp.value);
        break;
    case ZYDIS_MNEMONIC_ADD:
        if (immediate)
            set_copy(out, tbd_decode_gpr(a->reg.value), tbd_decode_gpr(a->reg.value),
                     b->imm.value.s);
        break;
    case ZYDIS_MNEMONIC_SUB:
        if (immediate)
            set_copy(out, tbd_decode_gpr(a->reg.value), tbd_decode_gpr(a->reg.value),
                     -b->imm.value.s);
        break;
    default: break;
    }
}

static void collect_stack_add(struct tbd_insn *out, const struct tbd_zinsn *z)
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
static bool same_effect_in_memory(const struct tbd_zinsn *z, const ZydisDecodedOperand *op)
{
    if (z->i.mnemonic == ZYDIS_MNEMONIC_MOV && z->i.opcode == 0x8c)
        return false;
    return !(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) || op->size != 32;
}

static uint8_t find_slot_form(const struct tbd_insn *insn, const struct tbd_zinsn *z)
{
    if (z->i.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || !takes_memory_alike(z->i.mnemonic) ||
        (z->i.attributes & ZYDIS_ATTRIB_HAS_LOCK) || tbd_decode_has_segment_prefix(z) ||
        z->i.address_width != 64)
        return TBD_NO_REG;
    for (unsigned n = 0; n < z->i.operand_count_visible; n++) {
        const ZydisDecodedOperand *op = &z->op[n];
        bool push_pop =
            op->encoding == ZYDIS_OPERAND_ENCODING_OPCODE && insn->stack_add != 0 && op->size == 64;
        uint8_t r =
            op->type == ZYDIS_OPERAND_TYPE_REGISTER ? tbd_decode_gpr(op->reg.value) : TBD_NO_REG;

        if ((r == TBD_R14 || r == TBD_R15) &&
            (op->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM || push_pop) &&
            is_named_once(insn, r) && same_effect_in_memory(z, op))
            return r;
    }
    return TBD_NO_REG;
}

static void collect_target(struct tbd_insn *out, const struct tbd_zinsn *z)
{
    if (z->op[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return;
    if (out->kind == TBD_INSN_RETURN)
        out->pop_bytes = (uint16_t)z->op[0].imm.value.u;
    else if (z->op[0].imm.is_relative)
        out->target = out->pc + out->length + z->op[0].imm.value.u;
}

/* No base: mod 00 and SIB base 101, whatever the extension bit.  With address-size prefix the
 * library (4.0) says r13d and forgets the displacement. */
static void correct_base(struct tbd_zinsn *z)
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
    bool has_disp32 =
        mod == 2 || (mod == 0 && ((modrm[0] & 7) == 5 || (has_sib && (modrm[1] & 7) == 5)));

    return (has_sib ? 1u : 0u) + (mod == 1 ? 1u : has_disp32 ? 4u : 0u);
}

bool tbd_decode_is_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3: return true;
    default: return false;
    }
}

bool tbd_decode(struct tbd_insn *out, uint64_t pc, const uint8_t *bytes, size_t limit)
{
    struct tbd_zinsn z;

    *out = (struct tbd_insn){ .pc = pc, .bytes = bytes };
    if (state.api.decode_full(&state.decoder, bytes, limit, &z.i, z.op) & 0x80000000u)
        return false;
    correct_base(&z);
    out->length = z.i.length;
    tbd_decode_classify(out, &z);
    collect_registers(out, &z);
    collect_fields(out, &z);
    collect_bytes(out, &z.i);
    collect_target(out, &z);
    out->uses_vectors = uses_vectors(&z);
    collect_copy(out, &z);
    collect_stack_add(out, &z);
    out->slot_form = find_slot_form(out, &z);
    if (out->kind == TBD_INSN_NOP || out->kind == TBD_INSN_BAD || out->kind == TBD_INSN_SYSCALL)
        return true;
    tbd_decode_accesses(out, &z);
    tbd_decode_gs(out, &z);
    if (!out->gs)
        tbd_decode_rip_relative(out, &z);
    return true;
}

uint32_t tbd_decode_length(const uint8_t *bytes, size_t limit)
{
    ZydisDecodedInstruction insn;

    return state.api.decode_instruction(&state.decoder, NULL, bytes, limit, &insn) & 0x80000000u
               ? 0
               : insn.length;
}

/* ---- by the bytes alone ---- */

static size_t skip_prefixes(const uint8_t *bytes, size_t limit)
{
    size_t at = 0;

    while (at < limit && tbd_decode_is_prefix(bytes[at]))
        at++;
    return at;
}

/* What VEX encodes in these two maps is mask registers' only: kand and so on, kmov, kortest; kshift. */
static bool is_mask_opcode(unsigned map, uint8_t opcode)
{
    switch (map) {
    case 1:
        return (opcode >= 0x41 && opcode <= 0x4b) || (opcode >= 0x90 && opcode <= 0x93) ||
               opcode == 0x98 || opcode == 0x99;
    case 3: return opcode >= 0x30 && opcode <= 0x33;
    default: return false;
    }
}

bool tbd_decode_is_wide(const uint8_t *bytes, size_t limit)
{
    size_t at = skip_prefixes(bytes, limit);

    if (at + 4 > limit)
        return false;
    switch (bytes[at]) {
    case 0x62: return true;
    case 0xc5: return is_mask_opcode(1, bytes[at + 2]);
    case 0xc4: return is_mask_opcode(bytes[at + 1] & 0x1f, bytes[at + 3]);
    default: return false;
    }
}

bool tbd_decode_is_tile(const uint8_t *bytes, size_t limit)
{
    size_t at = skip_prefixes(bytes, limit);

    if (at + 4 > limit || bytes[at] != 0xc4 || (bytes[at + 1] & 0x1f) != 2)
        return false;
    switch (bytes[at + 3]) {
    case 0x49: /* configuration, tilerelease, tilezero */
    case 0x4b: /* loads and stores */
    case 0x5c: /* products */
    case 0x5e:
    case 0x6c: return true;
    default: return false;
    }
}

/* Where the opcode is, after prefixes. */
static size_t opcode_place(const uint8_t *bytes, size_t limit)
{
    size_t at = skip_prefixes(bytes, limit);

    return at + (at < limit && (bytes[at] & 0xf0) == 0x40);
}

static bool is_memory_form(uint8_t modrm, unsigned reg)
{
    return modrm >> 6 != 3 && (modrm >> 3 & 7u) == reg;
}

bool tbd_decode_is_xrstor(const uint8_t *bytes, size_t limit)
{
    size_t at = opcode_place(bytes, limit);

    return at + 3 <= limit && bytes[at] == 0x0f && bytes[at + 1] == 0xae &&
           is_memory_form(bytes[at + 2], 5);
}

bool tbd_decode_is_popf(const uint8_t *bytes, size_t limit)
{
    size_t at = opcode_place(bytes, limit);

    return at < limit && bytes[at] == 0x9d;
}

bool tbd_decode_reads_processor(const uint8_t *bytes, size_t limit)
{
    size_t at = opcode_place(bytes, limit);

    if (at + 3 > limit || bytes[at] != 0x0f)
        return false;
    return bytes[at + 1] == 0x03 || (bytes[at + 1] == 0x01 && bytes[at + 2] == 0xfd);
}

bool tbd_decode_stores_x87(const uint8_t *bytes, size_t limit)
{
    size_t at = opcode_place(bytes, limit);

    if (at + 2 > limit)
        return false;
    switch (bytes[at]) {
    case 0xd9:
    case 0xdd: return is_memory_form(bytes[at + 1], 6);
    case 0x0f: return at + 3 <= limit && bytes[at + 1] == 0xae && is_memory_form(bytes[at + 2], 0);
    default: return false;
    }
}

/* hlt and int3, ud2 and ud1 stand after what does not return; instructions of shadow stacks, 0f 01, 0f ae, and 0f 38, in
 * C libraries, which ask first whether there are any. */
static bool may_raise_signal(const uint8_t *opcode)
{
    if (opcode[0] != 0x0f)
        return opcode[0] == 0xf4 || opcode[0] == 0xcc;
    switch (opcode[1]) {
    case 0x01:
    case 0x0b:
    case 0x38:
    case 0xae:
    case 0xb9: return true;
    default: return false;
    }
}

bool tbd_decode_is_odd(const uint8_t *bytes, size_t limit, uint32_t *out_length)
{
    struct tbd_insn insn;
    size_t opcode;

    *out_length = 1;
    if (!tbd_decode(&insn, 0, bytes, limit))
        return true;
    *out_length = insn.length;
    if (bytes[0] == 0 && bytes[1] == 0)
        return true;
    opcode = opcode_place(bytes, insn.length);
    if (insn.kind == TBD_INSN_BAD)
        return opcode >= insn.length || !may_raise_signal(bytes + opcode);
    return insn.kind == TBD_INSN_SPECIAL && insn.special == TBD_SPECIAL_OTHER;
}
