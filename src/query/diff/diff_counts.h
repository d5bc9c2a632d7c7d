// SPDX-License-Identifier: MIT
/* diff_counts.h - which functions and lines ran how often, on both sides */
#ifndef TBD_QUERY_DIFF_COUNTS_H
#define TBD_QUERY_DIFF_COUNTS_H

#include "query/diff/diff.h"

struct tbd_diff_count {
    char *name; /* owned: "prog!main", or "file.c:12" */
    uint64_t counts[2];
};

struct tbd_diff_counts {
    struct tbd_diff_count *all; /* owned; sorted by name */
    size_t count, capacity;
};

/* From the entries that tbd_diff_find() has counted: those that differ, the largest difference first.  `by_line`: of
 * lines, as the first side numbers them; else of functions. */
TBD_MUST_CHECK enum tbd_status tbd_diff_counts_make(struct tbd_diff_side sides[2], bool by_line,
                                                    struct tbd_diff_counts *out);
void tbd_diff_counts_free(struct tbd_diff_counts *counts);

#endif
