// SPDX-License-Identifier: MIT
/* arena.c - see arena.h */
#include "base/arena.h"

#include "base/layout.h"
#include "base/linux.h"
#include "base/sys.h"

#ifdef TBD_ENGINE
static uint64_t next_address = TBD_ARENAS_BASE;

static long reserve(size_t bytes)
{
    long result;

    if (bytes > TBD_STREAM_BASE - next_address)
        return -ENOMEM;
    result =
        tbd_sys_mmap(next_address, bytes, TBD_PROT_RW, TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE, -1, 0);
    if (tbd_sys_failed(result))
        return result;
    next_address += bytes;
    tbd_sys_madvise((uint64_t)result, bytes, MADV_DONTDUMP); /* core dumps are the program's */
    return result;
}
#else
static long reserve(size_t bytes)
{
    return tbd_sys_mmap(0, bytes, TBD_PROT_RW, TBD_MAP_MEMORY, -1, 0);
}
#endif

bool tbd_arena_init(struct tbd_arena *arena, size_t bytes)
{
    long result;

    *arena = (struct tbd_arena){ 0 };
    bytes = (bytes + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1);
    result = reserve(bytes);
    if (tbd_sys_failed(result))
        return false;
    arena->start = (uint8_t *)result;
    arena->at = arena->start;
    arena->end = arena->start + bytes;
    return true;
}

void *tbd_arena_alloc(struct tbd_arena *arena, size_t bytes, size_t align)
{
    size_t pad = (0 - (uintptr_t)arena->at) & (align - 1);
    size_t left = (size_t)(arena->end - arena->at);
    uint8_t *result;

    if (pad > left || bytes > left - pad)
        return NULL;
    result = arena->at + pad;
    arena->at = result + bytes;
    return result;
}

void tbd_arena_reset(struct tbd_arena *arena)
{
    if (arena->at != arena->start)
        tbd_sys_madvise((uint64_t)(uintptr_t)arena->start, (size_t)(arena->end - arena->start),
                        MADV_DONTNEED);
    arena->at = arena->start;
}
