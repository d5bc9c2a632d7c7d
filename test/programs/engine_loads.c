// SPDX-License-Identifier: MIT
// flags: -mavx2
// cpu: avx2
/* Loads of instructions that the engine executes: repeated strings in both directions, gathers, and plain loads from
 * memory that another process may write.  Each buffer is read by one instruction; what it reads is printed as
 * "NAME OFFSET BYTES": all that lies side by side, or for gathers one element a line. */
#define _GNU_SOURCE
#include "check.h"
#include <immintrin.h>
#include <sys/mman.h>

static unsigned char moved[200000], copied[200000], compared[5000], against[5000], searched[9000], fetched[4096], backward[300],
    backward_to[300], stopped[64];
static int gathered[64];
static unsigned char *mapped;

static void says(const char *name, unsigned long offset, unsigned long bytes)
{
    printf("%s %lu %lu\n", name, offset, bytes);
}

static void copies(void)
{
    const void *from = moved;
    void *to = copied;
    unsigned long count = sizeof(moved) / 8;

    __asm__ volatile("rep movsq" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
    says("moved", 0, sizeof(moved));

    from = backward + 296;
    to = backward_to + 296;
    count = 30;
    __asm__ volatile("std; rep movsl; cld" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
    says("backward", 296 - 29 * 4ul, 30 * 4ul);
}

static void comparisons(void)
{
    const void *from = compared, *to = against;
    unsigned long count = sizeof(compared);

    against[4500] = 1;
    __asm__ volatile("repe cmpsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory", "cc");
    CHECK(count == sizeof(compared) - 4501);
    says("compared", 0, 4501);
    says("against", 0, 4501);

    searched[0] = 1;
    to = searched + sizeof(searched) - 2;
    count = sizeof(searched) / 2;
    __asm__ volatile("std; repne scasw; cld" : "+D"(to), "+c"(count) : "a"(1) : "memory", "cc");
    CHECK(count == 0);
    says("searched", 0, sizeof(searched));

    from = stopped;
    to = stopped;
    count = 0;
    __asm__ volatile("repe cmpsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory", "cc");
}

static void fetches(void)
{
    const void *from = fetched + 8;
    unsigned long count = 100, last = 0;

    __asm__ volatile("rep lodsq" : "+S"(from), "+c"(count), "=a"(last) : : "memory");
    CHECK(last == 0);
    says("fetched", 8, 800);
}

static void gathers(void)
{
    __m256i index = _mm256_setr_epi32(3, 60, 0, 9, 10, 31, 63, 5), mask = _mm256_setr_epi32(-1, -1, 0, -1, 0, 0, -1, 0);
    __m256i result = _mm256_setzero_si256();

    gathered[60] = 77;
    __asm__ volatile("vpgatherdd %1, (%2,%3,4), %0" : "+x"(result), "+x"(mask) : "r"(gathered), "x"(index) : "memory");
    CHECK(_mm256_extract_epi32(result, 1) == 77 && _mm256_extract_epi32(result, 0) == 0);
    says("gathered", 3 * 4, 4);
    says("gathered", 60 * 4, 4);
    says("gathered", 9 * 4, 4);
    says("gathered", 63 * 4, 4);
}

/* Another process may write there. */
static void plain(void)
{
    unsigned value, sum = 0;

    mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED);
    for (unsigned i = 0; i < 3; i++) {
        __asm__ volatile("movl 64(%1), %0" : "=r"(value) : "r"(mapped) : "memory");
        sum += value;
    }
    __asm__ volatile("addl $5, 128(%0)" : : "r"(mapped) : "memory", "cc");
    CHECK(sum == 0);
    for (unsigned i = 0; i < 3; i++)
        says("*mapped", 64, 4);
    says("*mapped", 128, 4);
}

int main(void)
{
    copies();
    comparisons();
    fetches();
    gathers();
    plain();
    return 0;
}
