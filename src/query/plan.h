// SPDX-License-Identifier: MIT
/* plan.h - which windows and which blocks can hold an answer
 *
 * A condition is asked with what a block or a window alone knows: three answers (no, perhaps, yes),
 * through and, or, not.  From its and-ed part come bounds of time, and the instruction of a
 * block_entry question. */
#ifndef TBD_QUERY_PLAN_H
#define TBD_QUERY_PLAN_H

#include "query/question.h"
#include "query/session.h"

struct tbd_plan {
    enum tbd_event_type type;
    const struct tbd_expr *where; /* borrowed */
    bool has_words;               /* summaries of words, or pages read, say something */
    bool has_pc;                  /* pc == this, necessarily */
    uint64_t pc;
    uint64_t time_low, time_high; /* inclusive */
    bool has_blocks;              /* `blocks` says more than "all that have such events" */
    uint8_t *blocks;              /* by id; owned */
    uint32_t block_count;
};

/* After binding.  Fills *out for the blocks known by `table`. */
TBD_MUST_CHECK enum tbd_status tbd_plan_make(const struct tbd_question *question,
                                             struct tbd_session *session, struct tbd_plan *out);
void tbd_plan_free(struct tbd_plan *plan);
/* False if the window's summaries exclude an answer.  `window` needs no events. */
bool tbd_plan_may_hold(const struct tbd_plan *plan, const struct tbd_window *window);
/* The same from the summary in core alone: cheap. */
bool tbd_plan_may_hold_summary(const struct tbd_plan *plan,
                               const struct tbd_window_summary *summary);

#endif
