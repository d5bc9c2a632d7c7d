// SPDX-License-Identifier: MIT
/* ledger.h - what passes leave out, and get when it is asked for (ledger.c) */
#ifndef TBD_REPLAY_SIMULATE_LEDGER_H
#define TBD_REPLAY_SIMULATE_LEDGER_H

#include "replay/simulate/simulate_private.h"

/* What is settled becomes entered; `exact`: of that only what is settled exactly.  Passes use it from then on.  If there is no memory for
 * it, or other threads may write at any time, they go without. */
void tbd_sim_make_ledger(struct tbd_simulation *sim, bool exact);
/* Passes use the one that was made so, if it was. */
void tbd_sim_use_ledger(struct tbd_simulation *sim, bool exact);
void tbd_sim_ledger_free(struct tbd_sim_ledger *ledger);

/* A pass with a ledger begins. */
void tbd_sim_begin_ledger(struct tbd_simulation *sim);
/* The next step of [from, to) that it visits, forward or back; SIZE_MAX: none. */
size_t tbd_sim_next_visit(const struct tbd_simulation *sim, size_t from, size_t to, bool forward);
/* The pass is at the position, before what happens there; `at_step`: at the step that begins there. */
void tbd_sim_set_moment(struct tbd_simulation *sim, size_t position, bool at_step);
/* Makes good what is due of an entered step.  False: the step is not entered. */
bool tbd_sim_take_due(struct tbd_simulation *sim, size_t index);
/* The same for facts at the position where the pass comes to after the step. */
void tbd_sim_take_due_facts(struct tbd_simulation *sim, size_t index);

#endif
