// SPDX-License-Identifier: MIT
// signal: 11
/* Dies by a store through a bad pointer, after output that was flushed. */
#include "check.h"

__attribute__((noinline)) static void damage(volatile int *p, int depth)
{
    if (depth > 0)
        damage(p, depth - 1);
    *p = depth;
}

static volatile uintptr_t bad = 0x18; /* not known to the compiler */

int main(void)
{
    puts("before");
    fflush(stdout);
    damage((volatile int *)bad, 5);
    puts("never");
    return 0;
}
