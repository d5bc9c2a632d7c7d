// SPDX-License-Identifier: MIT
/* string.c - functions that compilers call implicitly, for code without libc
 *
 * Engine only.  `rep movsb` and `rep stosb` are as fast as any code without vector registers, but for a few bytes, and
 * compilers cannot turn them into calls of memcpy and memset; nor loops with a barrier.  The direction flag is clear wherever
 * C code runs.  The decoder library's imports resolve to these, too. */
#include "base/string.h"

#undef memcpy

#define SHORT_BYTES 512u /* `rep movsb` and `rep stosb` take some 15 ns to begin */

/* Forward, as memmove() needs it. */
static void copy_short(uint8_t *to, const uint8_t *from, size_t bytes)
{
    uint64_t words[4];
    uint64_t word;
    uint32_t half;

    for (; bytes >= sizeof(words); bytes -= sizeof(words)) {
        __builtin_memcpy(words, from, sizeof(words));
        __builtin_memcpy(to, words, sizeof(words));
        to += sizeof(words), from += sizeof(words);
        __asm__ volatile("" : : : "memory");
    }
    for (; bytes >= 8; bytes -= 8, to += 8, from += 8) {
        __builtin_memcpy(&word, from, 8);
        __builtin_memcpy(to, &word, 8);
        __asm__ volatile("" : : : "memory");
    }
    if (bytes >= 4) {
        __builtin_memcpy(&half, from, 4);
        __builtin_memcpy(to, &half, 4);
        bytes -= 4, to += 4, from += 4;
    }
    while (bytes--) {
        *to++ = *from++;
        __asm__ volatile("" : : : "memory");
    }
}

void *memcpy(void *restrict dst, const void *restrict src, size_t bytes)
{
    void *at = dst;

    if (bytes <= SHORT_BYTES) {
        copy_short(dst, src, bytes);
        return dst;
    }
    __asm__ volatile("rep movsb" : "+D"(at), "+S"(src), "+c"(bytes) : : "memory");
    return dst;
}

static void set_short(uint8_t *to, uint8_t value, size_t bytes)
{
    uint64_t word = value * 0x0101010101010101ull;

    for (; bytes >= 8; bytes -= 8, to += 8) {
        __builtin_memcpy(to, &word, 8);
        __asm__ volatile("" : : : "memory");
    }
    while (bytes--) {
        *to++ = value;
        __asm__ volatile("" : : : "memory");
    }
}

void *memset(void *dst, int value, size_t bytes)
{
    void *at = dst;

    if (bytes <= SHORT_BYTES) {
        set_short(dst, (uint8_t)value, bytes);
        return dst;
    }
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
    return dst;
}

void *memmove(void *dst, const void *src, size_t bytes)
{
    uint8_t *to = (uint8_t *)dst + bytes;
    const uint8_t *from = (const uint8_t *)src + bytes;

    if ((uintptr_t)dst - (uintptr_t)src >= bytes)
        return memcpy(dst, src, bytes);
    for (; bytes >= 8; bytes -= 8) {
        uint64_t word;

        __builtin_memcpy(&word, from -= 8, 8);
        __builtin_memcpy(to -= 8, &word, 8);
        __asm__ volatile("" : : : "memory");
    }
    while (bytes--) {
        *--to = *--from;
        __asm__ volatile("" : : : "memory");
    }
    return dst;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
    const uint8_t *x = a;
    const uint8_t *y = b;

    for (; bytes >= 8; bytes -= 8, x += 8, y += 8) {
        uint64_t p;
        uint64_t q;

        __builtin_memcpy(&p, x, 8);
        __builtin_memcpy(&q, y, 8);
        if (p != q)
            break;
    }
    for (; bytes; bytes--, x++, y++)
        if (*x != *y)
            return *x - *y;
    return 0;
}

size_t strlen(const char *text)
{
    size_t bytes = 0;

    while (text[bytes]) {
        bytes++;
        __asm__ volatile("" : : : "memory"); /* keeps it from becoming a call of strlen */
    }
    return bytes;
}

int strcmp(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (uint8_t)*a - (uint8_t)*b;
}
