// SPDX-License-Identifier: MIT
/* Conditions that begin and end: by a store of the function itself, in a function that it calls, in a register, and with
 * their variables. */
// flags: -Og -fno-inline
#include "check.h"

int total;

void raise_by(int *what, int by)
{
    *what += by;
}

/* Leaves 77 wherever its callers' next calls have their variables. */
void soil(void)
{
    volatile int left[64];

    for (int i = 0; i < 64; i++)
        left[i] = 77;
}

int climb(int steps)
{
    int level = 0;

    for (int i = 0; i < steps; i++)
        raise_by(&level, i);
    return level;
}

int count_down(int height)
{
    int rounds = 0;

    while (height > 0) {
        height -= 3;
        total += height;
        rounds++;
    }
    return rounds;
}

int main(void)
{
    soil();
    CHECK(climb(10) == 45);
    soil();
    CHECK(count_down(100) == 34);
    CHECK(total == 1615);
    total = 5;
    printf("done\n");
    return 0;
}
