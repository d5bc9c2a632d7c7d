// SPDX-License-Identifier: MIT
/* gather.h - the stream of a replay process becomes a window's events
 *
 * The recorded window's TOC has summaries, pages and files already (organizer/build.h makes them).
 * So events are only checked and concatenated, chunk by chunk while the process runs, and the end
 * state is kept for the comparison.
 *
 * Context: ORG; one thread each. */
#ifndef TBD_REPLAY_GATHER_H
#define TBD_REPLAY_GATHER_H

#include "replay/message_limits.h"
#include "replay/operands.h"

struct tbd_window;

struct tbd_gather;
struct tbd_gather *tbd_gather_new(void); /* NULL without memory */
void tbd_gather_free(struct tbd_gather *gather);

/* Begins a window.  `consumer` is borrowed until tbd_gather_forget(), or until it is replaced;
 * `area`, which has the operands, is taken over (NULL: they come in chunks, and are copied);
 * `thread` has control. */
TBD_MUST_CHECK enum tbd_status tbd_gather_begin(struct tbd_gather *gather,
                                                struct tbd_consumer *consumer,
                                                struct tbd_operand_area *area, uint64_t first_time,
                                                uint32_t thread);
/* The limits of a window, set after tbd_gather_begin(). */
void tbd_gather_expect(struct tbd_gather *gather, const struct tbd_gather_most *most);
/* Called before the consumer is freed. */
void tbd_gather_forget(struct tbd_gather *gather);
/* Takes the published chunks.  TBD_NOTFOUND: the window is not complete yet. */
TBD_MUST_CHECK enum tbd_status tbd_gather_take(struct tbd_gather *gather, struct tbd_error *why);

/* Is the window complete? */
bool tbd_gather_is_over(const struct tbd_gather *gather);

/* Gives the window (owned by the caller): events, indexed for cursors, log, and end state.  The
 * contents of dirty pages are borrowed until the next window begins.  TBD_DIVERGED: `why` describes
 * the error in the entry after (*out)->blocks block entries. */
TBD_MUST_CHECK enum tbd_status tbd_gather_finish(struct tbd_gather *gather, struct tbd_window **out,
                                                 struct tbd_error *why);

#endif
