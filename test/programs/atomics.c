// SPDX-License-Identifier: MIT
// flags: -mcx16
// libs: atomic
/* Locked instructions of every size, also 16 bytes, succeeding and failing. */
#include "check.h"
#include <stdatomic.h>

static _Atomic uint8_t a8;
static _Atomic uint16_t a16;
static _Atomic uint32_t a32;
static _Atomic uint64_t a64;
static __int128 a128 __attribute__((aligned(16)));

int main(void)
{
    uint64_t failures = 0, seed = 11;

    for (int i = 0; i < 3000; i++) {
        uint64_t r = check_random(&seed), expected = r & 1 ? atomic_load(&a64) : r;
        uint64_t low = (uint64_t)a128 ^ (r & 2), high = (uint64_t)(a128 >> 64);
        unsigned char equal;

        atomic_fetch_add(&a8, (uint8_t)r);
        atomic_fetch_or(&a16, (uint16_t)(r & 0x1111));
        atomic_fetch_xor(&a16, (uint16_t)r);
        atomic_fetch_sub(&a32, (uint32_t)r);
        atomic_exchange(&a32, atomic_load(&a32) * 3 + a8);
        failures += !atomic_compare_exchange_strong(&a64, &expected, r * 5);
        __asm__ volatile("lock cmpxchg16b %1; sete %0"
                         : "=q"(equal), "+m"(a128), "+a"(low), "+d"(high) : "b"(r), "c"(r >> 3) : "cc", "memory");
        failures += !equal;
        __asm__ volatile("lock incq %0; lock negb %1; lock btcl $3, %2" : "+m"(a64), "+m"(a8), "+m"(a32)::"cc", "memory");
    }
    printf("%llu %02x %04x %08x %016llx %016llx\n", (unsigned long long)failures, a8, a16, a32, (unsigned long long)a64,
           (unsigned long long)check_hash(&a128, 16));
    return 0;
}
