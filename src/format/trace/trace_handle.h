// SPDX-License-Identifier: MIT
/* trace_handle.h - what the rooms above need of a trace's handle: what it is, its lock, and a place
 * for what they keep with it
 *
 * Tables are written once by tbd_trace_open(); what is made later on demand (mappings at a moment,
 * open TOCs, parts of other rooms) is guarded by the lock, so that replay workers may ask at the
 * same time.  `_locked`: the caller holds it. */
#ifndef TBD_FORMAT_TRACE_HANDLE_H
#define TBD_FORMAT_TRACE_HANDLE_H

#include "format/files/file.h"
#include "format/trace/trace.h"

/* In the header of each of its files. */
uint64_t tbd_trace_id(const struct tbd_trace *trace);
const char *tbd_trace_path(const struct tbd_trace *trace);
const struct tbd_file *tbd_trace_header(const struct tbd_trace *trace);

void tbd_trace_lock(struct tbd_trace *trace);
void tbd_trace_unlock(struct tbd_trace *trace);

/* The window is one of this trace: it learns whose it is, and whether the trace ends in it. */
void tbd_trace_adopt(const struct tbd_trace *trace, struct tbd_window *window);

/* What a room keeps with a trace, of a type that it alone knows. */
enum tbd_trace_part_kind { TBD_TRACE_PART_PAGES, TBD_TRACE_PART_KEYS, TBD_TRACE_PART_COUNT };
struct tbd_trace_part_class {
    enum tbd_trace_part_kind kind;
    /* zeroed when it is made */
    size_t bytes;
    /* Gives back what it owns; the trace is closed. */
    void (*release)(void *part);
    /* The window's files are others now; NULL: that does not matter. */
    void (*forget_window)(void *part, uint32_t window);
};
/* Made when it is asked for first; borrowed until the trace is closed.  NULL without memory. */
void *tbd_trace_part_locked(struct tbd_trace *trace, const struct tbd_trace_part_class *of);

#endif
