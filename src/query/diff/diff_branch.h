// SPDX-License-Identifier: MIT
/* diff_branch.h - the branch at which two streams part, and where they come together again */
#ifndef TBD_QUERY_DIFF_BRANCH_H
#define TBD_QUERY_DIFF_BRANCH_H

#include "query/diff/diff.h"

enum tbd_diff_parting {
    TBD_DIFF_PARTS_NOWHERE = 0, /* there is no common step, or the branch was not found */
    TBD_DIFF_PARTS_AT_BRANCH,   /* an instruction that may go on in several places */
    TBD_DIFF_PARTS_IN_CODE,     /* other code follows without a branch: two builds */
    TBD_DIFF_PARTS_AT_FAULT,    /* one side dies at this instruction */
    TBD_DIFF_PARTS_IN_OUTPUT    /* all steps are equal, but what this system call gave out is not */
};

struct tbd_diff_branch {
    enum tbd_diff_parting how;
    struct tbd_position at[2];
    uint64_t byte; /* IN_OUTPUT: the first one that differs */
};

TBD_MUST_CHECK enum tbd_status tbd_diff_branch_find(struct tbd_diff_side sides[2],
                                                    const struct tbd_diff_point *point,
                                                    uint32_t stream, struct tbd_diff_branch *out);

/* The branch, in code of ignored modules, at which a thread went elsewhere after its last step before io_at, and before
 * the times `limit`: its positions become *io_at.  TBD_NOTFOUND: there is none. */
TBD_MUST_CHECK enum tbd_status tbd_diff_branch_before(struct tbd_diff_side sides[2],
                                                      uint32_t stream, const uint64_t limit[2],
                                                      struct tbd_position io_at[2]);

/* Sets the readers of the point to where both sides are at the same place of the function in which they parted, or of one
 * that called it.  TBD_NOTFOUND: they do not come together. */
TBD_MUST_CHECK enum tbd_status tbd_diff_rejoin(struct tbd_diff_side sides[2],
                                               struct tbd_diff_point *point, uint32_t stream);
/* The next difference from the readers of a point on, which becomes that one. */
TBD_MUST_CHECK enum tbd_status tbd_diff_next(struct tbd_diff_point *point);

#endif
