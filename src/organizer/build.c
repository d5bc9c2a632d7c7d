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
    tbd_lean_free(builder->lean);
    tbd_coder_free(builder->coder);
    tbd_buffer_free(&builder->coded);
    free(builder->counts);
    free(builder->slots);
    free(builder->tallies);
    free(builder->call_at);
    free(builder->slot_at);
    free(builder->run_ends);
    free(builder->slot_of);
    free(builder->met);
    free(builder->sets);
    free(builder->ids);
    free(builder->rows);
    free(builder);
}

void tbd_builder_forget(struct tbd_builder *builder)
{
    tbd_lean_forget(builder->lean);
}

void tbd_builder_code(struct tbd_builder *builder, bool codes)
{
    builder->codes = codes;
}

void tbd_builder_give_coded(struct tbd_builder *builder, struct tbd_product *product, struct tbd_buffer *out)
{
    if (!product->coded)
        return;
    *out = builder->coded;
    builder->coded = (struct tbd_buffer){ 0 };
    product->coded = out;
}

void tbd_builder_take_coded(struct tbd_builder *builder, struct tbd_buffer *buffer)
{
    if (buffer->capacity > builder->coded.capacity) {
        struct tbd_buffer smaller = builder->coded;

        builder->coded = *buffer;
        *buffer = smaller;
    }
    tbd_buffer_free(buffer);
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

/* ---- the pass ---- */

static const char *why_not_a_block(const struct work *w, uint32_t entry)
{
    if (!entry || entry > w->plan_count)
        return "a block that was not defined";
    return "a block that play did not have";
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
    while (*i < w->counted_end) {
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
        if (tbd_turns_is_open(&w->turns) &&
            !tbd_turns_open(&w->turns, w->plans[entry].id, w->time))
            return TBD_NOMEM;
        tbd_build_release(w);
        *i = tbd_build_take_run(w, *i);
        if (*i < w->counted_end && !(w->entries[*i] & TBD_ENTRY_MESSAGE))
            return tbd_build_damage(w, "a record outside the operands");
    }
    if (w->counted_bad)
        return tbd_build_damage(w, why_not_a_block(w, w->entries[*i]));
    return w->index > UINT32_MAX ? tbd_build_damage(w, "too many events") : TBD_OK;
}

static enum tbd_status lean_step(struct work *w, size_t *i)
{
    uint32_t entry = w->entries[*i];
    size_t from = *i;
    enum tbd_status status;

    if (entry & TBD_ENTRY_MESSAGE) {
        uint32_t kind = entry & ~TBD_ENTRY_MESSAGE;

        if (!tbd_message_is_event(kind))
            tbd_lean_look(w);
        status = tbd_build_message(w, kind);
        *i += !status;
        return status;
    }
    if (!entry || entry > w->plan_count || !w->plans[entry].id)
        return tbd_build_damage(w, why_not_a_block(w, entry));
    status = tbd_build_go_on(w);
    if (status)
        return status;
    if (tbd_turns_is_open(&w->turns) && !tbd_turns_open(&w->turns, w->plans[entry].id, w->time))
        return TBD_NOMEM;
    if (!tbd_lean_take(w, i))
        return TBD_NOMEM;
    return *i == from ? tbd_build_damage(w, "a record outside the operands") : TBD_OK;
}

/* Without rows, from entry *i on. */
static enum tbd_status lean_pass(struct work *w, size_t *i)
{
    enum tbd_status status = TBD_OK;

    while (*i < w->entry_count && !status && w->way != TBD_WAY_ROWS) {
        status = lean_step(w, i);
        if (!status && w->index > UINT32_MAX)
            status = tbd_build_damage(w, "too many events");
    }
    return status == TBD_NOMEM || !tbd_lean_finish(w) ? TBD_NOMEM : status;
}

static enum tbd_status rows_pass(struct work *w, size_t *i)
{
    enum tbd_status status = TBD_OK;

    while (*i < w->entry_count && !status) {
        if (!tbd_build_begin_segment(w, *i))
            return TBD_NOMEM;
        status = take_segment(w, i);
        tbd_build_finish_segment(w, status != TBD_OK);
    }
    return status;
}

static enum tbd_status pass(struct work *w)
{
    enum tbd_status status = TBD_OK;
    size_t i = 0;

    if (w->entry_count > TOO_MANY_ENTRIES)
        return tbd_build_damage(w, "too many entries");
    if (w->way != TBD_WAY_ROWS)
        status = lean_pass(w, &i);
    if (!status)
        status = rows_pass(w, &i);
    tbd_build_release(w);
    return status;
}

static bool prepare(struct work *w, const struct tbd_raw_window *raw, struct tbd_block_table *table)
{
    struct tbd_builder *b = w->builder;

    b->coded.used = 0;
    b->coded.failed = false;
    b->held.plan = NULL;
    if (b->codes && b->coder_table != table) {
        tbd_coder_free(b->coder);
        b->coder = tbd_coder_new(table);
        b->coder_table = table;
    }
    return tbd_build_reserve(b, raw->plan_count, raw->highest_id) && (b->codes ? b->coder != NULL : tbd_lean_begin(w));
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
    if (w.window && tbd_window_adopt_room(w.window, raw->entries)) {
        raw->entries = NULL;
        if (tbd_window_adopt_room(w.window, raw->operands)) {
            raw->operands = NULL;
            w.window->first_time = raw->first_time;
            drop_last(&w);
            status = prepare(&w, raw, table) && tbd_turns_begin(&w.turns)
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
        tbd_build_forget_slots(builder);
        tbd_lean_forget(builder->lean);
        tbd_product_free(out);
        return status;
    }
    fill_counts(out);
    return TBD_OK;
}
