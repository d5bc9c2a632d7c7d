// SPDX-License-Identifier: MIT
/* Instructions of all forms on memory that changes behind their back: a file mapped twice, written through one
 * mapping and used through the other. */
// cpu: avx2
// flags: -mavx2 -mcx16
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <immintrin.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (3 * 4096)
static volatile unsigned char *here, *there; /* the same memory */
static sigjmp_buf back;

static uint64_t *word(size_t at)
{
    return (uint64_t *)(uintptr_t)(here + at);
}

static void set(size_t at, uint64_t value)
{
    memcpy((void *)(uintptr_t)(there + at), &value, sizeof(value));
}

static uint64_t get(size_t at)
{
    uint64_t value;

    memcpy(&value, (const void *)(uintptr_t)(there + at), sizeof(value));
    return value;
}

static void general(void)
{
    uint64_t sum = 0, value;

    for (uint64_t i = 1; i < 200; i++) {
        set(64, i);
        sum += *(volatile uint64_t *)word(64);
        sum += *(volatile uint8_t *)word(64);
        *(volatile uint32_t *)word(72) = (uint32_t)(i * 3);
        CHECK((uint32_t)get(72) == i * 3);
        set(80, i << 8);
        __asm__ volatile("addq %1, %0" : "+m"(*word(80)) : "r"(i));
        CHECK(get(80) == (i << 8) + i);
        set(88, i);
        __asm__ volatile("push %1; pop %0" : "=r"(value) : "m"(*word(88)));
        CHECK(value == i);
        __asm__ volatile("push %1; pop %0" : "=m"(*word(96)) : "r"(i * 7));
        CHECK(get(96) == i * 7);
        set(104, i);
        __asm__ volatile("movbe %1, %0" : "=r"(value) : "m"(*word(104)));
        CHECK(value == __builtin_bswap64(i));
        __asm__ volatile("incb %0" : "+m"(*(uint8_t *)word(104)));
        CHECK((get(104) & 0xff) == ((i + 1) & 0xff));
    }
    printf("general %lu\n", (unsigned long)sum);
}

static void atomic_ones(void)
{
    unsigned __int128 wide, *pair = (unsigned __int128 *)word(256);
    uint64_t old = 0, expected;
    unsigned char carry;

    for (uint64_t i = 1; i < 200; i++) {
        set(128, i * 5);
        CHECK(__atomic_fetch_add(word(128), 3, __ATOMIC_SEQ_CST) == i * 5);
        CHECK(get(128) == i * 5 + 3);
        CHECK(__atomic_exchange_n(word(128), i, __ATOMIC_SEQ_CST) == i * 5 + 3);
        expected = i + 1;
        CHECK(!__atomic_compare_exchange_n(word(128), &expected, 9, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
        CHECK(expected == i && get(128) == i);
        CHECK(__atomic_compare_exchange_n(word(128), &expected, 9, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
        CHECK(get(128) == 9);
        set(136, 0xff00);
        __asm__ volatile("lock btsl $3, %0; setc %1" : "+m"(*word(136)), "=q"(carry));
        CHECK(!carry && get(136) == 0xff08);
        __asm__ volatile("lock negb %0" : "+m"(*(uint8_t *)word(137)));
        set(256, i);
        set(264, i * 2);
        wide = ((unsigned __int128)(i * 2) << 64) | i;
        __asm__ volatile("lock cmpxchg16b %0; setz %1"
                         : "+m"(*pair), "=q"(carry), "+A"(wide)
                         : "b"(i + 1), "c"(i + 2));
        CHECK(carry && get(256) == i + 1 && get(264) == i + 2);
        old += get(137);
    }
    printf("atomic %lu\n", (unsigned long)old);
}

static void vectors(void)
{
    unsigned char out[32];
    double sum = 0;

    for (int i = 0; i < 100; i++) {
        set(512, (uint64_t)i * 0x0102030405060708u);
        set(536, (uint64_t)i);
        _mm256_storeu_si256((__m256i *)out, _mm256_loadu_si256((const __m256i *)word(512)));
        CHECK(memcmp(out, (const void *)(uintptr_t)(there + 512), 32) == 0);
        _mm_store_si128((__m128i *)word(576), _mm_set1_epi8((char)i));
        CHECK(get(584) == (uint64_t)(i & 0xff) * 0x0101010101010101u);
        set(600, (uint64_t)i);
        __asm__ volatile("fildll %1; fadd %%st(0), %%st(0); fstpl %0" : "=m"(*word(608)) : "m"(*word(600)) : "st");
        sum += *(double *)word(608);
        __asm__ volatile("vmovdqu %0, %%ymm1" ::"m"(*(const char *)word(4090)) : "xmm1"); /* two pages */
        set(4090, (uint64_t)i);
        memcpy(out, (const void *)(uintptr_t)word(4090), 8);
        CHECK(out[0] == i);
    }
    printf("vectors %.0f\n", sum);
}

static void strings(void)
{
    static char text[5000];
    uint64_t count = 0;
    void *to, *from;

    for (int i = 1; i < 60; i++) {
        memset((void *)(uintptr_t)(there + 1000), 'a' + i % 26, 6000);
        there[1000 + i * 50] = 0;
        to = text, from = (void *)(uintptr_t)(here + 1000), count = 4096;
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count)::"memory");
        CHECK(strlen(text) == (size_t)i * 50 && count == 0 && to == text + 4096);
        to = (void *)(uintptr_t)(here + 1000), count = 5000;
        __asm__ volatile("repne scasb" : "+D"(to), "+c"(count) : "a"(0) : "memory", "cc");
        CHECK(to == (void *)(uintptr_t)(here + 1001 + i * 50));
        to = text, from = (void *)(uintptr_t)(here + 1000), count = 4096;
        there[1000 + i * 50 + 10] = 1;
        __asm__ volatile("repe cmpsb" : "+D"(to), "+S"(from), "+c"(count)::"memory", "cc");
        CHECK(to == text + i * 50 + 11);
        to = (void *)(uintptr_t)(here + 1100), from = (void *)(uintptr_t)(here + 1099), count = 300;
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count)::"memory");
        CHECK(there[1399] == there[1099]);
        to = (void *)(uintptr_t)(here + 7000), count = 100;
        __asm__ volatile("std; rep stosq; cld" : "+D"(to), "+c"(count) : "a"((uint64_t)i) : "memory", "cc");
        CHECK(get(7000 - 99 * 8) == (uint64_t)i && get(7000) == (uint64_t)i);
        from = (void *)(uintptr_t)(here + 7000);
        __asm__ volatile("lodsq" : "+S"(from), "=a"(count));
        CHECK(count == (uint64_t)i && from == (void *)(uintptr_t)(here + 7008));
        __asm__ volatile("movsl" : "+S"(from), "+D"(to)::"memory");
    }
    printf("strings %016lx\n", (unsigned long)check_hash((const void *)(uintptr_t)here, BYTES));
}

static void calls(int fd)
{
    char text[32];

    for (int i = 0; i < 20; i++) {
        snprintf(text, sizeof(text), "by a system call %d", i);
        CHECK(pwrite(fd, text, sizeof(text), 300) == sizeof(text));
        CHECK(strcmp((const char *)(uintptr_t)(here + 300), text) == 0);
        CHECK(pread(fd, (void *)(uintptr_t)(here + 400), 32, 300) == 32);
        CHECK(memcmp((const void *)(uintptr_t)(there + 400), text, 32) == 0);
    }
    puts("calls");
}

static void on_fault(int signo)
{
    siglongjmp(back, signo);
}

/* Volatile, so that the store is where it stands. */
static void faults(int fd)
{
    struct sigaction action = { .sa_handler = on_fault };
    volatile unsigned char *page;

    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    for (volatile int i = 0; i < 3; i++) {
        CHECK(ftruncate(fd, 4096) == 0);
        switch (sigsetjmp(back, 1)) {
        case 0: here[5000] = 1; puts("written"); break;
        case SIGBUS: puts("behind the end"); break;
        default: puts("another signal"); break;
        }
        CHECK(ftruncate(fd, BYTES) == 0);
        here[5000] = 2;
        CHECK(there[5000] == 2);
        page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
        CHECK(page != MAP_FAILED);
        there[7] = (unsigned char)i;
        CHECK(page[7] == i);
        if (sigsetjmp(back, 1) == 0) {
            page[7] = 3;
            puts("written");
        } else {
            puts("not writable");
        }
        CHECK(mprotect((void *)(uintptr_t)page, 4096, PROT_READ | PROT_WRITE) == 0);
        page[7] = 4;
        CHECK(there[7] == 4 && munmap((void *)(uintptr_t)page, 4096) == 0);
    }
}

int main(void)
{
    int fd = memfd_create("tbd-test", 0);
    void *moved;

    CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0);
    here = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    there = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(here != MAP_FAILED && there != MAP_FAILED);
    for (int round = 0; round < 2; round++) {
        general();
        atomic_ones();
        vectors();
        strings();
        calls(fd);
        faults(fd);
        moved = mremap((void *)(uintptr_t)here, BYTES, 8 * BYTES, MREMAP_MAYMOVE);
        CHECK(moved != MAP_FAILED);
        here = mremap(moved, 8 * BYTES, BYTES, MREMAP_MAYMOVE);
        CHECK(here != MAP_FAILED && madvise((void *)(uintptr_t)here, BYTES, MADV_DONTNEED) == 0);
    }
    return 0;
}
