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

#define MOST_MADE 256u /* written at once */

struct trap {
    uint64_t address;
    uint8_t byte; /* the program's */
    uint8_t ours;
    bool is_trap; /* else one byte of an instruction of the engine's */
};

static struct trap traps[MOST_TRAPS];
static size_t count;
static struct trap made[MOST_MADE]; /* about to be written: all in one mapping, by address */
static size_t made_count;
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

static void keep(const struct trap *trap)
{
    size_t at = lower(trap->address);

    memmove(&traps[at + 1], &traps[at], (count - at) * sizeof(*traps));
    traps[at] = *trap;
    count++;
}

/* Writes what was made, all of it or nothing. */
static bool write_made(void)
{
    if (!made_count)
        return true;
    if (count + made_count > MOST_TRAPS || !put(made, made_count, false))
        return false;
    for (size_t i = 0; i < made_count; i++)
        keep(&made[i]);
    return true;
}

static void make(uint64_t address, uint8_t ours, bool is_trap)
{
    made[made_count++] = (struct trap){ address, *(const uint8_t *)address, ours, is_trap };
}

static bool is_known(uint64_t address)
{
    return tbd_code_traps_has_sigsafe(address) ||
           (made_count && made[made_count - 1].address == address);
}

static bool set_some(const uint64_t *addresses, size_t many)
{
    made_count = 0;
    for (size_t i = 0; i < many; i++) {
        if (is_known(addresses[i]))
            continue;
        if (tbd_code_traps_any(addresses[i], addresses[i] + 1))
            return false;
        make(addresses[i], INT3, true);
    }
    return write_made();
}

bool tbd_code_traps_set_all(const uint64_t *addresses, size_t many)
{
    for (size_t i = 0; i < many; i += MOST_MADE)
        if (!set_some(addresses + i, many - i < MOST_MADE ? many - i : MOST_MADE))
            return false;
    return true;
}

bool tbd_code_traps_set(uint64_t address)
{
    return tbd_code_traps_set_all(&address, 1);
}

bool tbd_code_traps_patch(uint64_t address, const uint8_t *patch, size_t bytes)
{
    if (bytes > MOST_MADE || tbd_code_traps_any(address, address + bytes))
        return false;
    made_count = 0;
    for (size_t i = 0; i < bytes; i++)
        make(address + i, patch[i], false);
    return write_made();
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
