// SPDX-License-Identifier: MIT
// flags: -O1
// cpu: avx512f
/* Uses AVX-512 only when nearly all is done. */
#include "check.h"
#include <unistd.h>

static unsigned slow(unsigned n)
{
    return n < 2 ? n : slow(n - 1) + slow(n - 2);
}

int main(void)
{
    volatile unsigned seed = 20;
    unsigned found = slow(seed), out[16];

    __asm__ volatile("vpbroadcastd %1, %%zmm17\n\tvmovdqu32 %%zmm17, %0" : "=m"(out) : "r"(found) : "memory");
    _exit(out[7] == 6765 ? 0 : 1);
}
