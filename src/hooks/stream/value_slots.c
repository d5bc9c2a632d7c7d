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
static uint32_t slots_of_ring, memory_slots; /* slots for copies of memory come after the others */
static struct tbd_record_dial dial;
static uint64_t
    recorded_at[TBD_CRASH_RINGS]; /* where each ring's next entry was; the thread's own */
static bool memory_due;           /* the first one's own */
static uint64_t spent_until[TBD_CRASH_RINGS]; /* as entries_now(): the same */

/* ---- the setting ---- */

void tbd_crash_values_start(struct tbd_crash *given, uint8_t *given_slots)
{
    slots_of_ring = given ? given->value_slots : 0;
    memory_slots = given ? given->memory_slots : 0;
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
    if (index == 0)
        memory_due = false;
}

bool tbd_crash_values_lap_sigsafe(struct tbd_thread *thread, uint32_t index, uint64_t start)
{
    if (!crash || index >= TBD_CRASH_RINGS)
        return false;
    crash->laps[index]++;
    set_due(thread, start, 0);
    recorded_at[index] = start - due_after_call();
    if (index == 0)
        memory_due = dial.memory;
    return dial.after_call;
}

/* ---- slots ---- */

static struct tbd_crash_value *slot_at(uint32_t index, uint32_t number)
{
    return (struct tbd_crash_value *)(slots +
                                      ((uint64_t)index * slots_of_ring + number % slots_of_ring) *
                                          TBD_VALUE_SLOT_BYTES);
}

static struct tbd_crash_value *memory_slot_at(uint32_t number)
{
    return (struct tbd_crash_value *)(slots + ((uint64_t)TBD_CRASH_RINGS * slots_of_ring +
                                               number % memory_slots) *
                                                  TBD_VALUE_SLOT_BYTES);
}

/* CRASH_VALUES-1 */
static struct tbd_crash_value *empty(struct tbd_crash_value *slot)
{
    __atomic_store_n(&slot->moment, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return slot;
}

static struct tbd_crash_value *take_slot(uint32_t index)
{
    return empty(slot_at(index, crash->value_next[index]++));
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

static void fill_registers(struct tbd_crash_value *slot, struct tbd_thread *thread, uint32_t index,
                           uint64_t ring, size_t stack)
{
    const struct tbd_regs *regs = &thread->regs;
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

static void keep_registers(struct tbd_thread *thread, uint32_t index, uint64_t ring, size_t stack)
{
    fill_registers(take_slot(index), thread, index, ring, stack);
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
    uint64_t moment;

    if (!is_on(index))
        return;
    moment = moment_now(thread, index, ring);
    slot = slot_at(index, crash->value_next[index] - 1);
    if (slot->moment != (moment | TBD_VALUE_REGISTERS))
        return;
    complete(slot, 0);
    for (uint32_t i = 1; index == 0 && i <= memory_slots; i++) {
        slot = memory_slot_at(crash->memory_next - i);
        if ((slot->moment & ~(uint64_t)TBD_VALUE_KIND_MASK) != moment)
            break;
        complete(slot, 0);
    }
}

/* ---- system calls ---- */

static size_t min_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Into the slots that `take` gives, one after the other; returns how many bytes were kept. */
static size_t keep_in_slots(struct tbd_crash_value *(*take)(uint32_t index), uint32_t index,
                            uint64_t address, size_t wanted, uint64_t moment)
{
    size_t kept = 0;

    while (kept < wanted) {
        struct tbd_crash_value *slot = take(index);
        struct tbd_value_bytes *to = &slot->is.more;
        size_t part = min_of(wanted - kept, sizeof(to->bytes));

        to->address = address + kept;
        to->count = tbd_copy_prefix_from_program(to->bytes, to->address, part);
        complete(slot, moment | TBD_VALUE_BYTES);
        kept += to->count;
        if (to->count != part)
            break;
    }
    return kept;
}

/* Entries of the ring until now, over all laps. */
static uint64_t entries_of(uint64_t moment)
{
    return (moment >> TBD_VALUE_LAP_SHIFT) * (crash->ring_bytes / ENTRY_BYTES) +
           (uint32_t)moment / ENTRY_BYTES;
}

/* Slots for what calls wrote beyond dial.call: as many as registers after calls may take, one for `after_call` entries, and some are saved up.  The ring
 * may have become shorter. */
static uint32_t slots_to_spare(uint32_t index, uint64_t entries)
{
    uint64_t most = slots_of_ring / TBD_VALUE_CALLS_PART, saved;

    if (!dial.memory)
        return 0;
    saved = entries < spent_until[index] ? 0 : (entries - spent_until[index]) / dial.after_call;
    return (uint32_t)min_of(saved, most);
}

static void spend_slots(uint32_t index, uint64_t entries, uint32_t spare, uint32_t used)
{
    if (dial.memory)
        spent_until[index] = entries - (uint64_t)(spare - min_of(used, spare)) * dial.after_call;
}

/* The bytes of all ranges together are at most dial.call, and what there are slots to spare for. */
static void keep_bytes(struct tbd_value_call *to, uint32_t index, uint64_t moment)
{
    uint64_t entries = entries_of(moment);
    uint32_t spare = slots_to_spare(index, entries), first = crash->value_next[index];
    size_t space = min_of(sizeof(to->bytes), dial.call), at = 0;
    size_t left = dial.call + (size_t)spare * TBD_VALUE_MORE_BYTES;

    for (uint32_t i = 0; i < to->range_count && left; i++) {
        struct tbd_value_range *range = &to->ranges[i];
        size_t wanted = min_of(range->bytes, left);
        size_t here = min_of(wanted, space - at);

        range->kept = (uint32_t)tbd_copy_prefix_from_program(to->bytes + at, range->address, here);
        at += range->kept;
        if (range->kept == here && wanted > here)
            keep_in_slots(take_slot, index, range->address + here, wanted - here, moment);
        left -= wanted;
    }
    if (crash->value_next[index] != first)
        spend_slots(index, entries, spare, crash->value_next[index] - first);
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
    if (is_on(index))
        keep_in_slots(take_slot, index, address, min_of(bytes, TBD_VALUE_PROBE_BYTES),
                      moment_now(thread, index, ring));
}

/* ---- memory ---- */

uint64_t tbd_crash_values_memory_due(struct tbd_thread *thread, uint32_t index)
{
    if (!crash || index != 0 || !memory_due || recorded_at[0] != thread->entry_next)
        return 0;
    memory_due = false;
    return min_of(dial.memory, (size_t)memory_slots / TBD_VALUE_MEMORY_PART * TBD_VALUE_MORE_BYTES);
}

static struct tbd_crash_value *take_memory_slot(uint32_t index)
{
    (void)index;
    return empty(memory_slot_at(crash->memory_next++));
}

void tbd_crash_values_memory_begin(struct tbd_thread *thread, uint32_t index, uint64_t ring)
{
    if (crash && index == 0 && memory_slots)
        fill_registers(take_memory_slot(index), thread, index, ring, dial.stack);
}

uint64_t tbd_crash_values_memory(struct tbd_thread *thread, uint32_t index, uint64_t ring,
                                 uint64_t address, uint64_t bytes)
{
    return crash && index == 0 && memory_slots
               ? keep_in_slots(take_memory_slot, index, address, bytes,
                               moment_now(thread, index, ring))
               : 0;
}
