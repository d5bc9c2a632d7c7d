// SPDX-License-Identifier: MIT
/* replayed_events.h - files with the events of windows that the trace has not kept, as a replay brought them
 * back
 *
 * Such a file says nothing that the trace and a replay do not say; it saves the replay.  The
 * window's TOC is needed to read it: what is there is not stored again. */
#ifndef TBD_FORMAT_REPLAYED_EVENTS_H
#define TBD_FORMAT_REPLAYED_EVENTS_H

#include "format/files/codec.h"
#include "format/trace/trace.h"

/* What questions keep below a trace's cache/ takes no more of its `budget` (bytes; 0: no limit) than a sixteenth. */
#define TBD_CACHE_MOST (256ull << 20)
static inline uint64_t tbd_cache_share(uint64_t budget)
{
    return budget && budget / 16 < TBD_CACHE_MOST ? budget / 16 : TBD_CACHE_MOST;
}

/* Name of the window's file; another one at each detail level, and for what it is merged into. */
void tbd_raised_name(const struct tbd_trace *trace, uint32_t index, char *out, size_t bytes);

/* Appends the file.  `window` comes from a full replay without load events, and is complete. */
void tbd_raised_put(const struct tbd_trace *trace, const struct tbd_window *window,
                    struct tbd_buffer *out);

/* Loads window `index` with the events of the file `name` below the directory `folder`.
 * TBD_NOTRACE: there is none.  TBD_NOTFOUND: it is of something else. */
TBD_MUST_CHECK enum tbd_status tbd_raised_load(struct tbd_trace *trace, uint32_t index,
                                               const char *folder, const char *name,
                                               struct tbd_window **out, struct tbd_error *why);

#endif
