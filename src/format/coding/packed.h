// SPDX-License-Identifier: MIT
/* packed.h - trace and block files: coding, LZ4, checksums */
#ifndef TBD_FORMAT_PACKED_H
#define TBD_FORMAT_PACKED_H

#include "format/coding/coding.h"
#include "format/coding/pick.h"
#include "format/files/file.h"
#include "format/window/window.h"

/* Append the whole contents of the files.  WINDOW-1 must hold for the window.  `coded` (its
 * records, coded) may be NULL. */
void tbd_packed_put_entries(struct tbd_buffer *out, const struct tbd_window *window,
                            uint64_t trace_id);
void tbd_packed_put_records(struct tbd_buffer *out, const struct tbd_window *window,
                            const struct tbd_buffer *coded, uint64_t trace_id);

/* Fill window->entries and window->operands from the files; `window` has index, blocks_by_id, log,
 * entry_count and operand_bytes as the TOC says.  Not yet checked against each other:
 * tbd_window_index(). */
TBD_MUST_CHECK enum tbd_status tbd_packed_get(struct tbd_dir dir, uint64_t trace_id,
                                              struct tbd_window *window, struct tbd_error *why);
/* The same for the events that `picker` wants.  TBD_NOTFOUND as tbd_picker_pick(). */
TBD_MUST_CHECK enum tbd_status tbd_packed_pick(struct tbd_dir dir, uint64_t trace_id,
                                               struct tbd_window *window, struct tbd_picker *picker,
                                               struct tbd_error *why);

#endif
