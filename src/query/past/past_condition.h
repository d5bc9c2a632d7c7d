// SPDX-License-Identifier: MIT
/* past_condition.h - conditions over values of the past: true, false, or neither where a value is unknown */
#ifndef TBD_QUERY_PAST_CONDITION_H
#define TBD_QUERY_PAST_CONDITION_H

#include "query/past/past.h"
#include "query/text/query_error.h"

enum tbd_past_truth { TBD_PAST_UNDECIDED = 0, TBD_PAST_FALSE, TBD_PAST_TRUE };

struct tbd_past_condition {
    const char *text;                    /* a C expression; borrowed */
    bool exact_only;                     /* what is inferred decides nothing */
    uint64_t asked, undecided, inferred; /* places; `inferred`: of those where it was true */
    bool was_evaluated;                  /* anywhere */
    struct tbd_query_error error;        /* the last one; a syntax error is one everywhere */
};

/* At the past's position.  *out_certainty is that of the answer. */
enum tbd_past_truth tbd_past_decide(struct tbd_past *past, struct tbd_past_condition *condition,
                                    enum tbd_certainty *out_certainty);
/* Says on stderr for how many places it was not decided; false: it could be evaluated nowhere, and says why. */
bool tbd_past_condition_tell(const struct tbd_past_condition *condition);

#endif
