// SPDX-License-Identifier: MIT
// args: 3
// end: exec
/* exec of itself until the count is 0; a failing exec on the way changes nothing. */
#include "check.h"
#include <errno.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int left = argc > 1 ? atoi(argv[1]) : 0;
    char next[16];

    printf("%d left\n", left);
    fflush(stdout);
    CHECK(execl("/no/such/program", "x", NULL) == -1 && errno == ENOENT);
    if (left > 0) {
        snprintf(next, sizeof(next), "%d", left - 1);
        execl("/proc/self/exe", argv[0], next, NULL);
        return 1;
    }
    return 0;
}
