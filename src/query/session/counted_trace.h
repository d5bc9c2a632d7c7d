// SPDX-License-Identifier: MIT
/* counted_trace.h - opens a trace of any kind: one of native play is replayed once, before anything can be asked
 *
 * The times in such a trace are numbers of stops; those of an answer are numbers of block entries. */
#ifndef TBD_QUERY_COUNTED_TRACE_H
#define TBD_QUERY_COUNTED_TRACE_H

#include "format/trace/trace.h"

/* As tbd_trace_open(); also TBD_BUSY: it is of native play, and still being recorded; TBD_NOREPLAY: a window of it diverged. */
TBD_MUST_CHECK enum tbd_status tbd_counted_trace_open(const char *path, struct tbd_trace **out,
                                                      struct tbd_error *why);

#endif
