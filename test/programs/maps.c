// SPDX-License-Identifier: MIT
/* Mappings that come and go: fresh memory is zero each time, files, remap, brk, fixed, advice. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static void check_fresh(void)
{
    unsigned char *last = NULL;

    for (int i = 0; i < 50; i++) {
        unsigned char *p = mmap(last, 16384, PROT_READ | PROT_WRITE, ANON, -1, 0);

        CHECK(p != MAP_FAILED && p[0] == 0 && p[5000] == 0 && p[16383] == 0);
        p[0] = p[5000] = p[16383] = (unsigned char)(i + 1);
        CHECK(munmap(p, 16384) == 0);
        last = p;
    }
}

static void check_advice(void)
{
    unsigned char *p = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, ANON, -1, 0);

    memset(p, 1, 8 * 4096);
    CHECK(madvise(p + 4096, 2 * 4096, MADV_DONTNEED) == 0 && p[0] == 1 && p[4096] == 0 && p[3 * 4096] == 1);
    memset(p, 2, 8 * 4096);
    CHECK(mmap(p + 4096, 4096, PROT_READ | PROT_WRITE, ANON | MAP_FIXED, -1, 0) == p + 4096 && p[4096] == 0 && p[8192] == 2);
    CHECK(mmap(p, 4096, PROT_READ, ANON | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
    CHECK(mprotect(p, 4096, PROT_READ) == 0 && p[7] == 2 && mprotect(p, 4096, PROT_READ | PROT_WRITE) == 0);
    p[7] = 3;
    CHECK(munmap(p + 2 * 4096, 4096) == 0 && p[7] == 3 && p[3 * 4096] == 2);
    munmap(p, 8 * 4096);
}

static void check_remap(void)
{
    unsigned char *p = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, ANON, -1, 0), *q;

    for (int i = 0; i < 4; i++)
        p[i * 4096] = (unsigned char)(i + 10);
    q = mremap(p, 4 * 4096, 64 * 4096, MREMAP_MAYMOVE);
    CHECK(q != MAP_FAILED && q[3 * 4096] == 13 && q[63 * 4096] == 0);
    q[63 * 4096] = 99;
    CHECK(mremap(q, 64 * 4096, 2 * 4096, 0) == q && q[4096] == 11);
    p = mremap(q, 2 * 4096, 2 * 4096, MREMAP_MAYMOVE | MREMAP_FIXED, q + 32 * 4096);
    CHECK(p == q + 32 * 4096 && p[4096] == 11);
    munmap(p, 2 * 4096);
}

static void check_file(void)
{
    char name[] = "/tmp/tbd-maps-XXXXXX";
    int fd = mkstemp(name);
    unsigned char *shared, *private;

    CHECK(fd >= 0 && ftruncate(fd, 3 * 4096) == 0 && pwrite(fd, "abc", 3, 4096) == 3);
    private = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
    CHECK(private != MAP_FAILED && shared != MAP_FAILED && private[4097] == 'b');
    private[4097] = 'X';
    CHECK(shared[1] == 'b');
    shared[2] = 'Z';
    CHECK(private[4097] == 'X' && msync(shared, 4096, MS_SYNC) == 0);
    unlink(name);
    close(fd);
    CHECK(shared[0] == 'a' && private[8192] == 0);
    munmap(shared, 4096);
    munmap(private, 3 * 4096);
}

int main(void)
{
    unsigned char *top = sbrk(0);

    check_fresh();
    check_advice();
    check_remap();
    check_file();
    CHECK(sbrk(100000) != (void *)-1);
    top = (unsigned char *)sbrk(0) - 100000;
    CHECK(top[0] == 0 && top[99999] == 0);
    memset(top, 5, 100000);
    CHECK(brk(top + 100) == 0 && top[99] == 5 && brk(top + 100000) == 0 && top[99] == 5 && top[50000] == 0);
    puts("maps ok");
    return 0;
}
