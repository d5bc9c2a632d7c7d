// SPDX-License-Identifier: MIT
/* cut_place.h - where native play has cut a computation (hooks/own/own_cut.h)
 *
 * Context: APP. */
#ifndef TBD_STUB_CUT_PLACE_H
#define TBD_STUB_CUT_PLACE_H

#include "patcher/thread.h"
#include "replay/plan.h"

#include <stdbool.h>

/* A window begins; `plan` is borrowed until the next one.  From now on the engine is asked in blocks that begin at its cut, if
 * there is one. */
void tbd_cut_place_begin(struct tbd_thread *thread, const struct tbd_plan_head *plan);
/* Is the state that of the cut? */
bool tbd_cut_place_is_here(const struct tbd_thread *thread);
/* Why it was not found: a clause. */
const char *tbd_cut_place_missed(void);

#endif
