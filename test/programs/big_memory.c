// SPDX-License-Identifier: MIT
/* Touches many pages: 48 MB written, copied with memcpy, read back sparsely, given back. */
#include "check.h"

#define BYTES (24u << 20)

int main(void)
{
    unsigned char *a = malloc(BYTES), *b = malloc(BYTES);
    uint64_t sum = 0;

    CHECK(a != NULL && b != NULL);
    for (size_t i = 0; i < BYTES; i += 64)
        a[i] = (unsigned char)(i >> 12) ^ (unsigned char)(i >> 6);
    memset(b, 3, BYTES);
    memcpy(b + 1000, a, BYTES - 1000);
    for (size_t i = 0; i < BYTES; i += 4099)
        sum += b[i];
    a = realloc(a, BYTES * 2);
    CHECK(a != NULL && a[64] == 1);
    free(a);
    free(b);
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
