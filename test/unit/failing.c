// SPDX-License-Identifier: MIT
/* failing.c - see failing.h
 *
 * The linker leads calls of malloc() here (--wrap).  Blocks that are allocated and given back
 * while an act runs are counted: what is missing at its end has leaked. */
#include "failing.h"

#include <errno.h>
#include <execinfo.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static atomic_bool is_on;
static atomic_ullong made; /* allocations of the act so far */
static atomic_llong alive; /* blocks of it */
static unsigned long long first, last;
static void *failed_at[24]; /* stack of the first that failed */
static int failed_depth;

static bool fails(void)
{
    unsigned long long number;

    if (!is_on)
        return false;
    number = ++made;
    if (number < first || number > last)
        return false;
    if (number == first)
        failed_depth = backtrace(failed_at, sizeof(failed_at) / sizeof(failed_at[0]));
    errno = ENOMEM;
    return true;
}

static void *counted(void *block)
{
    if (is_on && block)
        alive++;
    return block;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *block);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
FILE *__real_open_memstream(char **text, size_t *bytes);
char *__real_realpath(const char *path, char *resolved);
int __real_vasprintf(char **out, const char *format, va_list list);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_reallocarray(void *block, size_t count, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *block);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t bytes);
int __wrap_asprintf(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_vasprintf(char **out, const char *format, va_list list);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
FILE *__wrap_open_memstream(char **text, size_t *bytes);
char *__wrap_realpath(const char *path, char *resolved);

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *block, size_t bytes)
{
    void *grown;

    if (fails())
        return NULL;
    grown = __real_realloc(block, bytes);
    return block ? grown : counted(grown);
}

void *__wrap_reallocarray(void *block, size_t count, size_t bytes)
{
    size_t all;

    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return __wrap_realloc(block, all);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}

void __wrap_free(void *block)
{
    if (is_on && block)
        alive--;
    __real_free(block);
}

char *__wrap_strndup(const char *text, size_t bytes)
{
    size_t length = strnlen(text, bytes);
    char *copy = __wrap_malloc(length + 1);

    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, SIZE_MAX);
}

int __wrap_vasprintf(char **out, const char *format, va_list list)
{
    int length;

    *out = (char *)-1; /* glibc leaves it undefined on failure */
    if (fails())
        return -1;
    length = __real_vasprintf(out, format, list);
    if (length >= 0)
        (void)counted(*out);
    return length;
}

int __wrap_asprintf(char **out, const char *format, ...)
{
    va_list list;
    int length;

    va_start(list, format);
    length = __wrap_vasprintf(out, format, list);
    va_end(list);
    return length;
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return fails() ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, fd, offset);
}

char *__wrap_realpath(const char *path, char *resolved)
{
    if (resolved)
        return __real_realpath(path, resolved);
    return fails() ? NULL : counted(__real_realpath(path, NULL));
}

/* The text, which free() takes, is allocated by libc when the stream is closed. */
FILE *__wrap_open_memstream(char **text, size_t *bytes)
{
    FILE *stream = fails() ? NULL : __real_open_memstream(text, bytes);

    if (stream && is_on)
        alive++;
    return stream;
}

/* ---- sweeps ---- */

void outcome_add(struct outcome *outcome, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < count; i++)
        outcome->print = (outcome->print ^ at[i]) * 0x100000001b3u;
}

/* How many allocations it made. */
static unsigned long long run(const struct act *act, unsigned long long from, unsigned long long to,
                              struct outcome *outcome)
{
    *outcome = (struct outcome){ 0 };
    if (act->prepare)
        act->prepare(act->context);
    first = from;
    last = to;
    made = 0;
    alive = 0;
    is_on = true;
    act->run(act->context, outcome);
    is_on = false;
    if (act->check)
        act->check(act->context);
    return made;
}

static void complain(const struct act *act, const char *what)
{
    fflush(NULL);
    backtrace_symbols_fd(failed_at, failed_depth, STDERR_FILENO);
    fail_msg("%s: allocation %llu fails%s: %s", act->name, first,
             last > first ? ", and all after" : "", what);
}

/* False: there were fewer allocations than that. */
static bool fail_from(const struct act *act, unsigned long long from, unsigned long long to,
                      const struct outcome *expected)
{
    struct outcome outcome;
    unsigned long long count = run(act, from, to, &outcome);

    if (alive != 0)
        complain(act, "blocks are left behind");
    if (outcome.status != TBD_OK && outcome.status != TBD_NOMEM)
        complain(act, tbd_status_text(outcome.status));
    if (outcome.status == TBD_OK && !act->may_go_without && outcome.print != expected->print)
        complain(act, "another result");
    return count >= from;
}

void failing_sweep(const struct act *act)
{
    unsigned stride = act->stride ? act->stride : 1;
    struct outcome expected, again;
    unsigned long long count;

    (void)run(act, 0, 0, &expected); /* what is kept for ever is there afterwards */
    count = run(act, 0, 0, &again);
    assert_int_equal(expected.status, TBD_OK);
    assert_int_equal(again.status, TBD_OK);
    assert_int_equal(alive, 0);
    if (!act->may_go_without)
        assert_int_equal(expected.print, again.print);
    assert_true(count > 0);
    for (unsigned long long n = 1; fail_from(act, n, n, &expected); n += stride)
        (void)fail_from(act, n, ~0ull, &expected);
    print_message("%s: %llu allocations\n", act->name, count);
}
