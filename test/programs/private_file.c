// SPDX-License-Identifier: MIT
// options: window=20000
/* private_file.c - private mappings of a file whose pages are written before they are read
 *
 * What a page held before its first store must not depend on that store's record, nor on the file, which is
 * old, is written over afterwards, and goes away. */
#include "check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 12 };

static char name[] = "/tmp/tbd-private-XXXXXX";

static void fill(int fd, int add)
{
    static char bytes[PAGES * PAGE];

    for (int i = 0; i < PAGES * PAGE; i++)
        bytes[i] = (char)(i / 7 + add);
    CHECK(pwrite(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes));
}

/* Enough blocks for several windows. */
static unsigned spin(unsigned n)
{
    volatile unsigned sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += i & 3;
    return sum;
}

static void store(char *at, int page)
{
    at[page * PAGE + 100] = 77;
    at[page * PAGE + 101]++;
}

/* Sums over what was in the file. */
static unsigned sum(const char *at, int page)
{
    unsigned total = 0;

    for (int i = 0; i < PAGE; i += 64)
        total += (unsigned char)at[page * PAGE + i];
    return total;
}

int main(void)
{
    struct timespec old[2] = { { .tv_sec = 900000000 }, { .tv_sec = 900000000 } };
    int fd = mkstemp(name);
    int mapped;
    char *written, *later;
    pid_t child;
    int status;

    CHECK(fd >= 0);
    fill(fd, 0);
    CHECK(futimens(fd, old) == 0);
    mapped = open(name, O_RDONLY);
    CHECK(mapped >= 0);
    written = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, mapped, 0);
    later = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, mapped, 0);
    CHECK(written != MAP_FAILED && later != MAP_FAILED);

    store(written, 0); /* in the window of the mapping */
    printf("%u\n", sum(written, 0));
    spin(30000);
    store(written, 1); /* windows later */
    printf("%u\n", sum(written, 1));
    store(written, 2);
    spin(30000);
    CHECK(mprotect(later, PAGES * PAGE, PROT_READ | PROT_WRITE) == 0);
    store(later, 3);
    spin(30000);
    store(later, 4);
    printf("%u %u\n", sum(later, 3), sum(later, 4));
    CHECK(mprotect(later, PAGES * PAGE, PROT_READ) == 0);
    CHECK(mprotect(later, PAGES * PAGE, PROT_READ | PROT_WRITE) == 0); /* pages 3, 4 have changed */
    store(later, 4);
    fflush(stdout);

    child = fork();
    if (!child) {
        store(written, 5); /* the child's trace knows no mapping of its own of this file */
        store(later, 6);
        spin(30000);
        store(written, 7);
        printf("%u %u\n", sum(written, 5), sum(later, 6) + sum(written, 7));
        fflush(stdout);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);

    CHECK(madvise(written, 2 * PAGE, MADV_DONTNEED) == 0); /* what the file has again */
    store(written, 1);
    printf("%u\n", sum(written, 1));
    spin(30000);
    store(written, 0);
    printf("%u\n", sum(written, 0));
    fill(fd, 3);
    CHECK(unlink(name) == 0);
    close(fd);
    close(mapped);
    return 0;
}
