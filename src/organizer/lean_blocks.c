// SPDX-License-Identifier: MIT
/* lean_blocks.c - counts the block entries of a program that takes new paths
 *
 * Each block is counted when it comes, and so are the words that it stores to; nothing is kept.
 * Where blocks hardly repeat, this takes less memory and time than copying their records into rows
 * first. */
#include "organizer/lean_private.h"

#include <string.h>

#define STRETCH 65536u /* blocks that are taken at a time */

static inline __attribute__((always_inline)) void count_stores(struct tbd_shadow *shadow,
                                                               const struct tbd_block_plan *plan,
                                                               const uint8_t *record,
                                                               uint32_t index)
{
    const struct tbd_plan_store *store = plan->stores;

    for (const struct tbd_plan_store *end = store + plan->store_count; store < end; store++) {
        bool has_base = store->base != TBD_BASE_NONE; /* unpredictable: no branch */
        uint64_t address;

        memcpy(&address, record + (has_base ? store->base : 0), sizeof(address));
        address = (has_base ? address : 0) + (uint64_t)store->add;
        tbd_shadow_store(shadow, address, store->bytes, index + store->index);
    }
}

/* Takes the blocks that another block follows. */
static bool take_followed(struct work *w, const uint32_t *entries, size_t left, size_t *out_taken)
{
    struct tbd_builder *b = w->builder;
    const uint8_t *at = w->operands + w->in, *end = w->operands + w->operand_bytes;
    uint32_t time = w->time, index = (uint32_t)w->index, called = w->called;
    bool renames = b->lean->renames;
    size_t n = 0;

    for (; n + 1 < left && n < STRETCH && !(entries[n + 1] & TBD_ENTRY_MESSAGE); n++, time++) {
        uint32_t entry = entries[n];
        const struct tbd_block_plan *plan = &w->plans[entry];
        struct block_count *count, *entered;

        if (!tbd_lean_is_possible(w, entry) || plan->operand_bytes > (size_t)(end - at))
            break;
        count = &b->counts[plan->id];
        if (!count->count++ && !tbd_build_note_id(b, plan->id))
            return false;
        count->plan = entry;
        count->last = time;
        entered = &b->counts[called ? plan->id : 0]; /* 0: counts[0] is a scratch entry */
        entered->enters++;
        entered->last_enter = time;
        called = plan->calls ? plan->id : 0;
        renames |= plan->id != entry;
        count_stores(&b->shadow, plan, at, index);
        at += plan->operand_bytes;
        index += plan->op_count + 1u;
    }
    b->lean->renames = renames;
    w->index += index - (uint32_t)w->index;
    w->in = (size_t)(at - w->operands);
    w->time = time;
    w->called = called;
    *out_taken = n;
    return true;
}

bool tbd_blocks_take(struct work *w, const uint32_t *entries, size_t left, size_t *out_taken)
{
    size_t n;

    if (!take_followed(w, entries, left, &n))
        return false;
    *out_taken = n;
    return n == STRETCH || (n + 1 < left && !(entries[n + 1] & TBD_ENTRY_MESSAGE)) ||
           tbd_lean_take_last(w, entries[n], out_taken);
}
