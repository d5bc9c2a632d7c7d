// SPDX-License-Identifier: MIT
/* failing_malloc.c - preloaded: allocations number TBD_FAIL_FIRST to TBD_FAIL_LAST of a process fail,
 * whoever makes them, libraries too; with TBD_FAIL_BYTES only those of at least this many bytes are counted, and may fail
 *
 * At its end the process says in the file TBD_FAIL_COUNT how many there were. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);

static atomic_ulong made;
static unsigned long first, last, least;

__attribute__((constructor)) static void begin(void)
{
    const char *from = getenv("TBD_FAIL_FIRST"), *to = getenv("TBD_FAIL_LAST"),
               *bytes = getenv("TBD_FAIL_BYTES");

    made = 0;
    first = from ? strtoul(from, NULL, 10) : 0;
    last = to ? strtoul(to, NULL, 10) : first;
    least = bytes ? strtoul(bytes, NULL, 10) : 0;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("TBD_FAIL_COUNT");
    unsigned long count = made;
    FILE *file;

    first = last = 0;
    file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "%lu\n", count);
    fclose(file);
}

static int fails(size_t bytes)
{
    unsigned long number;

    if (bytes < least)
        return 0;
    number = ++made;
    if (!first || number < first || number > last)
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t bytes)
{
    return fails(bytes) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails(count * bytes) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    return fails(bytes) ? NULL : __libc_realloc(block, bytes);
}

void *reallocarray(void *block, size_t count, size_t bytes)
{
    size_t all;

    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, all);
}
