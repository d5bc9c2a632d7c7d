// SPDX-License-Identifier: MIT
/* full.h - full replay: a window with all its events
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_FULL_H
#define TBD_REPLAY_FULL_H

#include "organizer/consume.h"
#include "replay/skim.h"
#include "replay/worker.h"

/* A running full replay: the context of a consumer (run_plan.h). */
struct tbd_full {
    struct tbd_worker *worker;
    uint32_t hooks;
    struct tbd_raw_window raw;
    bool has_raw;
    bool skims; /* events are not kept (skim.h) */
    const struct tbd_skim_listener *listener;
};

/* Replays worker->window.  On TBD_OK *out is a new window (owned by the caller), made only of the
 * replay's results: events, log, end state, summaries. */
TBD_MUST_CHECK enum tbd_status tbd_full_replay(struct tbd_worker *worker, uint32_t hooks,
                                               struct tbd_window **out,
                                               struct tbd_divergence *divergence,
                                               struct tbd_error *why);

/* Likewise, but with less: events, log, and the end state without digest.  The contents of its
 * dirty pages are borrowed until the worker's next window. */
TBD_MUST_CHECK enum tbd_status tbd_full_events(struct tbd_worker *worker, uint32_t hooks,
                                               struct tbd_window **out,
                                               struct tbd_divergence *divergence,
                                               struct tbd_error *why);

/* begin of every consumer whose context is a struct tbd_full: the stream's consumer is there, and knows its limits. */
TBD_MUST_CHECK enum tbd_status tbd_full_begin(struct tbd_full *full, struct tbd_error *why);
/* The limits of this window's events, replayed with `hooks`. */
struct tbd_gather_most tbd_full_most(const struct tbd_window *window, uint32_t hooks);
/* Says where the replayed window ends too early, and why. */
void tbd_full_fill_damage(const struct tbd_worker *worker, const struct tbd_window *window,
                          const char *what, struct tbd_divergence *divergence);

/* Called after tbd_gather_begin(): sets the limits of worker->gather for the present window, replayed with
 * `hooks`. */
void tbd_full_expect(struct tbd_worker *worker, uint32_t hooks);
/* begin, take and has_enough of a consumer whose context is a struct tbd_full.  They run until
 * worker->gather has a whole window, or slice. */
TBD_MUST_CHECK enum tbd_status tbd_full_begin_events(void *full, struct tbd_error *why);
TBD_MUST_CHECK enum tbd_status tbd_full_take_events(void *full, struct tbd_error *why);
bool tbd_full_has_window(void *full);
/* Gives the finished window.  TBD_DIVERGED fills *divergence. */
TBD_MUST_CHECK enum tbd_status tbd_full_finish_events(struct tbd_worker *worker, uint32_t hooks,
                                                      struct tbd_window **out,
                                                      struct tbd_divergence *divergence,
                                                      struct tbd_error *why);

/* Errors in the stream are errors of the process. */
enum tbd_status tbd_full_judge(enum tbd_status status, struct tbd_error *why);
/* Checks the events of a window that tbd_full_replay() made, so that cursors can walk them. */
TBD_MUST_CHECK enum tbd_status tbd_full_index(struct tbd_window *window, struct tbd_error *why);

/* Adds to `window`, made by a full replay, the data that only play has.  `toc` is the same window
 * without events; `window` takes over its memory, so it is freed.  On failure both stay
 * unchanged. */
TBD_MUST_CHECK enum tbd_status tbd_full_complete(struct tbd_window *window, struct tbd_window *toc,
                                                 struct tbd_error *why);

#endif
