// SPDX-License-Identifier: MIT
/* plan.h - which windows and which blocks can hold an answer
 *
 * From the and-ed part of a condition: constants for addr, pc, syscall, time; names of functions and modules. */
#ifndef TBD_QUERY_PLAN_H
#define TBD_QUERY_PLAN_H

#include "query/question.h"
#include "query/session.h"

struct tbd_plan {
    enum tbd_event_type type;
    const struct tbd_expr *where;  /* borrowed */
    bool has_address;              /* accesses begin or lie in [first, last] */
    uint64_t first, last;
    bool has_pc;
    uint64_t pc;
    uint64_t time_low, time_high;  /* inclusive */
    bool has_blocks;               /* `blocks` says more than "all that have such events" */
    uint8_t *blocks;               /* by id; owned */
    uint32_t block_count;
};

/* After binding.  Fills *out for the blocks known by `table`. */
TBD_MUST_CHECK enum tbd_status tbd_plan_make(const struct tbd_question *question,
                                             struct tbd_session *session, struct tbd_plan *out);
void tbd_plan_free(struct tbd_plan *plan);
/* False if the window's summaries exclude an answer.  `window` needs no events. */
bool tbd_plan_may_hold(const struct tbd_plan *plan, const struct tbd_window *window);
/* The same from the summary in core alone: cheap. */
bool tbd_plan_may_hold_summary(const struct tbd_plan *plan, const struct tbd_window_summary *summary);

#endif
