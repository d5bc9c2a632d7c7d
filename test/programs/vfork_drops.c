// SPDX-License-Identifier: MIT
// options: window=700
/* A child of vfork drops pages of its parent, which then hold zeros or what their file has; it drops and writes or reads
 * them, replaces mappings by others that look the same, and writes memory that is shared with nobody else. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  4096ul
#define PAGES 4
#define BYTES (PAGES * PAGE)

enum { ANONYMOUS, READ, GUARDED, FROM_FILE, SHARED, HOLE, AGAIN, MOVED, KINDS };

/* What the child works with; not on its stack, which the parent uses afterwards. */
static unsigned char *memory[KINDS];
static int fd;
static volatile int sink;

static void fill(unsigned char *at)
{
    for (unsigned long i = 0; i < PAGES; i++) {
        at[i * PAGE] = (unsigned char)(i + 1);
        at[i * PAGE + 4000] = (unsigned char)(i + 50);
    }
}

static void make(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        int type = kind == SHARED || kind == HOLE ? MAP_SHARED : MAP_PRIVATE;
        int flags = kind == FROM_FILE ? type : type | MAP_ANONYMOUS;

        memory[kind] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, kind == FROM_FILE ? fd : -1, 0);
        CHECK(memory[kind] != MAP_FAILED);
        fill(memory[kind]);
    }
    CHECK(mprotect(memory[GUARDED], BYTES, PROT_READ) == 0);
}

static void drop(int kind)
{
    CHECK(madvise(memory[kind] + PAGE, 2 * PAGE, MADV_DONTNEED) == 0);
}

static void replace(unsigned char *at)
{
    CHECK(munmap(at, PAGE) == 0);
    CHECK(mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
}

static void change(void)
{
    drop(ANONYMOUS);
    memory[ANONYMOUS][PAGE + 4000] = 9; /* the second page stays as it was dropped */
    drop(READ);
    sink = memory[READ][PAGE];
    drop(GUARDED);
    drop(FROM_FILE);
    drop(SHARED); /* that keeps its contents */
    memory[SHARED][PAGE + 5] = 77;
    CHECK(madvise(memory[HOLE], 2 * PAGE, MADV_REMOVE) == 0);
    replace(memory[AGAIN] + PAGE);
    CHECK(mremap(memory[MOVED] + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory[MOVED] + 2 * PAGE) ==
          memory[MOVED] + 2 * PAGE);
    memory[MOVED][2 * PAGE + 6] = 66;
    CHECK(mmap(memory[MOVED] + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
          memory[MOVED] + PAGE);
}

static void look(int kind)
{
    const unsigned char *at = memory[kind];

    printf("%d:", kind);
    for (unsigned long i = 0; i < PAGES; i++)
        printf(" %d,%d,%d", at[i * PAGE], at[i * PAGE + 4000], at[i * PAGE + 5] + at[i * PAGE + 6]);
    putchar('\n');
}

int main(void)
{
    char name[] = "/tmp/tbd-vfork_drops-XXXXXX";
    unsigned char page[PAGE];
    struct timespec old[2] = { { .tv_sec = 900000000 }, { .tv_sec = 900000000 } };
    int status;

    fd = mkstemp(name);
    CHECK(fd >= 0);
    memset(page, 70, sizeof(page));
    for (unsigned long i = 0; i < PAGES; i++)
        CHECK(pwrite(fd, page, PAGE, (off_t)(i * PAGE)) == PAGE);
    CHECK(futimens(fd, old) == 0 && close(fd) == 0);
    fd = open(name, O_RDONLY);
    CHECK(fd >= 0 && unlink(name) == 0);
    for (int round = 0; round < 3; round++) {
        make();
        if (vfork() == 0) {
            change();
            _exit(3);
        }
        CHECK(wait(&status) > 0 && WEXITSTATUS(status) == 3);
        for (int kind = 0; kind < KINDS; kind++) {
            look(kind);
            CHECK(mprotect(memory[kind], BYTES, PROT_READ | PROT_WRITE) == 0);
            memory[kind][2 * PAGE]++;
            look(kind);
            CHECK(round == 0 || munmap(memory[kind], BYTES) == 0); /* those of the first round stay */
        }
    }
    return 0;
}
