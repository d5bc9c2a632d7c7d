// SPDX-License-Identifier: MIT
/* slot.c - see slot.h
 *
 * Slots live in small areas of their own, 64 bytes each: the instruction, then a jump to tbd_insn_done.
 * They are kept, found again by the instruction's address and bytes, and overwritten in turn.  Like patch
 * areas they are writable and executable.
 *
 * An instruction that uses gs runs with the program's gs base in the processor, and so do signal handlers that
 * come meanwhile (tbd_gs_base_take_sigsafe). */
#include "hooks/slot.h"

#include "base/string.h"
#include "hooks/redirect.h"
#include "hooks/runtime.h"
#include "hooks/safe_copy.h"

#include <Zydis/Decoder.h>

enum { SLOT_BYTES = 64, AREA_BYTES = 65536, MAX_AREAS = 16, INSN_MAX = 15,
       SLOTS = AREA_BYTES / SLOT_BYTES };

extern const char tbd_insn_done[], tbd_insn_done_gs[];
void tbd_insn_run(struct tbd_thread *thread, uint64_t code);
void tbd_insn_run_gs(struct tbd_thread *thread, uint64_t code);

enum segment { SEGMENT_NONE, SEGMENT_FS, SEGMENT_GS };

struct tbd_slot {
    uint64_t pc;
    uint64_t code;             /* where the copy is */
    uint8_t bytes[INSN_MAX];
    uint8_t length;
    bool uses_gs;
    bool has_store;            /* the fields below are valid */
    uint8_t segment;           /* enum segment: whose base is added to the address of the store, or of what a */
                               /* string instruction reads at rsi */
    uint8_t base, index;       /* enum tbd_reg; NONE */
    uint8_t scale;
    uint8_t vector_index;      /* register number; NONE */
    uint8_t index_bytes;       /* of an element of the vector index */
    uint8_t mask;              /* number of the mask register; 0 = none */
    uint8_t vector_mask;       /* of the vector register whose elements' signs are the mask; NONE */
    uint8_t vector_data;       /* of a gather's target, a scatter's source; NONE */
    bool is_compress;          /* the chosen elements are stored side by side */
    uint16_t element_bytes;
    uint16_t element_count;
    uint8_t string_bytes;
    bool reads_string;
    bool has_narrow_addresses; /* address-size prefix */
    struct tbd_string_loads string_loads;
    int64_t disp;              /* rip-relative operands: the address itself */
};

#define NONE 0xffu

struct area {
    uint64_t start;
    uint32_t next;
    struct tbd_slot *slots;
};

static struct area areas[MAX_AREAS];
static uint32_t area_count;
static struct tbd_arena arena;
static struct tbd_decoder_api api;
static ZydisDecoder decoder;

/* ---- decoding ---- */

struct decoded {
    const uint8_t *bytes;
    uint32_t length;
    bool ok;
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static void decode(void *arg)
{
    struct decoded *d = arg;

    api.init(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    d->ok = api.decode_full(&decoder, d->bytes, d->length, &d->insn, d->operands) == ZYAN_STATUS_SUCCESS;
}

void tbd_slot_set_decoder(const struct tbd_decoder_api *functions)
{
    api = *functions;
}

static uint8_t register_number(ZydisRegister r)
{
    if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15)
        return (uint8_t)(r - ZYDIS_REGISTER_RAX);
    if (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D)
        return (uint8_t)(r - ZYDIS_REGISTER_EAX);
    return NONE;
}

/* NONE, 0 bytes: not a vector register. */
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
static uint8_t vector_operand(const struct decoded *d, unsigned n)
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

/* AVX and AVX2: the signs of a vector's elements. */
static uint8_t find_vector_mask(const struct decoded *d)
{
    switch (d->insn.mnemonic) {
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ: return vector_operand(d, 0);
    default: return d->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX ? vector_operand(d, 1) : NONE;
    }
}

static void describe_vector_index(struct tbd_slot *slot, const struct decoded *d, ZydisRegister r)
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
    case ZYDIS_MNEMONIC_VPGATHERDQ:
        slot->index_bytes = 4;
        break;
    default:
        slot->index_bytes = 8;
        break;
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

/* It pushes rbp, and as many words more as its second operand says; the decoder only says [rsp]. */
static void describe_enter(struct tbd_slot *slot, const struct decoded *d)
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
    case ZYDIS_MNEMONIC_VPCOMPRESSW:
        return true;
    default:
        return false;
    }
}

/* As in patcher/decode.c: the library is wrong about it with an address-size prefix. */
static bool has_no_base(const ZydisDecodedInstruction *insn)
{
    return insn->raw.sib.offset && insn->raw.modrm.mod == 0 && insn->raw.sib.base == 5;
}

static void describe_store(struct tbd_slot *slot, const struct decoded *d,
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

static void describe_string(struct tbd_slot *slot, const struct decoded *d)
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
    case ZYDIS_MNEMONIC_STOSQ:
        slot->string_bytes = (uint8_t)(d->operands[0].size / 8);
        break;
    default:
        break;
    }
}

/* Repeated lods, scas, cmps. */
static void describe_string_loads(struct tbd_slot *slot, const struct decoded *d)
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

/* The segment of what is read at rsi: the only one that a prefix can change. */
static void describe_source(struct tbd_slot *slot, const struct decoded *d)
{
    if (d->insn.meta.category != ZYDIS_CATEGORY_STRINGOP)
        return;
    for (unsigned i = 0; i < d->insn.operand_count; i++)
        if (d->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            register_number(d->operands[i].mem.base) == TBD_RSI)
            slot->segment = segment_of(&d->operands[i]);
}

/* In memory, or by loading its selector. */
static bool uses_gs(const struct decoded *d)
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

static void describe(struct tbd_slot *slot, const struct decoded *d)
{
    slot->uses_gs = uses_gs(d);
    slot->segment = SEGMENT_NONE;
    slot->base = slot->index = slot->vector_index = slot->vector_mask = slot->vector_data = NONE;
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
            (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE || op->mem.type == ZYDIS_MEMOP_TYPE_VSIB)) {
            describe_store(slot, d, op);
            return;
        }
    }
}

/* ---- slots ---- */

static bool in_reach(uint64_t area, uint64_t pc)
{
    uint64_t distance = area > pc ? area - pc : pc - area;

    return distance < (1ull << 31) - AREA_BYTES - 64;
}

static struct area *find_area(uint64_t pc)
{
    struct area *area;

    for (uint32_t i = 0; i < area_count; i++)
        if (in_reach(areas[i].start, pc))
            return &areas[i];
    if (area_count == MAX_AREAS || (!arena.start && !tbd_arena_init(&arena, 4u << 20)))
        return NULL;
    area = &areas[area_count];
    area->slots = tbd_arena_alloc(&arena, SLOTS * sizeof(struct tbd_slot), 8);
    area->start = area->slots ? tbd_runtime_callbacks()->reserve_area(pc, pc + 16, AREA_BYTES) : 0;
    if (!area->start)
        return NULL;
    area_count++;
    return area;
}

static void write_jump(const struct tbd_slot *slot, const char *target)
{
    uint8_t *at = (uint8_t *)slot->code;
    uint8_t jump[6] = { 0xff, 0x25, 0, 0, 0, 0 }; /* jmp [rip] */
    uint64_t done = (uint64_t)(uintptr_t)target;

    memcpy(at, slot->bytes, slot->length);
    memcpy(at + slot->length, jump, sizeof(jump));
    memcpy(at + slot->length + sizeof(jump), &done, sizeof(done));
}

/* A rip-relative operand of the copy must name the same address. */
static bool write_code(const struct tbd_slot *slot, const struct decoded *d)
{
    write_jump(slot, slot->uses_gs ? tbd_insn_done_gs : tbd_insn_done);
    if (d->insn.attributes & ZYDIS_ATTRIB_IS_RELATIVE && d->insn.raw.disp.size == 32) {
        int64_t disp = d->insn.raw.disp.value + (int64_t)(slot->pc - slot->code);
        int32_t narrow = (int32_t)disp;

        if (narrow != disp && d->insn.address_width == 64)
            return false;
        memcpy((uint8_t *)slot->code + d->insn.raw.disp.offset, &narrow, sizeof(narrow));
    }
    return true;
}

static bool fill(struct tbd_slot *slot, uint64_t pc, const uint8_t *bytes, uint32_t length)
{
    struct decoded d = { .bytes = bytes, .length = length };

    slot->pc = pc;
    slot->length = (uint8_t)length;
    memcpy(slot->bytes, bytes, length);
    tbd_runtime_callbacks()->with_vector_state(decode, &d);
    if (!d.ok || d.insn.length != length)
        return false;
    describe(slot, &d);
    return write_code(slot, &d);
}

static bool holds(const struct tbd_slot *slot, uint64_t pc, const uint8_t *bytes, uint32_t length)
{
    return slot->pc == pc && slot->length == length && memcmp(slot->bytes, bytes, length) == 0;
}

const struct tbd_slot *tbd_slot_get(struct tbd_thread *thread, uint32_t length)
{
    uint64_t pc = thread->regs.rip;
    struct area *area = find_area(pc);
    uint8_t bytes[INSN_MAX];
    struct tbd_slot *slot;
    uint32_t place = (uint32_t)(pc * 0x9e3779b1u >> 7) % SLOTS;

    if (!area || length == 0 || length > INSN_MAX || !tbd_copy_from_program(bytes, pc, length))
        return NULL;
    slot = &area->slots[place];
    if (holds(slot, pc, bytes, length))
        return slot;
    slot->code = area->start + place * SLOT_BYTES;
    if (fill(slot, pc, bytes, length))
        return slot;
    slot->pc = 0;
    return NULL;
}

/* Opcodes of other modes, which the decoder knows nothing of. */
static bool is_invalid_opcode(uint8_t opcode)
{
    static const uint8_t invalid[] = { 0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f,
                                       0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd5, 0xd6, 0xea };

    for (unsigned i = 0; i < sizeof(invalid); i++)
        if (invalid[i] == opcode)
            return true;
    return false;
}

/* Runs as ud2 in place of itself. */
static const struct tbd_slot *get_invalid(uint64_t pc)
{
    static const uint8_t ud2[] = { 0x0f, 0x0b };
    struct area *area = find_area(pc);
    uint32_t place = (uint32_t)(pc * 0x9e3779b1u >> 7) % SLOTS;

    if (!area)
        return NULL;
    area->slots[place].pc = 0;
    area->slots[place].code = area->start + place * SLOT_BYTES;
    memcpy((uint8_t *)area->slots[place].code, ud2, sizeof(ud2));
    return &area->slots[place];
}

const struct tbd_slot *tbd_slot_get_raising(struct tbd_thread *thread, uint32_t limit)
{
    uint8_t bytes[INSN_MAX];
    struct decoded d = { .bytes = bytes, .length = limit };

    if (limit > INSN_MAX || !tbd_copy_from_program(bytes, thread->regs.rip, limit))
        return NULL;
    tbd_runtime_callbacks()->with_vector_state(decode, &d);
    if (d.ok)
        return tbd_slot_get(thread, d.insn.length);
    return is_invalid_opcode(bytes[0]) ? get_invalid(thread->regs.rip) : NULL;
}

void tbd_slot_forget(void)
{
    for (uint32_t i = 0; i < area_count; i++)
        memset(areas[i].slots, 0, SLOTS * sizeof(struct tbd_slot));
    tbd_redirect_forget();
}

void tbd_slot_run(struct tbd_thread *thread, const struct tbd_slot *slot)
{
    if (slot->uses_gs)
        tbd_insn_run_gs(thread, slot->code);
    else
        tbd_insn_run(thread, slot->code);
}

/* The last slot of an area serves all of them; it is written anew each time. */
void tbd_slot_run_element(struct tbd_thread *thread, const struct tbd_slot *slot)
{
    struct area *area = find_area(slot->pc);
    struct tbd_slot *element = &area->slots[SLOTS - 1];
    uint8_t *code = (uint8_t *)(area->start + (SLOTS - 1) * SLOT_BYTES);

    *element = (struct tbd_slot){ .code = (uint64_t)(uintptr_t)code };
    for (uint32_t i = 0; i < slot->length; i++)
        if (slot->bytes[i] != 0x64 && slot->bytes[i] != 0x65 && slot->bytes[i] != 0x67)
            element->bytes[element->length++] = slot->bytes[i];
    write_jump(element, tbd_insn_done);
    tbd_slot_run(thread, element);
}

bool tbd_slot_uses_gs(const struct tbd_slot *slot)
{
    return slot->uses_gs;
}

bool tbd_slot_owns(uint64_t pc)
{
    for (uint32_t i = 0; i < area_count; i++)
        if (pc - areas[i].start < AREA_BYTES)
            return true;
    return tbd_redirect_owns(pc);
}

uint64_t tbd_slot_program_pc(uint64_t pc)
{
    for (uint32_t i = 0; i < area_count; i++)
        if (pc - areas[i].start < AREA_BYTES)
            return areas[i].slots[(pc - areas[i].start) / SLOT_BYTES].pc;
    return tbd_redirect_program_pc(pc);
}

uint32_t tbd_slot_offset(uint64_t pc)
{
    return (uint32_t)(pc % SLOT_BYTES);
}

uint32_t tbd_slot_last_insn(const struct tbd_thread *thread)
{
    const struct tbd_stream_head *head = tbd_runtime.ring.head;
    const struct tbd_block_def *defs =
        (const struct tbd_block_def *)((const uint8_t *)head + head->defs_offset);
    uint32_t id = tbd_ring_last_block(&tbd_runtime.ring, thread);

    if (tbd_runtime.options.hooks == TBD_HOOKS_NONE || id == 0 || id > head->def_count)
        return 0;
    return defs[id - 1].insn_count ? defs[id - 1].insn_count - 1u : 0;
}

/* ---- operands ---- */

uint64_t tbd_slot_address_mask(const struct tbd_slot *slot)
{
    return slot->has_narrow_addresses ? UINT32_MAX : UINT64_MAX;
}

static int64_t vector_element(const uint8_t *vector, uint32_t i, uint32_t bytes)
{
    int32_t narrow;
    int64_t wide;

    if (bytes == 4) {
        memcpy(&narrow, vector + i * 4, sizeof(narrow));
        return narrow;
    }
    memcpy(&wide, vector + i * 8, sizeof(wide));
    return wide;
}

static uint64_t segment_base(const struct tbd_thread *thread, const struct tbd_slot *slot)
{
    return slot->segment == SEGMENT_FS   ? thread->regs.fs_base
           : slot->segment == SEGMENT_GS ? thread->regs.gs_base
                                         : 0;
}

uint64_t tbd_slot_source_base(const struct tbd_thread *thread, const struct tbd_slot *slot)
{
    return segment_base(thread, slot);
}

/* `more`: the part that a vector index adds. */
static uint64_t operand_address(const struct tbd_thread *thread, const struct tbd_slot *slot, int64_t more)
{
    const struct tbd_regs *regs = &thread->regs;
    uint64_t address = (uint64_t)slot->disp + (uint64_t)more;

    if (slot->base != NONE)
        address += regs->gpr[slot->base];
    if (slot->index != NONE)
        address += regs->gpr[slot->index] * slot->scale;
    return (address & tbd_slot_address_mask(slot)) + segment_base(thread, slot);
}

static uint64_t signs_of(const struct tbd_slot *slot)
{
    uint8_t vector[TBD_VECTOR_REGISTER_BYTES];
    uint64_t mask = 0;

    tbd_vector_read(&tbd_runtime.vector, slot->vector_mask, vector);
    for (uint32_t i = 0; i < slot->element_count; i++)
        mask |= (uint64_t)(vector[(i + 1) * slot->element_bytes - 1] >> 7) << i;
    return mask;
}

/* Elements that it accesses, as bits. */
static uint64_t chosen(const struct tbd_slot *slot)
{
    uint64_t mask = ~0ull;

    if (slot->mask)
        mask = tbd_vector_read_mask(&tbd_runtime.vector, slot->mask);
    else if (slot->vector_mask != NONE)
        mask = signs_of(slot);
    return slot->element_count < 64 ? mask & ((1ull << slot->element_count) - 1) : mask;
}

size_t tbd_slot_elements(const struct tbd_thread *thread, const struct tbd_slot *slot,
                         struct tbd_slot_elements *out)
{
    uint8_t vector[TBD_VECTOR_REGISTER_BYTES];
    uint64_t mask = chosen(slot);

    out->count = 0;
    out->bytes = slot->element_bytes;
    out->data = slot->vector_data;
    out->mask = slot->mask;
    if (!slot->has_store || slot->vector_index == NONE || slot->vector_data == NONE)
        return 0;
    tbd_vector_read(&tbd_runtime.vector, slot->vector_index, vector);
    for (uint32_t i = 0; i < slot->element_count; i++) {
        int64_t offset = vector_element(vector, i, slot->index_bytes) * slot->scale;

        if (!(mask >> i & 1))
            continue;
        out->place[out->count] = (uint8_t)i;
        out->address[out->count++] = operand_address(thread, slot, offset);
    }
    return out->count;
}

static size_t scattered(const struct tbd_thread *thread, const struct tbd_slot *slot,
                        struct tbd_sys_range *out)
{
    struct tbd_slot_elements elements;
    size_t count = tbd_slot_elements(thread, slot, &elements);

    for (size_t i = 0; i < count; i++)
        out[i] = (struct tbd_sys_range){ elements.address[i], elements.bytes };
    return count;
}

/* Neighbours are one range. */
static size_t side_by_side(const struct tbd_slot *slot, uint64_t address, uint64_t mask,
                           struct tbd_sys_range *out)
{
    size_t count = 0;

    for (uint32_t i = 0; i < slot->element_count; i++) {
        if (!(mask >> i & 1))
            continue;
        if (i && (mask >> (i - 1) & 1))
            out[count - 1].bytes += slot->element_bytes;
        else
            out[count++] = (struct tbd_sys_range){ address + (uint64_t)i * slot->element_bytes,
                                                   slot->element_bytes };
    }
    return count;
}

static uint64_t count_bits(uint64_t mask)
{
    uint64_t count = 0;

    for (; mask; mask &= mask - 1)
        count++;
    return count;
}

enum tbd_slot_stores tbd_slot_stores(const struct tbd_thread *thread, const struct tbd_slot *slot,
                                     struct tbd_sys_range *out, size_t *count)
{
    uint64_t mask;
    uint64_t address;

    *count = 0;
    if (!slot->has_store)
        return TBD_SLOT_UNKNOWN;
    mask = chosen(slot);
    address = operand_address(thread, slot, 0);
    if (slot->is_compress) {
        uint64_t bytes = count_bits(mask) * slot->element_bytes;

        out[0] = (struct tbd_sys_range){ address, bytes };
        *count = 1;
    } else if (slot->vector_index != NONE) {
        *count = scattered(thread, slot, out);
    } else {
        *count = side_by_side(slot, address, mask, out);
    }
    return slot->mask || slot->vector_mask != NONE ? TBD_SLOT_EXACTLY : TBD_SLOT_UP_TO;
}

uint64_t tbd_slot_operand(const struct tbd_thread *thread, const struct tbd_slot *slot)
{
    return operand_address(thread, slot, 0);
}

uint32_t tbd_slot_string_bytes(const struct tbd_slot *slot)
{
    return slot->string_bytes;
}

bool tbd_slot_reads_string(const struct tbd_slot *slot)
{
    return slot->reads_string;
}

struct tbd_string_loads tbd_slot_string_loads(const struct tbd_slot *slot)
{
    return slot->string_loads;
}
