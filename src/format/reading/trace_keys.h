// SPDX-License-Identifier: MIT
/* trace_keys.h - the index over windows of a trace (format/summaries/keys.h) */
#ifndef TBD_FORMAT_TRACE_KEYS_H
#define TBD_FORMAT_TRACE_KEYS_H

#include "format/summaries/keys.h"
#include "format/trace/trace.h"

/* ---- the trace's segments, ascending by time ---- */
size_t tbd_trace_segment_count(struct tbd_trace *trace);
/* The first segment that does not end before `time`. */
size_t tbd_trace_segment_from(struct tbd_trace *trace, uint64_t time);
/* Opened on first use, borrowed until the trace is closed.  NULL: it is damaged. */
const struct tbd_keys *tbd_trace_segment(struct tbd_trace *trace, size_t index);
/* Number of the first window that it was made of. */
uint32_t tbd_trace_segment_window(struct tbd_trace *trace, size_t index);
/* Does segment `index` begin before `time`?  Does not open it. */
bool tbd_trace_segment_begins_before(struct tbd_trace *trace, size_t index, uint64_t time);
/* Keys of one window from its TOC, as in a segment. */
TBD_MUST_CHECK enum tbd_status tbd_window_keys_coded(struct tbd_trace *trace, uint32_t window,
                                                     struct tbd_buffer *out);
/* ... to be asked. */
TBD_MUST_CHECK enum tbd_status tbd_window_keys(struct tbd_trace *trace, uint32_t window,
                                               struct tbd_keys *out);

#endif
