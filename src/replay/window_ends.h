// SPDX-License-Identifier: MIT
/* window_ends.h - a window's end as play had it, and as a replay has it: all that differs, not only what differs first
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_WINDOW_ENDS_H
#define TBD_REPLAY_WINDOW_ENDS_H

#include "replay/replay.h"

struct tbd_window_ends {
    struct tbd_replayer *replayer; /* borrowed until tbd_window_ends_free() */
    unsigned worker;
    struct tbd_window *play; /* owned; NULL: it could not be read */
    struct tbd_window
        *replay; /* owned; NULL: the replay has not come to the window's end, or in slices */
};

/* Replays the window, as tbd_replay_verify() does.  *out is passed to tbd_window_ends_free() whatever the result is.
 * TBD_DIVERGED: *divergence is what differs first. */
TBD_MUST_CHECK enum tbd_status tbd_replay_ends(struct tbd_replayer *replayer, unsigned worker,
                                               uint32_t window, struct tbd_window_ends *out,
                                               struct tbd_divergence *divergence,
                                               struct tbd_error *why);
void tbd_window_ends_free(struct tbd_window_ends *ends);

#endif
