// SPDX-License-Identifier: MIT
/* What cpuid and xgetbv say. */
#include "check.h"
#include <cpuid.h>

int main(void)
{
    unsigned a, b, c, d, low, high;

    CHECK(__get_cpuid_count(7, 0, &a, &b, &c, &d));
    printf("avx512f %u\navx2 %u\n", b >> 16 & 1, b >> 5 & 1);
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    printf("xcr0 %x\n", low);
    CHECK(__get_cpuid_count(13, 0, &a, &b, &c, &d));
    CHECK(a == low && d == high);
    printf("xsave %u\n", b);
    return 0;
}
