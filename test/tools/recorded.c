// SPDX-License-Identifier: MIT
/* recorded.c - see recorded.h */
#include "recorded.h"

#include "base/array.h"
#include "base/binary_search.h"
#include "hooks/table/syscalls.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    BLOCK_INSNS_MOST = 64,
    RAX = 0,
    LAP = 65535 /* entries of the shortest ring */,
    STARTS = 1 << 18
};

static size_t peek(const struct recorded *r, uint64_t address, void *out, size_t bytes)
{
    ssize_t got = pread(r->mem, out, bytes, (off_t)address);

    return got > 0 ? (size_t)got : 0;
}

void recorded_begin(struct recorded *r, unsigned setting, int mem, bool from_start)
{
    *r = (struct recorded){ .mem = mem, .begins_block = true };
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

static void add_set(struct recorded *r, size_t step, const struct user_regs_struct *regs)
{
    struct recorded_set *set;

    r->last_set = r->entries;
    if (!tbd_array_grow(&r->sets, r->set_count, &r->set_capacity, sizeof(*r->sets)))
        return;
    set = &r->sets[r->set_count++];
    set->step = step;
    set->stack_bytes = peek(r, regs->rsp, set->stack, r->dial.stack);
}

static void keep_bytes(const struct recorded *r, struct recorded_call *call)
{
    size_t left = r->dial.call, at = 0;

    call->bytes = malloc(left + 1);
    for (size_t i = 0; call->bytes != NULL && i < call->range_count; i++) {
        size_t wanted = call->ranges[i].bytes < left ? call->ranges[i].bytes : left;

        call->kept[i] = (uint32_t)peek(r, call->ranges[i].address, call->bytes + at, wanted);
        at += call->kept[i];
        left -= wanted;
    }
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
