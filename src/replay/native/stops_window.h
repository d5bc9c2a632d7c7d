// SPDX-License-Identifier: MIT
/* stops_window.h - a window of native play is replayed: which blocks were entered between its stops
 *
 * Context: ORG; a worker is used by one thread at a time, the blocks by all. */
#ifndef TBD_REPLAY_STOPS_WINDOW_H
#define TBD_REPLAY_STOPS_WINDOW_H

#include "format/files/codec.h"
#include "replay/replayer_private.h"

#include <pthread.h>

struct tbd_worker;

/* The blocks of all windows, with the ids of the trace that is made. */
struct tbd_stops_blocks {
    struct tbd_block_table *table;
    pthread_mutex_t lock; /* to add some */
};

/* *out (owned by the caller): the events of the window as its replay had them, each after the block entries before it
 * (TBD_MSG_PASSED): one message after another; and TBD_MSG_READ_PAGES, pages that play has as modified, which the
 * program has not written.  TBD_DIVERGED: it did not come to the state at the window's end, or not
 * with the same events. */
TBD_MUST_CHECK enum tbd_status tbd_stops_replay(struct tbd_replayer *replayer, unsigned worker,
                                                uint32_t window, struct tbd_stops_blocks *blocks,
                                                struct tbd_buffer *out,
                                                struct tbd_divergence *divergence,
                                                struct tbd_error *why);

/* A window of a counted trace that was not counted (TBD_MSG_STOPS), which the worker has: *out (owned by the caller) is its
 * end as the replay has it, NULL if it does not get there.  TBD_DIVERGED as above. */
TBD_MUST_CHECK enum tbd_status tbd_stops_end(struct tbd_worker *worker, struct tbd_window **out,
                                             struct tbd_divergence *divergence,
                                             struct tbd_error *why);

#endif
