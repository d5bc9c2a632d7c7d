// SPDX-License-Identifier: MIT
/* compare.h - is a replayed window the one that play wrote?
 *
 * No state; any thread. */
#ifndef TBD_REPLAY_COMPARE_H
#define TBD_REPLAY_COMPARE_H

#include "replay/replay.h"

/* Only the state at the windows' ends: registers and vector state, modified pages. */
TBD_MUST_CHECK enum tbd_status tbd_compare_ends(const struct tbd_window *play,
                                                const struct tbd_window *replay,
                                                struct tbd_divergence *divergence);
/* Compares, in this order: every event (if `play` has events), the log, end registers and vector
 * state, modified pages.  TBD_DIVERGED: the first difference is in *divergence (may be NULL).  Both
 * windows have the same index, and their block ids mean the same. */
TBD_MUST_CHECK enum tbd_status tbd_compare_windows(const struct tbd_window *play,
                                                   const struct tbd_window *replay,
                                                   struct tbd_divergence *divergence);

#endif
