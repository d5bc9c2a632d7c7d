// SPDX-License-Identifier: MIT
/* block_lookup.h - the table of blocks.h, for callers that look up an id at every event */
#ifndef TBD_FORMAT_BLOCK_LOOKUP_H
#define TBD_FORMAT_BLOCK_LOOKUP_H

#include "format/window/blocks.h"

#include <stdatomic.h>

#define TBD_SEGMENT_BITS   10
#define TBD_SEGMENT_BLOCKS (1u << TBD_SEGMENT_BITS)
#define TBD_GROUP_SEGMENTS (1u << TBD_SEGMENT_BITS)
#define TBD_GROUPS         (1u << (30 - 2 * TBD_SEGMENT_BITS))

struct store;

/* A slot of the index by start and code.  The hash tells most other blocks in the same slots apart
 * without reading them. */
struct tbd_block_key {
    uint32_t id; /* 0: free */
    uint32_t hash;
};

struct tbd_block_table {
    /* owned, as are the groups' segments, each made when it is needed: most tables have one group with a few */
    const struct tbd_block ***groups[TBD_GROUPS];
    struct store *stores;         /* owned: where blocks lie */
    struct tbd_block_key *by_key; /* owned: key_slots */
    uint32_t key_slots;           /* power of two */
    uint32_t key_count;
    uint32_t highest;
    atomic_uint references;
};

static inline const struct tbd_block *tbd_block_at(const struct tbd_block_table *table, uint32_t id)
{
    const struct tbd_block ***group = id >> 30 ? NULL : table->groups[id >> 2 * TBD_SEGMENT_BITS];
    const struct tbd_block **segment =
        group ? group[id >> TBD_SEGMENT_BITS & (TBD_GROUP_SEGMENTS - 1)] : NULL;

    return segment ? segment[id & (TBD_SEGMENT_BLOCKS - 1)] : NULL;
}

#endif
