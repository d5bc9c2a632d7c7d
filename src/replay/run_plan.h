// SPDX-License-Identifier: MIT
/* run_plan.h - carries a plan out: serves pages, hands chunks to the consumer, understands the outcome
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_RUN_PLAN_H
#define TBD_REPLAY_RUN_PLAN_H

#include "replay/worker.h"

/* begin() is called when the process exists but does not run yet; take() takes the published
 * chunks.  A status other than TBD_OK ends the replay. */
struct tbd_run_consumer {
    enum tbd_status (*begin)(void *context, struct tbd_error *why);
    enum tbd_status (*take)(void *context, struct tbd_error *why);
    bool (*has_enough)(void *context); /* for tbd_run_on(); NULL: never */
    bool
        takes_stops; /* windows that are not counted, too: how many blocks they have nobody knows */
    void *context;
};

/* Starts a process if the present one does not suit the window, builds the plan, and runs it.
 * `consumer` may be NULL when the hook set is TBD_HOOKS_PARTIAL.  TBD_DIVERGED fills
 * *divergence. */
TBD_MUST_CHECK enum tbd_status tbd_run_plan(struct tbd_worker *worker, uint32_t hook_set,
                                            const struct tbd_reg_state *states, size_t count,
                                            const struct tbd_run_consumer *consumer,
                                            struct tbd_divergence *divergence,
                                            struct tbd_error *why);

/* Likewise, in steps: tbd_run_begin() begins; each tbd_run_on() continues until the consumer has
 * enough or the replay is over. */
TBD_MUST_CHECK enum tbd_status tbd_run_begin(struct tbd_worker *worker, uint32_t hook_set,
                                             const struct tbd_reg_state *states, size_t count,
                                             const struct tbd_run_consumer *consumer,
                                             struct tbd_error *why);
TBD_MUST_CHECK enum tbd_status tbd_run_on(struct tbd_worker *worker,
                                          const struct tbd_run_consumer *consumer, bool *out_over,
                                          struct tbd_divergence *divergence, struct tbd_error *why);

#endif
