// SPDX-License-Identifier: MIT
// signal: 9
#include "check.h"
#include <signal.h>
#include <unistd.h>

int main(void)
{
    puts("before");
    fflush(stdout);
    kill(getpid(), SIGKILL);
    puts("never");
    return 0;
}
