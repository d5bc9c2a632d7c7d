// SPDX-License-Identifier: MIT
/* copy_once.h - reading memory that another process may change at the same time
 *
 * The compiler never reads memory a second time that these functions have copied: so the checked
 * value is the one that is used.  Bytes that change meanwhile may be old or new ones. */
#ifndef TBD_BASE_COPY_ONCE_H
#define TBD_BASE_COPY_ONCE_H

#include <stddef.h>
#include <stdint.h>

static inline void tbd_copy_once(void *out, const void *from, size_t bytes)
{
    __builtin_memcpy(out, from, bytes);
    __asm__ volatile("" ::: "memory");
}

/* Reads a number at any alignment. */
static inline uint64_t tbd_read_once_u64(const void *from)
{
    typedef uint64_t __attribute__((aligned(1), may_alias)) unaligned;

    return *(const volatile unaligned *)from;
}

#endif
