// SPDX-License-Identifier: MIT
/* crash_ring.c - see crash_ring.h */
#include "hooks/stream/crash_ring.h"

#include "base/fmt.h"
#include "base/linux.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/stream/condense_laps.h"
#include "hooks/stream/crash_parts.h"
#include "hooks/stream/value_slots.h"
#include "hooks/stream/recording.h"
#include "hooks/stream/order_stamps.h"

static struct tbd_crash *crash; /* NULL: there are no rings */

/* ---- tables ---- */

static struct tbd_crash *area_0(void)
{
    return (struct tbd_crash *)tbd_ring_area(&tbd_recording.ring, 0);
}

static uint64_t now_us(void)
{
    int64_t time[2] = { 0, 0 };

    tbd_sys3(__NR_clock_gettime, CLOCK_REALTIME, tbd_sys_pointer(time), 0);
    return (uint64_t)(time[0] * 1000000 + time[1] / 1000);
}

static uint64_t *table(uint32_t which)
{
    return (uint64_t *)tbd_ring_area(&tbd_recording.ring, TBD_CRASH_TABLES) +
           (which == TBD_CRASH_LAST ? TBD_CRASH_IDS : 0);
}

static uint64_t run_us(void)
{
    return now_us() - crash->started_us + 1;
}

void tbd_crash_note_first(uint32_t id)
{
    if (crash->tables & TBD_CRASH_FIRST && id - 1 < TBD_CRASH_IDS)
        table(TBD_CRASH_FIRST)[id - 1] = run_us();
}

/* A lap of the ring is over: its entries are the last ones of their blocks so far.  Two threads may do that at once: laps
 * that end in the same moment have no order. */
static void note_last(const uint32_t *ring, uint64_t count, uint64_t time)
{
    uint64_t *last = table(TBD_CRASH_LAST);

    for (uint64_t i = 0; i < count; i++)
        if (ring[i] - 1 < TBD_CRASH_IDS)
            last[ring[i] - 1] = time << TBD_CRASH_LAP_SHIFT | i;
}

static void note_lap(uint32_t index, const uint32_t *ring, uint64_t count)
{
    uint64_t time;

    if (!(crash->tables & (TBD_CRASH_LAST | TBD_CRASH_KEPT)) && !tbd_condense_is_on())
        return;
    time = run_us();
    if (crash->tables & TBD_CRASH_LAST)
        note_last(ring, count, time);
    if (crash->tables & TBD_CRASH_KEPT)
        tbd_crash_parts_lap_sigsafe(index, ring, count, time);
    tbd_condense_lap_sigsafe(index, ring, count);
}

/* The entries are where they belong: from here on the ring, which goes on at `start`, has none of its next lap, and not all of the
 * last one. */
static void begin_lap(uint32_t index, uint64_t start)
{
    __atomic_store_n((uint32_t *)start, 0, __ATOMIC_RELEASE);
    tbd_crash_parts_next_lap_sigsafe(index);
    tbd_condense_next_lap_sigsafe(index);
}

/* ---- rings ---- */

static uint64_t ring_bytes(void)
{
    return crash->ring_bytes;
}

/* How many the lap has that is not over. */
static uint64_t entries_in(uint64_t start, uint64_t bytes)
{
    const uint32_t *ring = (const uint32_t *)start;
    uint64_t count = 0;

    while (count < bytes / sizeof(*ring) && ring[count])
        count++;
    return count;
}

/* That the lap has when the entry at `next` does not fit: its last place has a 0. */
static uint64_t entries_before(uint64_t start, uint64_t next)
{
    uint64_t last = ring_bytes() - sizeof(uint32_t);

    return next - start == last ? last / sizeof(uint32_t) : entries_in(start, ring_bytes());
}

/* Those without a ring of their own have the last one. */
static uint32_t area_of(uint32_t index)
{
    return 1 + (index < TBD_CRASH_RINGS ? index : TBD_CRASH_RINGS);
}

static uint64_t area_start(uint32_t index)
{
    return tbd_ring_area(&tbd_recording.ring, area_of(index));
}

/* Where the lap lies that is not over. */
static uint64_t ring_of(uint32_t index)
{
    return tbd_condense_ring_sigsafe(index, area_start(index));
}

void tbd_crash_format(const struct tbd_crash_format *format)
{
    struct tbd_crash *made = area_0();

    made->ring_bytes = format->ring_bytes;
    made->tables = format->tables;
    made->started_us = now_us();
    made->values_at = format->tables ? TBD_CRASH_ALL_BYTES : 0;
    made->value_slots = (uint32_t)(format->value_bytes / TBD_VALUE_SLOT_BYTES);
    made->memory_slots = (uint32_t)(format->memory_bytes / TBD_VALUE_SLOT_BYTES);
    made->record = format->record;
    made->condensed_at =
        made->values_at +
        ((uint64_t)made->value_slots * TBD_CRASH_RINGS + made->memory_slots) * TBD_VALUE_SLOT_BYTES;
    made->condensed_bytes = format->condensed_bytes;
    if (!tbd_crash_parts_format(made, format->parts))
        tbd_say("parts=%s: not all of it can be kept: NAME [SIZE];..., %u names, 4M at most",
                format->parts, TBD_CRASH_PARTS - 1);
}

void tbd_crash_start(void)
{
    uint8_t *tables;

    tbd_recording.ring.discard = true;
    crash = area_0();
    tables = (uint8_t *)tbd_ring_area(&tbd_recording.ring, TBD_CRASH_TABLES);
    if (crash->tables & TBD_CRASH_KEPT)
        tbd_crash_parts_start(crash, tables);
    tbd_crash_values_start(crash, tables + crash->values_at);
    tbd_stamps_start(crash);
    tbd_condense_start(crash->condensed_bytes ? tables + crash->condensed_at : NULL,
                       crash->condensed_bytes, &crash->lap_call);
}

void *tbd_crash_at(uint32_t offset)
{
    return crash ? (uint8_t *)crash + offset : NULL;
}

void tbd_crash_forget(void)
{
    crash = NULL;
    tbd_crash_values_start(NULL, NULL);
    tbd_stamps_start(NULL);
    tbd_condense_start(NULL, 0, NULL);
}

bool tbd_crash_is_on(void)
{
    return crash;
}

static void set_called(uint32_t index, uint64_t stamp)
{
    if (index < TBD_CRASH_RINGS)
        __atomic_store_n(&crash->called_at[index], stamp, __ATOMIC_RELEASE);
}

void tbd_crash_give_ring(struct tbd_thread *thread, uint32_t index, uint32_t tid)
{
    uint64_t start, before;

    if (!crash)
        return;
    start = area_start(index);
    before = ring_of(index);
    tbd_sys_mprotect(start + ring_bytes(), TBD_PAGE_SIZE, PROT_NONE);
    thread->entry_next = start;
    tbd_crash_values_begin(thread, index);
    if (index >= TBD_CRASH_RINGS) {
        __atomic_fetch_add(&crash->without_ring, 1, __ATOMIC_RELAXED);
        return;
    }
    /* of an earlier thread */
    if (index < crash->thread_count && *(const uint32_t *)before) {
        note_lap(index, (const uint32_t *)before, entries_in(before, ring_bytes()));
        begin_lap(index, start);
    }
    if (index < crash->thread_count)
        memset((void *)start, 0, ring_bytes());
    tbd_crash_parts_reset(index);
    tbd_condense_reset(index, start, ring_bytes());
    crash->tids[index] = tid;
    set_called(index, 0);
    if (index >= crash->thread_count)
        __atomic_store_n(&crash->thread_count, index + 1, __ATOMIC_RELEASE);
}

void tbd_crash_note_thread(uint32_t index, uint32_t tid)
{
    if (crash && index < TBD_CRASH_RINGS)
        __atomic_store_n(&crash->tids[index], tid, __ATOMIC_RELEASE);
}

/* Is it the fault of the store of 8 bytes for an entry?  The program's own store into that page is its own affair. */
static bool is_entry_store(uint64_t end, uint64_t address, uint64_t next)
{
    return next > end - sizeof(uint64_t) && next < end + TBD_PAGE_SIZE &&
           address == (next < end ? end : next);
}

enum tbd_crash_wrap tbd_crash_wraps_sigsafe(struct tbd_thread *thread, uint32_t index,
                                            uint64_t address, uint64_t *entry_next)
{
    uint64_t start, next;
    bool records;

    if (!crash)
        return TBD_WRAP_NONE;
    start = ring_of(index);
    if (!is_entry_store(start + ring_bytes(), address, *entry_next))
        return TBD_WRAP_NONE;
    if (index < TBD_CRASH_RINGS)
        note_lap(index, (const uint32_t *)start, entries_before(start, *entry_next));
    next = tbd_condense_next_ring_sigsafe(index, area_start(index));
    records = tbd_crash_values_lap_sigsafe(thread, index, next);
    if (index < TBD_CRASH_RINGS)
        begin_lap(index, next);
    *entry_next = next;
    return records ? TBD_WRAP_RECORDS : TBD_WRAP_DONE;
}

/* ---- values beside them ---- */

void tbd_crash_note_values(struct tbd_thread *thread, uint32_t index, bool due)
{
    if (due)
        tbd_crash_values_registers(thread, index, ring_of(index));
    else if (crash)
        tbd_crash_values_sometimes(thread, index, ring_of(index));
}

void tbd_crash_note_probe(struct tbd_thread *thread, uint32_t index)
{
    if (crash)
        tbd_crash_values_probe(thread, index, ring_of(index));
}

void tbd_crash_note_bytes(struct tbd_thread *thread, uint32_t index, uint64_t address,
                          uint64_t bytes)
{
    if (crash)
        tbd_crash_values_bytes(thread, index, ring_of(index), address, bytes);
}

uint64_t tbd_crash_memory_due(struct tbd_thread *thread, uint32_t index)
{
    return crash ? tbd_crash_values_memory_due(thread, index) : 0;
}

void tbd_crash_begin_memory(struct tbd_thread *thread, uint32_t index)
{
    if (crash)
        tbd_crash_values_memory_begin(thread, index, ring_of(index));
}

uint64_t tbd_crash_note_memory(struct tbd_thread *thread, uint32_t index, uint64_t address,
                               uint64_t bytes)
{
    return crash ? tbd_crash_values_memory(thread, index, ring_of(index), address, bytes) : 0;
}

void tbd_crash_begin_call(uint32_t index)
{
    if (crash)
        set_called(index, tbd_stamp_before());
}

void tbd_crash_goes_on_after_call(uint32_t index)
{
    if (crash)
        set_called(index, 0);
}

void tbd_crash_note_call(struct tbd_thread *thread, uint32_t index, const struct tbd_sys_call *call)
{
    if (!crash)
        return;
    tbd_crash_values_call(thread, index, ring_of(index), call, (int64_t)thread->regs.gpr[TBD_RAX],
                          index < TBD_CRASH_RINGS ? crash->called_at[index] : 0);
    set_called(index, 0);
    tbd_crash_values_sometimes(thread, index, ring_of(index));
}

void tbd_crash_cancel_values(struct tbd_thread *thread, uint32_t index)
{
    if (crash)
        tbd_crash_values_cancel(thread, index, ring_of(index));
}

/* ---- their length ---- */

uint64_t tbd_crash_ring_bytes(void)
{
    return crash ? ring_bytes() : 0;
}

/* The guard page after a ring of `bytes`, in its area or at the end of it. */
static void guard(uint64_t start, uint64_t bytes, int protection)
{
    tbd_sys_mprotect(start + bytes, TBD_PAGE_SIZE, protection);
}

/* CRASH-1: what is left has no gap.  A ring that gets longer has its older part between the newest entry and its old
 * end, and 0s after that. */
static void resize(uint32_t index, uint64_t bytes, uint64_t *entry_next)
{
    uint64_t start = area_start(index);
    uint32_t *ring = (uint32_t *)start;
    uint64_t length = ring_bytes() / sizeof(*ring), wanted = bytes / sizeof(*ring), last;

    if (entry_next)
        *entry_next += start - ring_of(index);
    tbd_condense_stay(index, start);
    guard(start, ring_bytes(), TBD_PROT_RW);
    last = entries_in(start, ring_bytes());
    if (bytes < ring_bytes() && last + 2 > wanted) {
        note_lap(index, ring, last);
        begin_lap(index, start);
        memmove(ring + 1, ring + (last - wanted + 2), (wanted - 2) * sizeof(*ring));
        ring[wanted - 1] = 0;
        tbd_crash_values_restart(index);
        if (entry_next)
            *entry_next = start;
    } else if (bytes < ring_bytes()) {
        memset(ring + last, 0, (wanted - last) * sizeof(*ring));
    }
    if (bytes < ring_bytes()) /* it may get longer again */
        memset(ring + wanted, 0, (length - wanted) * sizeof(*ring));
    guard(start, bytes, PROT_NONE);
    tbd_condense_turn(index, start, bytes);
}

/* Threads without a ring of their own. */
static void resize_last(uint64_t bytes, uint32_t threads, uint64_t *(*entry_of)(uint32_t index))
{
    uint64_t start = area_start(TBD_CRASH_RINGS);

    for (uint32_t i = TBD_CRASH_RINGS; i < threads; i++)
        if (entry_of(i))
            *entry_of(i) = start;
    guard(start, ring_bytes(), TBD_PROT_RW);
    guard(start, bytes, PROT_NONE);
}

bool tbd_crash_resize(uint64_t bytes, uint32_t threads, uint64_t *(*entry_of)(uint32_t index))
{
    if (!crash || bytes < TBD_CRASH_RING_BYTES || bytes % TBD_PAGE_SIZE ||
        bytes > tbd_recording.ring.head->area_bytes)
        return false;
    for (uint32_t i = 0; i < crash->thread_count; i++)
        resize(i, bytes, i < threads ? entry_of(i) : NULL);
    if (threads > TBD_CRASH_RINGS)
        resize_last(bytes, threads, entry_of);
    crash->ring_bytes = bytes;
    return true;
}

/* ---- modules ---- */

/* The number of a module that is known; UINT32_MAX: it is not. */
static uint32_t find_module(const struct tbd_msg_region *region, const char *path)
{
    for (uint32_t i = crash->module_count; i-- > 0;) {
        const struct tbd_crash_module *module = &crash->modules[i];

        if (module->start == region->start && module->end == region->end)
            return strcmp(module->path, path) == 0 && module->file_offset == region->file_offset
                       ? i
                       : UINT32_MAX;
        if (module->start < region->end && region->start < module->end)
            return UINT32_MAX; /* it replaced the other */
    }
    return UINT32_MAX;
}

static uint32_t add_module(uint32_t id, const struct tbd_msg_region *region, const char *path)
{
    uint32_t number = crash->module_count;
    struct tbd_crash_module *module = &crash->modules[number];

    if (number >= TBD_CRASH_MODULES)
        return UINT32_MAX;
    *module = (struct tbd_crash_module){ .start = region->start,
                                         .end = region->end,
                                         .file_offset = region->file_offset,
                                         .first_block = id };
    if (strlen(path) < sizeof(module->path))
        tbd_fmt(module->path, sizeof(module->path), "%s", path);
    __atomic_store_n(&crash->module_count, number + 1, __ATOMIC_RELEASE);
    return number;
}

void tbd_crash_note_module(uint32_t id, uint64_t start, const struct tbd_msg_region *region,
                           const char *path)
{
    uint32_t number = find_module(region, path);

    if (number == UINT32_MAX)
        number = add_module(id, region, path);
    if (number != UINT32_MAX && crash->tables & TBD_CRASH_KEPT)
        tbd_crash_parts_note(id, start, number, path);
}

/* ---- the end ---- */

/* Two threads may die at once: the first one counts. */
void tbd_crash_dies(const struct tbd_thread *thread, uint32_t signo, const uint8_t *info)
{
    uint32_t none = 0;

    if (!crash || !__atomic_compare_exchange_n(&crash->tid, &none, thread->tid, false,
                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    tbd_crash_goes_on(false);
    crash->regs = thread->regs;
    if (info)
        memcpy(crash->siginfo, info, sizeof(crash->siginfo));
    __atomic_store_n(&crash->signo, signo, __ATOMIC_RELEASE);
}

void tbd_crash_goes_on(bool goes_on)
{
    __atomic_store_n(&crash->goes_on, goes_on, __ATOMIC_RELEASE);
}

void tbd_crash_note_asked(void)
{
    __atomic_fetch_add(&crash->asked_dumps, 1, __ATOMIC_RELEASE);
}

void tbd_crash_note_answered(void)
{
    __atomic_fetch_add(&crash->answered_dumps, 1, __ATOMIC_RELEASE);
}

void tbd_crash_keeps(uint32_t keeps)
{
    if (crash)
        crash->keeps = keeps;
}

void tbd_crash_resumes(void)
{
    crash->keeps = 0;
    __atomic_fetch_add(&crash->resumed, 1, __ATOMIC_RELEASE);
}

void tbd_crash_ends(void)
{
    struct tbd_stream_head *head = tbd_recording.ring.head;

    if (!crash)
        return;
    __atomic_store_n(&head->engine_state, TBD_ENGINE_ENDED, __ATOMIC_RELEASE);
    tbd_crash_forget();
}
