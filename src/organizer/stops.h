// SPDX-License-Identifier: MIT
/* stops.h - the messages of a window of native play, as they came (hooks/own/own.h)
 *
 * A replay finds the blocks between them; then the same messages, with these, make the trace that its readers know
 * (replay/native/).  A file for each window, `stops/N`.  What is long and lies in the window's TOC, too, is not in it:
 * the contents of pages that were written, and events (TBD_STOPS_ELSEWHERE).  Context: ORG. */
#ifndef TBD_ORGANIZER_STOPS_H
#define TBD_ORGANIZER_STOPS_H

#include "base/status.h"
#include "format/files/codec.h"
#include "format/files/trace_dir.h"
#include "format/trace/trace.h"
#include "organizer/consume.h"

/* In the kind of a message of a file: of its `bytes` only the first few are there; TBD_MSG_PAGE: struct tbd_msg_page,
 * an event: none.  The rest is, for pages in any order and for events in theirs, in the window's TOC. */
#define TBD_STOPS_ELSEWHERE 0x80000000u

/* `packer` has packed the window's pages, and no window since. */
TBD_MUST_CHECK enum tbd_status tbd_stops_keep(int dir, uint64_t window,
                                              const struct tbd_raw_window *raw,
                                              const struct tbd_page_packer *packer);
/* *out is the messages of a window of the trace, one after another (owned by the caller). */
TBD_MUST_CHECK enum tbd_status tbd_stops_load(struct tbd_trace *trace, uint32_t index,
                                              struct tbd_buffer *out, struct tbd_error *why);
/* The same; pages at the window's end may be TBD_PAGE_FRAME ones: for a trace that has the windows before as this one has them. */
TBD_MUST_CHECK enum tbd_status tbd_stops_load_packed(struct tbd_trace *trace, uint32_t index,
                                                     struct tbd_buffer *out, struct tbd_error *why);
/* The same of window `number`, the last one, which is not in the trace. */
TBD_MUST_CHECK enum tbd_status tbd_stops_load_last(struct tbd_dir dir, uint64_t number,
                                                   struct tbd_buffer *out, struct tbd_error *why);
/* One message of such a list; NULL at its end, or if the list is damaged. */
const uint8_t *tbd_stops_next(struct tbd_reader *list, struct tbd_message *head);

#endif
