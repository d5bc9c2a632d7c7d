// SPDX-License-Identifier: MIT
/* code_traps.c - see code_traps.h
 *
 * Sorted by address: a trap is found by halving.  All traps of a mapping are written with one change of its protection and
 * another one back. */
#include "hooks/memory/code_traps.h"

#include "base/layout.h"
#include "base/string.h"
#include "base/sys.h"

#define MOST_TRAPS 8192u
#define INT3       0xccu

#define MOST_PATCHED 8u /* bytes in place of one instruction */

struct trap {
    uint64_t address;
    uint8_t byte; /* the program's */
    uint8_t ours;
    bool is_trap; /* else one byte of an instruction of the engine's */
};

static struct trap traps[MOST_TRAPS];
static size_t count;
static const struct tbd_regions *regions;

void tbd_code_traps_begin(const struct tbd_regions *given)
{
    regions = given;
}

/* The first trap at `address` or after it. */
static size_t lower(uint64_t address)
{
    size_t from = 0, to = count;

    while (from < to) {
        size_t middle = (from + to) / 2;

        if (traps[middle].address < address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* ---- writing ---- */

static const struct tbd_mapped_region *mapping_of(const struct trap *trap)
{
    return tbd_regions_find(regions, trap->address);
}

/* Those from `first` on that are in the same mapping end there. */
static size_t end_of_mapping(size_t first)
{
    const struct tbd_mapped_region *region = mapping_of(&traps[first]);
    size_t end = first + 1;

    while (region && end < count && traps[end].address < region->map.end)
        end++;
    return end;
}

/* All of these are in one mapping, whose protection changes as a whole: the kernel does not join its parts again once some of them
 * have been written, and the program would see them in /proc/self/maps.  False: they cannot be written. */
static bool put(const struct trap *first, size_t many, bool lifts)
{
    const struct tbd_mapped_region *region = mapping_of(first);
    uint64_t bytes = region ? region->map.end - region->map.start : 0;

    if (!region || tbd_sys_failed(tbd_sys_mprotect(region->map.start, bytes, TBD_PROT_RW)))
        return false;
    for (size_t i = 0; i < many; i++)
        *(volatile uint8_t *)first[i].address = lifts ? first[i].byte : first[i].ours;
    return !tbd_sys_failed(tbd_sys_mprotect(region->map.start, bytes, (int)region->map.prot));
}

void tbd_code_traps_lift(bool lifts)
{
    size_t end;

    for (size_t first = 0; first < count; first = end) {
        end = end_of_mapping(first);
        put(&traps[first], end - first, lifts);
    }
}

/* ---- the table ---- */

bool tbd_code_traps_any(uint64_t start, uint64_t end)
{
    size_t at = lower(start);

    return at < count && traps[at].address < end;
}

/* Writes them, too. */
static bool insert(size_t at, const struct trap *made, size_t many)
{
    if (count + many > MOST_TRAPS || !put(made, many, false))
        return false;
    memmove(&traps[at + many], &traps[at], (count - at) * sizeof(*traps));
    memcpy(&traps[at], made, many * sizeof(*traps));
    count += many;
    return true;
}

bool tbd_code_traps_set(uint64_t address)
{
    struct trap trap = { address, *(const uint8_t *)address, INT3, true };
    size_t at = lower(address);

    if (tbd_code_traps_has_sigsafe(address))
        return true;
    if (tbd_code_traps_any(address, address + 1) || !insert(at, &trap, 1))
        return false;
    return true;
}

bool tbd_code_traps_patch(uint64_t address, const uint8_t *patch, size_t bytes)
{
    struct trap made[MOST_PATCHED];

    if (bytes > MOST_PATCHED || tbd_code_traps_any(address, address + bytes))
        return false;
    for (size_t i = 0; i < bytes; i++)
        made[i] = (struct trap){ address + i, ((const uint8_t *)address)[i], patch[i], false };
    return insert(lower(address), made, bytes);
}

static void drop(size_t from, size_t to)
{
    memmove(&traps[from], &traps[to], (count - to) * sizeof(*traps));
    count -= to - from;
}

void tbd_code_traps_unpatch(uint64_t address, size_t bytes)
{
    size_t from = lower(address), to = lower(address + bytes);

    if (from == to)
        return;
    put(&traps[from], to - from, true);
    drop(from, to);
}

void tbd_code_traps_remove(uint64_t address)
{
    size_t at = lower(address);

    if (at < count && traps[at].address == address)
        tbd_code_traps_unpatch(address, 1);
}

bool tbd_code_traps_has_sigsafe(uint64_t address)
{
    size_t at = lower(address);

    return at < count && traps[at].address == address && traps[at].is_trap;
}

void tbd_code_traps_hide(uint8_t *copy, uint64_t address, size_t bytes)
{
    for (size_t at = lower(address); at < count && traps[at].address < address + bytes; at++)
        copy[traps[at].address - address] = traps[at].byte;
}

void tbd_code_traps_forget(uint64_t start, uint64_t end)
{
    drop(lower(start), lower(end));
}

void tbd_code_traps_remove_all(void)
{
    tbd_code_traps_lift(true);
    count = 0;
}
