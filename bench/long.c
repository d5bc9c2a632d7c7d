// SPDX-License-Identifier: MIT
/* long.c - `long N`: a run of about 28 N block entries with things to find in it
 *
 * `early` is stored to at one tenth of the run and never again, `seldom` a hundred times, `level`
 * now and then above 100, `total` all the time, `never` not at all. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SLOTS 4096u

static volatile _Alignas(64) int early;
static volatile _Alignas(64) int seldom;
static volatile _Alignas(64) int level;
static volatile _Alignas(64) int never;
static volatile uint64_t total;
static uint32_t table[SLOTS];

__attribute__((noinline)) static void found(uint32_t slot, uint32_t value)
{
    table[slot] = value;
    total += value;
}

__attribute__((noinline)) static void note(uint64_t tick, uint64_t ticks)
{
    if (tick == ticks / 10)
        early = (int)(tick & 0xffff) + 1;
    if (tick % (ticks / 100) == 0)
        seldom = (int)(tick / (ticks / 100));
    level = tick % 1024 == 0 ? 101 + (int)(tick / 1024 % 8) : (int)(tick % 100);
}

static uint32_t probe(uint32_t key)
{
    uint32_t slot = key * 2654435761u % SLOTS;

    for (unsigned i = 0; i < 12 && table[slot] % 16 != key % 16; i++)
        slot = (slot + key) % SLOTS;
    return slot;
}

int main(int argc, char **argv)
{
    uint64_t count = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;

    if (count < 64000)
        return 1;
    for (uint64_t round = 0; round < count; round++) {
        uint32_t key = (uint32_t)(round * 48271u % 65537u) | 1u;

        found(probe(key), key);
        if (round % 64 == 0)
            note(round / 64, count / 64);
    }
    printf("%llu %d %d %d\n", (unsigned long long)total, early, seldom, never);
    return 0;
}
