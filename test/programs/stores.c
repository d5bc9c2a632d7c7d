// SPDX-License-Identifier: MIT
/* Stores of all sizes to a global and to a heap word, with known counts and values. */
#include "check.h"

volatile uint64_t target;     /* every store below touches it, 1600 stores */
volatile uint64_t neighbour;  /* 1 store in 10 */
volatile uint64_t *heap_word; /* malloc'ed; 500 stores, all of them change it */

__attribute__((noinline)) static void store_8(int i) { *(volatile uint8_t *)&target = (uint8_t)i; }
__attribute__((noinline)) static void store_16(int i) { *(volatile uint16_t *)((char *)&target + 2) = (uint16_t)(i * 3); }
__attribute__((noinline)) static void store_32(int i) { *(volatile uint32_t *)((char *)&target + 4) = (uint32_t)i * 77u; }
__attribute__((noinline)) static void store_64(int i) { target = (uint64_t)i * 0x123456789abcu; }

int main(void)
{
    heap_word = malloc(sizeof(*heap_word) * 4);
    CHECK(heap_word != NULL);
    *heap_word = 1; /* the first of the 500 */
    for (int i = 0; i < 400; i++) {
        store_8(i);
        store_16(i);
        store_32(i);
        store_64(i);
        if (i % 10 == 0)
            neighbour += 2;
        if (i > 0)
            *heap_word += (uint64_t)i;
    }
    for (int i = 0; i < 100; i++)
        *heap_word ^= 0xff00ff00u + (uint64_t)i;
    printf("%016llx %llu %016llx\n", (unsigned long long)target, (unsigned long long)neighbour,
           (unsigned long long)*heap_word);
    CHECK(target == 399u * 0x123456789abcu && neighbour == 80);
    return 0;
}
