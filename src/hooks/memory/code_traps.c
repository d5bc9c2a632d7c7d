// SPDX-License-Identifier: MIT
/* code_traps.c - see code_traps.h
 *
 * Sorted by address, without overlaps: a place is found by halving.  All places of a mapping are written with one change of its
 * protection and another one back. */
#include "hooks/memory/code_traps.h"

#include "base/layout.h"
#include "base/string.h"
#include "base/sys.h"

#define MOST_TRAPS 8192u
#define INT3       0xccu
#define JUMP       0xe9u

struct trap {
    uint64_t address;
    uint8_t bytes; /* 1: int3; TBD_CODE_JUMP_BYTES: a jump */
    uint8_t program[TBD_CODE_JUMP_BYTES], engine[TBD_CODE_JUMP_BYTES];
};

static struct trap traps[MOST_TRAPS];
static size_t count;
static const struct tbd_regions *regions;

void tbd_code_traps_begin(const struct tbd_regions *given)
{
    regions = given;
}

static uint64_t end_of(const struct trap *trap)
{
    return trap->address + trap->bytes;
}

/* The first one that ends after `address`. */
static size_t lower(uint64_t address)
{
    size_t from = 0, to = count;

    while (from < to) {
        size_t middle = (from + to) / 2;

        if (end_of(&traps[middle]) <= address)
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

    while (region && end < count && end_of(&traps[end]) <= region->map.end)
        end++;
    return end;
}

static void put_one(const struct trap *trap, bool lifts)
{
    const uint8_t *from = lifts ? trap->program : trap->engine;

    for (unsigned i = 0; i < trap->bytes; i++)
        ((volatile uint8_t *)trap->address)[i] = from[i];
}

/* All of these are in one mapping.  False: they cannot be written. */
static bool put(const struct trap *first, size_t many, bool lifts)
{
    const struct tbd_mapped_region *region = mapping_of(first);
    uint64_t start = first->address & ~(TBD_PAGE_SIZE - 1);
    size_t bytes = ((end_of(&first[many - 1]) - 1) | (TBD_PAGE_SIZE - 1)) + 1 - start;

    if (!region || tbd_sys_failed(tbd_sys_mprotect(start, bytes, TBD_PROT_RW)))
        return false;
    for (size_t i = 0; i < many; i++)
        put_one(&first[i], lifts);
    return !tbd_sys_failed(tbd_sys_mprotect(start, bytes, (int)region->map.prot));
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

static bool add(struct trap trap)
{
    size_t at = lower(trap.address);

    memcpy(trap.program, (const void *)trap.address, trap.bytes);
    if (count == MOST_TRAPS || !put(&trap, 1, false))
        return false;
    memmove(&traps[at + 1], &traps[at], (count - at) * sizeof(*traps));
    traps[at] = trap;
    count++;
    return true;
}

bool tbd_code_traps_any(uint64_t start, uint64_t end)
{
    size_t at = lower(start);

    return at < count && traps[at].address < end;
}

bool tbd_code_traps_set(uint64_t address)
{
    return tbd_code_traps_any(address, address + 1) ||
           add((struct trap){ .address = address, .bytes = 1, .engine = { INT3 } });
}

bool tbd_code_traps_set_jump(uint64_t address, uint64_t target)
{
    struct trap trap = { .address = address, .bytes = TBD_CODE_JUMP_BYTES, .engine = { JUMP } };
    int32_t distance = (int32_t)(target - (address + TBD_CODE_JUMP_BYTES));

    memcpy(trap.engine + 1, &distance, sizeof(distance));
    return add(trap);
}

void tbd_code_traps_remove(uint64_t address)
{
    size_t at = lower(address);

    if (at == count || traps[at].address != address)
        return;
    put(&traps[at], 1, true);
    count--;
    memmove(&traps[at], &traps[at + 1], (count - at) * sizeof(*traps));
}

bool tbd_code_traps_has_sigsafe(uint64_t address)
{
    size_t at = lower(address);

    return at < count && traps[at].address == address && traps[at].bytes == 1;
}

void tbd_code_traps_hide(uint8_t *copy, uint64_t address, size_t bytes)
{
    for (size_t at = lower(address); at < count && traps[at].address < address + bytes; at++)
        for (unsigned i = 0; i < traps[at].bytes; i++)
            if (traps[at].address + i - address < bytes)
                copy[traps[at].address + i - address] = traps[at].program[i];
}

void tbd_code_traps_forget(uint64_t start, uint64_t end)
{
    size_t from = lower(start), to = lower(end);

    memmove(&traps[from], &traps[to], (count - to) * sizeof(*traps));
    count -= to - from;
}

void tbd_code_traps_remove_all(void)
{
    tbd_code_traps_lift(true);
    count = 0;
}
