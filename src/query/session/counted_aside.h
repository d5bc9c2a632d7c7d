// SPDX-License-Identifier: MIT
/* counted_aside.h - a trace of native play that this user cannot write is counted in another place
 *
 * It may be another user's, or lie on a disk that cannot be written, or is full.  The counted trace is kept in the user's cache, for the next
 * question too; without a cache it is made in a private temporary folder, which goes away with this process. */
#ifndef TBD_QUERY_COUNTED_ASIDE_H
#define TBD_QUERY_COUNTED_ASIDE_H

#include "format/trace/trace.h"
#include "replay/native/count_stops.h"

#include <stdbool.h>

/* Can nothing take the trace's place, or is there no space for it? */
bool tbd_counted_aside_is_needed(const struct tbd_trace *trace);

/* *out: the counted trace, which tells the path and the owner of `uncounted`, the trace at how->path. */
TBD_MUST_CHECK enum tbd_status tbd_counted_aside(const struct tbd_count_stops *how,
                                                 const struct tbd_trace *uncounted,
                                                 struct tbd_trace **out, struct tbd_error *why);

#endif
