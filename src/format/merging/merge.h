// SPDX-License-Identifier: MIT
/* merge.h - several windows as one, in memory */
#ifndef TBD_FORMAT_MERGE_H
#define TBD_FORMAT_MERGE_H

#include "format/files/disk.h"
#include "format/trace/trace.h"

/* Makes *out, the window that replaces `count` windows from `first` on, without events; level 1 if
 * `level` is 1 or one of them has level 1.  Owned by the caller.  `previous` in its summaries is a
 * number + 1, not a place.  shifts[i] says how moments in window i move.  TBD_NOREPLAY: it would be
 * too large. */
TBD_MUST_CHECK enum tbd_status
tbd_merge_windows(struct tbd_trace *trace, uint32_t first, uint32_t count, enum tbd_level level,
                  struct tbd_window **out, struct tbd_disk_shift *shifts, struct tbd_error *why);

#endif
