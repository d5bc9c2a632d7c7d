// SPDX-License-Identifier: MIT
/* mapped_file.h - a file that is mapped privately while it changes: shared by the programs about who changes it */
#ifndef TEST_PROGRAMS_MAPPED_FILE_H
#define TEST_PROGRAMS_MAPPED_FILE_H

#include "check.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE  4096l
#define PAGES 6

static sigjmp_buf before;
static char path[64];
static int file;
static volatile unsigned char *map;

/* The handler of SIGBUS. */
static void leave(int signal)
{
    (void)signal;
    siglongjmp(before, 1);
}

/* Two bytes of each page; '-' if it cannot be read. */
static void look(const char *what)
{
    printf("%s:", what);
    for (volatile int i = 0; i < PAGES; i++) {
        if (sigsetjmp(before, 1) == 0)
            printf(" %d,%d", map[i * PAGE + 5], map[i * PAGE + 4000]);
        else
            printf(" -");
    }
    putchar('\n');
    fflush(stdout);
}

static void fill(int fd, int first)
{
    unsigned char page[PAGE];

    for (int i = 0; i < PAGES; i++) {
        memset(page, first + i, sizeof(page));
        CHECK(pwrite(fd, page, sizeof(page), i * PAGE) == PAGE);
    }
}

static void make_old(void)
{
    struct timespec old[2] = { { .tv_sec = 900000000 }, { .tv_sec = 900000000 } };

    CHECK(futimens(file, old) == 0);
}

/* A new file under `pattern`, of mkstemp(3), and a mapping of it through a descriptor with `access`, read in some pages,
 * written in one. */
static void open_mapped(const char *pattern, bool is_old, int access)
{
    int fd;

    if (map)
        CHECK(munmap((void *)map, PAGES * PAGE) == 0);
    if (file)
        CHECK(close(file) == 0 && unlink(path) == 0);
    strcpy(path, pattern);
    file = mkstemp(path);
    CHECK(file > 0);
    fill(file, 10);
    if (is_old)
        make_old();
    fd = open(path, access);
    CHECK(fd >= 0);
    map = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(map != MAP_FAILED && close(fd) == 0);
    CHECK(map[5] == 10 && map[PAGE + 5] == 11 && map[3 * PAGE + 4000] == 13);
    map[2 * PAGE + 4000] = 200;
}

#endif
