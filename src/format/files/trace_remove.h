// SPDX-License-Identifier: MIT
/* trace_remove.h - what a trace takes on disk, and taking it away
 *
 * Only what lies below the directory counts and goes; links in it are removed, not followed. */
#ifndef TBD_FORMAT_TRACE_REMOVE_H
#define TBD_FORMAT_TRACE_REMOVE_H

#include "base/status.h"

#include <stdint.h>

/* Bytes on disk of all files below `dir`. */
uint64_t tbd_trace_disk_bytes(int dir);
/* Removes the directory `name` of the trace root `root` with all that is in it.  TBD_IO: something
 * is left. */
TBD_MUST_CHECK enum tbd_status tbd_trace_remove(int root, const char *name);
#endif
