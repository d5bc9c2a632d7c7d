// SPDX-License-Identifier: MIT
/* packed_trace.h - a trace in one file (`tbdq pack`) is unpacked into the user's cache when it is opened */
#ifndef TBD_QUERY_PACKED_TRACE_H
#define TBD_QUERY_PACKED_TRACE_H

#include "query/session/session.h"

/* If `path` is a packed trace, the folder to which it was unpacked, now or earlier, in `out`, and true.  On
 * failure, *status and session->why say why. */
bool tbd_packed_trace(struct tbd_session *session, const char *path, char *out, size_t bytes,
                      enum tbd_status *status);
/* Debug files and sources that are in the trace's folder are used. */
void tbd_packed_use_extras(const char *folder);

/* How many bytes an archive of this file may hold: it is packed at most so well. */
uint64_t tbd_packed_most(int fd);

#endif
