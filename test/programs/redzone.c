// SPDX-License-Identifier: MIT
/* Leaf functions keep data below the stack pointer; nothing may write there. */
#include "check.h"

__attribute__((noinline)) static uint64_t leaf(uint64_t x, const uint64_t *key)
{
    volatile uint64_t local[14];

    for (int i = 0; i < 14; i++)
        local[i] = x * (uint64_t)(i + 1) ^ key[i & 3];
    x = 0;
    for (int i = 13; i >= 0; i--)
        x = x * 31 + local[i];
    return x;
}

int main(void)
{
    static uint64_t key[4] = { 3, 14, 15, 92 };
    uint64_t x = 1;

    for (int i = 0; i < 20000; i++) {
        x = leaf(x, key);
        key[i & 3] ^= x;
    }
    printf("%016llx\n", (unsigned long long)x);
    return 0;
}
