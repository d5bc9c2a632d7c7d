// SPDX-License-Identifier: MIT
/* regions.c - see regions.h
 *
 * I1  Entries are sorted by start and do not overlap.
 * I2  Every change first splits at its two borders, so that afterwards only whole entries change. */
#include "replay/stub/regions.h"

size_t tbd_replay_regions_lower(const struct tbd_replay_regions *regions, uint64_t address)
{
    size_t low = 0, high = regions->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (regions->table[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct tbd_replay_region *tbd_replay_regions_find(const struct tbd_replay_regions *regions,
                                                  uint64_t address)
{
    size_t at = tbd_replay_regions_lower(regions, address);

    if (at == regions->count || regions->table[at].start > address)
        return NULL;
    return &regions->table[at];
}

static void open_gap(struct tbd_replay_regions *regions, size_t at)
{
    for (size_t i = regions->count; i > at; i--)
        regions->table[i] = regions->table[i - 1];
    regions->count++;
}

static void close_gap(struct tbd_replay_regions *regions, size_t at, size_t length)
{
    for (size_t i = at; i + length < regions->count; i++)
        regions->table[i] = regions->table[i + length];
    regions->count -= length;
}

/* Makes `address` a border.  The caller has made sure that one entry is free. */
static void split(struct tbd_replay_regions *regions, uint64_t address)
{
    size_t at = tbd_replay_regions_lower(regions, address);

    if (at == regions->count || regions->table[at].start >= address)
        return;
    open_gap(regions, at);
    regions->table[at].end = address;
    regions->table[at + 1].start = address;
}

static bool split_both(struct tbd_replay_regions *regions, uint64_t start, uint64_t end)
{
    if (regions->count + 3 > regions->capacity)
        return false;
    split(regions, start);
    split(regions, end);
    return true;
}

bool tbd_replay_regions_remove(struct tbd_replay_regions *regions, uint64_t start, uint64_t end)
{
    size_t first, last;

    if (!split_both(regions, start, end))
        return false;
    first = tbd_replay_regions_lower(regions, start);
    for (last = first; last < regions->count && regions->table[last].start < end; last++)
        ;
    close_gap(regions, first, last - first);
    return true;
}

bool tbd_replay_regions_add(struct tbd_replay_regions *regions, struct tbd_replay_region added)
{
    size_t at;

    if (!tbd_replay_regions_remove(regions, added.start, added.end))
        return false;
    at = tbd_replay_regions_lower(regions, added.start);
    open_gap(regions, at);
    regions->table[at] = added;
    return true;
}

bool tbd_replay_regions_protect(struct tbd_replay_regions *regions, uint64_t start, uint64_t end,
                                uint32_t prot)
{
    if (!split_both(regions, start, end))
        return false;
    for (size_t at = tbd_replay_regions_lower(regions, start);
         at < regions->count && regions->table[at].start < end; at++)
        regions->table[at].prot = prot;
    return true;
}
