// SPDX-License-Identifier: MIT
/* log.h - lines on stderr from inside the traced program or a replay process
 *
 * Callable from every context, before relocation too; never allocates, locks, calls libc, touches
 * errno or signal masks.  One line, one write(2) to descriptor 2; long lines are cut with "...".
 * Off costs one predictable branch. */
#ifndef TBD_BASE_LOG_H
#define TBD_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum tbd_log_level {
    TBD_LOG_ERROR, /* something the user must know; always on */
    TBD_LOG_WARN,  /* recorded with a gap, or detached; always on */
    TBD_LOG_INFO,  /* per process */
    TBD_LOG_DEBUG, /* per system call, window, mapping */
    TBD_LOG_TRACE, /* per block translated, per chunk */
};

extern enum tbd_log_level tbd_log_level; /* written once, in boot */
extern bool tbd_log_silent;              /* nothing is written any more: a replay process */
/* Lines go here, one after the other as far as there is space, and not to stderr; NULL: they do not. */
extern char *tbd_log_kept;
extern size_t tbd_log_kept_bytes;

/* "tbd: TEXT": for the user; errors and warnings. */
void tbd_say(const char *format, ...) __attribute__((format(printf, 1, 2), cold));
/* "tbd: MODULE: TEXT", without looking at the level: use TBD_LOG. */
void tbd_log(const char *module, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

#define TBD_LOG(level, module, ...)                                                                \
    do {                                                                                           \
        if (__builtin_expect(tbd_log_level >= (level), 0))                                         \
            tbd_log((module), __VA_ARGS__);                                                        \
    } while (0)

#endif
