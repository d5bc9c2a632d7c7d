// SPDX-License-Identifier: MIT
// signal: 14
/* Killed by a timer signal without a handler in the middle of a computation. */
#include "check.h"
#include <sys/time.h>

int main(void)
{
    const struct itimerval soon = { .it_value.tv_usec = 200000 };
    volatile uint64_t x = 1;

    puts("before");
    fflush(stdout);
    CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    for (;;)
        x = x * 3 + 1;
}
