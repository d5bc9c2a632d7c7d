// SPDX-License-Identifier: MIT
/* stops_lost.h - a window of native play whose end no replay finds: the counted trace has it with its stops as its blocks
 *
 * So it has a beginning, a log and an end, and the windows around it are whole.  Whoever replays it is told that it diverges,
 * and a note in the trace says why it was not counted.  Context: ORG. */
#ifndef TBD_REPLAY_STOPS_LOST_H
#define TBD_REPLAY_STOPS_LOST_H

#include "format/trace/trace.h"
#include "replay/native/feed.h"
#include "replay/native/stops_turns.h"
#include "replay/native/stops_window.h"

struct tbd_stops_lost {
    struct tbd_feed *feed;
    struct tbd_stops_turns *turns;
    struct tbd_stops_blocks *blocks; /* get those of the stops, too */
    const struct tbd_trace *trace;   /* that of the stops */
    const char *note;
    bool has_notes;     /* the windows' own notes are in the trace already */
    bool is_translated; /* is set if the window says so */
    bool has_end;       /* likewise */
};

/* `stops`: the window's messages, as tbd_stops_load() gives them.  False: they are damaged, or the organizer is gone. */
TBD_MUST_CHECK bool tbd_stops_send_lost(struct tbd_stops_lost *lost, struct tbd_reader stops);

#endif
