// SPDX-License-Identifier: MIT
// signal: 11
#include "check.h"

int main(void)
{
    puts("before");
    fflush(stdout);
    __asm__ volatile("hlt");
    return 0;
}
