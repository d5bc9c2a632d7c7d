// SPDX-License-Identifier: MIT
/* Some five million block entries, or with fewer rounds as argument fewer, and memory that lives long: several windows
 * that depend on each other's pages; the rare store comes five times.  With a second argument it waits, after half of its
 * rounds, until its standard input has a byte or ends. */
#include "check.h"

#include <unistd.h>

uint32_t table[1 << 16];
volatile uint64_t rare;
unsigned marks;

__attribute__((noinline)) void mark(uint64_t round, uint32_t value)
{
    rare = round * 3 + value % 2;
    marks++;
}

static void await_input(void)
{
    char byte;

    (void)!read(STDIN_FILENO, &byte, 1);
}

int main(int argc, char **argv)
{
    uint64_t seed = 3, sum = 0, rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1500000;

    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t r = check_random(&seed);
        uint32_t *slot = &table[r & 0xffff];

        if (argc > 2 && i == rounds / 2)
            await_input();
        if (*slot & 1)
            *slot = *slot / 2 + (uint32_t)i;
        else
            *slot += (uint32_t)(r >> 32) | 1;
        if ((i + 1) % (rounds / 5) == 0)
            mark(i, *slot);
        sum += *slot;
    }
    printf("%llu %u %016llx\n", (unsigned long long)sum, marks, (unsigned long long)check_hash(table, sizeof(table)));
    return 0;
}
