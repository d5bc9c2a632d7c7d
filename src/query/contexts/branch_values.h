// SPDX-License-Identifier: MIT
/* branch_values.h - which branches a value of tbd_branch_context() stands for (base/branching.h)
 *
 *     counts    one answer; a full field says "at least"
 *     product   one answer; 0 stands for more than can be said
 *     xor       all sets of branches that were taken an odd number of times: linear equations over one bit
 *     sum       ways through the function from its start to a call, and rounds of its loops
 *
 * Nothing here prints. */
#ifndef TBD_QUERY_BRANCH_VALUES_H
#define TBD_QUERY_BRANCH_VALUES_H

#include "query/contexts/function_branches.h"

#define TBD_BRANCH_ANSWERS 64u

struct tbd_branch_taken {
    uint64_t times[TBD_BRANCH_MAX]; /* xor: 1 for an odd number, 0 for an even one */
};

struct tbd_branch_answer {
    struct tbd_branch_taken ways[TBD_BRANCH_ANSWERS];
    uint32_t count;
    uint64_t full;    /* a bit for each branch whose field is full */
    bool is_complete; /* false: there are, or may be, more */
};

/* TBD_OK also if there is no answer.  TBD_NOMEM. */
TBD_MUST_CHECK enum tbd_status tbd_branch_find(const struct tbd_branch_code *code,
                                               enum tbd_branch_scheme scheme, uint64_t value,
                                               struct tbd_branch_answer *out);

/* branch_paths.c: TBD_BRANCH_SUM. */
TBD_MUST_CHECK enum tbd_status tbd_branch_find_paths(const struct tbd_branch_code *code,
                                                     uint64_t value, struct tbd_branch_answer *out);

#endif
