// SPDX-License-Identifier: MIT
/* Huge stack frames, deep recursion, alloca in loops: the stack grows by megabytes. */
#include "check.h"
#include <alloca.h>

__attribute__((noinline)) static unsigned big(unsigned n)
{
    volatile unsigned char space[1 << 20];

    for (size_t i = 0; i < sizeof(space); i += 4096)
        space[i] = (unsigned char)(i / 4096 + n);
    return n ? big(n - 1) + space[4096 * n] : space[0];
}

__attribute__((noinline)) static unsigned deep(unsigned n)
{
    volatile unsigned local = n;

    return n ? deep(n - 1) + (local & 1) : 0;
}

int main(void)
{
    unsigned sum = 0;

    for (unsigned i = 1; i < 200; i++) {
        unsigned char *p = alloca(i * 7);

        memset(p, (int)i, i * 7);
        sum += p[i * 7 - 1];
    }
    printf("%u %u %u\n", big(5), deep(100000), sum);
    return 0;
}
