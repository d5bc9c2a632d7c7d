// SPDX-License-Identifier: MIT
/* stamps.h - when block entries of a window were made: decoding a TOC's record (docs/FORMAT.md) */
#ifndef TBD_FORMAT_STAMPS_H
#define TBD_FORMAT_STAMPS_H

#include "format/files/file.h"
#include "format/window/window.h"

/* At most this many are in the record. */
static inline size_t tbd_stamps_most(const struct tbd_record_view *record)
{
    return record->payload == NULL ? 0 : record->bytes / 2;
}
/* Decodes into `out`, which has space for tbd_stamps_most(); `blocks`: of the window.  False if the record
 * is damaged. */
TBD_MUST_CHECK bool tbd_stamps_get(const struct tbd_record_view *record, uint64_t blocks,
                                   struct tbd_stamp *out, size_t *out_count);

#endif
