// SPDX-License-Identifier: MIT
// signal: 15
/* A handler that puts the default action back and raises the signal again. */
#include "check.h"
#include <signal.h>

static void on_term(int number)
{
    puts("handler");
    fflush(stdout);
    signal(number, SIG_DFL);
    raise(number);
}

int main(void)
{
    signal(SIGTERM, on_term);
    raise(SIGTERM);
    puts("never");
    return 0;
}
