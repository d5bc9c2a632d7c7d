// SPDX-License-Identifier: MIT
/* query_error.h - what is wrong with a question, and where
 *
 * The code that reads or evaluates a text fills it in; the first error counts. Any thread may call
 * these; an error has one owner. */
#ifndef TBD_QUERY_QUERY_ERROR_H
#define TBD_QUERY_QUERY_ERROR_H

#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct tbd_query_error {
    enum tbd_status status;
    size_t at;     /* offset of the wrong word in the text */
    size_t length; /* length of the wrong word; 0: no word to point at */
    char message[192];
    char hint[192]; /* "" if there is no hint */
};

/* Fills *error in, unless it holds an error already. Returns false, for callers that return it. */
bool tbd_query_wrong(struct tbd_query_error *error, enum tbd_status status, size_t at,
                     size_t length, const char *format, ...) __attribute__((format(printf, 5, 6)));
bool tbd_query_wrong_list(struct tbd_query_error *error, enum tbd_status status, size_t at,
                          size_t length, const char *format, va_list list)
    __attribute__((format(printf, 5, 0)));

#endif
