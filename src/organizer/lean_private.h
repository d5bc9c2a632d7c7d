// SPDX-License-Identifier: MIT
/* lean_private.h - counting a window's blocks: what build_lean.c shares with chain, table and blocks
 *
 * Each takes entries from one index on, up to a message.  Chain and table measure themselves.  What
 * they know about the program is kept for the next window; it changes only how long counting takes,
 * never a count. */
#ifndef TBD_ORGANIZER_LEAN_PRIVATE_H
#define TBD_ORGANIZER_LEAN_PRIVATE_H

#include "organizer/build_private.h"

/* A method that failed is tried again after some windows; after more windows if it fails again. */
struct tbd_lean_wait {
    uint32_t left; /* windows */
    uint32_t next;
};

/* A store of a path's blocks: at `add` from the value that it is relative to. */
struct tbd_lean_store {
    int64_t add;
    uint32_t bytes;
    uint32_t index; /* of the path's events */
};
/* The stores of all paths of one method; a path names its own by index. */
struct tbd_lean_stores {
    struct tbd_lean_store *all; /* owned */
    size_t count, capacity;
};

struct tbd_lean {
    struct tbd_path_chain *chain;
    struct tbd_path_table *table;
    struct tbd_lean_wait chain_wait, table_wait;
    bool renames; /* some entries are not the trace's ids */
};

/* build_lean.c */
static inline bool tbd_lean_is_possible(const struct work *w, uint32_t entry)
{
    return entry && entry <= w->plan_count && w->plans[entry].id;
}
/* Is this the first store relative to its value in the record? */
static inline bool tbd_lean_is_first_of_base(const struct tbd_block_plan *plan, uint16_t store)
{
    for (uint16_t i = 0; i < store; i++)
        if (plan->stores[i].base == plan->stores[store].base)
            return false;
    return true;
}
/* Adds the stores of a block that are relative to `base`, an offset in its record or TBD_BASE_NONE;
 * the block begins with event `events` of the path.  False without memory. */
TBD_MUST_CHECK bool tbd_lean_add_stores(struct tbd_lean_stores *stores,
                                        const struct tbd_block_plan *plan, uint32_t base,
                                        uint32_t events);
/* If the block before ended with a call, this one was entered by it. */
static inline void tbd_lean_enter(struct work *w, uint32_t entry)
{
    struct block_count *count = &w->builder->counts[w->plans[entry].id];

    if (!w->called)
        return;
    count->enters++;
    count->last_enter = w->time;
}
/* Counts a sequence of blocks that came this many times, the last time from `time` on.  False
 * without memory. */
TBD_MUST_CHECK bool tbd_lean_count_blocks(struct work *w, const uint32_t *entries, uint32_t length,
                                          uint32_t times, uint32_t time);
/* Takes the last block before a message, if it is possible and its record inside the operands: then
 * *io_taken grows.  False without memory. */
TBD_MUST_CHECK bool tbd_lean_take_last(struct work *w, uint32_t entry, size_t *io_taken);

/* Chain and table: _begin a window; _take blocks from `entries` on, of which `left` are there with
 * messages, the first one being a block: up to the next message, an impossible block, one whose
 * record is outside the operands, or a stretch; _look before operands are moved; _fail says whether
 * another method is better; _finish counts what was taken.  False without memory. */
TBD_MUST_CHECK bool tbd_path_chain_begin(struct tbd_path_chain **io_chain, uint32_t plan_count);
/* More blocks of the stream: also in the middle of a window. */
TBD_MUST_CHECK bool tbd_path_chain_reach(struct tbd_path_chain *chain, uint32_t plan_count);
TBD_MUST_CHECK bool tbd_path_chain_take(struct work *w, const uint32_t *entries, size_t left,
                                        size_t *out_taken);
void tbd_path_chain_look(struct work *w);
bool tbd_path_chain_fail(const struct tbd_path_chain *chain);
TBD_MUST_CHECK bool tbd_path_chain_finish(struct work *w);
void tbd_path_chain_forget(struct tbd_path_chain *chain);
void tbd_path_chain_free(struct tbd_path_chain *chain);

TBD_MUST_CHECK bool tbd_path_table_begin(struct tbd_path_table **io_table);
TBD_MUST_CHECK bool tbd_path_table_take(struct work *w, const uint32_t *entries, size_t left,
                                        size_t *out_taken);
void tbd_path_table_look(struct work *w);
bool tbd_path_table_fail(const struct tbd_path_table *table);
TBD_MUST_CHECK bool tbd_path_table_finish(struct work *w);
void tbd_path_table_forget(struct tbd_path_table *table);
void tbd_path_table_free(struct tbd_path_table *table);

/* The same for single blocks, which keep nothing and never fail. */
TBD_MUST_CHECK bool tbd_blocks_take(struct work *w, const uint32_t *entries, size_t left,
                                    size_t *out_taken);

#endif
