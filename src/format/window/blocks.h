// SPDX-License-Identifier: MIT
/* blocks.h - a table of blocks by id
 *
 * One thread adds; others may read ids that they got through a lock or a queue.  A block in the
 * table does not move until the last reference to the table is dropped. */
#ifndef TBD_FORMAT_BLOCKS_H
#define TBD_FORMAT_BLOCKS_H

#include "base/status.h"
#include "format/stream/stream.h"

#include <stdbool.h>
#include <stddef.h>

struct tbd_block_table;

struct tbd_block {
    struct tbd_block_def def;
    const struct tbd_op *ops; /* def.op_count; borrowed from the table */
    const uint8_t *code;      /* def.code_bytes; the application's bytes */
};

/* NULL without memory.  The caller holds the one reference. */
struct tbd_block_table *tbd_block_table_new(void);
struct tbd_block_table *tbd_block_table_retain(struct tbd_block_table *table);
void tbd_block_table_release(struct tbd_block_table *table); /* NULL is fine */

/* Is this definition consistent in itself?  NULL if so, else what is wrong with it.  `ops` has
 * def->op_count elements.  `from_replay`: notes are fine (TBD_OP_NOTE). */
const char *tbd_block_check(const struct tbd_block_def *def, const struct tbd_op *ops,
                            bool from_replay);

/* Copies a checked block in under `id` (1 .. 2^30-1, not used yet). */
TBD_MUST_CHECK enum tbd_status tbd_block_table_put(struct tbd_block_table *table, uint32_t id,
                                                   const struct tbd_block_def *def,
                                                   const struct tbd_op *ops, const uint8_t *code);
/* NULL for an id without block. */
const struct tbd_block *tbd_block_table_get(const struct tbd_block_table *table, uint32_t id);
uint32_t tbd_block_table_count(const struct tbd_block_table *table); /* highest id */

/* Prefetches: a block with this start and hash of its code will soon be looked up. */
void tbd_block_table_expect(const struct tbd_block_table *table, uint64_t start,
                            uint64_t code_hash);

/* The id of the block with the same start and code; of several, the one with the same events if
 * there is one.  With `exact` only a block with the same events.  0 if none. */
uint32_t tbd_block_table_find(const struct tbd_block_table *table, const struct tbd_block_def *def,
                              const struct tbd_op *ops, const uint8_t *code, bool exact);

#endif
