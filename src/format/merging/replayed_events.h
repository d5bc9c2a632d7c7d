// SPDX-License-Identifier: MIT
/* replayed_events.h - files with windows' events that the trace does not keep and a replay brought
 * back
 *
 * The file is only a cache: it saves the replay.  Reading it needs the window's TOC, whose contents
 * are not stored again. */
#ifndef TBD_FORMAT_REPLAYED_EVENTS_H
#define TBD_FORMAT_REPLAYED_EVENTS_H

#include "format/files/codec.h"
#include "format/files/trace_dir.h"
#include "format/trace/trace.h"

/* Files below a trace's cache/ take at most a sixteenth of its `budget` (bytes; 0: no limit). */
#define TBD_CACHE_MOST (256ull << 20)
static inline uint64_t tbd_cache_share(uint64_t budget)
{
    return budget && budget / 16 < TBD_CACHE_MOST ? budget / 16 : TBD_CACHE_MOST;
}

/* Name of the window's file; different for each detail level, and for a merged window. */
void tbd_raised_name(const struct tbd_trace *trace, uint32_t index, char *out, size_t bytes);

/* Appends the file.  `window` comes from a full replay without load events, and is complete. */
void tbd_raised_put(const struct tbd_trace *trace, const struct tbd_window *window,
                    struct tbd_buffer *out);

/* Loads window `index` with the events of the file `name` below the directory `folder`.
 * TBD_NOTRACE: there is no file.  TBD_NOTFOUND: the file is of another window or level. */
TBD_MUST_CHECK enum tbd_status tbd_raised_load(struct tbd_trace *trace, uint32_t index,
                                               struct tbd_dir folder, const char *name,
                                               struct tbd_window **out, struct tbd_error *why);

#endif
