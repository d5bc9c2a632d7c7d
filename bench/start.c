// SPDX-License-Identifier: MIT
/* start.c - prints the monotonic clock in nanoseconds on entry to main: how long a start takes */
#include <stdio.h>
#include <time.h>

int main(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
    return 0;
}
