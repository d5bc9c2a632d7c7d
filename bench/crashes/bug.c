// SPDX-License-Identifier: MIT
/* bug.c - a library with a bug, for programs that have none (bench/values)
 *
 * From call number BUG_AFTER on, strlen says that strings are longer than they are, or memchr and strchr find what is not there: the
 * program reads or writes beyond what it has, by itself.  At call number BUG_TRAP, if that is said, it traps: what looks at the
 * crash begins there (test/tools/step_values.c). */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>

static unsigned long calls, after, trap;

static unsigned long number(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);

    return text ? strtoul(text, NULL, 10) : otherwise;
}

static int is_due(void)
{
    if (calls++ == 0) {
        after = number("BUG_AFTER", 1000000000ul);
        trap = number("BUG_TRAP", 0);
    }
    if (calls == trap)
        __asm__ volatile("int3");
    return calls > after;
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
