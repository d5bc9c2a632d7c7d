// SPDX-License-Identifier: MIT
// end: exec
/* Execution of files that have no name any more: a copy of this program in memory, then one on disk. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <unistd.h>

static const int table[] = { 3, 1, 4, 1, 5, 9, 2, 6 };

static int copy(int to)
{
    char buffer[65536];
    int from = open("/proc/self/exe", O_RDONLY);
    ssize_t bytes;

    CHECK(from >= 0 && to >= 0);
    while ((bytes = read(from, buffer, sizeof(buffer))) > 0)
        CHECK(write(to, buffer, (size_t)bytes) == bytes);
    CHECK(bytes == 0);
    close(from);
    return to;
}

static int memory_file(void)
{
    return copy(memfd_create("copy", 0));
}

/* Opened again: a file that is open for writing cannot be executed. */
static int deleted_file(void)
{
    char path[] = "/tmp/tbd-exec-deleted-XXXXXX";
    int made = mkstemp(path), fd;

    CHECK(made >= 0 && fchmod(copy(made), 0700) == 0);
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && close(made) == 0 && unlink(path) == 0);
    return fd;
}

int main(int argc, char **argv)
{
    int left = argc > 1 ? atoi(argv[1]) : 2, sum = 0;
    char next[16];
    char *words[] = { argv[0], next, NULL };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        sum += table[i] * (left + 1);
    printf("%d left, %d\n", left, sum);
    fflush(stdout);
    if (left == 0)
        return 0;
    snprintf(next, sizeof(next), "%d", left - 1);
    fexecve(left == 2 ? memory_file() : deleted_file(), words, environ);
    return 1;
}
