// SPDX-License-Identifier: MIT
/* bug.c - a library with a bug, for programs that have none (bench/values)
 *
 * From call number BUG_AFTER on, strlen says that strings are longer than they are, or memchr and strchr find what is not there: the
 * program reads or writes beyond what it has, by itself. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>

static unsigned long calls, after;

static int is_due(void)
{
    if (after == 0) {
        const char *text = getenv("BUG_AFTER");

        after = text ? strtoul(text, NULL, 10) : 1000000000ul;
    }
    return ++calls > after;
}

size_t strlen(const char *s)
{
    size_t n = 0;

    while (s[n])
        n++;
    return is_due() ? n + ((size_t)1 << 40) : n;
}

void *memchr(const void *s, int c, size_t n)
{
    const unsigned char *at = s;

    for (size_t i = 0; i < n; i++)
        if (at[i] == (unsigned char)c)
            return is_due() ? (void *)(at + ((size_t)1 << 40)) : (void *)(at + i);
    return NULL;
}

char *strchr(const char *s, int c)
{
    for (;; s++)
        if (*s == (char)c)
            return is_due() ? (char *)8 : (char *)s;
        else if (!*s)
            return NULL;
}
