// SPDX-License-Identifier: MIT
/* consume_private.h - a consumer at work: its chunks (consume.c), the stream's memory (consume_map.c) and its definitions
 * (consume_defs.c) */
#ifndef TBD_ORGANIZER_CONSUME_PRIVATE_H
#define TBD_ORGANIZER_CONSUME_PRIVATE_H

#include "organizer/consume.h"

#define GUARD_BYTES 4096u

struct tbd_consumer {
    uint8_t *bytes; /* the stream, mapped */
    size_t size;
    struct tbd_stream_head *head;
    /* kept from the head (CONSUME_MAP-1) */
    uint32_t chunk_count;
    uint64_t defs_offset;
    uint64_t heap_offset;
    uint64_t heap_capacity;
    uint64_t chunks_offset;
    uint32_t def_capacity;
    struct tbd_stream_areas areas;

    struct tbd_block_table *table;
    struct tbd_block_table *known;
    struct tbd_block_plan *plans;
    size_t plans_bytes;
    uint32_t plan_count;
    struct tbd_plan_stores *stores; /* of plans */

    uint64_t heap_used;     /* by the definitions imported so far */
    uint64_t entries_left;  /* tbd_consumer_expect() */
    uint64_t operands_left; /* likewise */
    uint32_t taken;         /* chunks given back so far */
    uint32_t warmed;        /* slots whose pages have been made present */
    uint32_t highest_slot;  /* of a chunk so far */
    struct tbd_warmer *warmer;
    uint32_t operands_most; /* of one chunk so far */
    bool is_long;           /* a window was complete: the program runs long enough for more */
    struct tbd_chunk seen;  /* the one that tbd_consumer_peek() gave */
    const uint8_t *area;    /* where the window's operands lie; NULL: in their chunks */
    size_t area_used;       /* by chunks before */
    struct tbd_raw_window raw;
    bool takes_frames;
    struct tbd_page_packer *packer;     /* borrowed; NULL: pages stay as they come */
    void (*before_move)(void *context); /* NULL: nobody reads `raw` */
    void *move_context;
    bool raw_started;
    size_t entry_hint; /* sizes of the windows before: what to reserve */
    size_t operand_hint;
    size_t entry_least; /* the hints are never lower */
    size_t operand_least;
};

/* Do `count` elements from `offset` on end at or before `limit`? */
bool tbd_stream_fits(uint64_t offset, uint64_t count, uint64_t element, uint64_t limit);
/* Maps the stream and takes what its head says. */
enum tbd_status tbd_consumer_map(struct tbd_consumer *c, int fd, struct tbd_error *why);
void tbd_consumer_unmap(struct tbd_consumer *c);

/* consume.c: copies operands, for which there is space, at the end of the window's. */
void tbd_consumer_append(struct tbd_consumer *c, const uint8_t *from, size_t bytes);
/* consume_pages.c: the same of messages, of which pages that were written are packed.  False without memory. */
bool tbd_consumer_take_messages(struct tbd_consumer *c, const uint8_t *from, size_t bytes);

enum tbd_status tbd_consumer_reserve_plans(struct tbd_consumer *c);
void tbd_consumer_free_plans(struct tbd_consumer *c);
/* Imports all definitions that are there now. */
enum tbd_status tbd_consumer_import(struct tbd_consumer *c, struct tbd_error *why);

#endif
