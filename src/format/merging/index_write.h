// SPDX-License-Identifier: MIT
/* index_write.h - rewrites an index: shorter, and perhaps with a later beginning */
#ifndef TBD_FORMAT_INDEX_WRITE_H
#define TBD_FORMAT_INDEX_WRITE_H

#include "format/trace/trace.h"
#include "format/writer/writer.h"

/* Appends an index that says what the trace's does from window `first` on. */
TBD_MUST_CHECK enum tbd_status tbd_index_put(struct tbd_trace *trace, uint32_t first,
                                             struct tbd_buffer *out);

/* Replaces an index that has grown by changes with an equivalent shorter one. */
TBD_MUST_CHECK enum tbd_status tbd_index_shorten(struct tbd_trace *trace,
                                                 struct tbd_writer *writer);

/* Drops the windows before `first` for good, in two steps.  The first writes the contents of memory
 * as an image; the second makes a new index that begins there, and deletes the files of dropped
 * windows.  Only the second step changes the index. */
TBD_MUST_CHECK enum tbd_status tbd_drop_prepare(struct tbd_trace *trace, struct tbd_writer *writer,
                                                uint32_t first);
TBD_MUST_CHECK enum tbd_status tbd_drop_commit(struct tbd_trace *trace, struct tbd_writer *writer,
                                               uint32_t first);

/* Another trace, of the same windows, that has none yet begins as this one, whose first windows were dropped: with its
 * image and its index's first records.  Copies of files are not among them. */
TBD_MUST_CHECK enum tbd_status tbd_base_give(struct tbd_trace *trace, struct tbd_writer *to);

#endif
