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

/* Is the file of `path` called so?  Versions may be left out: "libz.so.1" is libz.so.1.2.13, to which the link of that name leads
 * and whose name the kernel shows for its mappings; "libz" is not. */
static inline bool tbd_is_file_called(const char *path, const char *name, size_t length)
{
    const char *base = tbd_base_name(path);
    bool is_library = false;

    for (size_t i = 0; i < length; i++) {
        if (base[i] != name[i])
            return false;
        is_library =
            is_library || (i >= 2 && name[i - 2] == '.' && name[i - 1] == 's' && name[i] == 'o');
    }
    return base[length] == '\0' || (is_library && base[length] == '.' && base[length + 1] >= '0' &&
                                    base[length + 1] <= '9');
}

static inline bool tbd_starts_with(const char *text, const char *start)
{
    while (*start)
        if (*text++ != *start++)
            return false;
    return true;
}

#endif
