// SPDX-License-Identifier: MIT
/* rep movs/stos/scas/cmps in both directions and all sizes, count zero included. */
#include "check.h"

static unsigned char a[4096], b[4096], shadow[4096];

#define MOVS(suffix, bytes)                                                                \
    static void movs_##suffix(void *to, const void *from, size_t count, int down)          \
    {                                                                                      \
        if (down) {                                                                        \
            to = (char *)to + (count - 1) * bytes;                                         \
            from = (const char *)from + (count - 1) * bytes;                               \
            __asm__ volatile("std; rep movs" #suffix "; cld" : "+D"(to), "+S"(from), "+c"(count)::"memory"); \
        } else {                                                                           \
            __asm__ volatile("rep movs" #suffix : "+D"(to), "+S"(from), "+c"(count)::"memory"); \
        }                                                                                  \
        CHECK(count == 0);                                                                 \
    }
MOVS(b, 1) MOVS(w, 2) MOVS(l, 4) MOVS(q, 8)

static void check_stos(void)
{
    for (size_t n = 0; n < 300; n += 7) {
        void *to = b + n;
        size_t count = n;

        __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(n) : "memory");
        CHECK(count == 0 && to == b + 2 * n);
        count = n / 8;
        __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(n * 0x0101010101010101u) : "memory");
        memset(shadow + n, (int)n, 2 * n - n % 8);
        for (size_t i = 0; i < n / 8; i++) {
            uint64_t v = n * 0x0101010101010101u;

            memcpy(shadow + 2 * n + 8 * i, &v, 8);
        }
        memset(shadow + n, (int)n, n);
        CHECK(memcmp(b, shadow, 2 * n + n / 8 * 8) == 0);
    }
}

static void check_scas(void)
{
    const unsigned char *at = a;
    const unsigned char *x = a, *y = a + 100;
    size_t count = 1000;
    unsigned char equal;

    memset(a, 'x', sizeof(a));
    a[777] = 'y';
    __asm__ volatile("repne scasb" : "+D"(at), "+c"(count) : "a"('y') : "cc", "memory");
    CHECK(at == a + 778 && count == 222);
    count = 1000;
    __asm__ volatile("repe cmpsb; sete %3" : "+D"(x), "+S"(y), "+c"(count), "=q"(equal)::"cc", "memory");
    CHECK(!equal && y == a + 778 && count == 1000 - 678);
    __asm__ volatile("lodsb" : "+S"(x), "=a"(equal)::"memory");
    CHECK(equal == 'x');
}

int main(void)
{
    uint64_t seed = 99;

    check_stos();
    check_scas();
    for (size_t i = 0; i < sizeof(a); i++)
        a[i] = (unsigned char)check_random(&seed);
    memset(b, 0, sizeof(b));
    memset(shadow, 0, sizeof(shadow));
    for (size_t n = 1; n < 200; n += 11) {
        movs_b(b + n, a + 3 * n, n, n & 1);
        memmove(shadow + n, a + 3 * n, n);
        movs_w(b + 2 * n, a + n, n, n & 2);
        memmove(shadow + 2 * n, a + n, 2 * n);
        movs_l(b + 3 * n, a + n, n, n & 4);
        memmove(shadow + 3 * n, a + n, 4 * n);
        movs_q(b + n, a + 2 * n, n, n & 8);
        memmove(shadow + n, a + 2 * n, 8 * n);
        CHECK(memcmp(b, shadow, sizeof(b)) == 0);
    }
    movs_b(b, a, 0, 0);
    movs_b(b + 1, b, 500, 0); /* overlapping: fills with the first byte */
    CHECK(b[500] == b[0] && b[250] == b[0]);
    printf("%016llx\n", (unsigned long long)check_hash(b, sizeof(b)));
    return 0;
}
