// SPDX-License-Identifier: MIT
/* value_slots.c - see value_slots.h */
#include "hooks/stream/value_slots.h"

#include "base/string.h"
#include "hooks/stream/order_stamps.h"
#include "hooks/table/program_bytes.h"

#define NEVER       (1ull << 63) /* as record_in: no place of a ring is that high */
#define ENTRY_BYTES 4u

static struct tbd_crash *crash; /* NULL: nothing is recorded */
static uint8_t *slots;
static uint32_t slots_of_ring;
static struct tbd_record_dial dial;
static uint64_t
    recorded_at[TBD_CRASH_RINGS]; /* where each ring's next entry was; the thread's own */

/* ---- the setting ---- */

void tbd_crash_values_start(struct tbd_crash *given, uint8_t *given_slots)
{
    slots_of_ring = given ? given->value_slots : 0;
    crash = slots_of_ring ? given : NULL;
    slots = given_slots;
    if (crash)
        tbd_crash_values_set(crash->record);
}

bool tbd_crash_values_set(uint32_t setting)
{
    if (!crash || setting > TBD_RECORD_MOST)
        return false;
    dial = tbd_record_dials[setting];
    crash->record = setting;
    return true;
}

/* Registers are due `entries` entries after the thread's next one. */
static void set_due(struct tbd_thread *thread, uint64_t next, uint32_t entries)
{
    thread->record_in =
        crash && dial.entries ? 0 - (next + (uint64_t)entries * ENTRY_BYTES) : NEVER;
}

void tbd_crash_values_due(struct tbd_thread *thread)
{
    set_due(thread, thread->entry_next, 0);
}

/* Bytes of a ring. */
static uint64_t due_after_call(void)
{
    return (uint64_t)dial.after_call * ENTRY_BYTES;
}

/* CRASH_VALUES-2: those of earlier laps do not count any more. */
void tbd_crash_values_restart(uint32_t index)
{
    if (crash && index < TBD_CRASH_RINGS)
        crash->laps[index] += TBD_CRASH_FIRST_LAP;
}

void tbd_crash_values_begin(struct tbd_thread *thread, uint32_t index)
{
    tbd_crash_values_restart(index);
    set_due(thread, thread->entry_next, 0);
    if (index >= TBD_CRASH_RINGS)
        thread->record_in = NEVER;
    else
        recorded_at[index] = thread->entry_next - due_after_call();
}

bool tbd_crash_values_lap_sigsafe(struct tbd_thread *thread, uint32_t index, uint64_t start)
{
    if (!crash || index >= TBD_CRASH_RINGS)
        return false;
    crash->laps[index]++;
    set_due(thread, start, 0);
    recorded_at[index] = start - due_after_call();
    return dial.after_call;
}

/* ---- slots ---- */

static struct tbd_crash_value *slot_at(uint32_t index, uint32_t number)
{
    return (struct tbd_crash_value *)(slots +
                                      ((uint64_t)index * slots_of_ring + number % slots_of_ring) *
                                          TBD_VALUE_SLOT_BYTES);
}

/* CRASH_VALUES-1: it is empty. */
static struct tbd_crash_value *take_slot(uint32_t index)
{
    struct tbd_crash_value *slot = slot_at(index, crash->value_next[index]++);

    __atomic_store_n(&slot->moment, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return slot;
}

static uint64_t moment_now(const struct tbd_thread *thread, uint32_t index, uint64_t ring)
{
    return (uint64_t)crash->laps[index] << TBD_VALUE_LAP_SHIFT |
           (uint32_t)(thread->entry_next - ring);
}

static void complete(struct tbd_crash_value *slot, uint64_t moment)
{
    __atomic_store_n(&slot->moment, moment, __ATOMIC_RELEASE);
}

static bool is_on(uint32_t index)
{
    return crash && index < TBD_CRASH_RINGS;
}

/* ---- registers ---- */

static void keep_registers(struct tbd_thread *thread, uint32_t index, uint64_t ring, size_t stack)
{
    const struct tbd_regs *regs = &thread->regs;
    struct tbd_crash_value *slot = take_slot(index);
    struct tbd_value_registers *to = &slot->is.registers;

    to->rip = regs->rip;
    to->rflags = regs->rflags;
    to->fs_base = regs->fs_base;
    to->gs_base = regs->gs_base;
    to->stamp = tbd_stamp_here();
    for (unsigned r = 0; r < TBD_REG_COUNT; r++) /* memcpy() takes longer to begin */
        to->gpr[r] = regs->gpr[r];
    to->stack_bytes = tbd_copy_prefix_from_program(to->stack, regs->gpr[TBD_RSP], stack);
    complete(slot, moment_now(thread, index, ring) | TBD_VALUE_REGISTERS);
}

void tbd_crash_values_registers(struct tbd_thread *thread, uint32_t index, uint64_t ring)
{
    if (!is_on(index) || !dial.after_call) {
        thread->record_in = NEVER;
        return;
    }
    keep_registers(thread, index, ring, dial.stack);
    recorded_at[index] = thread->entry_next;
    set_due(thread, thread->entry_next, dial.entries);
}

void tbd_crash_values_sometimes(struct tbd_thread *thread, uint32_t index, uint64_t ring)
{
    if (is_on(index) && dial.after_call &&
        (int64_t)(thread->entry_next - recorded_at[index] - due_after_call()) >= 0)
        tbd_crash_values_registers(thread, index, ring);
}

void tbd_crash_values_cancel(struct tbd_thread *thread, uint32_t index, uint64_t ring)
{
    struct tbd_crash_value *slot;

    if (!is_on(index))
        return;
    slot = slot_at(index, crash->value_next[index] - 1);
    if (slot->moment == (moment_now(thread, index, ring) | TBD_VALUE_REGISTERS))
        complete(slot, 0);
}

/* ---- system calls ---- */

static size_t min_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Into the slots that follow; returns how many bytes were kept. */
static size_t keep_more(const struct tbd_value_range *range, size_t from, size_t wanted,
                        uint32_t index, uint64_t moment)
{
    size_t kept = 0;

    while (kept < wanted) {
        struct tbd_crash_value *slot = take_slot(index);
        struct tbd_value_bytes *to = &slot->is.more;
        size_t part = min_of(wanted - kept, sizeof(to->bytes));

        to->address = range->address + from + kept;
        to->count = tbd_copy_prefix_from_program(to->bytes, to->address, part);
        complete(slot, moment | TBD_VALUE_BYTES);
        kept += to->count;
        if (to->count != part)
            break;
    }
    return kept;
}

/* The bytes of all ranges together are at most dial.call. */
static void keep_bytes(struct tbd_value_call *to, uint32_t index, uint64_t moment)
{
    size_t space = min_of(sizeof(to->bytes), dial.call), left = dial.call, at = 0;

    for (uint32_t i = 0; i < to->range_count && left; i++) {
        struct tbd_value_range *range = &to->ranges[i];
        size_t wanted = min_of(range->bytes, left);
        size_t here = min_of(wanted, space - at);

        range->kept = (uint32_t)tbd_copy_prefix_from_program(to->bytes + at, range->address, here);
        at += range->kept;
        if (range->kept == here && wanted > here)
            keep_more(range, here, wanted - here, index, moment);
        left -= wanted;
    }
}

static void describe(struct tbd_value_call *to, const struct tbd_sys_call *call, int64_t result)
{
    struct tbd_sys_range may[TBD_VALUE_RANGES + 1], did[TBD_VALUE_RANGES + 1];
    size_t may_count, count = 0;

    to->flags = 0;
    to->range_count = 0;
    if (tbd_syscall_mode(call->number) != TBD_SYS_EMULATE || !tbd_syscall_is_described(call))
        return;
    may_count = tbd_syscall_may_write(call, may, TBD_VALUE_RANGES + 1);
    if (may_count > TBD_VALUE_RANGES)
        return;
    count = tbd_syscall_did_write(call, result, may, may_count, did, TBD_VALUE_RANGES + 1);
    if (count > TBD_VALUE_RANGES)
        return;
    for (size_t i = 0; i < count; i++) {
        if (did[i].bytes > UINT32_MAX)
            return;
        to->ranges[i] =
            (struct tbd_value_range){ .address = did[i].address, .bytes = (uint32_t)did[i].bytes };
    }
    to->range_count = (uint32_t)count;
    to->flags = TBD_VALUE_ALL_RANGES;
}

void tbd_crash_values_call(struct tbd_thread *thread, uint32_t index, uint64_t ring,
                           const struct tbd_sys_call *call, int64_t result, uint64_t began)
{
    struct tbd_crash_value *slot;
    struct tbd_value_call *to;
    uint64_t moment;

    if (!is_on(index) || !dial.call)
        return;
    moment = moment_now(thread, index, ring);
    slot = take_slot(index);
    to = &slot->is.call;
    to->number = call->number;
    memcpy(to->args, call->args, sizeof(to->args));
    to->result = result;
    to->began = began;
    to->ended = tbd_stamp_after();
    describe(to, call, result);
    keep_bytes(to, index, moment);
    complete(slot, moment | TBD_VALUE_CALL);
}

/* ---- probes ---- */

void tbd_crash_values_probe(struct tbd_thread *thread, uint32_t index, uint64_t ring)
{
    if (is_on(index))
        keep_registers(thread, index, ring, TBD_VALUE_STACK);
}

void tbd_crash_values_bytes(struct tbd_thread *thread, uint32_t index, uint64_t ring,
                            uint64_t address, uint64_t bytes)
{
    struct tbd_value_range range = { .address = address };

    if (is_on(index))
        keep_more(&range, 0, min_of(bytes, TBD_VALUE_PROBE_BYTES), index,
                  moment_now(thread, index, ring));
}
