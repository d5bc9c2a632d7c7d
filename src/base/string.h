// SPDX-License-Identifier: MIT
/* string.h - memory and string functions, from libc or from base/string.c
 *
 * Any context. */
#ifndef TBD_BASE_STRING_H
#define TBD_BASE_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef TBD_ENGINE
void *memcpy(void *restrict dst, const void *restrict src, size_t bytes);
void *memset(void *dst, int value, size_t bytes);
void *memmove(void *dst, const void *src, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);
/* A few bytes, whose number is known, are copied without a call: -ffreestanding alone would make one of each. */
#define memcpy(dst, src, bytes) __builtin_memcpy(dst, src, bytes)
#else
#include <string.h>
#endif

/* What follows the last slash of a path; one that ends in a slash stays whole. */
static inline const char *tbd_base_name(const char *path)
{
    const char *slash = NULL;

    for (const char *at = path; *at; at++)
        if (*at == '/')
            slash = at;
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static inline bool tbd_starts_with(const char *text, const char *start)
{
    while (*start)
        if (*text++ != *start++)
            return false;
    return true;
}

#endif
