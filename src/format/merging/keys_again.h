// SPDX-License-Identifier: MIT
/* keys_again.h - the index over windows, written again for windows that have been counted since */
#ifndef TBD_FORMAT_KEYS_AGAIN_H
#define TBD_FORMAT_KEYS_AGAIN_H

#include "format/trace/trace.h"
#include "format/writer/writer.h"

/* The segment that has window `index`; false: none has, or it is damaged.  *out_last is the last window in it. */
bool tbd_keys_segment_of(struct tbd_trace *trace, uint32_t index, size_t *out, uint32_t *out_last);

/* Collects the keys of the segment's windows from their TOCs, and replaces its file; or leaves it as it is, which questions
 * know (FORMAT-6).  `trace` still has the segments that were there when it was opened. */
void tbd_keys_write_again(struct tbd_trace *trace, const struct tbd_writer *writer, size_t segment);

#endif
