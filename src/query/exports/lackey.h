// SPDX-License-Identifier: MIT
/* lackey.h - the references to memory of a run, as valgrind's lackey prints them with --trace-mem=yes */
#ifndef TBD_QUERY_LACKEY_H
#define TBD_QUERY_LACKEY_H

#include "query/session/session.h"

#include <stdio.h>

/* The times of the block entries whose references are wanted: [first, end). */
struct tbd_lackey_span {
    uint64_t first, end;
};

/* Windows that cannot be read are left out (session.h); errors of the file are in `out`. TBD_NOTFOUND: nothing ran
 * in the span. */
TBD_MUST_CHECK enum tbd_status tbd_lackey_write(struct tbd_session *session,
                                                struct tbd_lackey_span span, FILE *out);

#endif
