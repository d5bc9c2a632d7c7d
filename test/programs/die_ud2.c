// SPDX-License-Identifier: MIT
// signal: 4
#include "check.h"

int main(void)
{
    puts("before");
    fflush(stdout);
    __asm__ volatile("ud2");
    return 0;
}
