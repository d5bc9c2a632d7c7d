// SPDX-License-Identifier: MIT
/* growth.c - see growth.h
 *
 * Between two mappings of the kernel's list nothing is mapped.  What the table has there can only be the
 * range to which the mapping above can grow: it is compared with what that range should be (mm/mmap.c:
 * expand_downwards(), acct_stack_growth()). */
#include "hooks/calls/growth.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/calls/map_changes.h"
#include "hooks/memory/maps.h"
#include "hooks/memory/program_memory.h"
#include "hooks/stream/recording.h"

/* An access must keep this far from an accessible mapping below: the kernel's stack_guard_gap, which only a
 * parameter of its command line changes. */
#define GUARD_GAP (256 * TBD_PAGE_SIZE)
/* No stack is so deep; a larger range would share marks with other mappings (base/layout.h). */
#define MOST_GROWTH (32ull << 30)
#define LOWEST      (16 * TBD_PAGE_SIZE) /* vm.mmap_min_addr */

/* Where a change matters for a mapping that grows: from the lowest address that the limit allows, and the
 * gap below it, to its end. */
#define MAX_ZONES 64u

static struct {
    struct tbd_range zone[MAX_ZONES];
    uint32_t count;
    bool is_full;    /* there are more: every change matters */
    bool is_changed; /* all are looked at, whatever has changed */
} growth;

struct survey {
    struct tbd_thread *thread; /* NULL: nothing is recorded yet */
    uint64_t limit;            /* in bytes, whole pages */
    uint64_t below_end;        /* of the mapping before in the list */
    uint64_t gap;              /* that must stay above it */
};

static uint64_t stack_limit(void)
{
    uint64_t limit[2] = { 0, 0 };

    tbd_sys4(__NR_prlimit64, 0, RLIMIT_STACK, 0, tbd_sys_pointer(limit));
    return limit[0] < MOST_GROWTH ? limit[0] & ~(TBD_PAGE_SIZE - 1) : MOST_GROWTH;
}

static uint64_t above(uint64_t address, uint64_t bytes)
{
    return address > bytes ? address - bytes : 0;
}

static void add_zone(const struct survey *survey, uint64_t end)
{
    if (growth.count == MAX_ZONES)
        growth.is_full = true;
    else
        growth.zone[growth.count++] =
            (struct tbd_range){ above(end, survey->limit + GUARD_GAP), end };
}

/* The lowest address to which the mapping [start, end) can grow. */
static uint64_t lowest(const struct survey *survey, uint64_t start, uint64_t end)
{
    uint64_t by_limit = above(end, survey->limit);
    uint64_t by_gap = survey->below_end + survey->gap;
    uint64_t at = by_limit > by_gap ? by_limit : by_gap;

    at = at > LOWEST ? at : LOWEST;
    return at < start ? at : start;
}

static void take_away(const struct survey *survey, uint64_t start, uint64_t end)
{
    if (!survey->thread) {
        tbd_regions_remove(&tbd_memory.regions, start, end);
        return;
    }
    tbd_map_capture(survey->thread, start, end);
    tbd_map_tell(survey->thread, start, end, 0, TBD_MAPPED_GONE);
    tbd_map_remove(survey->thread, start, end);
}

static void give(const struct survey *survey, uint64_t start, struct tbd_mapped_region *growing)
{
    struct tbd_msg_region map = growing->map;

    if (!survey->thread) {
        growing->map.start = start;
        return;
    }
    map.end = map.start;
    map.start = start;
    tbd_map_tell(survey->thread, map.start, map.end, map.prot, TBD_MAPPED_ZERO);
    tbd_map_add(survey->thread, &map, growing->path);
}

static bool grows(const struct tbd_mapped_region *region)
{
    return region && region->map.map_flags & MAP_GROWSDOWN;
}

/* From the mapping below to `start`, where the next one starts in the kernel's list: `wanted` is how far that can
 * grow, with the protection that it has now. */
static void settle(const struct survey *survey, uint64_t start, uint64_t wanted, uint32_t prot)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    size_t i = tbd_regions_lower(regions, survey->below_end);
    const struct tbd_mapped_region *first = i < regions->count ? &regions->table[i] : NULL;
    uint64_t now = start;

    if (first && first->map.start < start && grows(first))
        now = first->map.start > survey->below_end ? first->map.start : survey->below_end;
    if (now == wanted && (now == start || (first->map.end >= start && first->map.prot == prot)))
        return;
    if (now < start)
        take_away(survey, now, start);
    if (wanted < start)
        give(survey, wanted, tbd_regions_find(regions, start));
}

static bool visit(void *context, const struct tbd_msg_region *map, const char *path)
{
    struct survey *survey = context;
    bool is_growing = grows(tbd_regions_find(&tbd_memory.regions, map->end - 1)) &&
                      !tbd_map_is_engine(map->start, map->end);

    (void)path;
    if (map->end > TBD_USER_END)
        return true;
    settle(survey, map->start, is_growing ? lowest(survey, map->start, map->end) : map->start,
           map->prot);
    if (is_growing)
        add_zone(survey, map->end);
    survey->below_end = map->end;
    survey->gap = is_growing || !map->prot ? 0 : GUARD_GAP;
    return true;
}

static void update(struct tbd_thread *thread)
{
    struct survey survey = { .thread = thread, .limit = stack_limit() };

    growth.count = 0;
    growth.is_full = false;
    growth.is_changed = false;
    tbd_maps_read(visit, &survey);
    tbd_regions_forget_changes(&tbd_memory.regions);
}

/* ---- */

static bool matters(struct tbd_range changed)
{
    for (uint32_t i = 0; i < growth.count; i++)
        if (tbd_map_overlaps(changed.start, changed.end, growth.zone[i].start, growth.zone[i].end))
            return true;
    return growth.is_full && changed.start < changed.end;
}

void tbd_growth_update(struct tbd_thread *thread)
{
    if (growth.is_changed || matters(tbd_memory.regions.changed))
        update(thread);
    else
        tbd_regions_forget_changes(&tbd_memory.regions);
}

void tbd_growth_changed(void)
{
    growth.is_changed = true;
}

/* In a forked child the zones are still those of its parent, whose mappings it has. */
void tbd_growth_begin(void)
{
    struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = 0; i < regions->count; i++)
        if (regions->table[i].map.flags & TBD_REGION_STACK)
            regions->table[i].map.map_flags |= MAP_GROWSDOWN;
    for (uint32_t i = 0; i < growth.count; i++) {
        struct tbd_mapped_region *region = tbd_regions_find(regions, growth.zone[i].end - 1);

        if (region)
            region->map.map_flags |= MAP_GROWSDOWN;
    }
    update(NULL);
}
