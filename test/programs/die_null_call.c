// SPDX-License-Identifier: MIT
// signal: 11
/* A call of a function at address 0: what faults has no code, and an address that elsewhere means that there is none. */
#include "check.h"

int main(void)
{
    void (*volatile nowhere)(void) = NULL;

    puts("before");
    fflush(stdout);
    nowhere();
    return 0;
}
