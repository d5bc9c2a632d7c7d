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
    CHECK(climb(10) == 45);
    CHECK(count_down(100) == 34);
    CHECK(total == 1615);
    total = 5;
    printf("done\n");
    return 0;
}
