// SPDX-License-Identifier: MIT
/* replayer_private.h - what replayer.c and slices.c share: a worker with a window */
#ifndef TBD_REPLAY_REPLAYER_PRIVATE_H
#define TBD_REPLAY_REPLAYER_PRIVATE_H

#include "organizer/turns.h"
#include "replay/slices.h"
#include "replay/worker.h"

struct tbd_replayer {
    struct tbd_trace *trace; /* the caller's; borrowed */
    unsigned count;
    struct tbd_worker workers[]; /* twice as many: the second of each stands still between slices */
};

/* Worker `number` gets window `index`; *out_window is the caller's, who gives it to
 * tbd_replayer_finish(), also after a failure. */
TBD_MUST_CHECK enum tbd_status tbd_replayer_begin(struct tbd_replayer *replayer, unsigned number,
                                                  uint32_t index, bool with_events,
                                                  struct tbd_window **out_window,
                                                  struct tbd_error *why);
/* The replay begins where `slice` of the worker's window begins, if that state is all there; NULL:
 * at the window's start.  The slice lives until tbd_replayer_finish(). */
TBD_MUST_CHECK enum tbd_status tbd_replayer_begin_slice(struct tbd_replayer *replayer,
                                                        unsigned number,
                                                        const struct tbd_window *slice,
                                                        struct tbd_error *why);
/* `window` is freed; NULL: it lives on. */
void tbd_replayer_finish(struct tbd_replayer *replayer, unsigned number, struct tbd_window *window);

/* The events of a part of a window by worker `number`, in slices of `period` block entries; times
 * are relative.  `slice` is in memory and begins where the range does, or before; NULL: none is. */
TBD_MUST_CHECK enum tbd_status tbd_slices_open_range(struct tbd_replayer *replayer, unsigned number,
                                                     uint32_t window, uint32_t hooks,
                                                     const struct tbd_worker_range *range,
                                                     const struct tbd_window *slice,
                                                     struct tbd_slices **out,
                                                     struct tbd_error *why);
/* The one slice of such a range. */
TBD_MUST_CHECK enum tbd_status
tbd_slices_only(struct tbd_replayer *replayer, unsigned number, uint32_t window, uint32_t hooks,
                const struct tbd_worker_range *range, const struct tbd_window *slice,
                struct tbd_window **out, struct tbd_divergence *divergence, struct tbd_error *why);
/* slice_calls.c: gives the slice the calls that wait when it begins, and keeps those that wait when
 * it ends.  False: no memory. */
TBD_MUST_CHECK bool tbd_slice_calls(struct tbd_called *called, const struct tbd_window *whole,
                                    struct tbd_window *slice);
/* All of a window, compared with what the trace holds. */
TBD_MUST_CHECK enum tbd_status tbd_slices_verify(struct tbd_replayer *replayer, unsigned number,
                                                 uint32_t window, struct tbd_divergence *divergence,
                                                 struct tbd_error *why);

#endif
