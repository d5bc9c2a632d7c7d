// SPDX-License-Identifier: MIT
/* code_areas.c - see code_areas.h */
#include "hooks/memory/code_areas.h"

#include "base/log.h"
#include "base/sys.h"
#include "hooks/memory/searches.h"
#include "hooks/stream/recording.h"

struct tbd_code_areas tbd_code_areas;

static bool in_reach(uint64_t area, uint64_t bytes, uint64_t lo, uint64_t hi)
{
    const uint64_t reach = (2ull << 30) - (1ull << 20);
    uint64_t start = area < lo ? area : lo;
    uint64_t end = area + bytes > hi ? area + bytes : hi;

    return end - start <= reach;
}

static uint64_t try_area(uint64_t at, uint64_t bytes, int flags)
{
    long result = tbd_sys_mmap(at, bytes, TBD_PROT_RWX, TBD_MAP_MEMORY | flags, -1, 0);

    return tbd_sys_failed(result) ? 0 : (uint64_t)result;
}

/* Where the kernel puts it; but a small area takes the lower end of a larger range.  Else it might fill a hole between libraries, or be
 * just below them, where the kernel puts what the program maps next. */
static uint64_t take_area(uint64_t bytes)
{
    const uint64_t hole = 1ull << 20;
    uint64_t start = bytes < hole ? try_area(0, hole, 0) : 0;

    if (!start)
        return try_area(0, bytes, 0);
    tbd_sys_munmap(start + bytes, hole - bytes);
    return start;
}

/* The heap follows the image of a program without PIE, so this takes the highest free range within
 * reach: it leaves most space for the heap. */
static uint64_t search_area(uint64_t lo, uint64_t hi, uint64_t bytes)
{
    const uint64_t step = 1ull << 22;
    const uint64_t reach = (2ull << 30) - (2ull << 20);
    uint64_t lowest = hi > reach + step ? hi - reach : step;
    uint64_t at;

    for (at = (lo - bytes) & ~(step - 1); at < lo && at >= lowest; at -= step)
        if (try_area(at, bytes, MAP_FIXED_NOREPLACE) == at)
            return at;
    for (at = (lo + reach - bytes) & ~(step - 1); at > hi; at -= step)
        if (in_reach(at, bytes, lo, hi) && try_area(at, bytes, MAP_FIXED_NOREPLACE) == at)
            return at;
    return 0;
}

static void send_area(const struct tbd_range *area)
{
    struct tbd_msg_region map = { .start = area->start,
                                  .end = area->end,
                                  .prot = TBD_PROT_RWX,
                                  .map_flags = MAP_PRIVATE,
                                  .flags = TBD_REGION_PATCH };
    struct tbd_part parts[2] = { { &map, sizeof(map) }, { "", 1 } };

    tbd_ring_send(&tbd_recording.ring, tbd_thread_now(), TBD_MSG_REGION, parts, 2);
}

/* Children do not inherit the area: they run natively, or map their own. */
static void advise(const struct tbd_range *area)
{
    if (!tbd_code_areas.are_inherited)
        tbd_sys_madvise(area->start, area->end - area->start, MADV_DONTFORK);
    tbd_sys_madvise(area->start, area->end - area->start, MADV_DONTDUMP);
}

static uint64_t area_in_reach(uint64_t lo, uint64_t hi, uint64_t bytes)
{
    uint64_t start;

    if (!tbd_searches_may_begin(lo, bytes))
        return 0;
    start = take_area(bytes);
    if (start && !in_reach(start, bytes, lo, hi)) {
        tbd_sys_munmap(start, bytes);
        start = 0;
    }
    if (!start)
        start = search_area(lo, hi, bytes);
    tbd_searches_note(lo, bytes, start != 0);
    return start;
}

uint64_t tbd_code_areas_reserve(uint64_t lo, uint64_t hi, uint64_t bytes)
{
    uint64_t start = hi ? area_in_reach(lo, hi, bytes) : take_area(bytes);
    struct tbd_range *area;

    if (!start || tbd_code_areas.count == TBD_MAX_AREAS)
        return 0;
    area = &tbd_code_areas.area[tbd_code_areas.count++];
    *area = (struct tbd_range){ start, start + bytes };
    advise(area);
    send_area(area);
    tbd_recording_keep_kick(tbd_thread_now());
    TBD_LOG(TBD_LOG_DEBUG, "area", "%lu KiB at %p for code at %p", bytes >> 10, (void *)start,
            (void *)lo);
    return start;
}

void tbd_code_areas_add(uint64_t start, uint64_t bytes)
{
    if (tbd_code_areas.count < TBD_MAX_AREAS)
        tbd_code_areas.area[tbd_code_areas.count++] = (struct tbd_range){ start, start + bytes };
}

void tbd_code_areas_send(void)
{
    for (size_t i = 0; i < tbd_code_areas.count; i++)
        send_area(&tbd_code_areas.area[i]);
}

void tbd_code_areas_release(void)
{
    while (tbd_code_areas.count) {
        const struct tbd_range *area = &tbd_code_areas.area[--tbd_code_areas.count];

        tbd_sys_munmap(area->start, area->end - area->start);
    }
}

bool tbd_code_areas_map(void)
{
    for (size_t i = 0; i < tbd_code_areas.count; i++) {
        const struct tbd_range *area = &tbd_code_areas.area[i];

        if (tbd_sys_mmap(area->start, area->end - area->start, TBD_PROT_RWX,
                         TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE, -1, 0) != (long)area->start)
            return false;
        advise(area);
    }
    return true;
}
