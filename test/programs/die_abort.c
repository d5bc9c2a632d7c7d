// SPDX-License-Identifier: MIT
// signal: 6
/* glibc's own check finds a double free and aborts with a message on stderr. */
#include "check.h"

int main(void)
{
    void *volatile p = malloc(2000);

    puts("before");
    fflush(stdout);
    free(p);
    free(p);
    return 0;
}
