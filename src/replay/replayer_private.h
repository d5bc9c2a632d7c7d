// SPDX-License-Identifier: MIT
/* replayer_private.h - shared by replayer.c and slices.c: a worker with a window */
#ifndef TBD_REPLAY_REPLAYER_PRIVATE_H
#define TBD_REPLAY_REPLAYER_PRIVATE_H

#include "organizer/turns.h"
#include "replay/slices.h"
#include "replay/worker.h"

struct tbd_replayer {
    struct tbd_trace *trace; /* borrowed from the caller */
    unsigned count;
    struct tbd_worker workers[]; /* two for each number: the second one is paused between slices */
};

/* Gives window `index` to worker `number`.  The caller owns *out_window and passes it to
 * tbd_replayer_finish(), also after a failure. */
TBD_MUST_CHECK enum tbd_status tbd_replayer_begin(struct tbd_replayer *replayer, unsigned number,
                                                  uint32_t index, bool with_events,
                                                  struct tbd_window **out_window,
                                                  struct tbd_error *why);
/* Makes the replay begin where `slice` of the worker's window begins, if its start state is
 * complete; NULL: at the window's start.  The slice must live until tbd_replayer_finish(). */
TBD_MUST_CHECK enum tbd_status tbd_replayer_begin_slice(struct tbd_replayer *replayer,
                                                        unsigned number,
                                                        const struct tbd_window *slice,
                                                        struct tbd_error *why);
/* Frees `window`, unless it is NULL. */
void tbd_replayer_finish(struct tbd_replayer *replayer, unsigned number, struct tbd_window *window);

/* Replays the events of a part of a window with worker `number`, in slices of `period` block
 * entries; times are relative.  `slice` is in memory and begins at the range's start or before;
 * NULL: there is none. */
TBD_MUST_CHECK enum tbd_status tbd_slices_open_range(struct tbd_replayer *replayer, unsigned number,
                                                     uint32_t window, uint32_t hooks,
                                                     const struct tbd_worker_range *range,
                                                     const struct tbd_window *slice,
                                                     struct tbd_slices **out,
                                                     struct tbd_error *why);
/* Replays a range as one slice. */
TBD_MUST_CHECK enum tbd_status
tbd_slices_only(struct tbd_replayer *replayer, unsigned number, uint32_t window, uint32_t hooks,
                const struct tbd_worker_range *range, const struct tbd_window *slice,
                struct tbd_window **out, struct tbd_divergence *divergence, struct tbd_error *why);
/* slice_calls.c: gives the slice the calls whose target comes in it, and keeps those whose target
 * comes after it.  False: no memory. */
TBD_MUST_CHECK bool tbd_slice_calls(struct tbd_called *called, const struct tbd_window *whole,
                                    struct tbd_window *slice);
/* Compares all of a window with the trace. */
TBD_MUST_CHECK enum tbd_status tbd_slices_verify(struct tbd_replayer *replayer, unsigned number,
                                                 uint32_t window, struct tbd_divergence *divergence,
                                                 struct tbd_error *why);

#endif
