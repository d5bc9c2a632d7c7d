// SPDX-License-Identifier: MIT
/* build.c - understands a raw window
 *
 * Entries are gone through in segments (coding.h), each twice.  First they are counted, so that the
 * records of each block can be laid behind each other (rows).  Then they are checked, and what
 * belongs to the order of events is moved together in place: messages about state (pages,
 * registers, mappings) are taken out, ids become the trace's.  As those messages come almost only
 * at a window's end, hardly anything is moved.  Then the rows are gone through block by block,
 * while they are still in the cache: stores are counted, and the records coded for the trace file;
 * the same few fields looked at again and again, in memory that is read straight on, which the
 * order of events would not give. Last, if the trace learnt pages it did not know, the window's
 * stores are undone on them, backwards, so that they become what they were when the window (or
 * their mapping) began.
 *
 * Invariants
 * B1  Nothing is used before it was checked to lie inside the raw window; the first thing that is
 *     wrong ends the window before it (`damaged`), as does the end of a killed program's stream.
 * B2  The result does not depend on where chunks began and ended.
 * B3  Payloads that pointers keep are copied before anything is moved over them. */
#include "organizer/build_private.h"

#include "base/search.h"
#include "format/codec.h"
#include "format/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOO_MANY_ENTRIES 0xfffffff0u

/* ---- small helpers ---- */

struct tbd_builder *tbd_builder_new(void)
{
    return calloc(1, sizeof(struct tbd_builder));
}

void tbd_builder_free(struct tbd_builder *builder)
{
    if (!builder)
        return;
    tbd_shadow_free(&builder->shadow);
    tbd_coder_free(builder->coder);
    tbd_buffer_free(&builder->coded);
    free(builder->counts);
    free(builder->slots);
    free(builder->slot_of);
    free(builder->met);
    free(builder->sets);
    free(builder->ids);
    free(builder->rows);
    free(builder);
}

void tbd_builder_code(struct tbd_builder *builder)
{
    builder->codes = true;
}

void tbd_product_free(struct tbd_product *product)
{
    tbd_window_free(product->window);
    *product = (struct tbd_product){ 0 };
}

void *tbd_build_keep(struct work *w, const void *data, size_t bytes)
{
    void *copy = tbd_window_memory(w->window, bytes);

    if (copy && bytes)
        memcpy(copy, data, bytes);
    return copy;
}

enum tbd_status tbd_build_damage(struct work *w, const char *what)
{
    w->out->damaged = true;
    snprintf(w->out->damage, sizeof(w->out->damage), "entry %zu: %s", w->kept_entries, what);
    return TBD_NOTFOUND;
}

/* ---- moving events together ---- */

/* What was read since the last time stays: closes the gap in front of it. */
void tbd_build_close_gap(struct work *w)
{
    size_t bytes = w->in - w->moved_from;

    if (w->kept != w->moved_from && bytes)
        memmove(w->operands + w->kept, w->operands + w->moved_from, bytes);
    w->kept += bytes;
    w->moved_from = w->in;
}

/* Another event follows: pages that were pending are not the end state, and must be copied
 * before events are moved over them (B3). */
enum tbd_status tbd_build_go_on(struct work *w)
{
    while (w->pages_pending) {
        struct tbd_page_note *note = &w->pages[w->page_count - w->pages_pending--];

        note->at_end = false;
        note->bytes = tbd_build_keep(w, note->bytes, PAGE_BYTES);
        if (!note->bytes)
            return TBD_NOMEM;
    }
    if (w->reg_count && !w->index)
        w->out->has_start_regs = true;
    w->reg_count = 0;
    return TBD_OK;
}

/* ---- block entries ---- */

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

/* ---- segments ---- */

static bool new_slot(struct tbd_builder *b, const struct tbd_plan *plan)
{
    struct block_count *count = &b->counts[plan->id];

    if (!tbd_array_grow(&b->sets, b->set_count, &b->set_room, sizeof(*b->sets)) ||
        !tbd_array_grow(&b->slots, b->set_count + 1, &b->slot_room, sizeof(*b->slots)) ||
        !tbd_array_grow(&b->ids, b->id_count, &b->id_room, sizeof(*b->ids)))
        return false;
    b->sets[b->set_count++] = (struct tbd_row_set){ .id = plan->id };
    b->slots[b->set_count] = (struct block_slot){
        .id = plan->id, .operand_bytes = plan->operand_bytes, .op_count = plan->op_count,
        .stride = (uint16_t)(plan->operand_bytes ? plan->operand_bytes + PREFIX : 0),
        .calls = plan->calls != 0,
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

/* How often each block occurs in the segment that begins with entry i, at most. */
static bool count_segment(struct work *w, size_t i)
{
    struct tbd_builder *b = w->builder;
    size_t left = TBD_SEGMENT_ENTRIES;

    b->set_count = 0;
    if (!tbd_array_grow(&b->slots, 0, &b->slot_room, sizeof(*b->slots)))
        return false;
    b->slots[0] = (struct block_slot){ 0 };
    for (; i < w->entry_count && left; i++) {
        uint32_t entry = w->entries[i];

        if (entry - 1 >= w->plan_count) {
            left -= tbd_message_is_event(entry & ~TBD_ENTRY_MESSAGE);
            continue;
        }
        left--;
        if (__builtin_expect(!b->slot_of[entry], 0) && !meet(w, entry))
            return false;
        b->slots[b->slot_of[entry]].count++;
    }
    return true;
}

/* Room for the segment's rows. */
static bool begin_segment(struct work *w, size_t i)
{
    struct tbd_builder *b = w->builder;
    size_t bytes = TBD_ROW_SLACK;

    if (!count_segment(w, i))
        return false;
    for (size_t k = 0; k < b->set_count; k++) {
        struct block_slot *slot = &b->slots[k + 1];

        slot->row = slot->stride ? (uint32_t)bytes : 0;
        b->sets[k].start = slot->row;
        if (slot->stride)
            bytes += (size_t)slot->count * slot->stride + TBD_ROW_STEP;
        slot->count = 0;
    }
    w->segment_end = w->kept_entries + TBD_SEGMENT_ENTRIES;
    if (bytes + TBD_ROW_SLACK <= b->row_room)
        return true;
    free(b->rows);
    b->row_room = bytes + bytes / 2 + TBD_ROW_SLACK;
    b->rows = malloc(b->row_room);
    if (!b->rows)
        b->row_room = 0;
    return b->rows;
}

/* Was the block whose entry is this event left before this instruction? */
static bool is_cut(const struct work *w, uint32_t index, uint32_t insn)
{
    size_t found = TBD_COUNT_BEFORE(i, w->cut_count, w->cuts[i].index < index);

    return found < w->cut_count && w->cuts[found].index == index && insn >= w->cuts[found].limit;
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
static void finish_set(struct work *w, struct tbd_row_set *set, const struct block_slot *slot)
{
    struct block_count *count = &w->builder->counts[set->id];
    const struct tbd_plan *plan = &w->plans[count->plan];

    count->slot = 0;
    count->count += slot->count;
    if (slot->count)
        count->last = slot->last;
    count->enters += slot->enters;
    if (slot->enters)
        count->last_enter = slot->last_enter;
    set->count = slot->stride ? slot->count : 0;
    for (uint16_t i = 0; i < plan->store_count; i++)
        count_stores(w, plan->stores + i, w->builder->rows + set->start, slot->stride, set->count);
}

static void forget_slots(struct tbd_builder *b)
{
    for (size_t i = 0; i < b->met_count; i++)
        b->slot_of[b->met[i]] = 0;
    b->met_count = 0;
}

static void finish_segment(struct work *w)
{
    struct tbd_builder *b = w->builder;
    size_t sets = 0;
    bool is_empty = w->kept_entries + TBD_SEGMENT_ENTRIES == w->segment_end;

    for (size_t i = 0; i < b->set_count; i++) {
        finish_set(w, &b->sets[i], &b->slots[i + 1]);
        if (b->sets[i].count)
            b->sets[sets++] = b->sets[i];
    }
    b->set_count = 0;
    forget_slots(b);
    if (b->codes && !is_empty)
        tbd_coder_put_segment(b->coder, &b->coded, b->sets, sets, b->rows, PREFIX);
}

/* Block entries from entry i on, up to the next message, the first impossible one, or the
 * segment's end. */
static size_t take_blocks(struct work *w, size_t i)
{
    struct block_slot *slots = w->builder->slots;
    const uint32_t *slot_of = w->builder->slot_of;
    uint8_t *rows = w->builder->rows;
    uint32_t *entries = w->entries;
    const uint8_t *operands = w->operands;
    const uint32_t plan_count = w->plan_count;
    const size_t in_end = w->operand_bytes;
    size_t in = w->in, kept_entries = w->kept_entries;
    uint64_t next_index = w->index;
    uint32_t time = w->time;
    uint32_t called = w->called != 0;
    uint32_t last_entry = 0;

    for (; i < w->entry_count && kept_entries < w->segment_end; i++) {
        uint32_t entry = entries[i];
        uint32_t index = (uint32_t)next_index;
        struct block_slot *slot;
        uint32_t bytes, row;

        if (entry - 1 >= plan_count) /* a message, 0, or not defined */
            break;
        slot = &slots[slot_of[entry]];
        bytes = slot->operand_bytes;
        if (!slot->id || bytes > in_end - in)
            break;
        row = slot->row;
        slot->row = row + slot->stride;
        slot->count++;
        slot->last = time;
        slot->enters += called;
        slot->last_enter = called ? time : slot->last_enter;
        called = slot->calls;
        next_index += 1u + slot->op_count;
        last_entry = entry;
        entries[kept_entries++] = slot->id;
        memcpy(rows + row, &index, sizeof(index));
        tbd_row_copy(rows + row + PREFIX, operands + in, bytes);
        in += bytes;
        time++;
    }
    w->in = in;
    w->kept_entries = kept_entries;
    if (last_entry) {
        w->last_plan = &w->plans[last_entry];
        w->last_index = (uint32_t)(next_index - 1u - w->last_plan->op_count);
        w->called = called ? w->last_plan->id : 0;
    }
    w->index = next_index;
    w->time = time;
    return i;
}

/* ---- the pass ---- */

static const char *why_not_a_block(const struct work *w, uint32_t entry)
{
    if (!entry || entry > w->plan_count)
        return "a block that was not defined";
    if (!w->plans[entry].id)
        return "a block that play did not have";
    return "a record outside the operands";
}

/* The last entry of a killed program: its operands may not be complete, so it counts only if it has
 * none. */
static void drop_last(struct work *w)
{
    uint32_t entry = w->entry_count ? w->entries[w->entry_count - 1] : 0;

    if (w->cut && entry && !(entry & TBD_ENTRY_MESSAGE) && entry <= w->plan_count &&
        w->plans[entry].operand_bytes)
        w->entry_count--;
}

/* Entries of a segment, from *i on. */
static enum tbd_status take_segment(struct work *w, size_t *i)
{
    while (*i < w->entry_count && w->kept_entries < w->segment_end) {
        uint32_t entry = w->entries[*i];
        enum tbd_status status;

        if (entry & TBD_ENTRY_MESSAGE) {
            status = tbd_build_message(w, entry & ~TBD_ENTRY_MESSAGE);
            if (status)
                return status;
            ++*i;
            continue;
        }
        status = tbd_build_go_on(w);
        if (status)
            return status;
        if (tbd_turns_is_open(&w->turns) && entry && entry <= w->plan_count &&
            !tbd_turns_open(&w->turns, w->plans[entry].id, w->time))
            return TBD_NOMEM;
        *i = take_blocks(w, *i);
        if (*i < w->entry_count && w->kept_entries < w->segment_end &&
            !(w->entries[*i] & TBD_ENTRY_MESSAGE))
            return tbd_build_damage(w, why_not_a_block(w, w->entries[*i]));
    }
    return w->index > UINT32_MAX ? tbd_build_damage(w, "too many events") : TBD_OK;
}

static enum tbd_status pass(struct work *w)
{
    enum tbd_status status = TBD_OK;
    size_t i = 0;

    if (w->entry_count > TOO_MANY_ENTRIES)
        return tbd_build_damage(w, "too many entries");
    while (i < w->entry_count && !status) {
        if (!begin_segment(w, i))
            return TBD_NOMEM;
        status = take_segment(w, &i);
        finish_segment(w);
    }
    return status;
}

static bool prepare(struct tbd_builder *b, const struct tbd_raw_window *raw,
                    struct tbd_block_table *table)
{
    b->coded.used = 0;
    b->coded.failed = false;
    if (b->codes && b->coder_table != table) {
        tbd_coder_free(b->coder);
        b->coder = tbd_coder_new(table);
        b->coder_table = table;
    }
    return reserve_counts(b, raw->highest_id) && reserve_slots(b, raw->plan_count) &&
           (b->coder || !b->codes);
}

static void fill_counts(struct tbd_product *out)
{
    out->counts.first_time = out->window->first_time;
    out->counts.blocks = out->window->blocks;
    out->counts.complete = out->window->complete;
    out->counts.level = 3;
}

enum tbd_status tbd_build(struct tbd_builder *builder, struct tbd_raw_window *raw,
                          const struct tbd_plan *plans, struct tbd_block_table *table,
                          struct tbd_product *out)
{
    struct work w = {
        .builder = builder, .plans = plans, .plan_count = raw->plan_count, .out = out,
        .entries = raw->entries, .entry_count = raw->entry_count,
        .operands = raw->operands, .operand_bytes = raw->operand_bytes, .cut = raw->cut,
    };
    enum tbd_status status = TBD_NOMEM;

    *out = (struct tbd_product){ .window = tbd_window_new(table) };
    w.window = out->window;
    if (w.window && tbd_build_adopt(&w, raw->entries)) {
        raw->entries = NULL;
        if (tbd_build_adopt(&w, raw->operands)) {
            raw->operands = NULL;
            w.window->first_time = raw->first_time;
            drop_last(&w);
            status = prepare(builder, raw, table) && tbd_turns_begin(&w.turns)
                         ? pass(&w)
                         : TBD_NOMEM;
            if (status != TBD_NOMEM)
                status = tbd_build_finish(&w) ? TBD_OK : TBD_NOMEM;
        } else {
            raw->operands = NULL;
        }
    } else if (w.window) {
        raw->entries = NULL;
    }
    tbd_raw_window_free(raw);
    free(w.pages);
    free(w.cuts);
    free(w.regs);
    tbd_turns_free(&w.turns);
    if (!tbd_build_adopt(&w, out->side))
        status = TBD_NOMEM;
    if (status) {
        free(w.log_offsets);
        tbd_shadow_free(&builder->shadow);
        if (builder->counts)
            memset(builder->counts, 0, builder->count_capacity * sizeof(*builder->counts));
        builder->id_count = 0;
        forget_slots(builder);
        tbd_product_free(out);
        return status;
    }
    fill_counts(out);
    return TBD_OK;
}
