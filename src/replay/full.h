// SPDX-License-Identifier: MIT
/* full.h - full replay: a window with all its events
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_FULL_H
#define TBD_REPLAY_FULL_H

#include "organizer/consume.h"
#include "replay/worker.h"

/* A full replay under way: what a consumer of run_plan.h knows. */
struct tbd_full {
    struct tbd_worker *worker;
    uint32_t hooks;
    struct tbd_raw_window raw;
    bool has_raw;
};

/* Replays worker->window.  On TBD_OK *out is a window of its own (owned by the caller) made of
 * what replay produced alone: events, log, end state, summaries. */
TBD_MUST_CHECK enum tbd_status tbd_full_replay(struct tbd_worker *worker, uint32_t hooks,
                                               struct tbd_window **out,
                                               struct tbd_divergence *divergence,
                                               struct tbd_error *why);

/* The same with less: events, log, and the end state, but no digest; contents of its dirty pages
 * are borrowed until the worker's next window. */
TBD_MUST_CHECK enum tbd_status tbd_full_events(struct tbd_worker *worker, uint32_t hooks,
                                               struct tbd_window **out,
                                               struct tbd_divergence *divergence,
                                               struct tbd_error *why);

/* Says how much of the window in work worker->gather may take, after tbd_gather_begin(). */
void tbd_full_expect(struct tbd_worker *worker);
/* begin, take and has_enough of a consumer whose context is a struct tbd_full: until
 * worker->gather has all of a window, or of a slice. */
TBD_MUST_CHECK enum tbd_status tbd_full_begin_events(void *full, struct tbd_error *why);
TBD_MUST_CHECK enum tbd_status tbd_full_take_events(void *full, struct tbd_error *why);
bool tbd_full_has_window(void *full);
/* What came of it.  TBD_DIVERGED fills *divergence. */
TBD_MUST_CHECK enum tbd_status tbd_full_finish_events(struct tbd_worker *worker, uint32_t hooks,
                                                      struct tbd_window **out,
                                                      struct tbd_divergence *divergence,
                                                      struct tbd_error *why);

/* Adds to `window`, from a full replay, what only play knew: `toc` is the same window without
 * events.  Its memory goes to `window`, so it is freed; on failure both stay as they are. */
TBD_MUST_CHECK enum tbd_status tbd_full_complete(struct tbd_window *window, struct tbd_window *toc,
                                                 struct tbd_error *why);

#endif
