// SPDX-License-Identifier: MIT
/* diff_show.h - a difference of two runs as text, or as an object of JSON */
#ifndef TBD_QUERY_DIFF_SHOW_H
#define TBD_QUERY_DIFF_SHOW_H

#include "query/diff/diff_branch.h"
#include "query/diff/diff_cause.h"
#include "query/diff/diff_counts.h"

struct tbd_diff_found {
    uint32_t stream;
    const struct tbd_diff_point *point;
    const struct tbd_diff_branch *branch;
    const struct tbd_diff_cause *cause; /* `rows` NULL: it was not asked for */
};

void tbd_diff_show(struct tbd_command_run *run, struct tbd_diff_side sides[2],
                   const struct tbd_diff_found *found);
/* Functions, or lines, that ran more often on one side. */
void tbd_diff_show_counts(struct tbd_command_run *run, const struct tbd_diff_counts *counts,
                          const char *of);

#endif
