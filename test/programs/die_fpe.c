// SPDX-License-Identifier: MIT
// signal: 8
#include "check.h"

int main(int argc, char **argv)
{
    volatile int zero = argc - 1;

    (void)argv;
    puts("before");
    fflush(stdout);
    return 10 / zero;
}
