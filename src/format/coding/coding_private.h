// SPDX-License-Identifier: MIT
/* coding_private.h - the fields of records and how their values are read: for coding.c, which
 * decodes segments, and pick_columns.c, which picks rows out of them */
#ifndef TBD_FORMAT_CODING_PRIVATE_H
#define TBD_FORMAT_CODING_PRIVATE_H

#include "format/coding/coding.h"
#include "format/window/blocks.h"

struct tbd_record_field {
    uint16_t offset;
    uint16_t bytes; /* 1 .. 8 */
};

struct tbd_record_fields {
    uint32_t count;
    uint32_t record_bytes;
    struct tbd_record_field field[];
};

/* The fields of a block; malloc, the caller owns them.  NULL without memory.  (record_fields.c) */
struct tbd_record_fields *tbd_record_fields_make(const struct tbd_block *block);
/* The fields of a block of the coder's table; borrowed from the coder.  NULL without memory. */
const struct tbd_record_fields *tbd_coder_fields(struct tbd_coder *coder, uint32_t id);

/* Where the next value of a segment is. */
struct tbd_decoder {
    const uint8_t *lengths;
    const uint8_t *values;
    const uint8_t *end;
    uint64_t n;
};

/* Indexed by a value's length; lengths above 8 are impossible. */
static const uint64_t tbd_value_masks[16] = {
    0,
    0xff,
    0xffff,
    0xffffff,
    UINT32_MAX,
    0xffffffffffull,
    0xffffffffffffull,
    0xffffffffffffffull,
    UINT64_MAX,
};

static inline bool tbd_decoder_get(struct tbd_decoder *d, uint64_t *out)
{
    unsigned length = d->lengths[d->n >> 1] >> ((d->n & 1) * 4) & 15;
    size_t left = (size_t)(d->end - d->values);
    uint64_t value = 0;

    if (length > 8 || length > left)
        return false;
    if (left >= 8) {
        memcpy(&value, d->values, 8);
        value = length ? value << (64 - length * 8) >> (64 - length * 8) : 0;
    } else {
        memcpy(&value, d->values, length);
    }
    d->values += length;
    d->n++;
    *out = value;
    return true;
}

/* No value takes more, whatever its length nibble says. */
#define TBD_VALUE_MOST 16u

/* Decodes the next `count` rows of a block; false if the values are impossible. */
bool tbd_decode_rows(struct tbd_decoder *d, const struct tbd_record_fields *f, uint8_t *rows,
                     uint32_t count);

#endif
