// SPDX-License-Identifier: MIT
// cpu: avx2
/* Loads that touch pages which no other instruction names: repeated scas, cmps and lods over a file's pages, in
 * both directions, up to a match, over its end; gathers. */
#define _GNU_SOURCE
#include "own_file.h"
#include <immintrin.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul
#define PAGES 12ul

static sigjmp_buf back;

static void on_fault(int signo)
{
    (void)signo;
    siglongjmp(back, 1);
}

/* A new mapping each time: nobody has looked at it. */
static unsigned char *map_file(int fd)
{
    unsigned char *at = mmap(NULL, (PAGES + 1) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(at != MAP_FAILED);
    CHECK(mmap(at, PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == at);
    return at;
}

static int make_file(void)
{
    unsigned char page[PAGE];
    int fd = make_own_file();

    for (unsigned n = 0; n < PAGES; n++) {
        memset(page, 'x', sizeof(page));
        page[n] = (unsigned char)('a' + n);
        CHECK(write(fd, page, sizeof(page)) == (ssize_t)sizeof(page));
    }
    return fd;
}

__attribute__((noinline)) static unsigned long scan(const unsigned char *at, unsigned char what, unsigned long most)
{
    __asm__ volatile("repne scasb" : "+D"(at), "+c"(most) : "a"(what) : "memory", "cc");
    return most;
}

__attribute__((noinline)) static unsigned long scan_back(const unsigned char *at, unsigned char what, unsigned long most)
{
    __asm__ volatile("std; repne scasb; cld" : "+D"(at), "+c"(most) : "a"(what) : "memory", "cc");
    return most;
}

__attribute__((noinline)) static unsigned long compare(const unsigned char *a, const unsigned char *b, unsigned long most)
{
    most /= 8;
    __asm__ volatile("cmp %%rcx, %%rcx; repe cmpsq" : "+S"(a), "+D"(b), "+c"(most)::"memory", "cc");
    return most;
}

__attribute__((noinline)) static unsigned long load(const unsigned char *at, unsigned long count)
{
    unsigned long last = 0;

    __asm__ volatile("rep lodsl" : "+S"(at), "+c"(count), "+a"(last)::"memory", "cc");
    return last;
}

__attribute__((target("avx2"), noinline)) static unsigned gather(const unsigned char *at)
{
    __m256i index = _mm256_setr_epi32(0, 4096, 3 * 4096 - 2, 5 * 4096 + 5, 6 * 4096 + 6, 7 * 4096 + 4, 9 * 4096, 10 * 4096 + 9);
    __m256i got = _mm256_i32gather_epi32((const int *)(const void *)at, index, 1);
    unsigned words[8], sum = 0;

    _mm256_storeu_si256((__m256i *)(void *)words, got);
    for (unsigned n = 0; n < 8; n++)
        sum = sum * 31 + words[n];
    return sum;
}

int main(void)
{
    int fd = make_file();
    volatile unsigned faults = 0;

    CHECK(signal(SIGSEGV, on_fault) != SIG_ERR);
    printf("%lu\n", scan(map_file(fd), 'f', PAGES * PAGE));
    printf("%lu\n", scan(map_file(fd) + 3, 'c', 5 * PAGE));
    printf("%lu\n", scan_back(map_file(fd) + 8 * PAGE, 'd', PAGES * PAGE));
    printf("%lu\n", compare(map_file(fd), map_file(fd) + PAGE, 4 * PAGE));
    printf("%lu\n", compare(map_file(fd) + 4, map_file(fd) + 4, 9 * PAGE));
    printf("%lx\n", load(map_file(fd), 7 * PAGE / 4 + 2));
    printf("%u\n", gather(map_file(fd)));
    if (sigsetjmp(back, 1))
        faults++;
    else
        scan(map_file(fd) + 7 * PAGE, 'Z', ~0ul);
    CHECK(faults == 1);
    return 0;
}
