// SPDX-License-Identifier: MIT
/* slices.h - full replay of a long window, slice by slice
 *
 * All events of a window with a billion block entries do not fit into memory.  So they are replayed
 * in slices: each is a struct tbd_window with `is_slice` set, and the replay process runs through
 * the window once while slices are asked for.  Before the first slice that is wanted it only counts
 * entries.  Slices share the whole window's index, level, and the words that it stores to.
 *
 * Slices have numbers 0 .. tbd_slice_count()-1.  A window in which the program was killed is never
 * cut. */
#ifndef TBD_REPLAY_SLICES_H
#define TBD_REPLAY_SLICES_H

#include "replay/replay.h"

/* The number of slices of this window; 1: it is replayed as a whole. */
uint32_t tbd_slice_count(const struct tbd_trace *trace, uint32_t window);
/* Time at which a slice begins. */
uint64_t tbd_slice_time(const struct tbd_trace *trace, uint32_t window, uint32_t slice);
/* The slice that holds a time of the window; its end belongs to the last one. */
uint32_t tbd_slice_of(const struct tbd_trace *trace, uint32_t window, uint64_t time);

/* A replay process that is paused between two slices.  It is the worker's second one, so that the
 * first can replay other things meanwhile. */
struct tbd_slices;
/* Opens the slices `first` to `last`. */
TBD_MUST_CHECK enum tbd_status tbd_slices_open(struct tbd_replayer *replayer, unsigned worker,
                                               uint32_t window, uint32_t hooks, uint32_t first,
                                               uint32_t last, struct tbd_slices **out,
                                               struct tbd_error *why);
/* The next slice; owned by the caller.  TBD_NOTFOUND after the last one.  TBD_DIVERGED fills
 * *divergence.  After a failure there are no more slices. */
TBD_MUST_CHECK enum tbd_status tbd_slices_next(struct tbd_slices *slices, struct tbd_window **out,
                                               struct tbd_divergence *divergence,
                                               struct tbd_error *why);
void tbd_slices_close(struct tbd_slices *slices); /* NULL is fine */

/* Replays one slice.  `before`: this slice or an earlier one in memory, at which the replay begins;
 * NULL: it begins at the window's start. */
TBD_MUST_CHECK enum tbd_status
tbd_replay_slice(struct tbd_replayer *replayer, unsigned worker, uint32_t window, uint32_t hooks,
                 uint32_t slice, const struct tbd_window *before, struct tbd_window **out,
                 struct tbd_divergence *divergence, struct tbd_error *why);

#endif
