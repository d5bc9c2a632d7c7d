// SPDX-License-Identifier: MIT
/* raise.h - windows get their events back on disk
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_RAISE_H
#define TBD_REPLAY_RAISE_H

#include "format/writer.h"
#include "replay/replay.h"

/* Raises the windows at places from .. to to level 3: their files become what play wrote.  Those
 * that have level 3 stay. */
TBD_MUST_CHECK enum tbd_status tbd_raise_windows(struct tbd_trace *trace,
                                                 struct tbd_replayer *replayer,
                                                 struct tbd_writer *writer, uint32_t from,
                                                 uint32_t to, struct tbd_divergence *divergence,
                                                 struct tbd_error *why);

#endif
