// SPDX-License-Identifier: MIT
/* coding.h - how the records of a window's blocks are coded before LZ4 (docs/FORMAT.md, "Records")
 *
 * Records of one block follow on each other in a pattern, records of different blocks do not.  So they are
 * taken apart: for each block, for each field of its record, the differences from one occurrence to the next. */
#ifndef TBD_FORMAT_CODING_H
#define TBD_FORMAT_CODING_H

#include "format/codec.h"
#include "format/window.h"

/* The records of a window, block by block: those of block `id` lie behind each other, in the order of
 * time, from bytes + start[id] on.  64 bytes behind the last one may be read. */
struct tbd_rows {
    uint32_t *start;  /* by id */
    uint32_t *count;  /* by id; 0 for blocks without operands */
    uint8_t *bytes;
    uint32_t ids;     /* length of start and count */
};

/* How far behind their end operands and rows must be readable and writable: records are copied in
 * steps. */
#define TBD_ROW_STEP 32u
#define TBD_ROW_SLACK 64u

static inline void tbd_row_copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    memcpy(to, from, TBD_ROW_STEP);
    for (uint32_t at = TBD_ROW_STEP; at < bytes; at += TBD_ROW_STEP)
        memcpy(to + at, from + at, TBD_ROW_STEP);
}

/* Room for the rows, from entries, blocks and log alone: the operands need not be there yet.  TBD_CORRUPT
 * if they do not add up to operand_bytes. */
TBD_MUST_CHECK enum tbd_status tbd_rows_make(const struct tbd_window *window, struct tbd_rows *out);
/* Operands to rows.  `operands` is window->operands, with TBD_ROW_SLACK behind. */
TBD_MUST_CHECK enum tbd_status tbd_rows_gather(struct tbd_rows *rows,
                                               const struct tbd_window *window);
/* Rows and the log's messages to operands, which has TBD_ROW_SLACK behind operand_bytes; the log's
 * messages are those in the operands afterwards. */
TBD_MUST_CHECK enum tbd_status tbd_rows_spread(const struct tbd_rows *rows,
                                               struct tbd_window *window, uint8_t *operands);
void tbd_rows_free(struct tbd_rows *rows);

/* Appends the coded rows. */
void tbd_rows_encode(struct tbd_buffer *out, const struct tbd_window *window,
                     const struct tbd_rows *rows);
TBD_MUST_CHECK enum tbd_status tbd_rows_decode(const uint8_t *content, size_t bytes,
                                               const struct tbd_window *window,
                                               struct tbd_rows *rows);

#endif
