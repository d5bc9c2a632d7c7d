// SPDX-License-Identifier: MIT
/* recorded.c - see recorded.h */
#include "recorded.h"

#include "base/array.h"
#include "base/binary_search.h"
#include "format/stream/crash.h"
#include "hooks/table/syscalls.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    BLOCK_INSNS_MOST = 64,
    RAX = 0,
    LAP = 65535 /* entries of the shortest ring */,
    STARTS = 1 << 18,
    MOST_PIECES = 256,
    /* The time for copies of memory in bytes (hooks/memory/copied_memory.c): `ls -lR` and `find` had copies of 270 KB at each of their first 86
     * laps, and one of 400 KB each 20th lap when that was spent (Intel, 2 processors, an idle machine). */
    FIRST_BYTES = 16 << 20,
    BYTES_A_LAP = 20 << 10
};

static size_t peek(const struct recorded *r, uint64_t address, void *out, size_t bytes)
{
    ssize_t got = pread(r->mem, out, bytes, (off_t)address);

    return got > 0 ? (size_t)got : 0;
}

void recorded_begin(struct recorded *r, unsigned setting, int pid, int mem, bool from_start)
{
    *r = (struct recorded){
        .pid = pid, .mem = mem, .begins_block = true, .memory_credit = FIRST_BYTES
    };
    if (setting <= TBD_RECORD_MOST)
        r->dial = tbd_record_dials[setting];
    if (from_start)
        r->starts = calloc(STARTS, sizeof(*r->starts));
}

/* ---- blocks ---- */

static bool decode(const uint8_t *code, size_t bytes, ZydisDecodedInstruction *insn,
                   ZydisDecodedOperand *operands)
{
    ZydisDecoder decoder;

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, bytes, insn, operands));
}

static bool ends_block(const ZydisDecodedInstruction *insn)
{
    return insn->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE ||
           insn->meta.category == ZYDIS_CATEGORY_RET ||
           insn->meta.category == ZYDIS_CATEGORY_SYSCALL;
}

/* Does the block have the check whether registers are due? */
static bool has_check(const struct recorded *r, uint64_t start)
{
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecodedInstruction insn;
    uint8_t code[15];

    for (unsigned n = 0; n < BLOCK_INSNS_MOST; n++, start += insn.length) {
        if (!decode(code, peek(r, start, code, sizeof(code)), &insn, operands))
            return false;
        if (!ends_block(&insn))
            continue;
        if (insn.meta.category == ZYDIS_CATEGORY_CALL)
            return true;
        if (insn.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE)
            return false;
        return operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || operands[0].imm.value.s < 0;
    }
    return false;
}

/* Is it entered for the first time?  What does not fit any more has been entered. */
static bool is_new(struct recorded *r, uint64_t start)
{
    size_t at = start * 0x9e3779b97f4a7c15ull >> 46;

    for (size_t n = 0; r->starts != NULL && n < 64; n++, at = (at + 1) % STARTS) {
        if (r->starts[at] == start)
            return false;
        if (r->starts[at] != 0)
            continue;
        r->starts[at] = start;
        return true;
    }
    return false;
}

/* ---- what is recorded ---- */

/* Are registers due before the block that begins now? */
static bool is_due(const struct recorded *r, uint64_t start, bool was_call)
{
    uint64_t since = r->entries - r->last_set;

    if (r->dial.after_call == 0)
        return false;
    return ((was_call || r->is_new || r->leaves_way) && since >= r->dial.after_call) ||
           r->entries % LAP == LAP - 1 ||
           (r->dial.entries != 0 && since >= r->dial.entries && has_check(r, start));
}

static void add_piece(const struct recorded *r, struct recorded_set *set, uint64_t from,
                      uint64_t to)
{
    struct recorded_piece *piece = &set->memory[set->memory_count];

    if (from >= to || set->memory_count == MOST_PIECES)
        return;
    *piece = (struct recorded_piece){ .address = from, .copy = malloc(to - from) };
    if (piece->copy == NULL)
        return;
    piece->bytes = peek(r, from, piece->copy, to - from);
    set->memory_count++;
}

/* The kernel writes to this area by itself; a program with rings has none. */
static uint64_t rseq_of(const struct recorded *r, uint64_t *out_bytes)
{
    struct __ptrace_rseq_configuration rseq = { 0 };

    if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, r->pid, sizeof(rseq), &rseq) <= 0)
        rseq.rseq_abi_size = 0;
    *out_bytes = rseq.rseq_abi_size;
    return rseq.rseq_abi_pointer;
}

/* What the program may write, of a stack what is in use (hooks/memory/copied_memory.c).  Of programs that have more than the dial says, nothing. */
static void copy_memory(const struct recorded *r, struct recorded_set *set, uint64_t sp)
{
    uint64_t from, to, rseq_bytes, rseq = rseq_of(r, &rseq_bytes), sum = 0;
    char path[64], line[1024], kind[8];
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", r->pid);
    maps = fopen(path, "re");
    set->memory = maps ? calloc(MOST_PIECES, sizeof(*set->memory)) : NULL;
    while (set->memory != NULL && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &from, &to, kind) < 3 || kind[1] != 'w' ||
            kind[3] != 'p')
            continue;
        if (sp >= from + 128 && sp < to)
            from = (sp - 128) & ~15ull;
        sum += to - from;
        if (sum > r->dial.memory)
            break;
        if (rseq >= from && rseq < to) {
            add_piece(r, set, from, rseq);
            from = rseq + rseq_bytes;
        }
        add_piece(r, set, from, to);
    }
    if (maps != NULL)
        fclose(maps);
    if (sum > r->dial.memory)
        set->memory_count = 0;
}

static size_t memory_bytes(const struct recorded_set *set)
{
    size_t sum = 0;

    for (size_t i = 0; i < set->memory_count; i++)
        sum += set->memory[i].bytes;
    return sum;
}

static void drop_memory(struct recorded_set *set)
{
    for (size_t i = 0; i < set->memory_count; i++)
        free(set->memory[i].copy);
    free(set->memory);
    set->memory = NULL;
    set->memory_count = 0;
}

/* What is older than the slots for copies are many has been written over. */
static void drop_old_memory(struct recorded *r)
{
    size_t left = (size_t)TBD_VALUE_MEMORY_SLOTS * TBD_VALUE_MORE_BYTES;

    for (size_t i = r->set_count; i-- > 0;) {
        size_t bytes = memory_bytes(&r->sets[i]);

        if (bytes > left)
            drop_memory(&r->sets[i]);
        left -= bytes > left ? left : bytes;
    }
}

/* At a lap's end. */
static void copy_memory_if_due(struct recorded *r, struct recorded_set *set, uint64_t sp)
{
    if (r->dial.memory == 0 || r->entries % LAP != LAP - 1)
        return;
    r->memory_credit += BYTES_A_LAP;
    if (r->memory_credit > FIRST_BYTES)
        r->memory_credit = FIRST_BYTES;
    if (r->memory_credit <= 0)
        return;
    copy_memory(r, set, sp);
    r->memory_credit -= (int64_t)memory_bytes(set);
    drop_old_memory(r);
}

static void add_set(struct recorded *r, size_t step, const struct user_regs_struct *regs)
{
    struct recorded_set *set;

    r->last_set = r->entries;
    if (!tbd_array_grow(&r->sets, r->set_count, &r->set_capacity, sizeof(*r->sets)))
        return;
    set = &r->sets[r->set_count++];
    *set = (struct recorded_set){ .step = step };
    set->stack_bytes = peek(r, regs->rsp, set->stack, r->dial.stack);
    copy_memory_if_due(r, set, regs->rsp);
}

/* What a call may have beyond the dial (hooks/stream/value_slots.c). */
static size_t spare_bytes(struct recorded *r)
{
    uint64_t most = TBD_CRASH_RING_BYTES / TBD_VALUE_SLOT_BYTES / TBD_VALUE_CALLS_PART, spare;

    if (r->dial.memory == 0)
        return 0;
    spare = (r->entries - r->spent_until) / r->dial.after_call;
    r->spare = spare < most ? spare : most;
    return r->spare * TBD_VALUE_MORE_BYTES;
}

static void spend(struct recorded *r, size_t kept)
{
    uint64_t used = kept <= TBD_VALUE_CALL_BYTES
                        ? 0
                        : (kept - TBD_VALUE_CALL_BYTES - 1) / TBD_VALUE_MORE_BYTES + 1;

    if (r->dial.memory != 0 && used != 0)
        r->spent_until =
            r->entries - (r->spare - (used < r->spare ? used : r->spare)) * r->dial.after_call;
}

static void keep_bytes(struct recorded *r, struct recorded_call *call)
{
    size_t left = r->dial.call + spare_bytes(r), at = 0;

    call->bytes = malloc(left + 1);
    for (size_t i = 0; call->bytes != NULL && i < call->range_count; i++) {
        size_t wanted = call->ranges[i].bytes < left ? call->ranges[i].bytes : left;

        call->kept[i] = (uint32_t)peek(r, call->ranges[i].address, call->bytes + at, wanted);
        at += call->kept[i];
        left -= wanted;
    }
    spend(r, at);
}

static void add_call(struct recorded *r, size_t step, int64_t result)
{
    const struct user_regs_struct *c = &r->call;
    struct tbd_sys_call sys = { c->rax, { c->rdi, c->rsi, c->rdx, c->r10, c->r8, c->r9 } };
    struct tbd_sys_range ranges[6];
    struct recorded_call *call;

    if (!tbd_array_grow(&r->calls, r->call_count, &r->call_capacity, sizeof(*r->calls)))
        return;
    call = &r->calls[r->call_count++];
    *call = (struct recorded_call){ .step = step, .result = result };
    call->is_brk = c->rax == SYS_brk;
    if (c->rax == SYS_mprotect)
        call->protected = (struct tbd_sim_range){ c->rdi, c->rsi };
    call->has_ranges = tbd_syscall_changed(&sys, result, ranges, &call->range_count);
    if (!call->has_ranges)
        return;
    for (size_t i = 0; i < call->range_count; i++)
        call->ranges[i] = (struct tbd_sim_range){ ranges[i].address, ranges[i].bytes };
    if (tbd_syscall_mode(sys.number) == TBD_SYS_EMULATE)
        keep_bytes(r, call);
}

void recorded_interrupted(struct recorded *r)
{
    r->leaves_way = r->begins_block = true;
}

static bool insn_returns(const uint8_t code[16], const struct user_regs_struct *regs)
{
    return code[0] == 0x0f && code[1] == 0x05 && regs->rax == SYS_rt_sigreturn;
}

void recorded_step(struct recorded *r, size_t step, const struct user_regs_struct *regs,
                   const uint8_t code[16])
{
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecodedInstruction insn;
    bool was_call = r->was_call && regs->rip == r->call.rip + 2;

    r->was_call = false;
    if (was_call && r->dial.call != 0)
        add_call(r, step, (int64_t)regs->rax);
    r->is_new = r->begins_block && is_new(r, regs->rip);
    if (r->begins_block && is_due(r, regs->rip, was_call))
        add_set(r, step, regs);
    r->leaves_way = insn_returns(code, regs);
    r->entries += r->begins_block;
    r->begins_block = !decode(code, 15, &insn, operands) || ends_block(&insn);
    if (insn.mnemonic == ZYDIS_MNEMONIC_SYSCALL) {
        r->was_call = true;
        r->call = *regs;
    }
}

/* ---- told to a simulation ---- */

static bool is_in(const struct tbd_sim_range *range, uint64_t page)
{
    return range->address < page + 4096 && page < range->address + range->bytes;
}

size_t recorded_fixed_since(const struct recorded *r, uint64_t page)
{
    size_t since = r->dial.call != 0 ? 0 : SIZE_MAX;

    for (size_t i = 0; i < r->call_count; i++) {
        const struct recorded_call *call = &r->calls[i];
        bool touches = is_in(&call->protected, page) || (!call->has_ranges && !call->is_brk);

        for (size_t k = 0; k < call->range_count; k++)
            touches |= is_in(&call->ranges[k], page);
        if (touches && since != SIZE_MAX)
            since = call->step;
    }
    return since;
}

const struct recorded_set *recorded_set_at(const struct recorded *r, size_t step)
{
    size_t at = TBD_COUNT_BEFORE(i, r->set_count, r->sets[i].step < step);

    return at < r->set_count && r->sets[at].step == step ? &r->sets[at] : NULL;
}

const struct recorded_call *recorded_call_before(const struct recorded *r, size_t step)
{
    size_t at = TBD_COUNT_BEFORE(i, r->call_count, r->calls[i].step < step);

    return at < r->call_count && r->calls[at].step == step ? &r->calls[at] : NULL;
}

void recorded_tell_bytes(struct tbd_simulation *sim, uint64_t address, const uint8_t *bytes,
                         size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t word = 8 - (address + i) % 8, part = word < count - i ? word : count - i;
        uint64_t value = 0;

        memcpy(&value, bytes + i, part);
        if (tbd_simulation_know_memory(sim, address + i, (unsigned)part, value) != TBD_OK)
            return;
        i += part;
    }
}

void recorded_tell_call(const struct recorded_call *call, struct tbd_simulation *sim)
{
    size_t at = 0;

    tbd_simulation_know(sim, RAX, tbd_bits_of((uint64_t)call->result));
    if (!call->has_ranges ||
        tbd_simulation_know_call(sim, call->ranges, call->range_count) != TBD_OK)
        return;
    for (size_t i = 0; call->bytes != NULL && i < call->range_count; i++) {
        recorded_tell_bytes(sim, call->ranges[i].address, call->bytes + at, call->kept[i]);
        at += call->kept[i];
    }
}
