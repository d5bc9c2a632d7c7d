// SPDX-License-Identifier: MIT
/* skim.h - a window is replayed, and its events are checked and counted, but not kept
 *
 * The alternative to gather.h for whoever looks at each event once, or only compares ends: what a chunk of the stream has is still in the
 * processor's caches when it is looked at, and is not written to memory again.  A long window needs no slices, as nothing of it is
 * in memory but its log and its end.
 *
 * Context: ORG; one thread each. */
#ifndef TBD_REPLAY_SKIM_H
#define TBD_REPLAY_SKIM_H

#include "replay/worker.h"

struct tbd_skim;
struct tbd_skim *tbd_skim_new(void);       /* NULL without memory */
void tbd_skim_free(struct tbd_skim *skim); /* NULL is fine */
/* Called before the worker's consumer is freed. */
void tbd_skim_forget(struct tbd_skim *skim);

struct tbd_skim_start {
    struct tbd_consumer *consumer; /* borrowed until tbd_skim_forget(), or until it is replaced */
    bool omits_records;            /* the stream has entries and messages alone */
    bool is_counted;               /* blocks come as numbers (TBD_MSG_PASSED) */
    const struct tbd_skim_listener *listener; /* borrowed; NULL: none */
    struct tbd_gather_most most;              /* of the window's events */
    uint64_t first_time;
    uint32_t thread; /* which has control */
};
TBD_MUST_CHECK enum tbd_status tbd_skim_begin(struct tbd_skim *skim,
                                              const struct tbd_skim_start *start);
/* Takes the published chunks.  TBD_NOTFOUND: the window is not complete yet. */
TBD_MUST_CHECK enum tbd_status tbd_skim_take(struct tbd_skim *skim, struct tbd_error *why);
/* Gives the window (owned by the caller): its log, the number of blocks and the end state.  TBD_DIVERGED: *out has the blocks before the
 * error, which `why` describes. */
TBD_MUST_CHECK enum tbd_status tbd_skim_finish(struct tbd_skim *skim, struct tbd_window **out,
                                               struct tbd_error *why);

/* Replays worker->window with `hooks` (with TBD_PLAN_ENTRIES: its entries and messages alone).  *out, owned by the caller, has the log, the
 * number of blocks and the end state, but no events; the contents of its dirty pages are borrowed until the worker's next window.  `listener` may be
 * NULL.  TBD_DIVERGED fills *divergence.
 * With TBD_PLAN_COUNTS there can be no listener.  TBD_NOTFOUND: the process has made code of a block that play did not have; only entries tell
 * whether it was entered. */
TBD_MUST_CHECK enum tbd_status
tbd_skim_window(struct tbd_worker *worker, uint32_t hooks, const struct tbd_skim_listener *listener,
                struct tbd_window **out, struct tbd_divergence *divergence, struct tbd_error *why);
/* skim_notes.c: the same, with the registers at worker->notes alone. */
TBD_MUST_CHECK enum tbd_status
tbd_skim_notes(struct tbd_worker *worker, const struct tbd_note_listener *listener,
               struct tbd_window **out, struct tbd_divergence *divergence, struct tbd_error *why);

#endif
