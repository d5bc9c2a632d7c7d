// SPDX-License-Identifier: MIT
/* raise.h - writes the events of windows to disk again
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_RAISE_H
#define TBD_REPLAY_RAISE_H

#include "format/writer/writer.h"
#include "replay/replay.h"

/* Is the window below that level, and did play write it?  Merged windows, and those too large to
 * load with their events, cannot be raised: replays answer questions about them. */
bool tbd_raise_is_possible(const struct tbd_trace *trace, uint32_t window, enum tbd_level level);

/* Raises the windows with indices from .. to to level 3: their files become as play wrote them; or
 * to level 2: they are counted.  Windows that cannot be raised stay unchanged. */
TBD_MUST_CHECK enum tbd_status
tbd_raise_windows(struct tbd_trace *trace, struct tbd_replayer *replayer, struct tbd_writer *writer,
                  uint32_t from, uint32_t to, enum tbd_level level,
                  struct tbd_divergence *divergence, struct tbd_error *why);

#endif
