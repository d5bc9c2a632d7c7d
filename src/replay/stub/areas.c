// SPDX-License-Identifier: MIT
/* areas.c - address space for translated code in a replay process
 *
 * First choice: the addresses of play's patch areas, which the program never used.  Then the
 * nearest free range that the window does not map later, either.  The driver starts a new process
 * if a later window needs a range that is taken.  An area that may lie anywhere lies above the engine. */
#include "replay/stub/stub.h"

#include "base/linux.h"
#include "base/sys.h"
#include "hooks/memory/code_areas.h"
#include "hooks/memory/searches.h"

#define REACH  ((2ull << 30) - (1ull << 20))
#define LOWEST (1ull << 20)
#define STEP   (1ull << 20)

static const struct tbd_plan_range *ranges(const struct tbd_plan_section *section)
{
    return (const void *)((const char *)tbd_stub.plan + section->offset);
}

static bool overlaps(const struct tbd_plan_range *range, uint64_t start, uint64_t end)
{
    return range->start < end && start < range->end;
}

static bool in_reach(uint64_t start, uint64_t end, uint64_t lo, uint64_t hi)
{
    uint64_t lowest = start < lo ? start : lo, highest = end > hi ? end : hi;

    return !hi || highest - lowest < REACH;
}

/* Finds a range that overlaps [start, end).  Returns its end, for the next try above it, and
 * *out_start, for a try below; 0: none overlaps. */
static uint64_t obstacle(uint64_t start, uint64_t end, uint64_t *out_start)
{
    const struct tbd_plan_head *plan = tbd_stub.plan;
    const struct tbd_plan_range *avoid = ranges(&plan->avoid);
    struct tbd_plan_range engine = { TBD_ENGINE_BASE, TBD_ENGINE_END };

    for (uint64_t i = 0; i < plan->avoid.count; i++)
        if (overlaps(&avoid[i], start, end)) {
            *out_start = avoid[i].start;
            return avoid[i].end;
        }
    for (uint64_t i = 0; i < plan->report.area_count; i++)
        if (overlaps(&plan->report.areas[i], start, end)) {
            *out_start = plan->report.areas[i].start;
            return plan->report.areas[i].end;
        }
    *out_start = engine.start;
    return overlaps(&engine, start, end) ? engine.end : 0;
}

static bool take(uint64_t start, uint64_t bytes)
{
    struct tbd_plan_head *plan = tbd_stub.plan;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;

    if (plan->report.area_count == TBD_PLAN_AREAS)
        return false;
    if (tbd_sys_mmap(start, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0) != (long)start)
        return false;
    plan->report.areas[plan->report.area_count++] = (struct tbd_plan_range){ start, start + bytes };
    return true;
}

static uint64_t take_preferred(uint64_t lo, uint64_t hi, uint64_t bytes)
{
    const struct tbd_plan_range *prefer = ranges(&tbd_stub.plan->prefer);

    for (uint64_t i = 0; i < tbd_stub.plan->prefer.count; i++) {
        uint64_t unused, start = prefer[i].start, end = start + bytes;

        if (end <= prefer[i].end && in_reach(start, end, lo, hi) &&
            !obstacle(start, end, &unused) && take(start, bytes))
            return start;
    }
    return 0;
}

static uint64_t take_below(uint64_t lo, uint64_t hi, uint64_t bytes)
{
    uint64_t start = lo > bytes ? (lo - bytes) & ~(STEP - 1) : 0;

    while (start >= LOWEST && in_reach(start, start + bytes, lo, hi)) {
        uint64_t blocked_start, blocked_end = obstacle(start, start + bytes, &blocked_start);

        if (!blocked_end && take(start, bytes))
            return start;
        if (!blocked_end)
            blocked_start = start + bytes - STEP;
        start = blocked_start > bytes ? (blocked_start - bytes) & ~(STEP - 1) : 0;
    }
    return 0;
}

static uint64_t take_above(uint64_t lo, uint64_t hi, uint64_t bytes)
{
    uint64_t start = ((hi ? hi : TBD_ENGINE_END) + STEP - 1) & ~(STEP - 1);

    while (start + bytes < TBD_USER_END && in_reach(start, start + bytes, lo, hi)) {
        uint64_t unused, blocked_end = obstacle(start, start + bytes, &unused);

        if (!blocked_end && take(start, bytes))
            return start;
        start = ((blocked_end ? blocked_end : start + 1) + STEP - 1) & ~(STEP - 1);
    }
    return 0;
}

uint64_t tbd_stub_reserve_area(uint64_t lo, uint64_t hi, uint64_t bytes)
{
    uint64_t start = take_preferred(lo, hi, bytes);

    if (!start && tbd_searches_may_begin(lo, bytes)) {
        start = take_below(lo, hi, bytes);
        if (!start)
            start = take_above(lo, hi, bytes);
        tbd_searches_note(lo, bytes, start != 0);
    }
    if (start)
        tbd_code_areas_add(start, bytes); /* whose lower half x87 instructions may tell: x87.c */
    return start;
}
