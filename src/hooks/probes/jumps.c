// SPDX-License-Identifier: MIT
/* jumps.c - see jumps.h; what is written when is said in jump.h
 *
 * Many probes change together, so that the processors are told once for all of them. */
#include "hooks/probes/jumps.h"

#include "base/assert.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/probes/jump_code.h"
#include "hooks/probes/near_memory.h"
#include "hooks/probes/probe_make.h"
#include "patcher/native_patch.h"

#define TRAP     TBD_NATIVE_TRAP
#define JUMP     0xe9u
#define NOP      0x90u
#define MAX_CODE 32u

bool tbd_jumps_possible(void)
{
    static int state; /* 1: yes, 2: no */

    if (!state)
        state = tbd_native_sync_prepare() ? 1 : 2;
    return state == 1;
}

struct tbd_probe *tbd_jump_over(uint64_t address)
{
    for (unsigned i = 1; i < TBD_JUMP_BYTES; i++) {
        struct tbd_probe *probe = tbd_probe_find(address - i);

        if (probe && probe->is_jump)
            return probe;
    }
    return NULL;
}

/* ---- which instructions ---- */

/* Can it be copied, and does it mean the same elsewhere?  The last one may leave. */
static bool can_copy(const struct tbd_insn *insn, bool *leaves)
{
    *leaves = false;
    switch ((enum tbd_insn_kind)insn->kind) {
    case TBD_INSN_PLAIN: return !insn->rip_relative || insn->disp_at;
    case TBD_INSN_NOP:
    case TBD_INSN_BRANCH: return true;
    case TBD_INSN_CALL:
    case TBD_INSN_JUMP:
    case TBD_INSN_RETURN: *leaves = true; return true;
    case TBD_INSN_JUMP_INDIRECT: *leaves = true; return !insn->rip_relative || insn->disp_at;
    default: return false;
    }
}

/* Behind an instruction that leaves comes no code, if these are the bytes with which compilers fill up. */
static bool is_padding(const uint8_t *code, size_t count)
{
    uint8_t filler = code[0];

    for (size_t i = 0; i < count; i++)
        if (code[i] != filler)
            return false;
    return filler == NOP || filler == TRAP;
}

static bool is_multi_byte_nop(const struct tbd_insn *insn)
{
    return insn->kind == TBD_INSN_NOP;
}

static void note(struct tbd_jump *jump, const struct tbd_insn *insn)
{
    jump->insn[jump->insn_count++] =
        (struct tbd_jump_insn){ .at = jump->length,
                                .length = insn->length,
                                .kind = insn->kind,
                                .disp_at = insn->rip_relative ? insn->disp_at : 0,
                                .condition = insn->opcode & 15,
                                .target = insn->target };
    jump->length = (uint8_t)(jump->length + insn->length);
}

/* The instructions under the jump.  False: one of them cannot be elsewhere. */
static bool find_instructions(struct tbd_jump *jump, uint64_t pc, size_t got)
{
    bool left = false;

    while (jump->length < TBD_JUMP_BYTES) {
        const uint8_t *at = jump->program + jump->length;
        struct tbd_insn insn;
        bool leaves;

        if (left && is_padding(at, TBD_JUMP_BYTES - jump->length)) {
            jump->length = TBD_JUMP_BYTES;
            return true;
        }
        if (!tbd_decode(&insn, pc + jump->length, at, got - jump->length) ||
            !can_copy(&insn, &leaves) || (left && !is_multi_byte_nop(&insn)))
            return false;
        note(jump, &insn);
        left |= leaves;
    }
    return true;
}

/* No other probe is where the jump would be. */
static bool is_alone(uint64_t pc)
{
    for (unsigned i = 1; i < TBD_JUMP_BYTES; i++) {
        const struct tbd_probe *probe = tbd_probe_find(pc + i);

        if (probe && (probe->is_placed || probe->is_jump))
            return false;
    }
    return true;
}

/* ---- making ---- */

/* Where an instruction begins below the jump, the displacement's byte is a trap. */
static void find_pattern(const struct tbd_jump *jump, uint32_t *mask, uint32_t *value)
{
    *mask = *value = 0;
    for (unsigned i = 1; i < jump->insn_count; i++)
        if (jump->insn[i].at < TBD_JUMP_BYTES) {
            unsigned shift = 8u * (jump->insn[i].at - 1u);

            *mask |= 0xffu << shift;
            *value |= TRAP << shift;
        }
}

/* The entry's bytes are complete before anything leads to it. */
static bool write_entry(struct tbd_jump *jump)
{
    uint8_t *entry = (uint8_t *)(uintptr_t)jump->entry;
    int64_t d;

    jump->cell = (uint64_t *)(void *)tbd_near_alloc(jump->entry, sizeof(*jump->cell), NULL);
    if (!jump->cell)
        return false;
    d = (int64_t)(tbd_sys_pointer(jump->cell) - (jump->entry + 6));
    entry[0] = 0xff; /* jmp *d(%rip) */
    entry[1] = 0x25;
    memcpy(entry + 2, &(int32_t){ (int32_t)d }, 4);
    entry[6] = TRAP;
    return true;
}

static bool find_entry(struct tbd_jump *jump)
{
    uint64_t from = jump->probe->step.pc + TBD_JUMP_BYTES;
    uint32_t mask, value;
    int32_t d;

    find_pattern(jump, &mask, &value);
    jump->entry = tbd_near_entry(from, mask, value);
    if (!jump->entry || !write_entry(jump))
        return false;
    d = (int32_t)(jump->entry - from);
    jump->bytes[0] = JUMP;
    memcpy(jump->bytes + 1, &d, sizeof(d));
    TBD_INVARIANT("JUMP-1", ((uint32_t)d & mask) == value);
    return true;
}

static bool find_inner(struct tbd_jump *jump, int memory)
{
    uint64_t pc = jump->probe->step.pc;

    for (unsigned i = 1; i < jump->insn_count; i++)
        if (jump->insn[i].at < TBD_JUMP_BYTES &&
            tbd_probe_make(memory, pc + jump->insn[i].at, &jump->inner[i]) != TBD_PROBE_OK)
            return false;
    return true;
}

/* Memory is taken only for one that fits: a place where none does is looked at again and again. */
static struct tbd_jump *make(struct tbd_probe *probe, int memory)
{
    struct tbd_jump found = { .probe = probe }, *jump;
    size_t got = tbd_probe_read_code(memory, probe->step.pc, found.program, MAX_CODE);

    if (got < TBD_JUMP_BYTES || !find_instructions(&found, probe->step.pc, got) ||
        !find_inner(&found, memory))
        return NULL;
    memcpy(found.original, found.program, TBD_JUMP_BYTES);
    jump = tbd_probe_memory(sizeof(*jump));
    if (!jump)
        return NULL;
    *jump = found;
    if (find_entry(jump))
        return jump;
    tbd_probe_memory_back(jump);
    return NULL;
}

static bool is_same_code(const struct tbd_jump *jump, int memory)
{
    uint8_t now[MAX_CODE];
    size_t got = tbd_probe_read_code(memory, jump->probe->step.pc, now, jump->length);

    return got == jump->length && memcmp(now, jump->program, got) == 0;
}

/* What it was made for last may be what is asked for now: a place that comes and goes takes no more memory. */
static bool write_code(struct tbd_jump *jump)
{
    static uint8_t buffer[TBD_JUMP_CODE_BYTES];
    struct tbd_jump_code found = { .jump = jump, .start = jump->entry }, *code;
    struct tbd_emit emit = { .at = buffer, .end = buffer + sizeof(buffer) };
    uint8_t *at;

    if (jump->code && tbd_jump_serves(jump->code))
        return true;
    /* once for its length, which depends on nothing, and once for where it is */
    emit.delta = (int64_t)(jump->entry - tbd_sys_pointer(buffer));
    if (!tbd_jump_write(&found, &emit))
        return false;
    code = tbd_probe_memory(sizeof(*code));
    at = code ? tbd_near_alloc(jump->entry, found.bytes, code) : NULL;
    if (!at) {
        if (code)
            tbd_probe_memory_back(code);
        return false;
    }
    emit = (struct tbd_emit){ .at = at, .end = at + found.bytes };
    *code = (struct tbd_jump_code){ .jump = jump, .start = tbd_sys_pointer(at) };
    if (!tbd_jump_write(code, &emit))
        return false;
    jump->code = code;
    __atomic_store_n(jump->cell, code->start, __ATOMIC_RELEASE);
    return true;
}

bool tbd_jump_make(struct tbd_probe *probe, int memory)
{
    if (!is_alone(probe->step.pc))
        return false;
    if (!probe->jump || !is_same_code(probe->jump, memory))
        probe->jump = make(probe, memory);
    return probe->jump && write_code(probe->jump);
}

/* ---- putting ---- */

static void put_traps_below(const struct tbd_jump *jump, int memory)
{
    for (unsigned i = 1; i < jump->insn_count; i++)
        if (jump->inner[i]) {
            jump->inner[i]->is_placed = true;
            tbd_native_write(memory, jump->inner[i]->step.pc, TRAP);
        }
}

void tbd_jumps_put(struct tbd_probe **probes, uint32_t count, int memory)
{
    if (!count)
        return;
    for (uint32_t i = 0; i < count; i++)
        if (is_alone(probes[i]->step.pc)) /* not: two that were found together overlap */
            put_traps_below(probes[i]->jump, memory);
        else
            probes[i] = NULL;
    tbd_native_sync();
    for (uint32_t i = 0; i < count; i++)
        if (probes[i])
            tbd_native_write_bytes(memory, probes[i]->step.pc + 1, probes[i]->jump->bytes + 1,
                                   TBD_JUMP_BYTES - 1);
    tbd_native_sync();
    for (uint32_t i = 0; i < count; i++)
        if (probes[i]) {
            probes[i]->is_jump = true;
            tbd_native_write(memory, probes[i]->step.pc, JUMP);
        }
    tbd_native_sync();
}

/* ---- taking ---- */

/* The library may have gone, and other code have come. */
static bool is_there(const struct tbd_probe *probe, int memory)
{
    uint8_t now[TBD_JUMP_BYTES];

    return tbd_native_read(memory, probe->step.pc, now, sizeof(now)) == sizeof(now) &&
           memcmp(now, probe->jump->bytes, sizeof(now)) == 0;
}

/* All bytes of the program but the first ones of instructions. */
static void write_tail(const struct tbd_jump *jump, int memory)
{
    uint8_t bytes[TBD_JUMP_BYTES];

    memcpy(bytes, jump->original, sizeof(bytes));
    for (unsigned i = 1; i < jump->insn_count; i++)
        if (jump->inner[i])
            bytes[jump->insn[i].at] = TRAP;
    tbd_native_write_bytes(memory, jump->probe->step.pc + 1, bytes + 1, TBD_JUMP_BYTES - 1);
}

static void take_traps_below(const struct tbd_jump *jump, int memory, bool writes)
{
    for (unsigned i = 1; i < jump->insn_count; i++)
        if (jump->inner[i]) {
            jump->inner[i]->is_placed = false;
            if (writes)
                tbd_native_write(memory, jump->inner[i]->step.pc, jump->inner[i]->step.first);
        }
}

void tbd_jumps_take(struct tbd_probe **probes, uint32_t count, int memory)
{
    if (!count)
        return;
    for (uint32_t i = 0; i < count; i++) {
        bool there = is_there(probes[i], memory);

        probes[i]->is_jump = false;
        if (there && tbd_native_write(memory, probes[i]->step.pc, TRAP))
            continue;
        take_traps_below(probes[i]->jump, memory, false);
        probes[i] = NULL;
    }
    tbd_native_sync();
    for (uint32_t i = 0; i < count; i++)
        if (probes[i])
            write_tail(probes[i]->jump, memory);
    tbd_native_sync();
    for (uint32_t i = 0; i < count; i++)
        if (probes[i])
            take_traps_below(probes[i]->jump, memory, true);
}
