// SPDX-License-Identifier: MIT
/* turn.h - the stub's side of the plan's `turn` word (replay/plan.h)
 *
 * Contexts: APP and SIG. */
#ifndef TBD_REPLAY_TURN_H
#define TBD_REPLAY_TURN_H

#include "replay/plan.h"

/* Hands the plan with its outcome to the driver, and waits for the next one.  Does not return if
 * the driver says QUIT or has ended. */
void tbd_turn_done(struct tbd_plan_head *plan);
/* plan->page contains the request, and on return the answer. */
void tbd_turn_ask_page(struct tbd_plan_head *plan);

#endif
