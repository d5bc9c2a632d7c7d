// SPDX-License-Identifier: MIT
/* Some five million block entries with memory that lives long: several windows that depend on
 * each other's pages; the rare store comes once in a million rounds. */
#include "check.h"

uint32_t table[1 << 16];
volatile uint64_t rare;
unsigned marks;

__attribute__((noinline)) void mark(uint64_t round, uint32_t value)
{
    rare = round * 3 + value % 2;
    marks++;
}

int main(void)
{
    uint64_t seed = 3, sum = 0;

    for (uint64_t i = 0; i < 1500000; i++) {
        uint64_t r = check_random(&seed);
        uint32_t *slot = &table[r & 0xffff];

        if (*slot & 1)
            *slot = *slot / 2 + (uint32_t)i;
        else
            *slot += (uint32_t)(r >> 32) | 1;
        if (i % 300000 == 299999)
            mark(i, *slot);
        sum += *slot;
    }
    printf("%llu %u %016llx\n", (unsigned long long)sum, marks, (unsigned long long)check_hash(table, sizeof(table)));
    return 0;
}
