// SPDX-License-Identifier: MIT
/* slot.c - see slot.h
 *
 * Slots of 64 bytes lie in small areas: the instruction, then a jump to tbd_insn_done.  A slot is
 * found again by the instruction's address and bytes, among those for this address, which are reused in turn.  Like patch areas they
 * are writable and executable.
 *
 * An instruction that uses gs runs with the program's gs base in the processor.  A signal handler
 * that interrupts it begins with that base, too (tbd_gs_base_take_sigsafe). */
#include "hooks/instructions/slot_private.h"

#include "base/arena.h"
#include "base/string.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/redirect.h"
#include "hooks/instructions/slot.h"
#include "hooks/instructions/thread_asm.h"
#include "hooks/memory/code_traps.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/recording.h"
#include "patcher/patcher.h"

_Static_assert(TBD_THREAD_GS(regs) == TBD_ASM_GS_REGS, "thread_asm.h");
_Static_assert(TBD_THREAD_GS(regs) + (int)offsetof(struct tbd_regs, rflags) == TBD_ASM_GS_RFLAGS,
               "thread_asm.h");
_Static_assert(TBD_THREAD_GS(scratch) + 4 * 8 == TBD_ASM_GS_SCRATCH, "thread_asm.h");
_Static_assert(TBD_THREAD_GS(regs) + (int)offsetof(struct tbd_regs, gs_base) == TBD_ASM_GS_GS_BASE,
               "thread_asm.h");

enum {
    SLOT_BYTES = 64,
    AREA_BYTES = 65536,
    MAX_AREAS = 16,
    SLOTS = AREA_BYTES / SLOT_BYTES,
    WAYS = 4 /* slots in which the instruction of an address may lie */
};

extern const char tbd_insn_done[], tbd_insn_done_gs[];
void tbd_insn_run(struct tbd_thread *thread, uint64_t code);
void tbd_insn_run_gs(struct tbd_thread *thread, uint64_t code);

struct area {
    uint64_t start;
    uint32_t next; /* whose turn it is to be reused, among WAYS */
    struct tbd_slot *slots;
};

static struct area areas[MAX_AREAS];
static uint32_t area_count;
static struct tbd_arena arena;
static struct tbd_decoder_api api;
static uint64_t (*reserve_area)(uint64_t lo, uint64_t hi, uint64_t bytes);
static ZydisDecoder decoder;

/* ---- decoding ---- */

static void decode(void *arg)
{
    struct tbd_slot_decoded *d = arg;

    api.init(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    d->status = api.decode_full(&decoder, d->bytes, d->length, &d->insn, d->operands);
    d->ok = d->status == ZYAN_STATUS_SUCCESS;
}

void tbd_slot_init(const struct tbd_decoder_api *functions,
                   uint64_t (*reserve)(uint64_t lo, uint64_t hi, uint64_t bytes))
{
    api = *functions;
    reserve_area = reserve;
    tbd_redirect_init(reserve);
}

/* ---- slots ---- */

static bool in_reach(uint64_t area, uint64_t pc)
{
    uint64_t distance = area > pc ? area - pc : pc - area;

    return distance < (1ull << 31) - AREA_BYTES - 64;
}

static struct area *add_area(uint64_t lo, uint64_t hi)
{
    struct area *area = &areas[area_count];

    if (area_count == MAX_AREAS || (!arena.start && !tbd_arena_init(&arena, 4u << 20)))
        return NULL;
    if (!area->slots)
        area->slots = tbd_arena_alloc(&arena, SLOTS * sizeof(struct tbd_slot), 8);
    area->start = area->slots ? reserve_area(lo, hi, AREA_BYTES) : 0;
    if (!area->start)
        return NULL;
    area_count++;
    return area;
}

/* Where the program has taken all addresses within reach, an area out of reach serves all instructions but those with a
 * rip-relative operand (write_code). */
static struct area *find_area(uint64_t pc)
{
    struct area *area;

    for (uint32_t i = 0; i < area_count; i++)
        if (in_reach(areas[i].start, pc))
            return &areas[i];
    area = add_area(pc, pc + 16);
    if (area)
        return area;
    return area_count ? &areas[0] : add_area(0, 0);
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
static bool write_code(const struct tbd_slot *slot, const struct tbd_slot_decoded *d)
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
    struct tbd_slot_decoded d = { .bytes = bytes, .length = length };

    slot->pc = pc;
    slot->length = (uint8_t)length;
    memcpy(slot->bytes, bytes, length);
    tbd_processor_decode(decode, &d);
    if (!d.ok || d.insn.length != length)
        return false;
    tbd_slot_describe(slot, &d);
    return write_code(slot, &d);
}

static bool holds(const struct tbd_slot *slot, uint64_t pc, const uint8_t *bytes, uint32_t length)
{
    return slot->pc == pc && slot->length == length && memcmp(slot->bytes, bytes, length) == 0;
}

/* The first of the WAYS slots for this address. */
static struct tbd_slot *places_of(const struct area *area, uint64_t pc)
{
    return &area->slots[(uint32_t)(pc * 0x9e3779b1u >> 7) % (SLOTS / WAYS) * WAYS];
}

static void settle_code(const struct area *area, struct tbd_slot *slot)
{
    slot->code = area->start + (uint64_t)(slot - area->slots) * SLOT_BYTES;
}

const struct tbd_slot *tbd_slot_get(struct tbd_thread *thread, uint32_t length)
{
    uint64_t pc = thread->regs.rip;
    struct area *area = find_area(pc);
    uint8_t bytes[TBD_SLOT_INSN_MAX];
    struct tbd_slot *first, *slot;

    if (!area || length == 0 || length > TBD_SLOT_INSN_MAX ||
        !tbd_copy_from_program(bytes, pc, length))
        return NULL;
    tbd_code_traps_hide(bytes, pc, length);
    first = places_of(area, pc);
    for (slot = first; slot < first + WAYS; slot++)
        if (holds(slot, pc, bytes, length))
            return slot;
    slot = first + area->next++ % WAYS;
    settle_code(area, slot);
    if (fill(slot, pc, bytes, length))
        return slot;
    slot->pc = 0;
    return NULL;
}

/* ---- instructions that raise a signal ---- */

/* Opcodes that are invalid in 64-bit mode and that the decoder does not report. */
static bool is_invalid_opcode(uint8_t opcode)
{
    static const uint8_t invalid[] = { 0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37,
                                       0x3f, 0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd5, 0xd6, 0xea };

    for (unsigned i = 0; i < sizeof(invalid); i++)
        if (invalid[i] == opcode)
            return true;
    return false;
}

/* Bytes that are invalid whatever instructions a newer processor has.  (What the decoder just does
 * not know may be one of those.) */
static bool is_invalid(const struct tbd_slot_decoded *d)
{
    return d->status == ZYDIS_STATUS_ILLEGAL_LOCK || d->status == ZYDIS_STATUS_ILLEGAL_LEGACY_PFX ||
           d->status == ZYDIS_STATUS_ILLEGAL_REX || d->status == ZYDIS_STATUS_BAD_REGISTER ||
           d->status == ZYDIS_STATUS_INVALID_MASK || is_invalid_opcode(d->bytes[0]);
}

/* A slot with an instruction that raises the same signal: ud2, or hlt. */
static const struct tbd_slot *get_fault(uint64_t pc, enum tbd_slot_fault fault)
{
    static const uint8_t code[][2] = {
        [TBD_SLOT_INVALID] = { 0x0f, 0x0b }, [TBD_SLOT_PROTECTION] = { 0xf4, 0xf4 }
    };
    struct area *area = find_area(pc);
    struct tbd_slot *slot;

    if (!area)
        return NULL;
    slot = places_of(area, pc);
    *slot = (struct tbd_slot){ .length = 0 };
    settle_code(area, slot);
    memcpy((uint8_t *)slot->code, code[fault], sizeof(code[fault]));
    return slot;
}

const struct tbd_slot *tbd_slot_get_fault(const struct tbd_thread *thread,
                                          enum tbd_slot_fault fault)
{
    return get_fault(thread->regs.rip, fault);
}

const struct tbd_slot *tbd_slot_get_raising(struct tbd_thread *thread, uint32_t limit,
                                            bool *out_lacks_bytes)
{
    uint8_t bytes[TBD_SLOT_INSN_MAX];
    struct tbd_slot_decoded d = { .bytes = bytes, .length = limit };

    *out_lacks_bytes = false;
    if (limit > TBD_SLOT_INSN_MAX || !tbd_copy_from_program(bytes, thread->regs.rip, limit))
        return NULL;
    tbd_processor_decode(decode, &d);
    if (d.ok)
        return tbd_slot_get(thread, d.insn.length);
    *out_lacks_bytes = d.status == ZYDIS_STATUS_NO_MORE_DATA ||
                       /* the processor fetches all of them before it finds that */
                       (d.status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG && limit < sizeof(bytes));
    if (*out_lacks_bytes)
        return NULL;
    if (d.status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG)
        return get_fault(thread->regs.rip, TBD_SLOT_PROTECTION);
    return is_invalid(&d) ? get_fault(thread->regs.rip, TBD_SLOT_INVALID) : NULL;
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

/* The last slot of an area is for all such instructions; each call writes it again. */
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
    uint32_t count = tbd_recording_last_insns(thread);

    return count ? count - 1 : 0;
}
