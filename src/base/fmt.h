// SPDX-License-Identifier: MIT
/* fmt.h - printf for code without libc
 *
 * Knows %s %c %d %u %x %p %% with the length modifiers l, z and a width (zero-padded or not).
 * Never allocates; truncates text that does not fit and always terminates it.  Any context. */
#ifndef TBD_BASE_FMT_H
#define TBD_BASE_FMT_H

#include <stdarg.h>
#include <stddef.h>

/* Returns the length written, without the terminator; size >= 1. */
size_t tbd_fmt(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
size_t tbd_fmt_list(char *out, size_t size, const char *format, va_list list)
    __attribute__((format(printf, 3, 0)));

#endif
