// SPDX-License-Identifier: MIT
/* trace_handle.h - a trace's handle, for the folders above: its identity, its lock, and their own
 * parts in it
 *
 * tbd_trace_open() writes tables once; the lock guards what is made later on demand (mappings at a
 * moment, open TOCs, parts of other folders), so that replay workers may ask at the same time.
 * `_locked`: the caller has the lock. */
#ifndef TBD_FORMAT_TRACE_HANDLE_H
#define TBD_FORMAT_TRACE_HANDLE_H

#include "format/files/file.h"
#include "format/trace/trace.h"

/* The id in the header of each of the trace's files. */
uint64_t tbd_trace_id(const struct tbd_trace *trace);
const char *tbd_trace_path(const struct tbd_trace *trace);
/* The trace was made from the one at `path`, whose path and owner it tells from now on; it is read from where it is. */
TBD_MUST_CHECK bool tbd_trace_stand_for(struct tbd_trace *trace, const char *path, uint32_t owner);
struct tbd_dir tbd_trace_dir(const struct tbd_trace *trace);
const struct tbd_file *tbd_trace_header(const struct tbd_trace *trace);

void tbd_trace_lock(struct tbd_trace *trace);
void tbd_trace_unlock(struct tbd_trace *trace);

/* Tells a window of this trace its trace, and whether the trace ends in it. */
void tbd_trace_adopt(const struct tbd_trace *trace, struct tbd_window *window);

/* The part that a folder keeps in the handle, of a type that only the folder knows. */
enum tbd_trace_part_kind { TBD_TRACE_PART_PAGES, TBD_TRACE_PART_KEYS, TBD_TRACE_PART_COUNT };
struct tbd_trace_part_class {
    enum tbd_trace_part_kind kind;
    /* zeroed when it is made */
    size_t bytes;
    /* Frees what it owns, when the trace is closed. */
    void (*release)(void *part);
    /* The window has new files; NULL: nothing to do. */
    void (*forget_window)(void *part, uint32_t window);
};
/* Made on first use; borrowed until the trace is closed.  NULL without memory. */
void *tbd_trace_part_locked(struct tbd_trace *trace, const struct tbd_trace_part_class *of);

#endif
