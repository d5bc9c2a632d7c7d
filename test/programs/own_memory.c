// SPDX-License-Identifier: MIT
/* The program writes its own memory through /proc/self/mem, by every call that can; where control goes depends on
 * what was written. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile uint64_t words[1024];
static unsigned turns;

static off_t place(const volatile void *at)
{
    return (off_t)(uintptr_t)at;
}

/* As many turns as the word says. */
static void follow(size_t index, uint64_t wanted)
{
    for (uint64_t i = words[index]; i > 0; i--)
        turns++;
    CHECK(words[index] == wanted);
}

static void by_position(int fd)
{
    uint64_t value = 3, more[2] = { 5, 7 };
    struct iovec parts[2] = { { &more[0], 8 }, { &more[1], 8 } };

    CHECK(pwrite(fd, &value, 8, place(&words[0])) == 8);
    follow(0, 3);
    CHECK(pwritev(fd, parts, 2, place(&words[511])) == 16); /* two pages */
    follow(511, 5);
    follow(512, 7);
    CHECK(pwritev2(fd, parts, 1, place(&words[2]), 0) == 8);
    follow(2, 5);
}

static void by_offset(int fd)
{
    uint64_t value[2] = { 11, 13 };
    struct iovec parts[2] = { { &value[1], 8 }, { &value[0], 8 } };

    CHECK(lseek(fd, place(&words[20]), SEEK_SET) == place(&words[20]));
    CHECK(write(fd, value, 16) == 16);
    follow(20, 11);
    follow(21, 13);
    CHECK(writev(fd, parts, 2) == 16);
    follow(22, 13);
    follow(23, 11);
}

/* What debuggers try first. */
static void on_the_stack(int fd)
{
    volatile char here = 0;

    CHECK(pwrite(fd, "a", 1, place(&here)) == 1);
    CHECK(here == 'a');
}

static void where_nothing_is(int fd)
{
    char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char text[32];

    CHECK(two != MAP_FAILED && munmap(two + 4096, 4096) == 0);
    memset(text, 'x', sizeof(text));
    CHECK(pwrite(fd, text, sizeof(text), place(two + 4096)) == -1);
    CHECK(pwrite(fd, text, sizeof(text), place(two + 4080)) == 16);
    for (int i = 4080; i < 4096; i++)
        turns += two[i] == 'x';
}

int main(void)
{
    int fd = open("/proc/self/mem", O_RDWR);
    int copy = dup(fd), other = (int)syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/mem", O_WRONLY);
    uint64_t seen = 0;

    CHECK(fd >= 0 && copy >= 0 && other >= 0);
    by_position(fd);
    by_offset(copy);
    on_the_stack(other);
    where_nothing_is(other);
    CHECK(pread(fd, &seen, 8, place(&words[512])) == 8 && seen == 7);
    printf("%u turns\n", turns);
    return 0;
}
