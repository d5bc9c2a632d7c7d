// SPDX-License-Identifier: MIT
/* slot_describe.c - finds the operands of an instruction in a slot, with the decoder; see
 * slot_private.h */
#include "hooks/instructions/slot_private.h"

static uint8_t register_number(ZydisRegister r)
{
    if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15)
        return (uint8_t)(r - ZYDIS_REGISTER_RAX);
    if (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D)
        return (uint8_t)(r - ZYDIS_REGISTER_EAX);
    return NONE;
}

/* Returns NONE, with 0 bytes, if it is not a vector register. */
static uint8_t vector_number(ZydisRegister r, uint32_t *out_bytes)
{
    *out_bytes = 0;
    if (r < ZYDIS_REGISTER_XMM0 || r > ZYDIS_REGISTER_ZMM31)
        return NONE;
    *out_bytes = r >= ZYDIS_REGISTER_ZMM0 ? 64 : r >= ZYDIS_REGISTER_YMM0 ? 32 : 16;
    return (uint8_t)(r - (r >= ZYDIS_REGISTER_ZMM0   ? ZYDIS_REGISTER_ZMM0
                          : r >= ZYDIS_REGISTER_YMM0 ? ZYDIS_REGISTER_YMM0
                                                     : ZYDIS_REGISTER_XMM0));
}

/* The `n`th vector register among the operands. */
static uint8_t vector_operand(const struct tbd_slot_decoded *d, unsigned n)
{
    uint32_t bytes;

    for (unsigned i = 0; i < d->insn.operand_count_visible; i++) {
        uint8_t number = d->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER
                             ? vector_number(d->operands[i].reg.value, &bytes)
                             : NONE;

        if (number != NONE && n-- == 0)
            return number;
    }
    return NONE;
}

/* The register whose elements' sign bits are the mask (AVX and AVX2). */
static uint8_t find_vector_mask(const struct tbd_slot_decoded *d)
{
    switch (d->insn.mnemonic) {
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ: return vector_operand(d, 0);
    default:
        return d->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX ? vector_operand(d, 1) : NONE;
    }
}

static void describe_vector_index(struct tbd_slot *slot, const struct tbd_slot_decoded *d,
                                  ZydisRegister r)
{
    uint32_t register_bytes;

    slot->vector_index = vector_number(r, &register_bytes);
    slot->vector_data = vector_operand(d, 0);
    switch (d->insn.mnemonic) {
    case ZYDIS_MNEMONIC_VSCATTERDPD:
    case ZYDIS_MNEMONIC_VSCATTERDPS:
    case ZYDIS_MNEMONIC_VPSCATTERDD:
    case ZYDIS_MNEMONIC_VPSCATTERDQ:
    case ZYDIS_MNEMONIC_VGATHERDPD:
    case ZYDIS_MNEMONIC_VGATHERDPS:
    case ZYDIS_MNEMONIC_VPGATHERDD:
    case ZYDIS_MNEMONIC_VPGATHERDQ: slot->index_bytes = 4; break;
    default: slot->index_bytes = 8; break;
    }
    slot->element_count = (uint16_t)(register_bytes / slot->index_bytes);
    if (slot->element_count > d->insn.avx.vector_length / 8 / slot->element_bytes)
        slot->element_count = (uint16_t)(d->insn.avx.vector_length / 8 / slot->element_bytes);
}

static uint8_t segment_of(const ZydisDecodedOperand *op)
{
    return op->mem.segment == ZYDIS_REGISTER_FS   ? SEGMENT_FS
           : op->mem.segment == ZYDIS_REGISTER_GS ? SEGMENT_GS
                                                  : SEGMENT_NONE;
}

/* enter pushes rbp, and more words if its second operand is not 0; the decoder only reports
 * [rsp]. */
static void describe_enter(struct tbd_slot *slot, const struct tbd_slot_decoded *d)
{
    uint16_t pushes = (uint16_t)(1 + (d->operands[1].imm.value.u & 31));

    slot->element_bytes = (uint16_t)(pushes * 8);
    slot->element_count = 1;
    slot->disp = -8 * (int64_t)pushes;
}

static bool is_compress(ZydisMnemonic mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_VCOMPRESSPD:
    case ZYDIS_MNEMONIC_VCOMPRESSPS:
    case ZYDIS_MNEMONIC_VPCOMPRESSB:
    case ZYDIS_MNEMONIC_VPCOMPRESSD:
    case ZYDIS_MNEMONIC_VPCOMPRESSQ:
    case ZYDIS_MNEMONIC_VPCOMPRESSW: return true;
    default: return false;
    }
}

/* tmm0 to tmm7, of an instruction that loads or stores it. */
static uint8_t find_tile(const struct tbd_slot_decoded *d)
{
    switch (d->insn.mnemonic) {
    case ZYDIS_MNEMONIC_TILELOADD:
    case ZYDIS_MNEMONIC_TILELOADDT1:
        return (uint8_t)(d->operands[0].reg.value - ZYDIS_REGISTER_TMM0);
    case ZYDIS_MNEMONIC_TILESTORED:
        return (uint8_t)(d->operands[1].reg.value - ZYDIS_REGISTER_TMM0);
    default: return NONE;
    }
}

/* As in patcher/decode.c: the library reports a wrong base with an address-size prefix. */
static bool has_no_base(const ZydisDecodedInstruction *insn)
{
    return insn->raw.sib.offset && insn->raw.modrm.mod == 0 && insn->raw.sib.base == 5;
}

static void describe_store(struct tbd_slot *slot, const struct tbd_slot_decoded *d,
                           const ZydisDecodedOperand *op)
{
    slot->has_store = true;
    slot->segment = segment_of(op);
    slot->base = register_number(op->mem.base);
    slot->index = register_number(op->mem.index);
    slot->scale = op->mem.scale;
    slot->disp = op->mem.disp.has_displacement ? op->mem.disp.value : 0;
    if (op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_EIP)
        slot->disp += (int64_t)(slot->pc + slot->length);
    if (op->mem.base == ZYDIS_REGISTER_EIP)
        slot->disp = (uint32_t)slot->disp;
    slot->element_bytes = op->element_size / 8;
    slot->element_count = op->element_count;
    if (!slot->element_bytes || slot->element_count > TBD_SLOT_MAX_RANGES ||
        (uint32_t)slot->element_bytes * slot->element_count != op->size / 8u) {
        slot->element_bytes = (uint16_t)(op->size / 8);
        slot->element_count = 1;
    }
    if (has_no_base(&d->insn)) {
        slot->base = NONE;
        slot->disp = d->insn.raw.disp.value;
    }
    if (op->mem.type == ZYDIS_MEMOP_TYPE_VSIB)
        describe_vector_index(slot, d, op->mem.index);
    if (d->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX &&
        d->insn.avx.mask.reg > ZYDIS_REGISTER_K0 && d->insn.avx.mask.reg <= ZYDIS_REGISTER_K7)
        slot->mask = (uint8_t)(d->insn.avx.mask.reg - ZYDIS_REGISTER_K0);
    slot->vector_mask = slot->element_count > 1 ? find_vector_mask(d) : NONE;
    slot->is_compress = is_compress(d->insn.mnemonic);
    if (d->insn.mnemonic == ZYDIS_MNEMONIC_ENTER)
        describe_enter(slot, d);
}

static void describe_string(struct tbd_slot *slot, const struct tbd_slot_decoded *d)
{
    if (d->insn.meta.category != ZYDIS_CATEGORY_STRINGOP)
        return;
    switch (d->insn.mnemonic) {
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSQ:
        slot->reads_string = true;
        slot->string_bytes = (uint8_t)(d->operands[0].size / 8);
        break;
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSW:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ: slot->string_bytes = (uint8_t)(d->operands[0].size / 8); break;
    default: break;
    }
}

/* Repeated lods, scas, cmps. */
static void describe_string_loads(struct tbd_slot *slot, const struct tbd_slot_decoded *d)
{
    struct tbd_string_loads *loads = &slot->string_loads;

    *loads = (struct tbd_string_loads){ 0 };
    if (d->insn.meta.category != ZYDIS_CATEGORY_STRINGOP || slot->string_bytes)
        return;
    for (unsigned i = 0; i < d->insn.operand_count; i++) {
        if (d->operands[i].type != ZYDIS_OPERAND_TYPE_MEMORY)
            continue;
        loads->bytes = d->operands[i].size / 8u;
        loads->from_rsi |= register_number(d->operands[i].mem.base) == TBD_RSI;
        loads->from_rdi |= register_number(d->operands[i].mem.base) == TBD_RDI;
    }
    loads->while_equal = d->insn.attributes & ZYDIS_ATTRIB_HAS_REPE;
    loads->until_equal = d->insn.attributes & ZYDIS_ATTRIB_HAS_REPNE;
    if (!loads->from_rdi) /* lods does not compare */
        loads->while_equal = loads->until_equal = false;
}

/* The segment of the operand at rsi: the only one that a prefix can change. */
static void describe_source(struct tbd_slot *slot, const struct tbd_slot_decoded *d)
{
    if (d->insn.meta.category != ZYDIS_CATEGORY_STRINGOP)
        return;
    for (unsigned i = 0; i < d->insn.operand_count; i++)
        if (d->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            register_number(d->operands[i].mem.base) == TBD_RSI)
            slot->segment = segment_of(&d->operands[i]);
}

/* Does it use gs for a memory operand, or load the selector of gs? */
static bool uses_gs(const struct tbd_slot_decoded *d)
{
    for (unsigned i = 0; i < d->insn.operand_count; i++) {
        const ZydisDecodedOperand *op = &d->operands[i];

        if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.segment == ZYDIS_REGISTER_GS)
            return true;
        if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == ZYDIS_REGISTER_GS &&
            (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
            return true;
    }
    return false;
}

void tbd_slot_describe(struct tbd_slot *slot, const struct tbd_slot_decoded *d)
{
    slot->uses_gs = uses_gs(d);
    slot->segment = SEGMENT_NONE;
    slot->base = slot->index = slot->vector_index = slot->vector_mask = slot->vector_data = NONE;
    slot->tile = find_tile(d);
    slot->has_store = false;
    slot->mask = 0;
    slot->is_compress = false;
    slot->string_bytes = 0;
    slot->reads_string = false;
    slot->has_narrow_addresses = d->insn.address_width == 32;
    describe_string(slot, d);
    describe_string_loads(slot, d);
    describe_source(slot, d);
    for (unsigned i = 0; i < d->insn.operand_count && !slot->string_bytes; i++) {
        const ZydisDecodedOperand *op = &d->operands[i];

        if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
            (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ||
             op->mem.type == ZYDIS_MEMOP_TYPE_VSIB || slot->tile != NONE)) {
            describe_store(slot, d, op);
            return;
        }
    }
}
