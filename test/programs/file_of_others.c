// SPDX-License-Identifier: MIT
// options: window=1500
/* A file that is mapped privately changes without a system call of this process that names it: by stores to a shared
 * mapping, and by children, which write it, cut it and extend it. A child sees its parent's changes, too.
 * The file is new, or it is old and one of its descriptors can write. */
#define _GNU_SOURCE
#include "child.h"
#include "mapped_file.h"

/* How the file is mapped. */
enum { NEW, OLD_WRITABLE, OLD, KINDS };

static void open_map(int kind)
{
    open_mapped("/tmp/tbd-file_of_others-XXXXXX", kind != NEW,
                kind == OLD_WRITABLE ? O_RDWR : O_RDONLY);
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
    volatile unsigned char *shared =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    volatile unsigned char *first = map;
    int fd = open(path, O_RDONLY);

    CHECK(shared != MAP_FAILED && fd >= 0);
    make_old();
    map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(map != MAP_FAILED && close(fd) == 0);
    look("beside a shared mapping");
    shared[4 * PAGE + 4000] = 95;
    look("a store there");
    CHECK(munmap((void *)shared, PAGES * PAGE) == 0);
    CHECK(munmap((void *)map, PAGES * PAGE) == 0);
    map = first;
}

static void by_child(int kind)
{
    pid_t child;

    open_map(kind);
    open_again(kind);
    child = new_process();
    if (child == 0) {
        fill(file, 40);
        look("the child's own");
        _exit(0);
    }
    wait_for(child, 0);
    look("written by a child");
    child = new_process();
    if (child == 0) {
        CHECK(ftruncate(file, 2 * PAGE + 50) == 0);
        _exit(0);
    }
    wait_for(child, 0);
    look("cut by a child");
    child = new_process();
    if (child == 0) {
        CHECK(truncate(path, PAGES * PAGE) == 0);
        CHECK(pwrite(file, "abc", 3, 3 * PAGE + 3999) == 3);
        _exit(0);
    }
    wait_for(child, 0);
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
    child = new_process();
    if (child == 0) {
        look("child before");
        CHECK(write(to_parent[1], "1", 1) == 1 && read(to_child[0], &byte, 1) == 1);
        look("child after");
        _exit(0);
    }
    CHECK(read(to_parent[0], &byte, 1) == 1);
    CHECK(pwrite(file, "xyz", 3, PAGE + 4) == 3 && ftruncate(file, 3 * PAGE) == 0);
    CHECK(write(to_child[1], "1", 1) == 1);
    wait_for(child, 0);
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
