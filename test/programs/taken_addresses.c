// SPDX-License-Identifier: MIT
/* A program that takes all addresses within 3 GiB of its code, of the libraries' and of the stack, and then computes, calls,
 * copies by `rep`, reads variables relative to rip, and meets signals. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define REACH    (3ull << 30)
#define USER_TOP 0x7ffffffff000ull

static char list[1 << 18];
static volatile unsigned long counters[8] = { 1, 2, 3, 5, 8, 13, 21, 34 };
static volatile double scale = 1.5;
static sigjmp_buf back;

/* Without memory of its own, which would be one more mapping. */
static void read_list(void)
{
    int fd = open("/proc/self/maps", O_RDONLY);
    size_t have = 0;
    ssize_t got;

    CHECK(fd >= 0);
    while ((got = read(fd, list + have, sizeof(list) - 1 - have)) > 0)
        have += (size_t)got;
    CHECK(got == 0 && have < sizeof(list) - 1);
    close(fd);
    list[have] = 0;
}

/* What the kernel has given to somebody meanwhile is not taken: pieces are halved then. */
static void take(uint64_t start, uint64_t end)
{
    uint64_t half;

    if (end - start < 4096)
        return;
    if (mmap((void *)start, end - start, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) !=
            MAP_FAILED ||
        end - start < 1 << 20)
        return;
    half = (start + (end - start) / 2) & ~4095ull;
    take(start, half);
    take(half, end);
}

static void take_addresses(void)
{
    uint64_t before = 1 << 20, start, end;

    read_list();
    for (char *line = list; *line; line = strchr(line, '\n') + 1) {
        CHECK(sscanf(line, "%lx-%lx", &start, &end) == 2);
        if (start > USER_TOP)
            break;
        if (start > before && start - before <= 2 * REACH) {
            take(before, start);
        } else if (start > before) {
            take(before, before + REACH);
            take(start - REACH, start);
        }
        before = end;
    }
    take(before, before + REACH < USER_TOP ? before + REACH : USER_TOP);
}

static unsigned long sum(unsigned long n)
{
    unsigned long result = 0;

    for (unsigned long i = 0; i < n; i++) {
        counters[i % 8] += i;
        result += counters[(i + 3) % 8] ^ (unsigned long)((double)i * scale);
    }
    return result;
}

static void on_fault(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

int main(void)
{
    static char from[3000], to[3000];
    unsigned long count = sizeof(from);
    const char *source = from;
    char *target = to;
    volatile unsigned faults = 0;

    signal(SIGSEGV, on_fault);
    take_addresses();
    printf("sum %lu\n", sum(1000));
    memset(from, 'x', sizeof(from));
    __asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(count) : : "memory");
    printf("copied %d\n", memcmp(from, to, sizeof(from)) == 0);
    for (unsigned i = 0; i < 3; i++) {
        if (!sigsetjmp(back, 1))
            *(volatile char *)(uintptr_t)(8 + i) = 1;
        faults++;
    }
    printf("faults %u, sum %lu\n", faults, sum(100000));
    return 0;
}
