// SPDX-License-Identifier: MIT
/* lcov.h - the lines and functions of modules, and how often a run executed each, as lcov's tracefile */
#ifndef TBD_QUERY_LCOV_H
#define TBD_QUERY_LCOV_H

#include "query/session/session.h"

#include <stdio.h>

struct tbd_lcov;

/* Makes it of the modules whose names match a pattern, as file names do; it is borrowed.  TBD_NOTFOUND: they have no lines.
 * Free it in any case. */
TBD_MUST_CHECK enum tbd_status tbd_lcov_make(struct tbd_session *session, const char *pattern,
                                             struct tbd_lcov **out);
/* Errors of the file are in `out`. */
void tbd_lcov_write(const struct tbd_lcov *lcov, FILE *out);
void tbd_lcov_free(struct tbd_lcov *lcov); /* NULL is fine */

#endif
