// SPDX-License-Identifier: MIT
/* sys.h - raw system calls for code without libc
 *
 * Every function returns what the kernel returned: a value, or -errno (tbd_sys_failed()).  No
 * errno, no cancellation, no restart.  Any context.  The only place that knows the calling
 * convention; the system calls of the traced program itself go through hooks/calls/syscall.c. */
#ifndef TBD_BASE_SYS_H
#define TBD_BASE_SYS_H

#include "base/linux.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Flags for tbd_sys_mmap() that are used in more than one place. */
enum {
    TBD_PROT_RW = PROT_READ | PROT_WRITE,
    TBD_PROT_RWX = PROT_READ | PROT_WRITE | PROT_EXEC,
    /* our own memory; may be overcommitted */
    TBD_MAP_MEMORY = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
};

static inline long tbd_sys6(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                            uint64_t f)
{
    long result;
    register uint64_t r10 __asm__("r10") = d;
    register uint64_t r8 __asm__("r8") = e;
    register uint64_t r9 __asm__("r9") = f;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline long tbd_sys3(long number, uint64_t a, uint64_t b, uint64_t c)
{
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

static inline long tbd_sys4(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return tbd_sys6(number, a, b, c, d, 0, 0);
}

static inline bool tbd_sys_failed(long result)
{
    return (unsigned long)result > -4096ul;
}

static inline uint64_t tbd_sys_pointer(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* Calls that are used in more than one place. */
static inline long tbd_sys_read(int fd, void *buffer, size_t bytes)
{
    return tbd_sys3(__NR_read, (uint64_t)(unsigned)fd, tbd_sys_pointer(buffer), bytes);
}
static inline long tbd_sys_write(int fd, const void *buffer, size_t bytes)
{
    return tbd_sys3(__NR_write, (uint64_t)(unsigned)fd, tbd_sys_pointer(buffer), bytes);
}
static inline long tbd_sys_open(const char *path, int flags, unsigned mode)
{
    return tbd_sys3(__NR_open, tbd_sys_pointer(path), (uint64_t)(unsigned)flags, mode);
}
static inline long tbd_sys_close(int fd)
{
    return tbd_sys3(__NR_close, (uint64_t)(unsigned)fd, 0, 0);
}
static inline long tbd_sys_mmap(uint64_t address, uint64_t bytes, int prot, int flags, int fd,
                                uint64_t offset)
{
    return tbd_sys6(__NR_mmap, address, bytes, (uint64_t)(unsigned)prot, (uint64_t)(unsigned)flags,
                    (uint64_t)(int64_t)fd, offset);
}
static inline long tbd_sys_mprotect(uint64_t address, uint64_t bytes, int prot)
{
    return tbd_sys3(__NR_mprotect, address, bytes, (uint64_t)(unsigned)prot);
}
static inline long tbd_sys_munmap(uint64_t address, uint64_t bytes)
{
    return tbd_sys3(__NR_munmap, address, bytes, 0);
}
static inline void tbd_sys_pause_ms(uint64_t milliseconds)
{
    uint64_t time[2] = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

    tbd_sys3(__NR_nanosleep, (uint64_t)(uintptr_t)time, 0, 0);
}
static inline long tbd_sys_madvise(uint64_t address, uint64_t bytes, int advice)
{
    return tbd_sys3(__NR_madvise, address, bytes, (uint64_t)(unsigned)advice);
}
/* Makes pages that are about to be written: cheaper than a fault for each.  Where the kernel cannot, nothing happens. */
static inline void tbd_sys_populate(uint64_t start, uint64_t end)
{
    uint64_t page = 4096;

    start &= ~(page - 1);
    tbd_sys_madvise(start, ((end + page - 1) & ~(page - 1)) - start, MADV_POPULATE_WRITE);
}
/* The pages that have these bytes of a mapped file, at another place as well, so that nothing is copied: the private mapping of anonymous memory
 * would lose them.  False: both do not lie alike in their pages, or the kernel is older than Linux 5.13. */
static inline bool tbd_sys_share_pages(uint64_t to, const void *bytes, uint64_t count)
{
    uint64_t page = 4096, from = tbd_sys_pointer(bytes), offset = from & (page - 1);
    uint64_t length = (offset + count + page - 1) & ~(page - 1);

    return (to & (page - 1)) == offset && tbd_sys6(__NR_mremap, from - offset, length, length,
                                                   MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                                                   to - offset, 0) == (long)(to - offset);
}
static inline long tbd_sys_pread(int fd, void *buffer, size_t bytes, uint64_t offset)
{
    return tbd_sys4(__NR_pread64, (uint64_t)(unsigned)fd, tbd_sys_pointer(buffer), bytes, offset);
}
static inline long tbd_sys_getpid(void)
{
    return tbd_sys3(__NR_getpid, 0, 0, 0);
}
static inline long tbd_sys_gettid(void)
{
    return tbd_sys3(__NR_gettid, 0, 0, 0);
}
_Noreturn static inline void tbd_sys_exit_group(int status)
{
    for (;;)
        tbd_sys3(__NR_exit_group, (uint64_t)(unsigned)status, 0, 0);
}

/* Shared futexes.  Waits while *word == expected, at most timeout_ms milliseconds (negative: for ever). */
static inline long tbd_sys_futex_wait(const uint32_t *word, uint32_t expected, long timeout_ms)
{
    int64_t timeout[2] = { timeout_ms / 1000, timeout_ms % 1000 * 1000000 };

    return tbd_sys4(__NR_futex, tbd_sys_pointer(word), FUTEX_WAIT, expected,
                    timeout_ms < 0 ? 0 : tbd_sys_pointer(timeout));
}
static inline long tbd_sys_futex_wake(const uint32_t *word)
{
    return tbd_sys3(__NR_futex, tbd_sys_pointer(word), FUTEX_WAKE, INT32_MAX);
}

#endif
