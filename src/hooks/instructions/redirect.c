// SPDX-License-Identifier: MIT
/* redirect.c - see redirect.h
 *
 * Code lies in slots of 64 bytes, found by the instruction's address and bytes among those for this address, which are reused
 * in turn: to write code that runs at once takes the processor longer than all the rest.  Buffers are far
 * enough from the code that the processor does not take writes to them for changes of code. */
#include "hooks/instructions/redirect.h"

#include "base/string.h"
#include "base/sys.h"

enum {
    SLOT_BYTES = 64,
    SLOTS = 2048,
    WAYS = 4, /* slots in which the copy of an address' instruction may lie */
    INSN_MAX = 15,
    AREA_BYTES = 196608,
    BUFFER_AT = AREA_BYTES - 8192
};

extern const char tbd_insn_done[];
void tbd_insn_run(struct tbd_thread *thread, uint64_t code);

struct redirect_slot {
    uint64_t pc;
    uint8_t bytes[INSN_MAX];
    uint8_t length;
    uint8_t shift; /* operand address modulo 64, which is part of the distance */
};

static uint64_t area;
static uint64_t (*reserve_area)(uint64_t lo, uint64_t hi, uint64_t bytes);
static struct redirect_slot slots[SLOTS];
static uint32_t next_way;

void tbd_redirect_init(uint64_t (*reserve)(uint64_t lo, uint64_t hi, uint64_t bytes))
{
    reserve_area = reserve;
}

/* Writes the new instruction and returns its length; 0: it would be too long. */
static uint32_t rewrite(uint8_t out[2 * INSN_MAX], const struct tbd_insn *insn,
                        const uint8_t *bytes, uint64_t code, uint64_t buffer)
{
    uint32_t rest_at = insn->modrm_at + 1u + tbd_decode_operand_bytes(bytes + insn->modrm_at);
    uint32_t rest = insn->length - rest_at;
    uint32_t count = 0;
    bool in_prefixes = true;
    int32_t distance;

    for (uint32_t i = 0; i < insn->modrm_at; i++) {
        in_prefixes = in_prefixes && tbd_decode_is_prefix(bytes[i]);
        /* fs, gs, 32-bit addresses */
        if (!in_prefixes || (bytes[i] != 0x64 && bytes[i] != 0x65 && bytes[i] != 0x67))
            out[count++] = bytes[i];
    }
    if (count + 5 + rest > INSN_MAX)
        return 0;
    distance = (int32_t)(buffer - (code + count + 5 + rest));
    out[count++] = (bytes[insn->modrm_at] & 0x38) | 5;
    memcpy(out + count, &distance, sizeof(distance));
    memcpy(out + count + 4, bytes + rest_at, rest);
    return count + 4 + rest;
}

static bool write_code(const struct tbd_insn *insn, const uint8_t *bytes, uint64_t code,
                       uint64_t buffer)
{
    static const uint8_t jump[6] = { 0xff, 0x25, 0, 0, 0, 0 }; /* jmp [rip] */
    uint64_t done = (uint64_t)(uintptr_t)tbd_insn_done;
    uint8_t made[2 * INSN_MAX];
    uint32_t length = rewrite(made, insn, bytes, code, buffer);
    uint8_t *at = (uint8_t *)code;

    if (!length)
        return false;
    memcpy(at, made, length);
    memcpy(at + length, jump, sizeof(jump));
    memcpy(at + length + sizeof(jump), &done, sizeof(done));
    return true;
}

static bool holds(const struct redirect_slot *slot, const struct tbd_insn *insn,
                  const uint8_t *bytes, uint8_t shift)
{
    return slot->pc == insn->pc && slot->shift == shift && slot->length == insn->length &&
           memcmp(slot->bytes, bytes, insn->length) == 0;
}

/* The slot that has the copy, or is to have it. */
static struct redirect_slot *slot_of(const struct tbd_insn *insn, const uint8_t *bytes,
                                     uint8_t shift)
{
    uint64_t hash = (insn->pc ^ (uint64_t)shift << 48) * 0x9e3779b97f4a7c15ull;
    struct redirect_slot *first = &slots[(hash >> 32) % (SLOTS / WAYS) * WAYS];

    for (uint32_t way = 0; way < WAYS; way++)
        if (holds(&first[way], insn, bytes, shift))
            return &first[way];
    return &first[next_way++ % WAYS];
}

bool tbd_redirect(const struct tbd_insn *insn, const uint8_t *bytes, uint64_t operand,
                  struct tbd_redirected *out)
{
    uint8_t shift = (uint8_t)(operand % 64);
    struct redirect_slot *slot;

    if (!insn->modrm_at || bytes[insn->modrm_at] >> 6 == 3 || insn->length > INSN_MAX)
        return false;
    if (!area)
        area = reserve_area(0, 0, AREA_BYTES);
    if (!area)
        return false;
    slot = slot_of(insn, bytes, shift);
    out->code = area + (uint64_t)(slot - slots) * SLOT_BYTES;
    out->buffer = (uint8_t *)(area + BUFFER_AT + shift);
    if (holds(slot, insn, bytes, shift))
        return true;
    slot->pc = 0;
    if (!write_code(insn, bytes, out->code, tbd_sys_pointer(out->buffer)))
        return false;
    *slot = (struct redirect_slot){ .pc = insn->pc, .length = insn->length, .shift = shift };
    memcpy(slot->bytes, bytes, insn->length);
    return true;
}

void tbd_redirect_run(struct tbd_thread *thread, const struct tbd_redirected *redirected)
{
    tbd_insn_run(thread, redirected->code);
}

void tbd_redirect_forget(void)
{
    memset(slots, 0, sizeof(slots));
}

bool tbd_redirect_owns(uint64_t pc)
{
    return area && pc - area < AREA_BYTES;
}

uint64_t tbd_redirect_program_pc(uint64_t pc)
{
    uint64_t place = (pc - area) / SLOT_BYTES;

    return area && place < SLOTS ? slots[place].pc : 0;
}
