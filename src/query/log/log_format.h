// SPDX-License-Identifier: MIT
/* log_format.h - a printf format, and a kept record written by it
 *
 * Conversions are those of C without `*` and %n: d i u x X o c p, f F e E g G a A, s.  Lengths (l, ll, z, ...) are
 * read and mean nothing, because a value has the length of its type.  \n \t \\ \" stand for what they do in C. */
#ifndef TBD_QUERY_LOG_FORMAT_H
#define TBD_QUERY_LOG_FORMAT_H

#include "query/condition/expr_keep.h"

#include <stdio.h>

#define TBD_LOG_SPEC_MAX 24u

struct tbd_log_piece {
    uint32_t text, bytes; /* the literal text before the conversion, in `text` of the format */
    char spec[TBD_LOG_SPEC_MAX]; /* "%-8ll" without the conversion's letter; "" at the end */
    char conversion;             /* 0: none, at the end */
};

struct tbd_log_format {
    char *text; /* owned: literal texts */
    struct tbd_log_piece pieces[TBD_KEPT_MAX + 1];
    uint32_t count; /* of conversions */
    bool ends_line; /* a \n at its end, which is not among the pieces */
};

/* On failure *why says what is wrong with it, and *at where; nothing is owned then. */
bool tbd_log_format_read(const char *text, struct tbd_log_format *out, const char **why,
                         size_t *at);
void tbd_log_format_free(struct tbd_log_format *format);
/* Writes one record; texts of the program are escaped. */
void tbd_log_format_write(const struct tbd_log_format *format, const struct tbd_kept_value *record,
                          FILE *out);

#endif
