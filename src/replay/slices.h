// SPDX-License-Identifier: MIT
/* slices.h - full replay of a long window, slice by slice
 *
 * Nobody can hold all events of a window of a billion block entries.  So they come in slices: each
 * is a struct tbd_window for whoever walks it (format/trace/trace.h, `is_slice`), and the replay process
 * runs through the window once while they are asked for.  Before the first one wanted it only
 * counts.  What the whole window has is shared: index, level, and which words it stores to.
 *
 * Slices have numbers 0 .. tbd_slice_count()-1.  A window in which the program was killed is never
 * cut. */
#ifndef TBD_REPLAY_SLICES_H
#define TBD_REPLAY_SLICES_H

#include "replay/replay.h"

/* So many slices a replay of this window is cut into; 1: it is given whole. */
uint32_t tbd_slice_count(const struct tbd_trace *trace, uint32_t window);
/* Time at which a slice begins. */
uint64_t tbd_slice_time(const struct tbd_trace *trace, uint32_t window, uint32_t slice);
/* The slice that holds a time of the window; its end belongs to the last one. */
uint32_t tbd_slice_of(const struct tbd_trace *trace, uint32_t window, uint64_t time);

/* A replay process that stands still between two slices: a second one of the worker, so that this
 * may replay other things meanwhile. */
struct tbd_slices;
/* From slice `first` on, up to `last`. */
TBD_MUST_CHECK enum tbd_status tbd_slices_open(struct tbd_replayer *replayer, unsigned worker,
                                               uint32_t window, uint32_t hooks, uint32_t first,
                                               uint32_t last, struct tbd_slices **out,
                                               struct tbd_error *why);
/* The next one; owned by the caller.  TBD_NOTFOUND behind the last.  TBD_DIVERGED fills
 * *divergence.  After a failure there are no more. */
TBD_MUST_CHECK enum tbd_status tbd_slices_next(struct tbd_slices *slices, struct tbd_window **out,
                                               struct tbd_divergence *divergence,
                                               struct tbd_error *why);
void tbd_slices_close(struct tbd_slices *slices); /* NULL is fine */

/* One alone.  `before`: it, or one before it, that is in memory: the replay begins there; NULL: at
 * the window's start. */
TBD_MUST_CHECK enum tbd_status
tbd_replay_slice(struct tbd_replayer *replayer, unsigned worker, uint32_t window, uint32_t hooks,
                 uint32_t slice, const struct tbd_window *before, struct tbd_window **out,
                 struct tbd_divergence *divergence, struct tbd_error *why);

#endif
