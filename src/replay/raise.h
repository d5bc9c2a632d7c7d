// SPDX-License-Identifier: MIT
/* raise.h - writes the events of windows to disk again
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_RAISE_H
#define TBD_REPLAY_RAISE_H

#include "format/writer/writer.h"
#include "replay/replay.h"

/* Is the window below level 3, and did play write it?  Merged windows, and those too large to load
 * with their events, cannot be raised: replays answer questions about them. */
bool tbd_raise_is_possible(const struct tbd_trace *trace, uint32_t window);

/* Raises the windows with indices from .. to to level 3: their files become as play wrote them.
 * Windows that cannot be raised stay unchanged. */
TBD_MUST_CHECK enum tbd_status tbd_raise_windows(struct tbd_trace *trace,
                                                 struct tbd_replayer *replayer,
                                                 struct tbd_writer *writer, uint32_t from,
                                                 uint32_t to, struct tbd_divergence *divergence,
                                                 struct tbd_error *why);

#endif
