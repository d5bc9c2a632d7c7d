// SPDX-License-Identifier: MIT
/* build_lean.c - the block entries of a window whose records need not be coded
 *
 * Only counting is left: blocks, calls, and the words that were stored to.  There are four methods:
 *   path chain (lean_path_chain.c)  for programs that take the same paths again and again: long paths, each leads to the next
 *   path table (lean_path_table.c)  for programs that choose among a few paths all the time: eight blocks at a time
 *   rows (build_segment.c) for programs that hardly ever take the same path twice
 *   blocks (lean_blocks.c) for the rest of a window after a failure: mostly new paths
 * A window begins with the first method that did not fail recently (rows never fail).  When it
 * fails, the next one takes over, and after that block by block.
 *
 * Invariants
 * BUILD_LEAN-1  The method changes only how long counting takes, never a count. (not checked:
 *     test_build_lean compares the ways)
 * BUILD_LEAN-2  Every method holds back the last block before a message (tbd_build_defer()). (not
 *     checked: test_build_lean compares the ways) */
#include "organizer/lean_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define WAIT_MOST 63u /* windows; the wait is 1 at first, then 3, 7, 15, ... with each failure */

/* ---- choosing a method ---- */

static bool waits(struct tbd_lean_wait *wait)
{
    if (!wait->left)
        return false;
    wait->left--;
    return true;
}

static void note_failure(struct tbd_lean_wait *wait)
{
    wait->left = wait->next = wait->next < WAIT_MOST ? wait->next * 2 + 1 : WAIT_MOST;
}

static bool begin_method(struct work *w, enum tbd_count_method method)
{
    struct tbd_lean *lean = w->builder->lean;

    w->method = method;
    if (method == TBD_COUNT_CHAIN)
        return tbd_path_chain_begin(&lean->chain, w->plan_count);
    return method != TBD_COUNT_TABLE || tbd_path_table_begin(&lean->table);
}

bool tbd_lean_begin(struct work *w)
{
    struct tbd_builder *b = w->builder;

    if (!b->lean)
        b->lean = calloc(1, sizeof(*b->lean));
    if (!b->lean)
        return false;
    if (!waits(&b->lean->chain_wait))
        return begin_method(w, TBD_COUNT_CHAIN);
    return begin_method(w, waits(&b->lean->table_wait) ? TBD_COUNT_ROWS : TBD_COUNT_TABLE);
}

bool tbd_lean_reach(struct work *w)
{
    return w->method != TBD_COUNT_CHAIN ||
           tbd_path_chain_reach(w->builder->lean->chain, w->plan_count);
}

static struct tbd_lean_wait *wait_of(const struct work *w)
{
    return w->method == TBD_COUNT_CHAIN ? &w->builder->lean->chain_wait
                                        : &w->builder->lean->table_wait;
}

static bool finish_method(struct work *w)
{
    return w->method == TBD_COUNT_CHAIN ? tbd_path_chain_finish(w) : tbd_path_table_finish(w);
}

/* Counts what was taken so far, and goes on with another method. */
static bool change_method(struct work *w)
{
    bool may_use_table = w->method == TBD_COUNT_CHAIN && !w->builder->lean->table_wait.left;

    note_failure(wait_of(w));
    return finish_method(w) && begin_method(w, may_use_table ? TBD_COUNT_TABLE : TBD_COUNT_BLOCKS);
}

static bool check_method(struct work *w)
{
    const struct tbd_lean *lean = w->builder->lean;
    bool fails = w->method == TBD_COUNT_CHAIN
                     ? tbd_path_chain_fail(lean->chain)
                     : w->method == TBD_COUNT_TABLE && tbd_path_table_fail(lean->table);

    return !fails || change_method(w);
}

/* ---- shared by several methods ---- */

bool tbd_lean_add_stores(struct tbd_lean_stores *stores, const struct tbd_block_plan *plan,
                         uint32_t base, uint32_t events)
{
    for (uint16_t i = 0; i < plan->store_count; i++) {
        const struct tbd_plan_store *store = &plan->stores[i];

        if (store->base != base)
            continue;
        if (!tbd_array_grow(&stores->all, stores->count, &stores->capacity, sizeof(*stores->all)))
            return false;
        stores->all[stores->count++] =
            (struct tbd_lean_store){ store->add, store->bytes, events + store->index };
    }
    return true;
}

static bool count_block(struct work *w, uint32_t entry, uint32_t times, uint32_t last)
{
    struct tbd_builder *b = w->builder;
    uint32_t id = w->plans[entry].id;
    struct block_count *count = &b->counts[id];

    if (!count->count && !tbd_build_note_id(b, id))
        return false;
    count->count += times;
    count->plan = entry;
    if (count->last < last)
        count->last = last;
    return true;
}

bool tbd_lean_count_blocks(struct work *w, const uint32_t *entries, uint32_t length, uint32_t times,
                           uint32_t time)
{
    for (uint32_t n = 0; n < length; n++) {
        struct block_count *count = &w->builder->counts[w->plans[entries[n]].id];

        if (!count_block(w, entries[n], times, time + n))
            return false;
        if (!n || !w->plans[entries[n - 1]].calls)
            continue;
        count->enters += times;
        if (count->last_enter < time + n)
            count->last_enter = time + n;
    }
    return true;
}

bool tbd_lean_take_last(struct work *w, uint32_t entry, size_t *io_taken)
{
    const struct tbd_block_plan *plan = &w->plans[entry];

    if (!tbd_lean_is_possible(w, entry) || plan->operand_bytes > w->operand_bytes - w->in)
        return true;
    tbd_lean_enter(w, entry);
    w->called = plan->calls ? plan->id : 0;
    tbd_build_defer(w, plan, (uint32_t)w->index, w->operands + w->in);
    w->builder->lean->renames |= plan->id != entry;
    w->in += plan->operand_bytes;
    w->index += plan->op_count + 1u;
    w->time++;
    ++*io_taken;
    return count_block(w, entry, 1, w->time - 1);
}

/* ---- taking blocks ---- */

/* Turns entries into ids of the trace, and closes the gaps that messages left. */
static void keep_entries(struct work *w, size_t i, size_t count)
{
    uint32_t *to = w->entries + w->kept_entries;

    if (w->builder->lean->renames) {
        for (size_t n = 0; n < count; n++)
            to[n] = w->plans[w->entries[i + n]].id;
    } else if (to != w->entries + i) {
        memmove(to, w->entries + i, count * sizeof(*to));
    }
    w->kept_entries += count;
}

static bool take(struct work *w, const uint32_t *entries, size_t left, size_t *out_taken)
{
    switch (w->method) {
    case TBD_COUNT_CHAIN: return tbd_path_chain_take(w, entries, left, out_taken);
    case TBD_COUNT_TABLE: return tbd_path_table_take(w, entries, left, out_taken);
    default: return tbd_blocks_take(w, entries, left, out_taken);
    }
}

bool tbd_lean_take(struct work *w, size_t *io_i)
{
    const uint32_t *entries = w->entries + *io_i;
    size_t left = w->entry_count - *io_i, taken = 0;

    tbd_build_count_deferred(w);
    if (!take(w, entries, left, &taken))
        return false;
    if (!taken)
        return true;
    w->last_plan = &w->plans[entries[taken - 1]];
    w->last_index = (uint32_t)(w->index - w->last_plan->op_count - 1);
    keep_entries(w, *io_i, taken);
    *io_i += taken;
    return check_method(w);
}

void tbd_lean_look(struct work *w)
{
    if (w->method == TBD_COUNT_CHAIN)
        tbd_path_chain_look(w);
    else if (w->method == TBD_COUNT_TABLE)
        tbd_path_table_look(w);
}

/* ---- the end ---- */

bool tbd_lean_finish(struct work *w)
{
    if (w->method == TBD_COUNT_ROWS || w->method == TBD_COUNT_BLOCKS)
        return true;
    wait_of(w)->next = 0;
    return finish_method(w);
}

void tbd_lean_forget(struct tbd_lean *lean)
{
    if (!lean)
        return;
    if (lean->chain)
        tbd_path_chain_forget(lean->chain);
    if (lean->table)
        tbd_path_table_forget(lean->table);
    lean->renames = false;
}

void tbd_lean_free(struct tbd_lean *lean)
{
    if (!lean)
        return;
    tbd_path_chain_free(lean->chain);
    tbd_path_table_free(lean->table);
    free(lean);
}
