// SPDX-License-Identifier: MIT
/* Stores planted for the index over windows: one word is written at the beginning only, one three times
 * in a long loop, one once beside a word of the same page that is written in every round, one never. */
#include "check.h"

#define ROUNDS 1000000

struct page {
    volatile uint64_t hot, beside;
} __attribute__((aligned(4096)));

struct page page;
volatile uint64_t early, thrice, never;

__attribute__((noinline)) void plant_thrice(uint64_t round)
{
    thrice += round;
}

__attribute__((noinline)) void plant_beside(uint64_t round)
{
    page.beside = round;
}

int main(void)
{
    early = 0x1111;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        page.hot += i;
        if (i % (ROUNDS / 4) == 0 && i != ROUNDS)
            plant_thrice(i);
        if (i == ROUNDS / 3)
            plant_beside(i);
    }
    printf("%llx %llu %llu %llu\n", (unsigned long long)early, (unsigned long long)thrice,
           (unsigned long long)page.hot, (unsigned long long)page.beside);
    return never == 0 ? 0 : 1;
}
