// SPDX-License-Identifier: MIT
/* io_uring: refused under tbd, as by a kernel without it; natively it may be there. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    char parameters[120] = { 0 };
    long fd = syscall(425, 4, parameters);
    int ends[2];
    char text[4];

    CHECK(fd >= 0 || errno == ENOSYS || errno == EPERM);
    if (fd >= 0)
        close((int)fd);
    CHECK(getenv("LD_PRELOAD") == NULL || !strstr(getenv("LD_PRELOAD"), "libtbd") || fd < 0);
    CHECK(pipe(ends) == 0 && write(ends[1], "abc", 4) == 4 && read(ends[0], text, 4) == 4);
    CHECK(strcmp(text, "abc") == 0);
    puts("refused calls ok");
    return 0;
}
