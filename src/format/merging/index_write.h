// SPDX-License-Identifier: MIT
/* index_write.h - an index written anew: shorter, and perhaps beginning later */
#ifndef TBD_FORMAT_INDEX_WRITE_H
#define TBD_FORMAT_INDEX_WRITE_H

#include "format/trace/trace.h"
#include "format/writer/writer.h"

/* Appends an index that says what the trace's does from window `first` on. */
TBD_MUST_CHECK enum tbd_status tbd_index_put(struct tbd_trace *trace, uint32_t first,
                                             struct tbd_buffer *out);

/* Replaces the index by one that says the same, when it has grown by changes. */
TBD_MUST_CHECK enum tbd_status tbd_index_shorten(struct tbd_trace *trace,
                                                 struct tbd_writer *writer);

/* Drops the windows before `first` for good, in two steps: what memory held is written as an image
 * of its own; then a new index begins there, and the files of what was before go away.  The second
 * step changes the index, the first does not. */
TBD_MUST_CHECK enum tbd_status tbd_drop_prepare(struct tbd_trace *trace, struct tbd_writer *writer,
                                                uint32_t first);
TBD_MUST_CHECK enum tbd_status tbd_drop_commit(struct tbd_trace *trace, struct tbd_writer *writer,
                                               uint32_t first);

#endif
