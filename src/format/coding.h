// SPDX-License-Identifier: MIT
/* coding.h - how the records of a window's blocks are coded before LZ4 (docs/FORMAT.md, "Records")
 *
 * Records of one block follow on each other in a pattern, records of different blocks do not.  So they are
 * taken apart: for each block, for each field of its record, the differences from one occurrence to the next. */
#ifndef TBD_FORMAT_CODING_H
#define TBD_FORMAT_CODING_H

#include "format/codec.h"
#include "format/window.h"

struct tbd_occurrence {
    uint32_t operand; /* offset of its record in the window's operands */
    uint32_t index;   /* of its event, where the maker wants to know; else not set */
};

/* Where the records of each block lie: at[start[id]] .. at[start[id] + count[id] - 1], ascending.  Blocks
 * without operands have none. */
struct tbd_occurrences {
    uint32_t *start;
    uint32_t *count;
    struct tbd_occurrence *at;
    uint32_t ids; /* length of start and count */
};

/* From entries, blocks and log alone: the operands need not be there yet.  TBD_CORRUPT if they do not add up to
 * operand_bytes. */
TBD_MUST_CHECK enum tbd_status tbd_occurrences_make(const struct tbd_window *window,
                                                    struct tbd_occurrences *out);
void tbd_occurrences_free(struct tbd_occurrences *occurrences);

/* Appends the coded records.  8 bytes behind the operands must be readable. */
void tbd_records_encode(struct tbd_buffer *out, const struct tbd_window *window,
                        const struct tbd_occurrences *occurrences);
/* Puts the records where they belong in `operands`; messages are left alone. */
TBD_MUST_CHECK enum tbd_status tbd_records_decode(const uint8_t *content, size_t bytes,
                                                  const struct tbd_window *window,
                                                  const struct tbd_occurrences *occurrences,
                                                  uint8_t *operands);

#endif
