// SPDX-License-Identifier: MIT
/* coding.h - how the records of a window's blocks are coded before LZ4 (docs/FORMAT.md, "Records")
 *
 * Successive records of one block follow a pattern, records of different blocks do not.  So records
 * are split, a segment of TBD_SEGMENT_ENTRIES entries at a time: for each block, for each field of
 * its record, the differences from one occurrence to the next.  Segments keep that in the
 * processor's caches: 15% less time than with whole windows on lua and sqlite3, for files 12%
 * larger (32768 entries: the same time, 50% larger). */
#ifndef TBD_FORMAT_CODING_H
#define TBD_FORMAT_CODING_H

#include "format/files/codec.h"
#include "format/window/window.h"

#define TBD_SEGMENT_ENTRIES 131072u

/* The rows of one block in a segment: its records one after another, each after `prefix` bytes of
 * the maker's own. */
struct tbd_row_set {
    uint32_t id;
    uint32_t count;
    uint32_t start; /* offset of the first row in the segment's bytes */
};

/* How far past their end operands and rows must be readable and writable: records are copied in
 * steps. */
#define TBD_ROW_STEP  32u
#define TBD_ROW_SLACK 64u

/* One step, in as few instructions as the function that it is inlined into may use. */
typedef uint8_t tbd_row_step __attribute__((vector_size(TBD_ROW_STEP), aligned(1), may_alias));

static inline __attribute__((always_inline)) void tbd_row_copy(uint8_t *to, const uint8_t *from,
                                                               uint32_t bytes)
{
    *(tbd_row_step *)to = *(const tbd_row_step *)from;
    for (uint32_t at = TBD_ROW_STEP; at < bytes; at += TBD_ROW_STEP)
        *(tbd_row_step *)(to + at) = *(const tbd_row_step *)(from + at);
}

/* The fields of blocks, kept from one segment to the next.  One thread. */
struct tbd_coder;
struct tbd_coder *tbd_coder_new(const struct tbd_block_table *blocks); /* NULL without memory */
void tbd_coder_free(struct tbd_coder *coder);

/* Appends a segment; the sets are in the order in which their blocks first occur in it. */
void tbd_coder_put_segment(struct tbd_coder *coder, struct tbd_buffer *out,
                           const struct tbd_row_set *sets, size_t set_count, const uint8_t *rows,
                           uint32_t prefix);

/* Appends all segments of a window.  TBD_ROW_SLACK bytes past the operands must be readable. */
void tbd_records_encode(struct tbd_buffer *out, const struct tbd_window *window);
/* Fills `operands` (operand_bytes and TBD_ROW_SLACK long) with records, and with the log's messages
 * between them; the log then points into it.  It checks everything and makes checkpoints like
 * tbd_window_index().  On failure the window is unusable. */
TBD_MUST_CHECK enum tbd_status tbd_records_decode(const uint8_t *content, size_t bytes,
                                                  struct tbd_window *window, uint8_t *operands);

#endif
