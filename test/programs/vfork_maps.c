// SPDX-License-Identifier: MIT
// options: window=300
/* A child of vfork shares its parent's memory: what it maps, unmaps, protects and writes, and the heap that it grows, are the
 * parent's. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul

static sigjmp_buf before;

static void leave(int signal)
{
    (void)signal;
    siglongjmp(before, 1);
}

static int touch(volatile unsigned char *at, int write)
{
    if (sigsetjmp(before, 1))
        return 0;
    if (write)
        *at = (unsigned char)(*at + 1);
    else
        (void)*at;
    return 1;
}

static void look(const char *what, unsigned char *at, unsigned pages)
{
    printf("%s:", what);
    for (volatile unsigned i = 0; i < pages; i++) {
        int readable = touch(at + i * PAGE, 0), before_it = readable ? at[i * PAGE] : -1;

        printf(" %d%s", before_it, readable && touch(at + i * PAGE, 1) ? "" : "!");
    }
    putchar('\n');
}

static unsigned char *map(unsigned pages, int prot)
{
    unsigned char *made = mmap(NULL, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(made != MAP_FAILED);
    for (unsigned i = 0; prot & PROT_WRITE && i < pages; i++)
        made[i * PAGE] = (unsigned char)(10 * i);
    return made;
}

/* What the child works with; not on its stack, which the parent uses afterwards. */
static unsigned char *made, *hole, *guarded, *opened, *hidden, *replaced, *file, *shared, *heap;
static int fd;

static void change(void)
{
    made = map(5, PROT_READ | PROT_WRITE);
    memset(made + 2 * PAGE, 99, PAGE);
    guarded[0] = 77;
    mprotect(guarded, PAGE, PROT_READ);
    mprotect(guarded + PAGE, PAGE, PROT_NONE);
    mprotect(opened, 2 * PAGE, PROT_READ | PROT_WRITE);
    opened[PAGE] = 33;
    hidden[0] = hidden[PAGE] = 55;
    mprotect(hidden, 2 * PAGE, PROT_NONE);
    file = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    file[1] = 'x';
    shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
    shared[1] = 'y';
    heap = sbrk(3 * PAGE);
    heap[PAGE] = 44;
    munmap(hole + PAGE, 2 * PAGE);
    munmap(replaced, 3 * PAGE);
    CHECK(mmap(replaced, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == replaced);
    replaced[1] = 'z';
    CHECK(mmap(replaced + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == replaced + PAGE);
    CHECK(mmap(replaced + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == replaced + 2 * PAGE);
    replaced[2 * PAGE + 5] = 66;
}

static void try_all(void)
{
    int status;

    hole = map(4, PROT_READ | PROT_WRITE);
    guarded = map(3, PROT_READ | PROT_WRITE);
    opened = map(3, PROT_READ);
    hidden = map(3, PROT_READ | PROT_WRITE);
    fd = memfd_create("file", 0);
    CHECK(fd >= 0 && ftruncate(fd, 2 * PAGE) == 0 && pwrite(fd, "file", 4, 0) == 4 && pwrite(fd, "more", 4, PAGE) == 4);
    replaced = map(4, PROT_READ | PROT_WRITE);
    hole[PAGE] = 5;
    if (vfork() == 0) {
        change();
        _exit(3);
    }
    CHECK(wait(&status) > 0 && WEXITSTATUS(status) == 3);
    look("made", made, 5);
    look("hole", hole, 4);
    look("guarded", guarded, 3);
    look("replaced", replaced, 4);
    printf("%.4s %d\n", replaced, replaced[2 * PAGE + 5]);
    look("opened", opened, 3);
    look("hidden", hidden, 3);
    CHECK(mprotect(hidden, 2 * PAGE, PROT_READ | PROT_WRITE) == 0);
    look("shown", hidden, 3);
    printf("file: %.4s, shared: %.4s\n", file, shared);
    look("heap", heap, 3);
    CHECK(sbrk(PAGE) == heap + 3 * PAGE);
    look("more", heap, 4);
    CHECK(sbrk(-4 * (long)PAGE) == heap + 4 * PAGE);
    look("less", heap, 1);
    CHECK(munmap(made, 5 * PAGE) == 0 && munmap(hole, 4 * PAGE) == 0 && munmap(file, PAGE) == 0);
    look("gone", made, 5);
    close(fd);
}

/* As posix_spawn() and system() do it. */
static void try_programs(void)
{
    for (int i = 0; i < 3; i++) {
        int status;

        if (vfork() == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        CHECK(wait(&status) > 0 && status == 0);
    }
}

int main(void)
{
    static char buffer[1 << 16]; /* nothing is allocated: the heap is counted */

    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    signal(SIGSEGV, leave);
    signal(SIGBUS, leave);
    CHECK(sbrk(16) != (void *)-1 && sbrk((intptr_t)(PAGE - (uintptr_t)sbrk(0) % PAGE)) != (void *)-1);
    try_all();
    try_programs();
    try_all();
    return 0;
}
