// SPDX-License-Identifier: MIT
/* turn.h - the stub's side of the plan's `turn` word (replay/plan.h)
 *
 * Contexts: APP and SIG. */
#ifndef TBD_REPLAY_TURN_H
#define TBD_REPLAY_TURN_H

#include "replay/plan.h"

/* Hands the plan to the driver with outcome and all, and waits for the next one.  Does not come
 * back when the driver says QUIT or has gone. */
void tbd_turn_done(struct tbd_plan_head *plan);
/* plan->page holds the request; the answer is there afterwards. */
void tbd_turn_ask_page(struct tbd_plan_head *plan);

#endif
