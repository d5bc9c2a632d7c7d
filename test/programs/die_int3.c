// SPDX-License-Identifier: MIT
// signal: 5
#include "check.h"

int main(void)
{
    puts("before");
    fflush(stdout);
    __asm__ volatile("int3");
    return 0;
}
