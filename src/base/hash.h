// SPDX-License-Identifier: MIT
/* hash.h - one 64-bit hash for code bytes, the same in engine and tools
 *
 * Not for untrusted keys.  Any context. */
#ifndef TBD_BASE_HASH_H
#define TBD_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t tbd_hash64_mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93ull;
    h ^= h >> 32;
    return h;
}

static inline uint64_t tbd_hash64(const void *data, size_t bytes)
{
    const uint8_t *at = (const uint8_t *)data;
    uint64_t h = 0x9e3779b97f4a7c15ull ^ bytes;

    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t word;

        __builtin_memcpy(&word, at, 8);
        h = tbd_hash64_mix(h ^ word) * 0x9fb21c651e98df25ull;
    }
    for (; bytes; bytes--, at++)
        h = (h ^ *at) * 0x100000001b3ull;
    return tbd_hash64_mix(h);
}

#endif
