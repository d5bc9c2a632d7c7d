// SPDX-License-Identifier: MIT
/* failed_maps.c - see failed_maps.h */
#include "hooks/calls/failed_maps.h"

#include "base/layout.h"
#include "base/sys.h"
#include "hooks/memory/maps.h"
#include "hooks/memory/program_memory.h"

struct walk {
    uint64_t at; /* as far as it holds */
    uint64_t end;
    uint64_t wanted; /* protection, or advice */
    bool is_over;
};

static bool protect_one(void *context, const struct tbd_msg_region *map, const char *path)
{
    struct walk *walk = context;

    (void)path;
    if (map->end <= walk->at)
        return true;
    if (map->start > walk->at || map->prot != walk->wanted)
        return false;
    walk->at = map->end < walk->end ? map->end : walk->end;
    return walk->at < walk->end;
}

uint64_t tbd_failed_protect(uint64_t start, uint64_t end, uint32_t prot)
{
    struct walk walk = { start, end, prot, false };

    tbd_maps_read(protect_one, &walk);
    return walk.at - start;
}

/* Contents that are gone already are dropped again, which changes nothing. */
static bool advise_one(void *context, const struct tbd_msg_region *map, const char *path)
{
    struct walk *walk = context;
    uint64_t start = map->start > walk->at ? map->start : walk->at;
    uint64_t end = map->end < walk->end ? map->end : walk->end;

    (void)path;
    if (start >= end)
        return map->start < walk->end;
    if (tbd_sys_failed(tbd_sys_madvise(start, end - start, (int)walk->wanted))) {
        walk->is_over = true;
        return false;
    }
    walk->at = end;
    return true;
}

uint64_t tbd_failed_advise(uint64_t start, uint64_t end, uint64_t advice)
{
    struct walk walk = { start, end, advice, false };

    tbd_maps_read(advise_one, &walk);
    return (walk.is_over ? walk.at : end) - start;
}

static bool cover_one(void *context, const struct tbd_msg_region *map, const char *path)
{
    struct walk *walk = context;
    const struct tbd_regions *regions = &tbd_memory.regions;
    size_t next = tbd_regions_lower(regions, walk->at);

    (void)path;
    if (map->end <= walk->at)
        return true;
    if (next < regions->count && regions->table[next].map.start > walk->at)
        walk->at = regions->table[next].map.start; /* no region of the program */
    if (next == regions->count || walk->at >= walk->end || walk->at < map->start)
        return false;
    if (map->end <= walk->at)
        return true;
    walk->at = map->end;
    return walk->at < walk->end;
}

bool tbd_failed_unmapped(uint64_t start, uint64_t end)
{
    struct walk walk = { start, end, 0, false };
    const struct tbd_regions *regions = &tbd_memory.regions;
    size_t next;

    tbd_maps_read(cover_one, &walk);
    next = tbd_regions_lower(regions, walk.at);
    return walk.at < end && next < regions->count && regions->table[next].map.start < end;
}
