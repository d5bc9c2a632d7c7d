// SPDX-License-Identifier: MIT
/* build_segment.c - the block entries of a segment, and their records
 *
 * A segment's entries are gone through twice.  Counting them (G1) looks every block up, once: the entry becomes
 * the number of the block's slot.  Taking them (G2), run by run between messages, lays their records behind
 * each other, block by block, and makes entries of slot numbers again: ids of the trace.  Both loops do nothing
 * else, as they are half of what the organizer does.
 *
 * Invariants
 * G1  Entries [segment's begin, counted_end) are slot numbers or messages, until they are taken.
 * G2  Only entries below counted_end are taken: those have slots, and rows have room for them all. */
#include "organizer/build_private.h"

#include "format/codec.h"

#include <stdlib.h>
#include <string.h>

static bool reserve_slots(struct tbd_builder *b, uint32_t plan_count)
{
    size_t room = (size_t)plan_count + plan_count / 2 + 1024;
    uint32_t *grown;

    if (plan_count < b->slot_of_room)
        return true;
    grown = realloc(b->slot_of, room * sizeof(*grown));
    if (!grown)
        return false;
    memset(grown + b->slot_of_room, 0, (room - b->slot_of_room) * sizeof(*grown));
    b->slot_of = grown;
    b->slot_of_room = room;
    return true;
}

static bool reserve_counts(struct tbd_builder *b, uint32_t id)
{
    uint32_t capacity = id + id / 2 + 1024;
    struct block_count *grown;

    if (id < b->count_capacity)
        return true;
    grown = realloc(b->counts, capacity * sizeof(*grown));
    if (!grown)
        return false;
    memset(grown + b->count_capacity, 0, (capacity - b->count_capacity) * sizeof(*grown));
    b->counts = grown;
    b->count_capacity = capacity;
    return true;
}

bool tbd_build_reserve(struct tbd_builder *b, uint32_t plan_count, uint32_t highest_id)
{
    if (!b->call_at)
        b->call_at = malloc((TBD_SEGMENT_ENTRIES + 1) * sizeof(*b->call_at));
    return b->call_at && reserve_counts(b, highest_id) && reserve_slots(b, plan_count);
}

/* ---- counting ---- */

static bool new_slot(struct tbd_builder *b, const struct tbd_plan *plan)
{
    struct block_count *count = &b->counts[plan->id];
    size_t slot_room = b->slot_room;

    if (!tbd_array_grow(&b->sets, b->set_count, &b->set_room, sizeof(*b->sets)) ||
        !tbd_array_grow(&b->tallies, b->set_count + 1, &slot_room, sizeof(*b->tallies)) ||
        !tbd_array_grow(&b->slots, b->set_count + 1, &b->slot_room, sizeof(*b->slots)) ||
        !tbd_array_grow(&b->ids, b->id_count, &b->id_room, sizeof(*b->ids)))
        return false;
    b->sets[b->set_count++] = (struct tbd_row_set){ .id = plan->id };
    b->tallies[b->set_count] = (struct block_tally){ .calls = plan->calls != 0 };
    b->slots[b->set_count] = (struct block_slot){
        .id = plan->id, .operand_bytes = plan->operand_bytes, .events = (uint16_t)(plan->op_count + 1u),
        .stride = (uint16_t)(plan->operand_bytes ? plan->operand_bytes + PREFIX : 0),
    };
    count->slot = (uint32_t)b->set_count;
    if (!count->count)
        b->ids[b->id_count++] = plan->id;
    return true;
}

/* A block of the stream that is new in the segment.  Several can be one of the trace's. */
static bool meet(struct work *w, uint32_t entry)
{
    const struct tbd_plan *plan = &w->plans[entry];
    struct tbd_builder *b = w->builder;

    if (!tbd_array_grow(&b->met, b->met_count, &b->met_room, sizeof(*b->met)) ||
        (!b->counts[plan->id].slot && !new_slot(b, plan)))
        return false;
    b->met[b->met_count++] = entry;
    b->counts[plan->id].plan = entry;
    b->slot_of[entry] = b->counts[plan->id].slot;
    return true;
}

/* Blocks from entry i on, up to `end`, a message, one that is new in the segment, or an impossible one. */
static size_t count_run(struct work *w, size_t i, size_t end, uint32_t *io_time)
{
    struct tbd_builder *b = w->builder;
    struct block_tally *tallies = b->tallies;
    const uint32_t *slot_of = b->slot_of;
    const uint32_t plan_count = w->plan_count;
    uint32_t *entries = w->entries;
    uint32_t *call_at = b->call_at;
    size_t calls = b->call_count;
    uint32_t time = *io_time;

    for (; i < end; i++) {
        uint32_t entry = entries[i];
        uint32_t slot;

        if (entry > plan_count)
            break;
        slot = slot_of[entry];
        if (!slot)
            break;
        entries[i] = slot;
        tallies[slot].count++;
        tallies[slot].last = time++;
        call_at[calls] = (uint32_t)i;
        calls += tallies[slot].calls;
    }
    b->call_count = calls;
    *io_time = time;
    return i;
}

/* How often each block occurs in the segment that begins with entry i. */
static bool count_segment(struct work *w, size_t i)
{
    size_t left = TBD_SEGMENT_ENTRIES;
    uint32_t time = w->time;

    w->counted_bad = false;
    while (i < w->entry_count && left && !w->counted_bad) {
        size_t limit = w->entry_count - i < left ? w->entry_count : i + left;
        size_t stop = count_run(w, i, limit, &time);
        uint32_t entry;

        left -= stop - i;
        i = stop;
        if (stop == limit)
            continue;
        entry = w->entries[i];
        if (entry & TBD_ENTRY_MESSAGE) {
            left -= tbd_message_is_event(entry & ~TBD_ENTRY_MESSAGE);
            i++;
        } else if (!entry || entry > w->plan_count || !w->plans[entry].id) {
            w->counted_bad = true;
        } else if (!meet(w, entry)) {
            return false;
        }
    }
    w->counted_end = i;
    return true;
}

/* Room for the segment's rows. */
bool tbd_build_begin_segment(struct work *w, size_t i)
{
    struct tbd_builder *b = w->builder;
    size_t bytes = TBD_ROW_SLACK;

    b->set_count = 0;
    b->call_count = b->calls_taken = 0;
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
    if (bytes + TBD_ROW_SLACK <= b->row_room)
        return true;
    free(b->rows);
    b->row_room = bytes + bytes / 2 + TBD_ROW_SLACK;
    b->rows = malloc(b->row_room);
    if (!b->rows)
        b->row_room = 0;
    return b->rows;
}

/* ---- taking ---- */

/* Which blocks of those that were just taken were entered by a call: kept entry `kept` was entry `i`, at `time`. */
static void note_calls(struct work *w, size_t i, size_t end, size_t kept)
{
    struct tbd_builder *b = w->builder;

    if (w->called) {
        b->counts[w->entries[kept]].enters++;
        b->counts[w->entries[kept]].last_enter = w->time;
    }
    while (b->calls_taken < b->call_count && b->call_at[b->calls_taken] + 1u < end) {
        size_t behind = b->call_at[b->calls_taken++] + 1u - i;
        struct block_count *count = &b->counts[w->entries[kept + behind]];

        count->enters++;
        count->last_enter = w->time + (uint32_t)behind;
    }
    w->called = 0;
    if (b->calls_taken < b->call_count && b->call_at[b->calls_taken] + 1u == end) {
        w->called = w->entries[kept + (end - 1 - i)];
        b->calls_taken++;
    }
}

/* Block entries from entry i on, up to the next message, the last one counted, or one whose record is outside
 * the operands. */
size_t tbd_build_take_run(struct work *w, size_t i)
{
    struct tbd_builder *b = w->builder;
    struct block_slot *slots = b->slots;
    uint8_t *rows = b->rows;
    uint32_t *entries = w->entries;
    const uint8_t *operands = w->operands;
    const size_t in_end = w->operand_bytes, end = w->counted_end, first = i;
    size_t in = w->in, kept_entries = w->kept_entries;
    uint64_t next_index = w->index;

    for (; i < end; i++) {
        uint32_t entry = entries[i];
        uint32_t index = (uint32_t)next_index;
        struct block_slot *slot;
        uint32_t bytes, row;

        if (entry & TBD_ENTRY_MESSAGE)
            break;
        slot = &slots[entry];
        bytes = slot->operand_bytes;
        if (bytes > in_end - in)
            break;
        row = slot->row;
        slot->row = row + slot->stride;
        memcpy(rows + row, &index, sizeof(index));
        tbd_row_copy(rows + row + PREFIX, operands + in, bytes);
        entries[kept_entries++] = slot->id;
        next_index += slot->events;
        in += bytes;
    }
    w->in = in;
    if (i > first) {
        const struct block_count *last = &b->counts[entries[kept_entries - 1]];

        note_calls(w, first, i, w->kept_entries);
        w->last_plan = &w->plans[last->plan];
        w->last_index = (uint32_t)(next_index - 1u - w->last_plan->op_count);
        w->time += (uint32_t)(i - first);
    }
    w->kept_entries = kept_entries;
    w->index = next_index;
    return i;
}

/* ---- the end of a segment ---- */

/* The window ends in the middle of the segment: counts are of what was taken. */
static void count_again(struct work *w)
{
    struct tbd_builder *b = w->builder;
    uint32_t time = w->segment_time;

    for (size_t i = 0; i < b->set_count; i++)
        b->tallies[i + 1].count = 0;
    for (size_t i = w->segment_begin; i < w->kept_entries; i++) {
        struct block_tally *tally;

        if (w->entries[i] & TBD_ENTRY_MESSAGE)
            continue;
        tally = &b->tallies[b->counts[w->entries[i]].slot];
        tally->count++;
        tally->last = time++;
    }
}

/* Was the block whose entry is this event left before this instruction? */
static bool is_cut(const struct work *w, uint32_t index, uint32_t insn)
{
    size_t low = 0;
    size_t high = w->cut_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (w->cuts[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < w->cut_count && w->cuts[low].index == index && insn >= w->cuts[low].limit;
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
        if (has_cuts && is_cut(w, index, store->insn))
            continue;
        if (has_base)
            memcpy(&address, row + PREFIX + store->base, sizeof(address));
        address += (uint64_t)store->add;
        tbd_shadow_store(shadow, address, store->bytes, index + store->index);
    }
}

/* One block's rows are complete: how many came, and what they stored.  A block that stores has
 * operands: the old bytes. */
static void finish_set(struct work *w, struct tbd_row_set *set, size_t k)
{
    const struct block_tally *tally = &w->builder->tallies[k];
    const struct block_slot *slot = &w->builder->slots[k];
    struct block_count *count = &w->builder->counts[set->id];
    const struct tbd_plan *plan = &w->plans[count->plan];

    count->slot = 0;
    count->count += tally->count;
    if (tally->count)
        count->last = tally->last;
    set->count = slot->stride ? tally->count : 0;
    for (uint16_t i = 0; i < plan->store_count; i++)
        count_stores(w, plan->stores + i, w->builder->rows + set->start, slot->stride, set->count);
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
    size_t sets = 0;

    if (is_cut_short)
        count_again(w);
    for (size_t i = 0; i < b->set_count; i++) {
        finish_set(w, &b->sets[i], i + 1);
        if (b->sets[i].count)
            b->sets[sets++] = b->sets[i];
    }
    b->set_count = 0;
    tbd_build_forget_slots(b);
    if (b->codes && !is_empty)
        tbd_coder_put_segment(b->coder, &b->coded, b->sets, sets, b->rows, PREFIX);
}
