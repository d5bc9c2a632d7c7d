// SPDX-License-Identifier: MIT
// options: window=2000
/* Accesses that fail, to guard pages and to addresses where nothing is, windows before memory comes there that is hardly used, as
 * a language's runtime does with its stacks and heaps; and memory that may be written but not read, which the processor lets
 * it read all the same. */
#define _GNU_SOURCE
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE  4096ul
#define PAGES 16u

static sigjmp_buf before;

static void leave(int signal)
{
    (void)signal;
    siglongjmp(before, 1);
}

static int touch(volatile unsigned char *at)
{
    if (sigsetjmp(before, 1))
        return 0;
    *at = 1;
    return 1;
}

static unsigned touch_all(unsigned char *at)
{
    volatile unsigned pages = 0;

    for (volatile unsigned i = 0; i < PAGES; i++)
        pages += (unsigned)touch(at + i * PAGE);
    return pages;
}

/* Some windows. */
static unsigned pass(void)
{
    volatile unsigned sum = 0;

    for (unsigned i = 0; i < 7000; i++)
        sum = sum * 31 + i;
    return sum;
}

static unsigned char *map(void *at, int prot)
{
    unsigned char *made = mmap(at, PAGES * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

    CHECK(made != MAP_FAILED);
    return made;
}

static void try_guards(void)
{
    unsigned char *guards = map(NULL, PROT_NONE), *nothing = map(NULL, PROT_NONE), *moved = map(NULL, PROT_READ | PROT_WRITE);
    unsigned char *heap = sbrk(0);

    CHECK(munmap(nothing, PAGES * PAGE) == 0);
    printf("%u %u %u\n", touch_all(guards), touch_all(nothing), touch_all(heap + PAGE));
    pass();
    CHECK(mprotect(guards, PAGES * PAGE, PROT_READ | PROT_WRITE) == 0);
    CHECK(mremap(moved, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, nothing) == nothing);
    CHECK(sbrk(2 * PAGES * PAGE) == heap);
    pass();
    guards[PAGE] = nothing[2 * PAGE] = heap[3 * PAGE] = 5;
    CHECK(mprotect(guards, PAGES * PAGE, PROT_READ) == 0);
    printf("read only: %u\n", touch_all(guards));
    pass();
    CHECK(munmap(nothing, PAGES * PAGE) == 0);
    printf("gone: %u\n", touch_all(nothing));
    pass();
    map(nothing, PROT_READ | PROT_WRITE);
    pass();
    printf("%d %d %d\n", guards[PAGE] + guards[2 * PAGE], nothing[2 * PAGE], heap[3 * PAGE] + heap[4 * PAGE]);
}

static void try_write_only(void)
{
    volatile unsigned char *at = map(NULL, PROT_WRITE);
    unsigned sum = 0;

    for (unsigned i = 0; i < PAGES; i++)
        at[i * PAGE] = (unsigned char)(i + 1);
    pass();
    for (unsigned i = 0; i < PAGES; i += 2)
        sum += at[i * PAGE];
    CHECK(mprotect((void *)at, PAGES * PAGE, PROT_READ) == 0);
    pass();
    for (unsigned i = 1; i < PAGES; i += 2)
        sum += at[i * PAGE];
    CHECK(mprotect((void *)at, PAGES * PAGE, PROT_WRITE) == 0);
    at[PAGE] = 100;
    pass();
    printf("write only: %u %u\n", sum, at[PAGE] + at[2 * PAGE]);
}

int main(void)
{
    static char buffer[1 << 16];

    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    signal(SIGSEGV, leave);
    try_guards();
    try_write_only();
    return 0;
}
