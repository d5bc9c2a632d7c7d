// SPDX-License-Identifier: MIT
/* Loads and stores that cross words, cache lines and pages, at every alignment. */
#include "check.h"
#include <sys/mman.h>

#define STORE(type, at, value)                                                             \
    do {                                                                                   \
        type v_ = (type)(value);                                                           \
        memcpy((at), &v_, sizeof(v_));                                                     \
        __asm__ volatile("" ::: "memory");                                                 \
    } while (0)

int main(void)
{
    unsigned char *base = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char shadow[128] = { 0 };
    uint64_t seed = 42;

    CHECK(base != MAP_FAILED);
    for (int page = 1; page < 3; page++) {
        unsigned char *at = base + page * 4096 - 64;

        memset(shadow, 0, sizeof(shadow));
        memset(at, 0, 128);
        for (int i = 0; i < 2000; i++) {
            uint64_t r = check_random(&seed);
            unsigned offset = (unsigned)(r % 112);
            uint64_t value = r * 0x9e3779b97f4a7c15u;

            switch ((r >> 32) % 4) {
            case 0: STORE(uint8_t, at + offset, value); memcpy(shadow + offset, &value, 1); break;
            case 1: STORE(uint16_t, at + offset, value); memcpy(shadow + offset, &value, 2); break;
            case 2: STORE(uint32_t, at + offset, value); memcpy(shadow + offset, &value, 4); break;
            default: STORE(uint64_t, at + offset, value); memcpy(shadow + offset, &value, 8); break;
            }
        }
        CHECK(memcmp(at, shadow, 128) == 0);
        printf("%016llx\n", (unsigned long long)check_hash(at, 128));
    }
    return 0;
}
