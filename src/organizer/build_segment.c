// SPDX-License-Identifier: MIT
/* build_segment.c - the block entries of a segment, and their records
 *
 * A segment's entries are processed in two passes.  Counting (BUILD_SEGMENT-1) looks every block
 * up, once, and notes its slot.  Taking (BUILD_SEGMENT-2), run by run between messages, stores the
 * records of each block one after another.  Both loops do nothing else, as the organizer spends a
 * large part of its time in them.
 *
 * Invariants
 * BUILD_SEGMENT-1  slot_at[n] is the slot of the segment's n-th block entry; call_at, run_ends and
 *     tallies count the same entries.
 * BUILD_SEGMENT-2  Only blocks that were counted are taken: they have slots, and their rows have
 *     space for all of them. */
#include "organizer/build_private.h"

#include "base/assert.h"
#include "base/array.h"
#include "format/window/window_make.h"

#include <stdlib.h>
#include <string.h>

bool tbd_build_reserve(struct tbd_builder *b, uint32_t plan_count, uint32_t highest_id)
{
    if (!b->call_at)
        b->call_at = malloc((TBD_SEGMENT_ENTRIES + 1) * sizeof(*b->call_at));
    if (!b->slot_at)
        b->slot_at = malloc(TBD_SEGMENT_ENTRIES * sizeof(*b->slot_at));
    return b->call_at && b->slot_at &&
           tbd_array_reach(&b->counts, highest_id, &b->count_capacity, sizeof(*b->counts)) &&
           tbd_array_reach(&b->slot_of, plan_count, &b->slot_of_capacity, sizeof(*b->slot_of));
}

/* ---- counting ---- */

bool tbd_build_note_id(struct tbd_builder *b, uint32_t id)
{
    if (!tbd_array_grow(&b->ids, b->id_count, &b->id_capacity, sizeof(*b->ids)))
        return false;
    b->ids[b->id_count++] = id;
    return true;
}

static bool new_slot(struct tbd_builder *b, const struct tbd_block_plan *plan)
{
    struct block_count *count = &b->counts[plan->id];
    size_t slot_capacity = b->slot_capacity;

    if (!tbd_array_grow(&b->sets, b->set_count, &b->set_capacity, sizeof(*b->sets)) ||
        !tbd_array_grow(&b->tallies, b->set_count + 1, &slot_capacity, sizeof(*b->tallies)) ||
        !tbd_array_grow(&b->slots, b->set_count + 1, &b->slot_capacity, sizeof(*b->slots)) ||
        (!count->count && !tbd_build_note_id(b, plan->id)))
        return false;
    b->sets[b->set_count++] = (struct tbd_row_set){ .id = plan->id };
    b->tallies[b->set_count] = (struct block_tally){ .calls = plan->calls != 0 };
    b->slots[b->set_count] = (struct block_slot){
        .id = plan->id,
        .operand_bytes = plan->operand_bytes,
        .events = (uint16_t)(plan->op_count + 1u),
        .stride = (uint16_t)(plan->operand_bytes ? plan->operand_bytes + PREFIX : 0),
    };
    count->slot = (uint32_t)b->set_count;
    return true;
}

/* A block of the stream that is new in the segment.  Several stream ids can stand for one id of the
 * trace. */
static bool meet(struct work *w, uint32_t entry)
{
    const struct tbd_block_plan *plan = &w->plans[entry];
    struct tbd_builder *b = w->builder;

    if (!tbd_array_grow(&b->met, b->met_count, &b->met_capacity, sizeof(*b->met)) ||
        (!b->counts[plan->id].slot && !new_slot(b, plan)))
        return false;
    b->met[b->met_count++] = entry;
    b->counts[plan->id].plan = entry;
    b->slot_of[entry] = b->counts[plan->id].slot;
    b->renames |= plan->id != entry;
    if (b->longest < plan->operand_bytes)
        b->longest = plan->operand_bytes;
    return true;
}

/* Blocks from entry i on, up to `end`, a message, one that is new in the segment, or an impossible
 * one. */
static size_t count_run(struct work *w, size_t i, size_t end)
{
    struct tbd_builder *b = w->builder;
    struct block_tally *tallies = b->tallies;
    const uint32_t *slot_of = b->slot_of;
    const uint32_t *entries = w->entries;
    const uint32_t plan_count = w->plan_count;
    uint32_t *slot_at = b->slot_at;
    uint32_t *call_at = b->call_at + b->call_count;
    uint32_t n = b->block_count;

    for (; i < end; i++) {
        uint32_t entry = entries[i];
        uint32_t slot;

        if (entry > plan_count)
            break;
        slot = slot_of[entry];
        if (!slot)
            break;
        slot_at[n] = slot;
        tallies[slot].count++;
        tallies[slot].last = n;
        *call_at = n++;
        call_at += tallies[slot].calls;
    }
    b->call_count = (size_t)(call_at - b->call_at);
    b->block_count = n;
    return i;
}

/* The blocks since the message before are a run. */
static bool end_run(struct tbd_builder *b)
{
    if (b->run_count && b->run_ends[b->run_count - 1] == b->block_count)
        return true;
    if (!b->block_count)
        return true;
    if (!tbd_array_grow(&b->run_ends, b->run_count, &b->run_capacity, sizeof(*b->run_ends)))
        return false;
    b->run_ends[b->run_count++] = b->block_count;
    return true;
}

static bool tallies_add_up(const struct tbd_builder *b)
{
    uint64_t sum = 0;

    for (size_t i = 1; i <= b->set_count; i++)
        sum += b->tallies[i].count;
    return sum == b->block_count && b->block_count <= TBD_SEGMENT_ENTRIES &&
           b->call_count <= b->block_count;
}

/* How often each block occurs in the segment that begins with entry i. */
static bool count_segment(struct work *w, size_t i)
{
    size_t left = TBD_SEGMENT_ENTRIES;

    w->counted_bad = false;
    while (i < w->entry_count && left && !w->counted_bad) {
        size_t limit = w->entry_count - i < left ? w->entry_count : i + left;
        size_t stop = count_run(w, i, limit);
        uint32_t entry;

        left -= stop - i;
        i = stop;
        if (stop == limit)
            continue;
        entry = w->entries[i];
        if (entry & TBD_ENTRY_MESSAGE) {
            left -= tbd_message_is_event(entry & ~TBD_ENTRY_MESSAGE);
            i++;
            if (!end_run(w->builder))
                return false;
        } else if (!entry || entry > w->plan_count || !w->plans[entry].id) {
            w->counted_bad = true;
        } else if (!meet(w, entry)) {
            return false;
        }
    }
    w->counted_end = i;
    TBD_INVARIANT("BUILD_SEGMENT-1", tallies_add_up(w->builder));
    return end_run(w->builder);
}

static void forget_segment(struct tbd_builder *b)
{
    b->set_count = 0;
    b->block_count = b->blocks_taken = 0;
    b->run_count = b->runs_taken = 0;
    b->call_count = b->calls_taken = 0;
    b->longest = 0;
    b->renames = false;
}

/* Reserves the segment's rows. */
bool tbd_build_begin_segment(struct work *w, size_t i)
{
    struct tbd_builder *b = w->builder;
    size_t bytes = TBD_ROW_SLACK;

    forget_segment(b);
    if (!count_segment(w, i))
        return false;
    for (size_t k = 0; k < b->set_count; k++) {
        struct block_slot *slot = &b->slots[k + 1];

        slot->row = slot->stride ? (uint32_t)bytes : 0;
        b->sets[k].start = slot->row;
        if (slot->stride)
            bytes += (size_t)b->tallies[k + 1].count * slot->stride + TBD_ROW_STEP;
    }
    w->segment_begin = w->kept_entries;
    w->segment_time = w->time;
    if (bytes + TBD_ROW_SLACK <= b->row_capacity)
        return true;
    free(b->rows);
    b->row_capacity = bytes + bytes / 2 + TBD_ROW_SLACK;
    b->rows = malloc(b->row_capacity);
    if (!b->rows)
        b->row_capacity = 0;
    return b->rows;
}

/* ---- taking ---- */

/* Notes which of the blocks just taken were entered by a call: blocks [first, end) of the segment,
 * the first is entry `kept`. */
static void note_calls(struct work *w, uint32_t first, uint32_t end)
{
    const uint32_t *entries = w->entries + w->kept_entries - first;
    struct tbd_builder *b = w->builder;

    if (w->called) {
        b->counts[entries[first]].enters++;
        b->counts[entries[first]].last_enter = w->time;
    }
    w->called = 0;
    while (b->calls_taken < b->call_count && b->call_at[b->calls_taken] < end) {
        uint32_t caller = b->call_at[b->calls_taken++];
        struct block_count *count;

        if (caller + 1 == end) {
            w->called = entries[caller];
            break;
        }
        count = &b->counts[entries[caller + 1]];
        count->enters++;
        count->last_enter = w->segment_time + caller + 1;
    }
}

/* Copies the records of blocks [*io_block, end) into their rows.  Each is at most `most` bytes
 * long, so that the end of the operands need not be checked for each.  Returns where the operands
 * go on. */
static inline __attribute__((always_inline)) const uint8_t *
lay_rows(struct tbd_builder *b, const uint8_t *at, uint32_t block, uint32_t end, uint64_t *io_index)
{
    struct block_slot *slots = b->slots;
    const uint32_t *slot_at = b->slot_at;
    uint8_t *rows = b->rows;
    uint64_t index = *io_index;

    for (; block < end; block++) {
        struct block_slot *slot = &slots[slot_at[block]];
        uint32_t low = (uint32_t)index, bytes = slot->operand_bytes;
        uint8_t *row = rows + slot->row;

        slot->row += slot->stride;
        index += slot->events;
        memcpy(row, &low, sizeof(low));
        tbd_row_copy(row + PREFIX, at, bytes);
        at += bytes;
    }
    *io_index = index;
    return at;
}

__attribute__((target("avx2"))) static const uint8_t *lay_rows_avx2(struct tbd_builder *b,
                                                                    const uint8_t *at,
                                                                    uint32_t block, uint32_t end,
                                                                    uint64_t *io_index)
{
    return lay_rows(b, at, block, end, io_index);
}

static const uint8_t *lay_rows_any(struct tbd_builder *b, const uint8_t *at, uint32_t block,
                                   uint32_t end, uint64_t *io_index)
{
    return __builtin_cpu_supports("avx2") ? lay_rows_avx2(b, at, block, end, io_index)
                                          : lay_rows(b, at, block, end, io_index);
}

/* Takes blocks up to `end` whose records are inside the operands. */
static uint32_t take_records(struct work *w, uint32_t block, uint32_t end)
{
    struct tbd_builder *b = w->builder;

    while (block < end) {
        size_t left = w->operand_bytes - w->in;
        uint32_t some = end - block;
        const uint8_t *at = w->operands + w->in;

        if ((uint64_t)some * b->longest > left)
            some = (uint32_t)(left / b->longest);
        if (!some)
            some = b->slots[b->slot_at[block]].operand_bytes <= left;
        if (!some)
            break;
        w->in += (size_t)(lay_rows_any(b, at, block, block + some, &w->index) - at);
        block += some;
    }
    return block;
}

/* Turns entries into ids of the trace, and closes the gaps that messages left. */
static void keep_entries(struct work *w, size_t i, uint32_t block, uint32_t end)
{
    const struct tbd_builder *b = w->builder;
    uint32_t *to = w->entries + w->kept_entries;

    if (b->renames) {
        for (; block < end; block++)
            *to++ = b->slots[b->slot_at[block]].id;
    } else if (to != w->entries + i) {
        memmove(to, w->entries + i, (end - block) * sizeof(*to));
    }
}

/* Takes block entries from entry i on, up to the next message, the last one counted, or one whose
 * record is outside the operands. */
size_t tbd_build_take_run(struct work *w, size_t i)
{
    struct tbd_builder *b = w->builder;
    uint32_t first = b->blocks_taken;
    uint32_t end = take_records(w, first, b->run_ends[b->runs_taken++]);
    const struct block_slot *last;

    if (end == first)
        return i;
    TBD_INVARIANT("BUILD_SEGMENT-2", end <= b->block_count && w->in <= w->operand_bytes);
    keep_entries(w, i, first, end);
    note_calls(w, first, end);
    last = &b->slots[b->slot_at[end - 1]];
    w->last_plan = &w->plans[b->counts[last->id].plan];
    w->last_index = (uint32_t)(w->index - last->events);
    w->time += end - first;
    w->kept_entries += end - first;
    b->blocks_taken = end;
    return i + (end - first);
}

/* ---- the end of a segment ---- */

/* The window ends in the middle of the segment: corrects the counts to what was taken. */
static void count_again(struct tbd_builder *b)
{
    for (size_t i = 0; i < b->set_count; i++)
        b->tallies[i + 1].count = 0;
    for (uint32_t block = 0; block < b->blocks_taken; block++) {
        b->tallies[b->slot_at[block]].count++;
        b->tallies[b->slot_at[block]].last = block;
    }
}

static void count_stores(const struct work *w, const struct tbd_plan_store *store,
                         const uint8_t *row, size_t stride, uint32_t count)
{
    struct tbd_shadow *shadow = &w->builder->shadow;
    bool has_cuts = w->cut_count != 0;
    bool has_base = store->base != TBD_BASE_NONE;

    for (uint32_t i = 0; i < count; i++, row += stride) {
        uint64_t address = 0;
        uint32_t index;

        memcpy(&index, row, sizeof(index));
        if (has_cuts && tbd_is_cut(w->cuts, w->cut_count, index, store->insn))
            continue;
        if (has_base)
            memcpy(&address, row + PREFIX + store->base, sizeof(address));
        address += (uint64_t)store->add;
        tbd_shadow_store(shadow, address, store->bytes, index + store->index);
    }
}

void tbd_build_defer(struct work *w, const struct tbd_block_plan *plan, uint32_t index,
                     const uint8_t *record)
{
    struct deferred_block *deferred = &w->builder->deferred;

    if (!plan->store_count)
        return;
    deferred->plan = plan;
    deferred->index = index;
    memcpy(deferred->record, record, plan->operand_bytes);
}

void tbd_build_count_deferred(struct work *w)
{
    struct deferred_block *deferred = &w->builder->deferred;
    const struct tbd_block_plan *plan = deferred->plan;

    deferred->plan = NULL;
    for (uint16_t i = 0; plan && i < plan->store_count; i++) {
        const struct tbd_plan_store *store = &plan->stores[i];
        uint64_t address = 0;

        if (tbd_is_cut(w->cuts, w->cut_count, deferred->index, store->insn))
            continue;
        if (store->base != TBD_BASE_NONE)
            memcpy(&address, deferred->record + store->base, sizeof(address));
        tbd_shadow_store(&w->builder->shadow, address + (uint64_t)store->add, store->bytes,
                         deferred->index + store->index);
    }
}

/* A message about the segment's last block may be in the next segment: holds it back.  Returns the
 * block's slot, whose last row must not be counted. */
static uint32_t defer_last(struct work *w)
{
    struct tbd_builder *b = w->builder;
    uint32_t k = b->blocks_taken ? b->slot_at[b->blocks_taken - 1] : 0;
    const uint8_t *row;
    uint32_t index;

    if (!k || !b->slots[k].stride)
        return 0;
    row = b->rows + b->slots[k].row - b->slots[k].stride;
    memcpy(&index, row, sizeof(index));
    tbd_build_defer(w, &w->plans[b->counts[b->slots[k].id].plan], index, row + PREFIX);
    return k;
}

/* One block's rows are complete: counts them and their stores, except for the last `deferred`.  A block
 * that stores has operands: the old bytes. */
static void finish_set(struct work *w, struct tbd_row_set *set, size_t k, uint32_t deferred)
{
    const struct block_tally *tally = &w->builder->tallies[k];
    const struct block_slot *slot = &w->builder->slots[k];
    struct block_count *count = &w->builder->counts[set->id];
    const struct tbd_block_plan *plan = &w->plans[count->plan];

    count->slot = 0;
    count->count += tally->count;
    if (tally->count)
        count->last = w->segment_time + tally->last;
    set->count = slot->stride ? tally->count : 0;
    for (uint16_t i = 0; i < plan->store_count; i++)
        count_stores(w, plan->stores + i, w->builder->rows + set->start, slot->stride,
                     set->count - deferred);
}

void tbd_build_forget_slots(struct tbd_builder *b)
{
    for (size_t i = 0; i < b->met_count; i++)
        b->slot_of[b->met[i]] = 0;
    b->met_count = 0;
}

void tbd_build_finish_segment(struct work *w, bool is_cut_short)
{
    struct tbd_builder *b = w->builder;
    bool is_empty = w->kept_entries == w->segment_begin;
    uint32_t deferred = 0;
    size_t sets = 0;

    if (is_cut_short)
        count_again(b);
    else
        deferred = defer_last(w);
    for (size_t i = 0; i < b->set_count; i++) {
        finish_set(w, &b->sets[i], i + 1, deferred == i + 1);
        if (b->sets[i].count)
            b->sets[sets++] = b->sets[i];
    }
    b->set_count = 0;
    tbd_build_forget_slots(b);
    if (b->codes && !is_empty)
        tbd_coder_put_segment(b->coder, &b->coded, b->sets, sets, b->rows, PREFIX);
}
