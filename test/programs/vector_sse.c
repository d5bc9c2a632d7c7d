// SPDX-License-Identifier: MIT
/* SSE: packed stores, scalar stores of parts, non-temporal and byte-masked stores. */
#include "check.h"
#include <emmintrin.h>

static unsigned char out[4096] __attribute__((aligned(64)));

int main(void)
{
    float sum = 0;
    __m128i v = _mm_set_epi32(1, 2, 3, 4);

    for (int i = 0; i < 4096 - 32; i += 16) {
        v = _mm_add_epi32(_mm_slli_epi32(v, 1), _mm_set1_epi32(i));
        _mm_store_si128((__m128i *)(out + i), v);
        _mm_storeu_si128((__m128i *)(out + i + 3), _mm_shuffle_epi32(v, 0x1b));
    }
    for (int i = 0; i < 64; i++) {
        __m128d d = _mm_set_pd(i * 1.5, i / 3.0);

        _mm_storel_pd((double *)(out + 64 * i % 4000), d);
        _mm_storeh_pd((double *)(out + (64 * i + 8) % 4000), d);
        _mm_storel_epi64((__m128i *)(out + (64 * i + 17) % 4000), v);
        _mm_stream_si32((int *)(out + (64 * i + 32) % 4000), i * 99);
        _mm_maskmoveu_si128(v, _mm_set1_epi16((short)(i * 0x8183)), (char *)out + (64 * i + 40) % 4000);
        sum += _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss((float)i)));
    }
    _mm_stream_si128((__m128i *)out, v);
    _mm_sfence();
    printf("%016llx %.4f\n", (unsigned long long)check_hash(out, sizeof(out)), (double)sum);
    return 0;
}
