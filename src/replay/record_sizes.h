// SPDX-License-Identifier: MIT
/* record_sizes.h - what a replay process's stream has for each entry of a block: its record's length, its events, the trace's id
 *
 * The data needed for each entry of a block is in one word, so that the words of four entries are added in one step:
 *
 *     | events, its entry included: 16 | operand bytes: 16 | TBD_SIZES_NONE: 1 | id in the table: 31 |
 *
 * Ids are below 2^30, records at most TBD_RECORD_MAX_BYTES, and a block has at most TBD_SIZES_EVENTS
 * events: so no field overflows into the next one.
 *
 * Context: ORG; one thread each. */
#ifndef TBD_REPLAY_RECORD_SIZES_H
#define TBD_REPLAY_RECORD_SIZES_H

#include "base/layout.h"
#include "organizer/consume.h"

#define TBD_SIZES_NONE    (1u << 31) /* the trace has no such block, or one with another record */
#define TBD_SIZES_EVENTS  (UINT16_MAX / 4)
#define TBD_SIZES_AT_ONCE 4u
/* More than the operands of TBD_SIZES_STRETCH entries can have: the sum of their bytes says whether one is none. */
#define TBD_SIZES_NO_BYTES (1u << 24)
#define TBD_SIZES_STRETCH  64u
_Static_assert(TBD_SIZES_STRETCH *TBD_RECORD_MAX_BYTES < TBD_SIZES_NO_BYTES &&
                   TBD_SIZES_STRETCH <= UINT32_MAX / TBD_SIZES_NO_BYTES,
               "sums of bytes fit, and tell");
_Static_assert(TBD_SIZES_AT_ONCE *TBD_RECORD_MAX_BYTES <= UINT16_MAX,
               "four records' lengths fit their field");

struct tbd_record_sizes {
    struct tbd_consumer *consumer; /* borrowed */
    struct tbd_block_table *table; /* for which `words` was made; we own a reference */
    uint64_t *words; /* by id of the stream; then TBD_SIZES_NONE up to a power of two */
    uint32_t *bytes; /* likewise: operand bytes, or TBD_SIZES_NO_BYTES for none */
    uint32_t count;
    uint32_t mask; /* that power of two minus one */
    size_t capacity, bytes_capacity;
    bool omits_records; /* the stream has entries and messages alone */
    bool lacks_blocks;  /* some of the words up to `count` are none */
};

static inline bool tbd_sizes_is_none(uint64_t word)
{
    return word & TBD_SIZES_NONE;
}

static inline uint32_t tbd_sizes_operand_bytes(uint64_t word)
{
    return word >> 32 & UINT16_MAX;
}

/* The word of an entry. */
static inline uint64_t tbd_sizes_of(const struct tbd_record_sizes *sizes, uint32_t entry)
{
    return entry <= sizes->mask ? sizes->words[entry] : TBD_SIZES_NONE;
}

/* Called when a window begins.  `consumer` is borrowed until tbd_sizes_forget(), or another one comes. */
void tbd_sizes_begin(struct tbd_record_sizes *sizes, struct tbd_consumer *consumer,
                     bool omits_records);
/* Takes new definitions of the stream.  False without memory. */
TBD_MUST_CHECK bool tbd_sizes_take_definitions(struct tbd_record_sizes *sizes);
void tbd_sizes_forget(struct tbd_record_sizes *sizes);
void tbd_sizes_free(struct tbd_record_sizes *sizes);

/* Why this entry is neither a message nor a block whose record is there. */
const char *tbd_sizes_why_not(const struct tbd_record_sizes *sizes, uint32_t entry);

#endif
