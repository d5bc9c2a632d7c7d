// SPDX-License-Identifier: MIT
// flags: -mavx512f -mavx512bw -mavx512vl -mavx512dq
// cpu: avx512f avx512bw avx512vl avx512dq
/* AVX-512: 64-byte stores, merging masked stores, compressing stores, scatters, mask registers. */
#include "check.h"
#include <immintrin.h>
#include <sys/mman.h>

static int out[2048] __attribute__((aligned(64)));

int main(void)
{
    unsigned char *edge = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    __m512i v = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    uint64_t seed = 7;
    unsigned set = 0;

    CHECK(edge != MAP_FAILED && mprotect(edge + 4096, 4096, PROT_NONE) == 0);
    for (int i = 0; i + 16 <= 1024; i += 16) {
        v = _mm512_add_epi32(_mm512_mullo_epi32(v, _mm512_set1_epi32(5)), _mm512_set1_epi32(i));
        _mm512_store_si512(out + i, v);
    }
    for (int i = 0; i < 64; i++) {
        __mmask16 mask = (__mmask16)check_random(&seed);
        __m512i index = _mm512_and_si512(_mm512_mullo_epi32(v, _mm512_set1_epi32(2 * i + 1)), _mm512_set1_epi32(1023));

        _mm512_mask_storeu_epi32(out + 16 * i, mask, v);
        _mm512_mask_compressstoreu_epi32(out + 1024 + 11 * i, mask, v);
        _mm512_mask_i32scatter_epi32(out + 1024, mask, index, v, 4);
        v = _mm512_mask_i32gather_epi32(v, (__mmask16)~mask, index, out, 4);
        set += (unsigned)__builtin_popcount(mask);
    }
    for (int i = 0; i <= 64; i++) {
        __mmask64 mask = i == 64 ? ~0ull : (1ull << i) - 1;

        _mm512_mask_storeu_epi8(edge + 4096 - i, mask, _mm512_set1_epi8((char)i));
        CHECK(i == 0 || edge[4095] == i);
    }
    printf("%u %016llx %016llx\n", set, (unsigned long long)check_hash(out, sizeof(out)),
           (unsigned long long)check_hash(edge, 4096));
    return 0;
}
