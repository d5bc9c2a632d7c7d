// SPDX-License-Identifier: MIT
/* probe_table.c - see probe_table.h
 *
 * PROBE_TABLE-1  A table is never full, so that a search ends.
 * PROBE_TABLE-2  A reader sees a probe's fields before its place in the table: stored with release, loaded
 *     with acquire. (not checked: x86 orders them) */
#include "hooks/probes/probe_table.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/string.h"

#define FIRST_CAPACITY 4096u
#define MAX_CAPACITY   (1u << 22)

struct probe_slots {
    uint32_t capacity;
    uint32_t count;
    struct probe_slots *older; /* stays, for handlers that still look there */
    struct tbd_probe *slot[];
};

static struct probe_slots *current;
static struct tbd_arena arena;

static uint32_t first_place(const struct probe_slots *slots, uint64_t address)
{
    return (uint32_t)tbd_hash64_mix(address) & (slots->capacity - 1);
}

struct tbd_probe *tbd_probe_find(uint64_t address)
{
    const struct probe_slots *slots = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    uint32_t at;

    if (!slots)
        return NULL;
    for (at = first_place(slots, address);; at = (at + 1) & (slots->capacity - 1)) {
        struct tbd_probe *probe = __atomic_load_n(&slots->slot[at], __ATOMIC_ACQUIRE);

        if (!probe || probe->step.pc == address)
            return probe;
    }
}

/* A later probe of the same address takes the place of the earlier one. */
static void put(struct probe_slots *slots, struct tbd_probe *probe)
{
    uint32_t at = first_place(slots, probe->step.pc);

    while (slots->slot[at] && slots->slot[at]->step.pc != probe->step.pc)
        at = (at + 1) & (slots->capacity - 1);
    slots->count += !slots->slot[at];
    __atomic_store_n(&slots->slot[at], probe, __ATOMIC_RELEASE);
}

static bool grow(void)
{
    uint32_t capacity = current ? current->capacity * 2 : FIRST_CAPACITY;
    struct probe_slots *larger;

    if (!current && !tbd_arena_init(&arena, (sizeof(uint64_t) * 2 + 1) * MAX_CAPACITY))
        return false;
    if (capacity > MAX_CAPACITY)
        return false;
    larger = (struct probe_slots *)tbd_arena_alloc(
        &arena, sizeof(*larger) + capacity * sizeof(larger->slot[0]), 64);
    if (!larger)
        return false;
    larger->capacity = capacity;
    larger->older = current;
    for (uint32_t i = 0; current && i < current->capacity; i++)
        if (current->slot[i])
            put(larger, current->slot[i]);
    __atomic_store_n(&current, larger, __ATOMIC_RELEASE);
    return true;
}

bool tbd_probe_add(struct tbd_probe *probe)
{
    if ((!current || current->count >= current->capacity / 2) && !grow())
        return false;
    put(current, probe);
    TBD_INVARIANT("PROBE_TABLE-1", current->count < current->capacity);
    return true;
}
