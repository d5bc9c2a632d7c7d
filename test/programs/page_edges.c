// SPDX-License-Identifier: MIT
// options: window=200
/* Stores across the edge of two pages, to which nothing else is stored: each page's contents are kept. */
#include "check.h"
#include <sys/mman.h>

#define PAIRS 24u
#define BYTES (PAIRS * 2 * 4096)

#define STORE(type, at, value) (*(volatile type *)(void *)(at) = (type)(value))

int main(void)
{
    unsigned char *base = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(base != MAP_FAILED);
    for (unsigned n = 0; n < PAIRS; n++) {
        unsigned char *edge = base + (2 * n + 1) * 4096;

        switch (n % 3) {
        case 0: STORE(uint64_t, edge - 1 - n % 7, ~0ull / (n + 2)); break;
        case 1: STORE(uint32_t, edge - 1 - n % 3, 0x12345678u + n); break;
        default: STORE(uint16_t, edge - 1, 0x1234 + n); break;
        }
    }
    for (unsigned n = 0; n < PAIRS; n++)
        printf("%016llx\n", (unsigned long long)check_hash(base + (2 * n + 1) * 4096 - 8, 16));
    return 0;
}
