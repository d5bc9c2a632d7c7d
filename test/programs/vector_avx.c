// SPDX-License-Identifier: MIT
// flags: -mavx2 -mfma
// cpu: avx2 fma
/* AVX2: 32-byte stores, masked loads and stores (also next to an unmapped page), gathers. */
#include "check.h"
#include <immintrin.h>
#include <sys/mman.h>

static int table[1024] __attribute__((aligned(64)));
static int out[1024] __attribute__((aligned(64)));

int main(void)
{
    unsigned char *edge = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    __m256i index = _mm256_set_epi32(7, 60, 5, 404, 3, 202, 1, 0), v = _mm256_setzero_si256();
    __m256d acc = _mm256_setzero_pd();

    CHECK(edge != MAP_FAILED && mprotect(edge + 4096, 4096, PROT_NONE) == 0);
    for (int i = 0; i < 1024; i++)
        table[i] = i * i - 77;
    for (int i = 0; i + 8 <= 1024; i += 8) {
        v = _mm256_add_epi32(v, _mm256_i32gather_epi32(table, index, 4));
        _mm256_storeu_si256((__m256i *)(out + i), v);
        index = _mm256_and_si256(_mm256_add_epi32(index, _mm256_set1_epi32(13)), _mm256_set1_epi32(1023));
        acc = _mm256_fmadd_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(v)), _mm256_set1_pd(0.5), acc);
    }
    for (int i = 0; i < 8; i++) {
        __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(i), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        int *at = (int *)(edge + 4096) - i; /* i lanes are mapped, the rest is not */

        _mm256_maskstore_epi32(at, mask, _mm256_set1_epi32(i * 1000 + 1));
        CHECK(_mm256_extract_epi32(_mm256_maskload_epi32(at, mask), 0) == (i ? i * 1000 + 1 : 0));
        _mm256_maskstore_ps((float *)out + 8 * i, mask, _mm256_set1_ps((float)i));
    }
    printf("%016llx %016llx %.3f\n", (unsigned long long)check_hash(out, sizeof(out)),
           (unsigned long long)check_hash(edge, 4096), _mm256_cvtsd_f64(acc));
    return 0;
}
