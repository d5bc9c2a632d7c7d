// SPDX-License-Identifier: MIT
/* gather.h - the stream of a replay process becomes a window's events
 *
 * What a recorded window's summaries, pages and files are made of (organizer/build.h) its TOC has
 * already.  So here events are only checked and put behind each other, chunk by chunk while the
 * process runs, and what is said of the end state is kept to be compared.
 *
 * Context: ORG; one thread each. */
#ifndef TBD_REPLAY_GATHER_H
#define TBD_REPLAY_GATHER_H

#include "replay/operands.h"

struct tbd_window;

struct tbd_gather;
struct tbd_gather *tbd_gather_new(void); /* NULL without memory */
void tbd_gather_free(struct tbd_gather *gather);

/* A window begins.  `consumer` is borrowed until tbd_gather_forget(), or another one comes; `area`,
 * where its operands come, is taken over (NULL: they come in their chunks, and are copied);
 * `thread` has control. */
TBD_MUST_CHECK enum tbd_status tbd_gather_begin(struct tbd_gather *gather,
                                                struct tbd_consumer *consumer,
                                                struct tbd_operand_area *area, uint64_t first_time,
                                                uint32_t thread);
/* More of the window is wrong: it does not have more.  To be said after it began. */
struct tbd_gather_most {
    size_t events; /* messages of the log */
    size_t event_bytes;
    size_t pages; /* at one time */
};
void tbd_gather_expect(struct tbd_gather *gather, const struct tbd_gather_most *most);
/* The consumer goes away. */
void tbd_gather_forget(struct tbd_gather *gather);
/* Takes what is published.  TBD_NOTFOUND: the window is not complete yet. */
TBD_MUST_CHECK enum tbd_status tbd_gather_take(struct tbd_gather *gather, struct tbd_error *why);

/* Has its end come? */
bool tbd_gather_is_over(const struct tbd_gather *gather);

/* The window (owned by the caller): its events, indexed for cursors, its log, and its end state.
 * Contents of dirty pages are borrowed until the next window begins.  TBD_DIVERGED: `why` says what
 * is wrong with the entry behind (*out)->blocks block entries. */
TBD_MUST_CHECK enum tbd_status tbd_gather_finish(struct tbd_gather *gather, struct tbd_window **out,
                                                 struct tbd_error *why);

#endif
