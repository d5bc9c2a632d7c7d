// SPDX-License-Identifier: MIT
/* block_counts.h - how often each block of a run was entered
 *
 * From the windows' summaries where these have counts; else the window is replayed. */
#ifndef TBD_QUERY_BLOCK_COUNTS_H
#define TBD_QUERY_BLOCK_COUNTS_H

#include "query/session/session.h"

struct tbd_block_count {
    uint64_t count;
    uint32_t window; /* one in which it was entered */
};

struct tbd_block_counts {
    struct tbd_block_count *all; /* owned; by id */
    uint32_t capacity;           /* ids below it */
};

/* Windows that cannot be read are left out (session.h).  Free it in any case. */
TBD_MUST_CHECK enum tbd_status tbd_block_counts_make(struct tbd_session *session,
                                                     struct tbd_block_counts *out);
void tbd_block_counts_free(struct tbd_block_counts *counts);

#endif
