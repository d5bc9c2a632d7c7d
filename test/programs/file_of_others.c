// SPDX-License-Identifier: MIT
// options: window=1500
/* A file that is mapped privately changes without a system call of this process that names it: by stores to a shared
 * mapping, and by children, which write it, cut it and extend it. A child sees its parent's changes, too.
 * The file is new, or it is old and one of its descriptors can write. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  4096l
#define PAGES 6

static sigjmp_buf before;
static char path[64];
static int file;
static volatile unsigned char *map;

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

/* How the file is mapped. */
enum { NEW, OLD_WRITABLE, OLD, KINDS };

/* A mapping of the file, read in some pages, written in one. */
static void open_map(int kind)
{
    struct timespec old[2] = { { .tv_sec = 900000000 }, { .tv_sec = 900000000 } };
    int fd;

    if (map)
        CHECK(munmap((void *)map, PAGES * PAGE) == 0);
    if (file)
        CHECK(close(file) == 0 && unlink(path) == 0);
    strcpy(path, "/tmp/tbd-file_of_others-XXXXXX");
    file = mkstemp(path);
    CHECK(file > 0);
    fill(file, 10);
    if (kind != NEW)
        CHECK(futimens(file, old) == 0);
    fd = open(path, kind == OLD_WRITABLE ? O_RDWR : O_RDONLY);
    CHECK(fd >= 0);
    map = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(map != MAP_FAILED && close(fd) == 0);
    CHECK(map[5] == 10 && map[PAGE + 5] == 11 && map[3 * PAGE + 4000] == 13);
    map[2 * PAGE + 4000] = 200;
}

/* With an old file, the descriptor that can write was opened while the mapping was there. */
static void open_again(int kind)
{
    if (kind == OLD) {
        CHECK(close(file) == 0);
        file = open(path, O_RDWR);
        CHECK(file > 0);
    }
}

static void by_stores(int kind)
{
    volatile unsigned char *shared;

    open_map(kind);
    shared = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(shared != MAP_FAILED);
    shared[5] = 91;
    look("a store");
    shared[PAGE + 4000] = 92;
    shared[2 * PAGE + 5] = 93; /* this page was written, so it keeps its contents */
    shared[5 * PAGE + 5] = 94;
    look("more stores");
    CHECK(munmap((void *)shared, PAGES * PAGE) == 0);
}

/* The shared mapping is there first. */
static void beside_shared(void)
{
    struct timespec old[2] = { { .tv_sec = 900000000 }, { .tv_sec = 900000000 } };
    volatile unsigned char *shared =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    volatile unsigned char *first = map;
    int fd = open(path, O_RDONLY);

    CHECK(shared != MAP_FAILED && fd >= 0 && futimens(file, old) == 0);
    map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(map != MAP_FAILED && close(fd) == 0);
    look("beside a shared mapping");
    shared[4 * PAGE + 4000] = 95;
    look("a store there");
    CHECK(munmap((void *)shared, PAGES * PAGE) == 0);
    CHECK(munmap((void *)map, PAGES * PAGE) == 0);
    map = first;
}

static void wait_for(pid_t child)
{
    int status;

    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void by_child(int kind)
{
    pid_t child;

    open_map(kind);
    open_again(kind);
    child = fork();
    if (child == 0) {
        fill(file, 40);
        look("the child's own");
        _exit(0);
    }
    wait_for(child);
    look("written by a child");
    child = fork();
    if (child == 0) {
        CHECK(ftruncate(file, 2 * PAGE + 50) == 0);
        _exit(0);
    }
    wait_for(child);
    look("cut by a child");
    child = fork();
    if (child == 0) {
        CHECK(truncate(path, PAGES * PAGE) == 0);
        CHECK(pwrite(file, "abc", 3, 3 * PAGE + 3999) == 3);
        _exit(0);
    }
    wait_for(child);
    look("extended by a child");
}

static void by_parent(int kind)
{
    int to_child[2];
    int to_parent[2];
    char byte;
    pid_t child;

    open_map(kind);
    open_again(kind);
    CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
    child = fork();
    if (child == 0) {
        look("child before");
        CHECK(write(to_parent[1], "1", 1) == 1 && read(to_child[0], &byte, 1) == 1);
        look("child after");
        _exit(0);
    }
    CHECK(read(to_parent[0], &byte, 1) == 1);
    CHECK(pwrite(file, "xyz", 3, PAGE + 4) == 3 && ftruncate(file, 3 * PAGE) == 0);
    CHECK(write(to_child[1], "1", 1) == 1);
    wait_for(child);
    for (int i = 0; i < 2; i++)
        CHECK(close(to_child[i]) == 0 && close(to_parent[i]) == 0);
}

int main(void)
{
    struct sigaction action = { .sa_handler = leave };

    CHECK(sigaction(SIGBUS, &action, NULL) == 0);
    for (int kind = 0; kind < KINDS; kind++) {
        by_stores(kind);
        beside_shared();
        by_child(kind);
        by_parent(kind);
    }
    CHECK(unlink(path) == 0);
    return 0;
}
