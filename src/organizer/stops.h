// SPDX-License-Identifier: MIT
/* stops.h - the messages of a window of native play, as they came (hooks/own/own.h)
 *
 * A replay finds the blocks between them; then the same messages, with these, make the trace that its readers know
 * (replay/native/).  A file for each window, `stops/N`.  Context: ORG. */
#ifndef TBD_ORGANIZER_STOPS_H
#define TBD_ORGANIZER_STOPS_H

#include "base/status.h"
#include "format/files/codec.h"
#include "format/files/trace_dir.h"
#include "organizer/consume.h"

TBD_MUST_CHECK enum tbd_status tbd_stops_keep(int dir, uint64_t window,
                                              const struct tbd_raw_window *raw);
/* *out is the messages, one after another (owned by the caller). */
TBD_MUST_CHECK enum tbd_status tbd_stops_load(struct tbd_dir dir, uint64_t window,
                                              struct tbd_buffer *out, struct tbd_error *why);
/* One message of such a list; NULL at its end, or if the list is damaged. */
const uint8_t *tbd_stops_next(struct tbd_reader *list, struct tbd_message *head);

#endif
