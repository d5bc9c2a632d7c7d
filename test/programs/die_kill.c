// SPDX-License-Identifier: MIT
// signal: 9
#include "check.h"
#include <signal.h>
#include <unistd.h>

volatile uint32_t last_values[3000]; /* more than a page, written in the window that never ends */

int main(void)
{
    for (uint32_t i = 0; i < 3000; i++)
        last_values[i] = i * 3 + 1;
    puts("before");
    fflush(stdout);
    kill(getpid(), SIGKILL);
    puts("never");
    return 0;
}
