// SPDX-License-Identifier: MIT
// signal: 11
// flags: -Wno-infinite-recursion
/* Runs out of stack by recursion. */
#include "check.h"

__attribute__((noinline, optimize("O1"))) static unsigned down(volatile unsigned *p)
{
    volatile unsigned here = *p + 1;

    return down(&here) + here;
}

int main(void)
{
    volatile unsigned zero = 0;

    puts("before");
    fflush(stdout);
    return (int)down(&zero);
}
