// SPDX-License-Identifier: MIT
/* past_values.c - see past_values.h
 *
 * A set of registers is that of a block's start: it counts only if the ring has this block there.  A signal may have come between. */
#include "query/past/past_values.h"

#include "base/binary_search.h"
#include "query/past/past_pages.h"
#include "hooks/table/syscalls.h"

#include <string.h>

/* ---- the dump's ---- */

static uint32_t thread_number(const struct tbd_past *past)
{
    return (uint32_t)(past->thread - past->ring->threads);
}

/* The first one of the thread at this entry, or after it. */
static uint32_t first_of(const struct tbd_rings *ring, uint32_t thread, uint64_t entry)
{
    const struct tbd_crash_file_value *values = ring->dump.values;

    return (uint32_t)TBD_COUNT_BEFORE(i, ring->dump.head->value_count,
                                      values[i].thread < thread ||
                                          (values[i].thread == thread && values[i].entry < entry));
}

static uint32_t first_at(const struct tbd_past *past, uint64_t entry)
{
    return first_of(past->ring, thread_number(past), entry);
}

uint64_t tbd_past_registers_before(const struct tbd_rings *ring, uint32_t thread, uint64_t step)
{
    const struct tbd_crash_file_value *values = ring->dump.values;

    for (uint32_t i = first_of(ring, thread, step + 1); i > 0 && values[i - 1].thread == thread;
         i--)
        if (values[i - 1].kind == TBD_VALUE_REGISTERS)
            return values[i - 1].entry;
    return UINT64_MAX;
}

/* NULL: there are no more of this entry. */
static const struct tbd_crash_file_value *value_at(const struct tbd_past *past, uint32_t index,
                                                   uint64_t entry)
{
    const struct tbd_crash_dump *dump = &past->ring->dump;

    return index < dump->head->value_count && dump->values[index].thread == thread_number(past) &&
                   dump->values[index].entry == entry
               ? &dump->values[index]
               : NULL;
}

/* ---- memory ---- */

static enum tbd_status know_bytes(struct tbd_past *past, uint64_t address, const uint8_t *bytes,
                                  size_t count)
{
    enum tbd_status status = TBD_OK;

    if (address > UINT64_MAX - count)
        return TBD_OK;
    for (size_t i = 0; status == TBD_OK && i < count;) {
        size_t word = 8 - (address + i) % 8, part = word < count - i ? word : count - i;
        uint64_t value = 0;

        memcpy(&value, bytes + i, part);
        status = tbd_simulation_know_memory(past->sim, address + i, (unsigned)part, value);
        i += part;
    }
    return status;
}

/* ---- registers ---- */

static enum tbd_status know_set(struct tbd_past *past, const struct tbd_value_registers *set)
{
    for (unsigned i = 0; i < TBD_REG_COUNT; i++)
        tbd_simulation_know(past->sim, i, tbd_bits_of(set->gpr[i]));
    tbd_simulation_know(
        past->sim, TBD_PLACE_FLAGS,
        (struct tbd_bits){ set->rflags & TBD_STATUS_FLAGS, (uint64_t)TBD_STATUS_FLAGS });
    tbd_simulation_know(past->sim, TBD_PLACE_DF, tbd_bits_of(set->rflags >> 10 & 1));
    tbd_simulation_know(past->sim, TBD_PLACE_FS, tbd_bits_of(set->fs_base));
    tbd_simulation_know(past->sim, TBD_PLACE_GS, tbd_bits_of(set->gs_base));
    return know_bytes(past, set->gpr[TBD_RSP], set->stack, set->stack_bytes);
}

enum tbd_status tbd_past_know_registers(struct tbd_past *past, uint64_t step)
{
    uint64_t start = past->ring->dump.blocks[past->thread->walked.steps[step].block].start;
    const struct tbd_crash_file_value *value;
    enum tbd_status status = TBD_OK;
    bool is_here = false; /* bytes after it are those of this moment */

    for (uint32_t i = first_at(past, step);
         status == TBD_OK && (value = value_at(past, i, step)) != NULL; i++) {
        if (value->kind != TBD_VALUE_BYTES)
            is_here = value->kind == TBD_VALUE_REGISTERS && value->is.registers.rip == start;
        if (is_here)
            status = value->kind == TBD_VALUE_REGISTERS
                         ? know_set(past, &value->is.registers)
                         : know_bytes(past, value->is.more.address, value->is.more.bytes,
                                      value->is.more.count);
    }
    return status;
}

/* ---- system calls ---- */

static bool call_ranges(const struct tbd_value_call *call, struct tbd_sim_range out[6],
                        size_t *out_count)
{
    struct tbd_sys_call sys = { .number = call->number };
    struct tbd_sys_range ranges[6];

    if (call->flags & TBD_VALUE_ALL_RANGES) {
        *out_count = call->range_count;
        for (size_t i = 0; i < call->range_count; i++)
            out[i] = (struct tbd_sim_range){ call->ranges[i].address, call->ranges[i].bytes };
        return true;
    }
    memcpy(sys.args, call->args, sizeof(sys.args));
    if (!tbd_syscall_changed(&sys, call->result, ranges, out_count))
        return false;
    for (size_t i = 0; i < *out_count; i++)
        out[i] = (struct tbd_sim_range){ ranges[i].address, ranges[i].bytes };
    return true;
}

static enum tbd_status know_written(struct tbd_past *past, const struct tbd_value_call *call)
{
    enum tbd_status status = TBD_OK;
    size_t at = 0;

    for (uint32_t i = 0; status == TBD_OK && i < call->range_count; i++) {
        status = know_bytes(past, call->ranges[i].address, call->bytes + at, call->ranges[i].kept);
        at += call->ranges[i].kept;
    }
    return status;
}

/* A call leaves its arguments alone (System V ABI, A.2.1). */
static enum tbd_status know_call(struct tbd_past *past, const struct tbd_value_call *call)
{
    static const unsigned places[6] = { TBD_RDI, TBD_RSI, TBD_RDX, TBD_R10, TBD_R8, TBD_R9 };
    struct tbd_sim_range ranges[6];
    size_t count = 0;
    enum tbd_status status = TBD_OK;

    tbd_simulation_know(past->sim, TBD_RAX, tbd_bits_of((uint64_t)call->result));
    for (unsigned i = 0; i < 6; i++)
        tbd_simulation_know(past->sim, places[i], tbd_bits_of(call->args[i]));
    if (call_ranges(call, ranges, &count))
        status = tbd_simulation_know_call(past->sim, ranges, count);
    return status == TBD_OK ? know_written(past, call) : status;
}

enum tbd_status tbd_past_know_call(struct tbd_past *past, uint64_t step)
{
    size_t count = tbd_simulation_counts(past->sim).steps;
    const struct tbd_sim_insn *last = count == 0 ? NULL : tbd_simulation_insn(past->sim, count - 1);
    const struct tbd_crash_file_value *value;
    enum tbd_status status = TBD_OK;
    bool is_known = false, is_here = false;

    if (last == NULL || last->kind != TBD_INSN_SYSCALL)
        return TBD_OK;
    for (uint32_t i = first_at(past, step + 1);
         status == TBD_OK && (value = value_at(past, i, step + 1)) != NULL; i++) {
        if (value->kind != TBD_VALUE_BYTES)
            is_here = value->kind == TBD_VALUE_CALL;
        if (value->kind == TBD_VALUE_CALL) {
            is_known = true;
            status = know_call(past, &value->is.call);
            if (status == TBD_OK)
                status = tbd_past_pages_note_call(past->pages, count, &value->is.call);
        } else if (is_here) {
            status = know_bytes(past, value->is.more.address, value->is.more.bytes,
                                value->is.more.count);
        }
    }
    if (status == TBD_OK && !is_known)
        status = tbd_past_pages_note_call(past->pages, count, NULL);
    return status;
}
