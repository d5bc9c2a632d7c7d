// SPDX-License-Identifier: MIT
// signal: 14
/* Killed by a timer signal without a handler in the middle of a computation. */
#include "check.h"
#include <unistd.h>

int main(void)
{
    volatile uint64_t x = 1;

    puts("before");
    fflush(stdout);
    alarm(1);
    for (;;)
        x = x * 3 + 1;
}
