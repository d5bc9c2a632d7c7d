// SPDX-License-Identifier: MIT
// flags: -mavx512f -mavx512vl -mavx512bw -mavx2 -mxsave -mxsavec -Wno-array-bounds
// cpu: avx512f avx512vl avx512bw avx2 xsave xsavec
/* Gathers, scatters, masked, compressing and long stores on memory that changes behind their back: a file mapped twice,
 * written through one mapping and used through the other. */
#define _GNU_SOURCE
#include "check.h"
#include <immintrin.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES 16384
static unsigned char *here, *there; /* the same memory */

static void fill(uint64_t seed)
{
    for (size_t i = 0; i < BYTES; i += 8) {
        uint64_t value = check_random(&seed);

        memcpy(there + i, &value, 8);
    }
}

static uint32_t word(size_t n)
{
    uint32_t value;

    memcpy(&value, there + n * 4, 4);
    return value;
}

static uint64_t quad(size_t at)
{
    uint64_t value;

    memcpy(&value, there + at, 8);
    return value;
}

static void gathers(uint64_t round)
{
    __m512i index = _mm512_setr_epi32(1, 5, 1000, 1023, 1024, 7, 7, 2000, 3, 4, 4095, 99, 98, 97, 96, 2);
    __m256i wide = _mm256_setr_epi32(0, 8, 16, 511, 512, 513, 1000, 2);
    __mmask16 mask = (__mmask16)(0x5a3f ^ round);
    uint32_t got[16], at[16];
    uint64_t quads[8];

    fill(round);
    _mm512_storeu_si512(at, index);
    _mm512_storeu_si512(got, _mm512_mask_i32gather_epi32(_mm512_set1_epi32(77), mask, index, here, 4));
    for (unsigned i = 0; i < 16; i++)
        CHECK(got[i] == (mask >> i & 1 ? word(at[i]) : 77));
    _mm512_storeu_si512(quads, _mm512_i32gather_epi64(wide, here, 8));
    _mm256_storeu_si256((__m256i *)at, wide);
    for (unsigned i = 0; i < 8; i++)
        CHECK(quads[i] == quad(at[i] * 8));
    _mm256_storeu_si256((__m256i *)got, _mm256_mask_i32gather_epi32(_mm256_set1_epi32(5), (const int *)(const void *)here, wide,
                                                                   _mm256_setr_epi32(-1, 0, -1, -1, 0, 0, 1, -1), 4));
    for (unsigned i = 0; i < 8; i++)
        CHECK(got[i] == (0x8d >> i & 1 ? word(at[i]) : 5));
}

static void scatters(uint64_t round)
{
    __m512i index = _mm512_setr_epi32(1, 5, 1000, 1023, 1024, 7, 7, 2000, 3, 4, 4095, 99, 98, 97, 96, 2);
    __m512i values = _mm512_add_epi32(index, _mm512_set1_epi32((int)round * 1000));
    __mmask16 mask = (__mmask16)(0xa5f3 ^ round);
    uint32_t before[4096], at[16];

    fill(round);
    memcpy(before, there, BYTES);
    _mm512_storeu_si512(at, index);
    _mm512_mask_i32scatter_epi32(here, mask, index, values, 4);
    for (unsigned i = 0; i < 16; i++)
        if (mask >> i & 1)
            before[at[i]] = at[i] + (uint32_t)round * 1000;
    CHECK(memcmp(before, there, BYTES) == 0);
    /* neighbours overlap: the last one stays */
    _mm512_i64scatter_epi64(here + 256, _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64((long long)round), 4);
    CHECK(quad(256 + 28) == round && quad(256) == (round | round << 32));
}

static void masked(uint64_t round)
{
    __m512i values = _mm512_loadu_si512(there + 100);
    __mmask64 bytes = 0x123456789abcdef0 ^ round;
    __mmask16 words = (__mmask16)(0x7e81 + round);
    unsigned char expected[256];
    uint32_t packed[16], all[16];
    unsigned count = 0;

    fill(round);
    memcpy(expected, there + 4000, 256);
    _mm512_mask_storeu_epi8(here + 4064, bytes, values);
    for (unsigned i = 0; i < 64; i++)
        if (bytes >> i & 1)
            memcpy(expected + 64 + i, (const unsigned char *)&values + i, 1);
    CHECK(memcmp(expected, there + 4000, 256) == 0);
    _mm512_storeu_si512(all, values);
    for (unsigned i = 0; i < 16; i++)
        if (words >> i & 1)
            packed[count++] = all[i];
    _mm512_mask_compressstoreu_epi32(here + 4020, words, values);
    memcpy(expected + 20, packed, count * 4);
    CHECK(memcmp(expected + 20, there + 4020, count * 4) == 0);
    _mm256_maskstore_epi64((long long *)(void *)(here + 8184), _mm256_setr_epi64x(-1, 3, -5, 0), _mm512_castsi512_si256(values));
    CHECK(memcmp(there + 8184, all, 8) == 0 && memcmp(there + 8200, all + 4, 8) == 0);
    _mm_maskmoveu_si128(_mm512_castsi512_si128(values), _mm_setr_epi8(-1, 0, 0, -1, 0, -1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1),
                        (char *)here + 4090);
    CHECK(there[4090] == (all[0] & 0xff) && there[4093] == all[0] >> 24 && there[4105] == all[3] >> 24);
}

static void states(uint64_t round)
{
    static _Alignas(64) unsigned char plain[4096];

    fill(round);
    memset(there + 4096, 0, 4096);
    memset(plain, 0, sizeof(plain));
    __asm__ volatile("fninit; vpbroadcastq %0, %%zmm17; vmovdqu64 %%zmm17, %%zmm3; kmovq %0, %%k3\n\t"
                     "xsave64 %1; xsave64 %2; xsavec64 %3; fxsave64 %4; fnsave %5; fninit"
                     : : "r"(round), "m"(*plain), "m"(*(here + 4096)), "m"(*(here + 8192)), "m"(*(here + 512)), "m"(*(here + 2000)),
                         "a"(0xe6), "d"(0) : "xmm3", "xmm17", "k3", "memory");
    CHECK(memcmp(plain + 512, there + 4096 + 512, 2200) == 0 && memcmp(plain + 160, there + 4096 + 160, 256) == 0);
    CHECK(memcmp(plain + 160, there + 512 + 160, 256) == 0);
    CHECK((there[8192 + 527] & 0x80) && there[2000] == 0x7f && there[2001] == 3);
}

static sigjmp_buf back;

static void on_fault(int signo)
{
    siglongjmp(back, signo);
}

/* Beyond the end: what is before it is done, as far as its registers tell. */
static void faults(uint64_t round)
{
    __m512i index = _mm512_setr_epi32(1, 5, 1000, 4096, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    volatile uint32_t before = 0;

    fill(round);
    before = word(1);
    if (sigsetjmp(back, 1) == 0) {
        _mm512_storeu_si512(there, _mm512_i32gather_epi32(index, here, 4));
        CHECK(!"a gather beyond the end");
    }
    CHECK(word(1) == before);
    if (sigsetjmp(back, 1) == 0) {
        _mm512_mask_i32scatter_epi32(here, 0xfc, index, _mm512_set1_epi32((int)round), 4);
        CHECK(!"a scatter beyond the end");
    }
    CHECK(word(1000) == round && word(5) != round); /* elements are stored in order */
    if (sigsetjmp(back, 1) == 0) {
        _mm512_mask_storeu_epi8(here + BYTES - 8, ~0ull, index);
        CHECK(!"a masked store beyond the end");
    }
    _mm512_mask_storeu_epi8(here + BYTES - 8, 0xff, index);
    CHECK(quad(BYTES - 8) == (5ull << 32 | 1));
}

static void all(void)
{
    for (uint64_t round = 1; round < 8; round++) {
        gathers(round);
        scatters(round);
        masked(round);
        states(round);
        faults(round);
    }
    printf("%016llx\n", (unsigned long long)check_hash(there, 512));
}

int main(void)
{
    int fd = memfd_create("shared", 0);

    CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0 && signal(SIGSEGV, on_fault) != SIG_ERR);
    here = there = mmap(NULL, BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(here != MAP_FAILED && mprotect(here + BYTES, 4096, PROT_NONE) == 0);
    all(); /* where nobody else writes */
    here = mmap(NULL, BYTES + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mmap(here, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == here);
    there = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(there != MAP_FAILED);
    all();
    return 0;
}
