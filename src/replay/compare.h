// SPDX-License-Identifier: MIT
/* compare.h - is a replayed window the one that play wrote?
 *
 * No state; any thread. */
#ifndef TBD_REPLAY_COMPARE_H
#define TBD_REPLAY_COMPARE_H

#include "replay/replay.h"

/* Compares, in this order: every event (if `play` has events), the log, end registers and vector
 * state, pages modified.  TBD_DIVERGED: the first difference is in *divergence (may be NULL).
 * Both windows are of the same index; block ids mean the same in both. */
TBD_MUST_CHECK enum tbd_status tbd_compare_windows(const struct tbd_window *play,
                                                   const struct tbd_window *replay,
                                                   struct tbd_divergence *divergence);

#endif
