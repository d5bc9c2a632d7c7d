// SPDX-License-Identifier: MIT
/* regions.c - see regions.h
 *
 * REGIONS-1  table[i].map.end <= table[i+1].map.start; all bounds are page aligned. */
#include "hooks/memory/regions.h"

#include "base/assert.h"
#include "base/binary_search.h"
#include "base/layout.h"

#include "base/linux.h"
#include "base/string.h"

#define MAX_REGIONS 131072u
#define PATH_BYTES  (64u << 20)

bool tbd_regions_init(struct tbd_regions *regions)
{
    struct tbd_arena table;

    *regions = (struct tbd_regions){ .capacity = MAX_REGIONS };
    if (!tbd_arena_init(&table, MAX_REGIONS * sizeof(struct tbd_mapped_region)) ||
        !tbd_arena_init(&regions->arena, PATH_BYTES))
        return false;
    regions->table = tbd_arena_alloc(&table, MAX_REGIONS * sizeof(struct tbd_mapped_region), 16);
    return regions->table;
}

void tbd_regions_forget_changes(struct tbd_regions *regions)
{
    regions->changed = (struct tbd_range){ UINT64_MAX, 0 };
}

static void note_change(struct tbd_regions *regions, uint64_t start, uint64_t end)
{
    struct tbd_range *changed = &regions->changed;

    changed->start = start < changed->start ? start : changed->start;
    changed->end = end > changed->end ? end : changed->end;
    regions->changes++;
}

void tbd_regions_clear(struct tbd_regions *regions)
{
    regions->count = 0;
    memset(regions->paths, 0, sizeof(regions->paths));
    tbd_arena_rewind(&regions->arena, regions->arena.start);
}

size_t tbd_regions_lower(const struct tbd_regions *regions, uint64_t address)
{
    return TBD_COUNT_BEFORE(i, regions->count, regions->table[i].map.end <= address);
}

struct tbd_mapped_region *tbd_regions_find(const struct tbd_regions *regions, uint64_t address)
{
    size_t i = tbd_regions_lower(regions, address);

    if (i == regions->count || regions->table[i].map.start > address)
        return NULL;
    return &regions->table[i];
}

static bool allows_any(const struct tbd_regions *regions, uint64_t start, uint64_t end,
                       uint32_t prot)
{
    for (size_t i = tbd_regions_lower(regions, start);
         i < regions->count && regions->table[i].map.start < end; i++)
        if (regions->table[i].map.prot & prot)
            return true;
    return false;
}

#define LOWEST_GAP (1ull << 20)

/* The highest range of this size in [start, end), or 0. */
static uint64_t highest_in(uint64_t start, uint64_t end, uint64_t bytes)
{
    return end > start && end - start >= bytes ? end - bytes : 0;
}

uint64_t tbd_regions_gap(const struct tbd_regions *regions, uint64_t bytes, uint64_t below)
{
    for (size_t i = tbd_regions_lower(regions, below - 1) + 1; i-- > 0;) {
        uint64_t start = i ? regions->table[i - 1].map.end : LOWEST_GAP;
        uint64_t end = i < regions->count && regions->table[i].map.start < below
                           ? regions->table[i].map.start
                           : below;
        uint64_t at = highest_in(start > TBD_ENGINE_END ? start : TBD_ENGINE_END, end, bytes);

        if (!at)
            at = highest_in(start, end < TBD_ENGINE_BASE ? end : TBD_ENGINE_BASE, bytes);
        if (at)
            return at;
    }
    return 0;
}

#define SPANS (TBD_USER_END / TBD_TOUCH_SPAN)

/* Do readable regions from `i` to `i_end` have pages at the same distance from `i_base` as others have
 * from `j_base`? */
static bool spans_meet(const struct tbd_regions *regions, size_t i, size_t i_end, uint64_t i_base,
                       size_t j, size_t j_end, uint64_t j_base)
{
    while (i < i_end && j < j_end) {
        const struct tbd_msg_region *a = &regions->table[i].map;
        const struct tbd_msg_region *b = &regions->table[j].map;

        if (!(a->prot & PROT_READ) || a->end - i_base <= b->start - j_base)
            i++;
        else if (!(b->prot & PROT_READ) || b->end - j_base <= a->start - i_base)
            j++;
        else
            return true;
    }
    return false;
}

bool tbd_regions_any_folds(const struct tbd_regions *regions)
{
    size_t first[SPANS + 1];

    for (size_t n = 0; n <= SPANS; n++) {
        uint64_t base = n * TBD_TOUCH_SPAN;

        first[n] = tbd_regions_lower(regions, base);
        if (first[n] == regions->count || regions->table[first[n]].map.start >= base)
            continue;
        if (regions->table[first[n]].map.prot & PROT_READ)
            return true; /* it crosses a bound: tbd_regions_folds() finds out more */
        first[n]++;
    }
    for (size_t n = 0; n < SPANS; n++)
        for (size_t m = n + 1; m < SPANS && first[n] < first[n + 1]; m++)
            if (spans_meet(regions, first[n], first[n + 1], n * TBD_TOUCH_SPAN, first[m],
                           first[m + 1], m * TBD_TOUCH_SPAN))
                return true;
    return false;
}

bool tbd_regions_folds(const struct tbd_regions *regions, uint64_t start, uint64_t end)
{
    uint64_t lowest = regions->count ? regions->table[0].map.start : 0;
    uint64_t limit = regions->count ? regions->table[regions->count - 1].map.end : 0;

    for (uint64_t by = TBD_TOUCH_SPAN; start + by < limit; by += TBD_TOUCH_SPAN)
        if (allows_any(regions, start + by, end + by, PROT_READ))
            return true;
    for (uint64_t by = TBD_TOUCH_SPAN; by < end && end - by > lowest; by += TBD_TOUCH_SPAN)
        if (allows_any(regions, start > by ? start - by : 0, end - by, PROT_READ))
            return true;
    return false;
}

bool tbd_regions_allow(const struct tbd_regions *regions, uint64_t start, uint64_t end,
                       uint32_t prot)
{
    for (size_t i = tbd_regions_lower(regions, start); start < end; i++) {
        if (i == regions->count || regions->table[i].map.start > start ||
            !(regions->table[i].map.prot & prot))
            return false;
        start = regions->table[i].map.end;
    }
    return true;
}

bool tbd_regions_has_code(const struct tbd_regions *regions, uint64_t start, uint64_t end)
{
    return allows_any(regions, start, end, PROT_EXEC);
}

/* Checks the region and its neighbours only: checking all at each change would be too slow. */
static bool are_in_order_at(const struct tbd_regions *regions, size_t i)
{
    const struct tbd_mapped_region *at = &regions->table[i];

    if (i < regions->count &&
        (at->map.start >= at->map.end || (at->map.start | at->map.end) & (TBD_PAGE_SIZE - 1)))
        return false;
    return (i == 0 || i >= regions->count || at[-1].map.end <= at->map.start) &&
           (i + 1 >= regions->count || at->map.end <= at[1].map.start);
}

static void insert_at(struct tbd_regions *regions, size_t i, const struct tbd_mapped_region *region)
{
    memmove(&regions->table[i + 1], &regions->table[i],
            (regions->count - i) * sizeof(struct tbd_mapped_region));
    regions->table[i] = *region;
    regions->count++;
    TBD_INVARIANT("REGIONS-1", are_in_order_at(regions, i));
}

/* Makes `address` a boundary between regions. */
static bool split_at(struct tbd_regions *regions, uint64_t address)
{
    struct tbd_mapped_region *region = tbd_regions_find(regions, address);
    struct tbd_mapped_region tail;

    if (!region || region->map.start == address)
        return true;
    if (regions->count == regions->capacity)
        return false;
    tail = *region;
    if (tail.map.inode)
        tail.map.file_offset += address - tail.map.start;
    tail.map.start = address;
    region->map.end = address;
    insert_at(regions, (size_t)(region - regions->table) + 1, &tail);
    return true;
}

bool tbd_regions_remove(struct tbd_regions *regions, uint64_t start, uint64_t end)
{
    size_t first;
    size_t behind;

    note_change(regions, start, end);
    if (!split_at(regions, start) || !split_at(regions, end))
        return false;
    first = tbd_regions_lower(regions, start);
    for (behind = first; behind < regions->count && regions->table[behind].map.start < end;)
        behind++;
    memmove(&regions->table[first], &regions->table[behind],
            (regions->count - behind) * sizeof(struct tbd_mapped_region));
    regions->count -= behind - first;
    TBD_INVARIANT("REGIONS-1", are_in_order_at(regions, first));
    return true;
}

/* FNV-1a. */
static uint32_t hash_of(const char *path)
{
    uint32_t hash = 0x811c9dc5u;

    for (; *path; path++)
        hash = (hash ^ (uint8_t)*path) * 0x01000193u;
    return hash;
}

/* Most mappings come from few files. */
static const char *intern(struct tbd_regions *regions, const char *path)
{
    size_t bytes = strlen(path) + 1;
    struct tbd_region_path **bucket = &regions->paths[hash_of(path) % TBD_REGION_PATHS];
    struct tbd_region_path *known;

    for (known = *bucket; known; known = known->next)
        if (strcmp(known->text, path) == 0)
            return known->text;
    known = tbd_arena_alloc(&regions->arena, sizeof(*known) + bytes, sizeof(void *));
    if (!known)
        return "";
    known->next = *bucket;
    memcpy(known->text, path, bytes);
    *bucket = known;
    return known->text;
}

/* Programs map the same range again and again: the rest of the table need not move for that. */
static bool replaces_one(struct tbd_regions *regions, struct tbd_mapped_region *region,
                         const char *path)
{
    struct tbd_mapped_region *there = tbd_regions_find(regions, region->map.start);

    if (!there || there->map.start != region->map.start || there->map.end != region->map.end)
        return false;
    region->path = *path ? intern(regions, path) : "";
    *there = *region;
    return true;
}

bool tbd_regions_add(struct tbd_regions *regions, const struct tbd_msg_region *map,
                     const char *path)
{
    struct tbd_mapped_region region = { .map = *map };
    bool is_last = !regions->count || regions->table[regions->count - 1].map.end <= map->start;

    note_change(regions, map->start, map->end);
    if (map->end <= map->start || (!is_last && replaces_one(regions, &region, path)))
        return true;
    if (!is_last && !tbd_regions_remove(regions, map->start, map->end))
        return false;
    if (regions->count == regions->capacity)
        return false;
    region.path = *path ? intern(regions, path) : "";
    insert_at(regions, is_last ? regions->count : tbd_regions_lower(regions, map->start), &region);
    return true;
}

bool tbd_regions_protect(struct tbd_regions *regions, uint64_t start, uint64_t end, uint32_t prot)
{
    note_change(regions, start, end);
    if (!split_at(regions, start) || !split_at(regions, end))
        return false;
    for (size_t i = tbd_regions_lower(regions, start);
         i < regions->count && regions->table[i].map.start < end; i++)
        regions->table[i].map.prot = prot;
    return true;
}

bool tbd_regions_any(const struct tbd_regions *regions, uint64_t start, uint64_t end,
                     uint32_t flags)
{
    for (size_t i = tbd_regions_lower(regions, start);
         i < regions->count && regions->table[i].map.start < end; i++)
        if (regions->table[i].map.flags & flags)
            return true;
    return false;
}
