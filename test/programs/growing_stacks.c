// SPDX-License-Identifier: MIT
// options: window=2000
// signal: 11
/* Mappings that the kernel extends downward: how far they grow with a lower limit of stacks, above mappings that are placed
 * below, after these have gone or are protected; the main stack, and mappings with MAP_GROWSDOWN, which are moved, split,
 * protected and inherited.  In the end a recursion meets the lowered limit. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul

static sigjmp_buf before;
static uintptr_t fault;
static unsigned char other_stack[1 << 16];

static void leave(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    fault = (uintptr_t)info->si_addr;
    siglongjmp(before, 1);
}

static void catch_faults(void)
{
    stack_t stack = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };
    struct sigaction action = { .sa_sigaction = leave, .sa_flags = SA_SIGINFO | SA_ONSTACK };

    CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
}

static uintptr_t stack_start, stack_end; /* as the kernel's list has them */

static void find_stack(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];

    CHECK(maps);
    while (fgets(line, sizeof(line), maps))
        if (strstr(line, "[stack]"))
            CHECK(sscanf(line, "%lx-%lx", &stack_start, &stack_end) == 2);
    fclose(maps);
}

static int touch(uintptr_t at, int write)
{
    volatile unsigned char *byte = (volatile unsigned char *)at;

    if (sigsetjmp(before, 1))
        return 0;
    if (write)
        *byte = 1;
    else
        (void)*byte;
    return 1;
}

/* The number of pages below `from` that are there, one after the other. */
static unsigned touch_down(uintptr_t from, unsigned most, int write)
{
    volatile unsigned pages = 0;

    while (pages < most && touch(from - (pages + 1) * PAGE + 8, write))
        pages++;
    return pages;
}

static unsigned grow(void)
{
    return touch_down(stack_start, 3000, 1);
}

static void limit(rlim_t bytes)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_STACK, &limit) == 0);
    limit.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_STACK, &limit) == 0);
}

static unsigned char *place(uintptr_t at, size_t pages, int prot, int flags)
{
    unsigned char *got = mmap((void *)at, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0);

    CHECK(got == (unsigned char *)at);
    return got;
}

/* Free addresses. */
static uintptr_t find_room(size_t pages)
{
    void *room = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    CHECK(room != MAP_FAILED && munmap(room, pages * PAGE) == 0);
    return (uintptr_t)room;
}

static void try_limits(void)
{
    limit(1 << 19);
    find_stack();
    printf("512 KiB: %lu pages", (stack_end - stack_start) / PAGE + grow());
    limit(1 << 20);
    printf(", 1 MiB: %lu pages", (stack_end - stack_start) / PAGE + grow());
    limit(1 << 18);
    printf(", what is there stays: %d", touch_down(stack_start, 128, 0) == 128);
    find_stack();
    printf(", and nothing more: %d", touch(stack_start - 8, 0));
    limit(2 << 20);
    printf(", 2 MiB: %d\n", touch(stack_start - 8, 0));
}

/* Reads into a stack that is not there yet, and into one that cannot grow so far. */
static void try_reads(void)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    uintptr_t lowest;
    ssize_t got;

    find_stack();
    lowest = stack_end - (2 << 20);
    printf("read %ld", (long)read(fd, (void *)(stack_start - 40 * PAGE + 5), 10000));
    got = pread(fd, (void *)(lowest - 3 * PAGE), 10000, 0);
    printf(", below the limit %ld %d", (long)got, errno);
    errno = 0;
    got = pread(fd, (void *)(lowest - 3 * PAGE), 10 * PAGE, 0);
    printf(", across it %ld %d: %d\n", (long)got, errno, touch(lowest, 0));
    close(fd);
    limit(8 << 20);
}

static void try_mapping_below(int prot)
{
    uintptr_t at;

    find_stack();
    at = stack_start - 300 * PAGE;
    place(at, 4, prot, 0);
    printf("with %d below: %u, close to it %d", prot, grow(), touch(at + 5 * PAGE, 1));
    CHECK(munmap((void *)at, 4 * PAGE) == 0);
    find_stack();
    printf(", without: %d\n", touch_down(stack_start, 10, 1));
}

static void try_protection_below(void)
{
    uintptr_t at;

    find_stack();
    at = stack_start - 300 * PAGE;
    place(at, 4, PROT_NONE, 0);
    printf("not readable: %u", touch_down(stack_start, 100, 1));
    CHECK(mprotect((void *)at, 4 * PAGE, PROT_READ) == 0);
    find_stack();
    printf(", readable: %u", grow());
    CHECK(mprotect((void *)at, 4 * PAGE, PROT_NONE) == 0);
    printf(", not readable: %u\n", grow());
    CHECK(munmap((void *)at, 4 * PAGE) == 0);
}

static void try_neighbour(void)
{
    find_stack();
    place(stack_start - PAGE, 1, PROT_READ | PROT_WRITE, 0);
    printf("a neighbour: %u", touch_down(stack_start, 10, 1));
    printf(", %ld below\n", (long)(stack_start - fault));
    CHECK(munmap((void *)(stack_start - PAGE), PAGE) == 0);
}

static void try_growing(void)
{
    uintptr_t room = find_room(2048);
    unsigned char *low = place(room, 1, PROT_READ | PROT_WRITE, 0);
    unsigned char *at = place(room + 1022 * PAGE, 2, PROT_READ | PROT_WRITE, MAP_GROWSDOWN);
    unsigned long sum = 0;

    low[0] = at[0] = 3;
    printf("grows %u", touch_down((uintptr_t)at, 2000, 1));
    for (unsigned i = 1; i < 700; i++)
        sum += at[-(long)(i * PAGE) + 8];
    CHECK(munmap(low, PAGE) == 0);
    limit(1024 * PAGE);
    printf(", sum %lu, then %u", sum, touch_down((uintptr_t)at, 3000, 1));
    limit(4 << 20);
    CHECK(munmap((void *)room, 2048 * PAGE) == 0);
    printf(", gone %d\n", touch(room + 800 * PAGE, 1));
}

static void try_protecting(void)
{
    unsigned char *at = place(find_room(2048) + 1500 * PAGE, 2, PROT_READ | PROT_WRITE, MAP_GROWSDOWN);
    uintptr_t top = (uintptr_t)at;

    printf("protected: %u", touch_down(top, 10, 1));
    CHECK(mprotect(at + PAGE, PAGE, PROT_READ | PROT_GROWSDOWN) == 0);
    printf(" %d%d%d", touch(top, 0), touch(top, 1), touch(top - 5 * PAGE, 1));
    printf(", below %u %u", touch_down(top - 10 * PAGE, 10, 1), touch_down(top - 10 * PAGE, 10, 0));
    CHECK(mprotect(at, PAGE, PROT_READ | PROT_WRITE | PROT_GROWSDOWN) == 0);
    printf(", writable %d%d", touch(top - 15 * PAGE, 1), touch(top - 40 * PAGE, 1));
    CHECK(mprotect((void *)(top - 20 * PAGE), PAGE, PROT_NONE) == 0);
    printf(", split %d%d%d", touch(top - 20 * PAGE, 1), touch(top - 19 * PAGE, 1), touch(top - 60 * PAGE, 1));
    CHECK(munmap((void *)(top - 30 * PAGE), 5 * PAGE) == 0);
    printf(", a hole fills %d%d", touch(top - 26 * PAGE, 1), touch(top - 30 * PAGE, 1));
    CHECK(munmap((void *)(top - 61 * PAGE), 63 * PAGE) == 0);
    printf(", gone %d%d\n", touch(top - 26 * PAGE, 1), touch(top - 62 * PAGE, 1));
}

static void try_moving(void)
{
    uintptr_t room = find_room(8192), from = room + 2000 * PAGE, to = room + 6000 * PAGE;
    unsigned char *hint;

    place(from, 2, PROT_READ | PROT_WRITE, MAP_GROWSDOWN)[5] = 3;
    printf("moved: %u", touch_down(from, 3, 1));
    CHECK(mremap((void *)from, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == (void *)to);
    printf(" %d, %u, at the old place %u %d", *(unsigned char *)(to + 5), touch_down(to, 100, 1),
           touch_down(from - 3 * PAGE, 10, 1), touch(from, 0));
    hint = mmap((void *)(to - 700 * PAGE), PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf(", a mapping %ld pages below: %u\n", (long)((to - (uintptr_t)hint) / PAGE), touch_down(to, 3000, 1));
    CHECK(munmap((void *)room, 8192 * PAGE) == 0);
}

static void try_forking(void)
{
    uintptr_t at = (uintptr_t)place(find_room(2048) + 1500 * PAGE, 2, PROT_READ | PROT_WRITE, MAP_GROWSDOWN);
    int status;

    printf("inherited: %u\n", touch_down(at, 10, 1));
    fflush(stdout);
    if (fork() == 0) {
        limit(500 * PAGE);
        printf("in the child: %u\n", touch_down(at, 2000, 1));
        fflush(stdout);
        _exit(7);
    }
    CHECK(wait(&status) > 0 && WEXITSTATUS(status) == 7);
    printf("in the parent: %u\n", touch_down(at, 20, 1));
}

__attribute__((noinline)) static int recurse(const volatile char *above, int depth)
{
    volatile char here[4096];

    here[0] = (char)(depth + *above);
    return depth ? recurse(here, depth - 1) + here[0] : here[0];
}

/* Other memory in the middle of the stack, and then none. */
static void try_the_middle(void)
{
    char zero = 0;
    uintptr_t at;

    printf("deep: %d", recurse(&zero, 500));
    find_stack();
    at = stack_start + 100 * PAGE;
    place(at, 1, PROT_READ | PROT_WRITE, 0);
    printf(", a mapping in it: %d%d %d", touch(at - 20 * PAGE, 1), touch(at + PAGE, 1), touch_down(at, 90, 1));
    CHECK(munmap((void *)(at - 50 * PAGE), 200 * PAGE) == 0);
    printf(", a hole in it: %d%d", touch(at, 1), touch(at - 40 * PAGE, 1));
    printf(", deep: %d\n", recurse(&zero, 500));
}

/* Without a limit a stack grows as far as there is room. */
static void try_no_limit(void)
{
    struct rlimit limits;

    CHECK(getrlimit(RLIMIT_STACK, &limits) == 0);
    if (limits.rlim_max != RLIM_INFINITY)
        return;
    limit(RLIM_INFINITY);
    find_stack();
    printf("far below: %d%d\n", touch(stack_end - (900ul << 20), 1), touch(stack_end - (3ul << 30), 1));
}

int main(void)
{
    static char buffer[1 << 16];
    char zero = 0;

    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    catch_faults();
    try_limits();
    try_reads();
    try_mapping_below(PROT_READ | PROT_WRITE);
    try_mapping_below(PROT_NONE);
    try_protection_below();
    try_neighbour();
    try_growing();
    try_protecting();
    try_moving();
    try_forking();
    limit(8 << 20);
    try_the_middle();
    if (fork() == 0) {
        try_no_limit();
        return 0;
    }
    wait(NULL);
    try_no_limit();
    CHECK(munmap((void *)(stack_end - (3ul << 30)), (3ul << 30) - (1 << 20)) == 0);
    limit(1 << 19);
    fflush(stdout);
    signal(SIGSEGV, SIG_DFL);
    printf("not reached: %d\n", recurse(&zero, 3000));
    return 0;
}
