// SPDX-License-Identifier: MIT
/* copied_memory.c - see copied_memory.h
 *
 * Copies take a share of the thread's processor time at most, in the long run: each lap adds to a credit, a copy takes what it took from it, and none is
 * made while that is a debt.  (Time that passes would not do: on a busy machine most of it is others'.)
 *
 * COPIED_MEMORY-1  What is copied is changed by the program's instructions and system calls alone: it is not shared with other processes.
 *     (not checked: only who maps it knows) */
#include "hooks/memory/copied_memory.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/memory/program_memory.h"
#include "hooks/stream/crash_ring.h"

#define TIME_SHARE 40 /* of the time since the last lap: programs run slower beside a ring */
#define MOST_CREDIT                                                                                \
    2000000 /* ns; a program has that when it begins: less than what loading it beside a ring takes */
#define RED_ZONE_BYTES 128u
#define PIECE_BYTES    (8ull * TBD_VALUE_MORE_BYTES)

static int64_t credit = MOST_CREDIT;
static int64_t last_lap; /* when that was; 0: there was none */

static bool is_copied(const struct tbd_msg_region *map)
{
    return !(map->map_flags & MAP_SHARED) && map->prot & PROT_WRITE &&
           !(map->flags &
             (TBD_REGION_VDSO | TBD_REGION_VVAR | TBD_REGION_PATCH | TBD_REGION_SHARED));
}

/* What is copied of a mapping; a stack has the part that is in use. */
static struct tbd_range part_of(const struct tbd_msg_region *map, uint64_t sp)
{
    struct tbd_range part = { map->start, map->end };

    if (!is_copied(map))
        part.end = part.start;
    else if (sp >= part.start + RED_ZONE_BYTES && sp < part.end)
        part.start = (sp - RED_ZONE_BYTES) & ~15ull;
    return part;
}

static uint64_t count_bytes(uint64_t sp)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    uint64_t bytes = 0;

    for (size_t i = 0; i < regions->count; i++) {
        struct tbd_range part = part_of(&regions->table[i].map, sp);

        bytes += part.end - part.start;
    }
    return bytes;
}

/* What cannot be read ends it. */
static void copy_range(struct tbd_thread *thread, uint32_t index, const struct tbd_range *range)
{
    for (uint64_t at = range->start; at < range->end; at += PIECE_BYTES) {
        uint64_t left = range->end - at, wanted = left < PIECE_BYTES ? left : PIECE_BYTES;

        if (tbd_crash_note_memory(thread, index, at, wanted) != wanted)
            return;
    }
}

static void copy_all(struct tbd_thread *thread, uint32_t index)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    tbd_crash_begin_memory(thread, index);
    for (size_t i = 0; i < regions->count; i++) {
        struct tbd_range part = part_of(&regions->table[i].map, thread->regs.gpr[TBD_RSP]);

        copy_range(thread, index, &part);
    }
}

/* Processor time of the thread in nanoseconds. */
static int64_t processor_time(void)
{
    int64_t time[2] = { 0, 0 };

    tbd_sys3(__NR_clock_gettime, CLOCK_THREAD_CPUTIME_ID, tbd_sys_pointer(time), 0);
    return time[0] * 1000000000 + time[1];
}

static void earn(int64_t now)
{
    int64_t time = now > last_lap && last_lap ? (now - last_lap) / TIME_SHARE : 0;

    credit = time < MOST_CREDIT - credit ? credit + time : MOST_CREDIT;
    last_lap = now;
}

void tbd_copy_memory_if_due(struct tbd_thread *thread, uint32_t index)
{
    uint64_t most = tbd_crash_memory_due(thread, index);
    int64_t began;

    if (most == 0)
        return;
    began = processor_time();
    earn(began);
    if (credit <= 0 || count_bytes(thread->regs.gpr[TBD_RSP]) > most)
        return;
    copy_all(thread, index);
    last_lap = processor_time();
    credit -= last_lap - began;
}
