// SPDX-License-Identifier: MIT
/* diff_cause.h - why two runs differ: what the differing branch depended on, followed back on both sides */
#ifndef TBD_QUERY_DIFF_CAUSE_H
#define TBD_QUERY_DIFF_CAUSE_H

#include "query/diff/diff_writer.h"

#include <jansson.h>

enum tbd_diff_origin {
    TBD_DIFF_NOT_FOUND = 0, /* it could not be followed to its end */
    TBD_DIFF_CODE,          /* the same inputs, another result: the code differs */
    TBD_DIFF_INPUT,         /* a system call, or an instruction like rdrand, had another result */
    TBD_DIFF_TIME,
    TBD_DIFF_PID,
    TBD_DIFF_ADDRESS, /* memory lies elsewhere */
    TBD_DIFF_START,   /* the program's arguments or environment */
    TBD_DIFF_ORDER,   /* other code, or another thread, wrote it last */
};

struct tbd_diff_cause {
    enum tbd_diff_origin origin;
    char text[512];            /* in words */
    struct tbd_position at[2]; /* where it was found */
    bool has_at[2];
    json_t *rows; /* owned: an array, from the branch back to the origin */
};

/* Follows the inputs of the instructions at `branch`, or, with `is_fault`, the registers that their addresses are
 * made of. */
TBD_MUST_CHECK enum tbd_status tbd_diff_cause_find(struct tbd_diff_side sides[2],
                                                   const struct tbd_position branch[2],
                                                   bool is_fault, struct tbd_diff_cause *out);
/* Follows bytes of memory that differ. */
TBD_MUST_CHECK enum tbd_status tbd_diff_cause_of(struct tbd_diff_side sides[2],
                                                 const struct tbd_diff_value values[2],
                                                 struct tbd_diff_cause *out);
void tbd_diff_cause_free(struct tbd_diff_cause *cause);
/* "code", "input", ... */
const char *tbd_diff_origin_name(enum tbd_diff_origin origin);

/* Puts `position`, `thread`, `function`, `source` and `code` of an instruction into an object. */
json_t *tbd_diff_instruction(struct tbd_diff_side *side, struct tbd_position at);

#endif
