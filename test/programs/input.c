// SPDX-License-Identifier: MIT
// stdin: 10 20 30 -5 x
/* Reads numbers from stdin until something else comes. */
#include "check.h"

int main(void)
{
    int value, sum = 0;
    char rest[10];

    while (scanf("%d", &value) == 1)
        sum += value;
    CHECK(sum == 55 && scanf("%9s", rest) == 1 && rest[0] == 'x');
    printf("sum %d\n", sum);
    return 0;
}
