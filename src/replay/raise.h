// SPDX-License-Identifier: MIT
/* raise.h - windows get their events back on disk
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_RAISE_H
#define TBD_REPLAY_RAISE_H

#include "format/writer/writer.h"
#include "replay/replay.h"

/* Is the window below level 3, and one that play wrote, so that there can be such files?  Merged ones, and those that nobody
 * could load with their events, cannot be raised: questions about them are answered by replays. */
bool tbd_raise_is_possible(const struct tbd_trace *trace, uint32_t window);

/* Raises the windows at places from .. to to level 3: their files become what play wrote.  Those
 * of which it is not possible stay as they are. */
TBD_MUST_CHECK enum tbd_status tbd_raise_windows(struct tbd_trace *trace,
                                                 struct tbd_replayer *replayer,
                                                 struct tbd_writer *writer, uint32_t from,
                                                 uint32_t to, struct tbd_divergence *divergence,
                                                 struct tbd_error *why);

#endif
