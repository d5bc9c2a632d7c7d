// SPDX-License-Identifier: MIT
/* build.c - understands a raw window
 *
 * Entries are processed in segments (coding.h), each in two passes.  The first pass counts them, so
 * that the records of each block can be stored one after another (rows).  The second checks them
 * and compacts the order of events in place: it takes out messages about state (pages, registers,
 * mappings) and turns stream ids into the trace's.  As those messages come almost only at a
 * window's end, hardly anything is moved.  Then the rows are processed block by block, while they
 * are in the cache: stores are counted, and the records coded for the trace file.  This reads the
 * same few fields again and again, from consecutive memory; the order of events would not.  Last,
 * if the trace learnt pages it did not know, the window's stores are undone on them, backwards, so
 * that they become what they were when the window (or their mapping) began.
 *
 * Invariants
 * BUILD-1  Nothing is used before it was checked to lie inside the raw window; the first thing that
 *     is wrong ends the window before it (`damaged`), as does the end of a killed program's stream.
 * BUILD-2  The result does not depend on where chunks began and ended. (not checked: test_organizer
 *     does, with chunks of many sizes)
 * BUILD-3  Payloads that pointers keep are copied before anything is moved over them. */
#include "organizer/build_private.h"

#include "base/assert.h"
#include "format/files/codec.h"
#include "format/window/window_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOO_MANY_ENTRIES 0xfffffff0u

/* ---- small helpers ---- */

struct tbd_builder *tbd_builder_new(void)
{
    return calloc(1, sizeof(struct tbd_builder));
}

void tbd_builder_forget(struct tbd_builder *builder)
{
    tbd_lean_forget(builder->lean);
}

void tbd_builder_code(struct tbd_builder *builder, bool codes)
{
    builder->codes = codes;
}

void tbd_builder_give_coded(struct tbd_builder *builder, struct tbd_product *product,
                            struct tbd_buffer *out)
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

enum tbd_status tbd_build_outside(struct work *w, const char *what)
{
    return w->more_comes ? TBD_TRUNCATED : tbd_build_damage(w, what);
}

/* ---- moving events together ---- */

/* Keeps what was read since the last call: closes the gap before it. */
void tbd_build_close_gap(struct work *w)
{
    size_t bytes = w->in - w->moved_from;

    if (w->kept != w->moved_from && bytes)
        memmove(w->operands + w->kept, w->operands + w->moved_from, bytes);
    w->kept += bytes;
    w->moved_from = w->in;
    TBD_INVARIANT("BUILD-1", w->kept <= w->in && w->in <= w->operand_bytes &&
                                 w->kept_entries <= w->entry_count);
}

/* A frame that lies in the operands is copied, too. */
static bool keep_frame(struct work *w, struct tbd_page_note *note)
{
    if (!(note->flags & TBD_PAGE_FRAME))
        return true;
    note->packed = tbd_build_keep(w, note->packed, note->packed_bytes);
    return note->packed;
}

/* Another event follows: pending pages are not the end state, and are copied before events are
 * moved over them (BUILD-3). */
enum tbd_status tbd_build_go_on(struct work *w)
{
    while (w->pages_pending) {
        struct tbd_page_note *note = &w->pages[w->page_count - w->pages_pending--];

        note->at_end = false;
        if (note->is_difference)
            return tbd_build_damage(w, "an event after pages of the window's end");
        if (!note->bytes && !keep_frame(w, note))
            return TBD_NOMEM;
        if (!note->bytes)
            continue;
        note->bytes = tbd_build_keep(w, note->bytes, PAGE_BYTES);
        if (!note->bytes)
            return TBD_NOMEM;
    }
    TBD_INVARIANT("BUILD-3", w->pages_pending == 0);
    if (w->regs.count && !w->index && !w->time)
        w->out->has_start_regs = true;
    w->regs.count = 0;
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
        if (tbd_turns_is_open(&w->turns) && !tbd_turns_open(&w->turns, w->plans[entry].id, w->time))
            return TBD_NOMEM;
        tbd_build_count_deferred(w);
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
    return *i == from ? tbd_build_outside(w, "a record outside the operands") : TBD_OK;
}

/* Takes entries from *i on without rows. */
static enum tbd_status lean_steps(struct work *w, size_t *i)
{
    enum tbd_status status = TBD_OK;

    while (*i < w->entry_count && !status && w->method != TBD_COUNT_ROWS) {
        status = lean_step(w, i);
        if (!status && w->index > UINT32_MAX)
            status = tbd_build_damage(w, "too many events");
    }
    return status;
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

/* Takes the entries from `i` on, which was reached with `status`. */
static enum tbd_status pass(struct work *w, size_t i, enum tbd_status status)
{
    if (w->entry_count > TOO_MANY_ENTRIES && !i)
        return tbd_build_damage(w, "too many entries");
    if (!status)
        status = lean_steps(w, &i);
    if (w->method != TBD_COUNT_ROWS && (status == TBD_NOMEM || !tbd_lean_finish(w)))
        return TBD_NOMEM;
    if (!status)
        status = rows_pass(w, &i);
    tbd_build_count_deferred(w);
    return status;
}

/* ---- begin and end ---- */

/* The page, or its frame, lies in the operands, which have moved. */
static void move_page(struct tbd_page_note *note, const uint8_t *from, const uint8_t *to)
{
    if (note->bytes)
        note->bytes = to + (note->bytes - from);
    else if (note->flags & TBD_PAGE_FRAME)
        note->packed = to + (note->packed - from);
}

/* Takes the pointers and sizes of what has been collected; it may have moved since the last
 * time. */
static bool look_at_raw(struct work *w, const struct tbd_raw_window *raw)
{
    for (size_t i = w->page_count - w->pages_pending; i < w->page_count; i++)
        move_page(&w->pages[i], w->operands, raw->operands);
    w->entries = raw->entries;
    w->entry_count = raw->entry_count;
    w->operands = raw->operands;
    w->operand_bytes = raw->operand_bytes;
    w->packed = raw->packed;
    w->plan_count = raw->plan_count;
    w->highest_id = raw->highest_id;
    w->cut = raw->cut;
    w->takes_frames = raw->takes_frames;
    return tbd_build_reserve(w->builder, raw->plan_count, raw->highest_id);
}

static bool begin(struct work *w, const struct tbd_raw_window *raw, struct tbd_block_table *table)
{
    struct tbd_builder *b = w->builder;

    b->coded.used = 0;
    b->coded.failed = false;
    b->deferred.plan = NULL;
    w->window->first_time = raw->first_time;
    if (b->codes && b->coder_table != table) {
        tbd_coder_free(b->coder);
        b->coder = tbd_coder_new(table);
        b->coder_table = table;
    }
    return look_at_raw(w, raw) && tbd_turns_begin(&w->turns) &&
           (b->codes ? b->coder != NULL : tbd_lean_begin(w));
}

/* The window takes over the raw window's memory. */
static bool adopt_raw(struct work *w, struct tbd_raw_window *raw)
{
    void *entries = raw->entries, *operands = raw->operands;
    struct tbd_packed_pages packed = raw->packed;

    raw->entries = NULL;
    if (!tbd_window_adopt_large_buffer(w->window, entries))
        return false;
    raw->operands = NULL;
    if (!tbd_window_adopt_large_buffer(w->window, operands))
        return false;
    raw->packed.list = NULL;
    if (!tbd_window_adopt_large_buffer(w->window, packed.list))
        return false;
    raw->packed.bytes = NULL;
    return tbd_window_adopt_large_buffer(w->window, packed.bytes);
}

static void fill_counts(struct tbd_product *out)
{
    out->counts.first_time = out->window->first_time;
    out->counts.blocks = out->window->blocks;
    out->counts.complete = out->window->complete;
    out->counts.level = out->window->is_uncounted ? TBD_LEVEL_BITS : TBD_LEVEL_EVENTS;
}

/* Without memory: frees everything except what builders reuse. */
static void give_up(struct work *w)
{
    struct tbd_builder *b = w->builder;

    tbd_shadow_free(&b->shadow);
    if (b->counts)
        memset(b->counts, 0, b->count_capacity * sizeof(*b->counts));
    b->id_count = 0;
    tbd_build_forget_slots(b);
    tbd_lean_forget(b->lean);
    tbd_product_free(w->out);
}

static void free_work(struct work *w)
{
    free(w->pages);
    free(w->cuts);
    free(w->log); /* these are the window's as soon as it is finished */
    free(w->log_offsets);
    free(w->stamps);
    tbd_buffer_free(&w->opened);
    free(w->reads);
    tbd_end_regs_free(&w->regs);
    tbd_turns_free(&w->turns);
}

static enum tbd_status begin_work(struct work *w, const struct tbd_raw_window *raw,
                                  struct tbd_block_table *table)
{
    *w->out = (struct tbd_product){ .window = tbd_window_new(table) };
    w->window = w->out->window;
    return w->window && begin(w, raw, table) ? TBD_OK : TBD_NOMEM;
}

/* ---- a window that is being collected ---- */

/* Takes what has been collected.  A record or a message that is not complete is left for later
 * (BUILD-2). */
static enum tbd_status take_begun(struct begun_window *begun, const struct tbd_raw_window *raw)
{
    struct work *w = &begun->work;
    enum tbd_status status = look_at_raw(w, raw) && tbd_lean_reach(w) ? TBD_OK : TBD_NOMEM;

    w->more_comes = true;
    if (!status)
        status = lean_steps(w, &begun->next);
    w->more_comes = false;
    if (w->method != TBD_COUNT_ROWS)
        tbd_lean_look(w); /* before anybody moves operands */
    return status == TBD_TRUNCATED ? TBD_OK : status;
}

bool tbd_build_early(struct tbd_builder *builder, const struct tbd_raw_window *raw,
                     const struct tbd_block_plan *plans, struct tbd_block_table *table)
{
    struct begun_window *begun = builder->begun;

    if (!begun) {
        begun = calloc(1, sizeof(*begun));
        if (!begun)
            return false;
        builder->begun = begun;
        begun->work = (struct work){ .builder = builder, .plans = plans, .out = &begun->product };
        begun->status = begin_work(&begun->work, raw, table);
    }
    if (!begun->status)
        begun->status = take_begun(begun, raw);
    return begun->status != TBD_NOMEM;
}

/* The window will not come. */
static void drop_begun(struct begun_window *begun)
{
    if (!begun)
        return;
    begun->work.builder->begun = NULL;
    free_work(&begun->work);
    free(begun->product.side);
    give_up(&begun->work);
    free(begun);
}

/* Continues the work that tbd_build_early() began, if it did; *out_next is the first entry that is
 * left. */
static enum tbd_status resume_work(struct work *w, const struct tbd_raw_window *raw,
                                   struct tbd_block_table *table, size_t *out_next)
{
    struct begun_window *begun = w->builder->begun;
    struct tbd_product *out = w->out;
    enum tbd_status status;

    *out_next = 0;
    if (!begun)
        return begin_work(w, raw, table);
    w->builder->begun = NULL;
    *w = begun->work;
    *out = begun->product;
    w->out = out;
    *out_next = begun->next;
    status = begun->status;
    free(begun);
    if (status != TBD_NOMEM &&
        (!look_at_raw(w, raw) || (w->method != TBD_COUNT_ROWS && !tbd_lean_reach(w))))
        status = TBD_NOMEM;
    return status;
}

/* ---- the whole ---- */

void tbd_builder_free(struct tbd_builder *builder)
{
    if (!builder)
        return;
    drop_begun(builder->begun);
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

enum tbd_status tbd_build(struct tbd_builder *builder, struct tbd_raw_window *raw,
                          const struct tbd_block_plan *plans, struct tbd_block_table *table,
                          struct tbd_product *out)
{
    struct work w = { .builder = builder, .plans = plans, .out = out };
    size_t next;
    enum tbd_status status = resume_work(&w, raw, table, &next);

    if (status != TBD_NOMEM && !adopt_raw(&w, raw))
        status = TBD_NOMEM;
    if (status != TBD_NOMEM) {
        drop_last(&w);
        status = pass(&w, next, status);
    }
    if (status != TBD_NOMEM)
        status = tbd_build_finish(&w) ? TBD_OK : TBD_NOMEM;
    tbd_raw_window_free(raw);
    free_work(&w);
    if (w.window && !tbd_build_adopt(&w, out->side))
        status = TBD_NOMEM;
    if (status) {
        give_up(&w);
        return status;
    }
    fill_counts(out);
    return TBD_OK;
}
