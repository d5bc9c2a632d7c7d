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
#include "organizer/build.h"

#include "base/layout.h"
#include "format/codec.h"
#include "format/window.h"
#include "organizer/shadow.h"
#include "organizer/undo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 4096u
#define TOO_MANY_ENTRIES 0xfffffff0u

/* What is counted for one id. */
struct block_count {
    uint32_t count;
    uint32_t last;
    uint32_t enters;
    uint32_t last_enter;
    /* in the segment */
    uint32_t most;   /* how often it occurs at most */
    uint32_t row;    /* where its next row is */
    uint32_t stride; /* of its rows; 0: no operands, and row 0 is for what nobody wants */
    uint32_t plan;   /* an id of the stream */
};

#define PREFIX 4u /* a row begins with the event index of the block's entry */

struct tbd_builder {
    struct tbd_shadow shadow;
    struct block_count *counts; /* by id of the table */
    uint32_t count_capacity;
    struct tbd_row_set *sets;   /* of the segment, in order of first occurrence */
    size_t set_count, set_room;
    uint32_t *ids;              /* of the window, in order of first occurrence */
    size_t id_count, id_room;
    uint8_t *rows;
    size_t row_room;
    bool codes;
    struct tbd_coder *coder;    /* for `coder_table` */
    struct tbd_block_table *coder_table;
    struct tbd_buffer coded;
};

/* A block that was left in the middle: of its record, only events of instructions 0 .. limit-1 are
 * real. */
struct cut_block {
    uint32_t index; /* of its entry's event; ascending */
    uint32_t limit;
};

struct work {
    struct tbd_builder *builder;
    const struct tbd_plan *plans;
    uint32_t plan_count;
    struct tbd_product *out;
    struct tbd_window *window;
    uint32_t *entries; /* the raw window's, rewritten in place */
    size_t entry_count;
    uint8_t *operands;
    size_t operand_bytes;
    bool cut;

    size_t in;          /* operand offset read */
    size_t kept;        /* operand offset written */
    size_t moved_from;  /* operands [moved_from, in) still have to be moved to `kept` */
    size_t kept_entries;
    size_t segment_end; /* in kept entries */
    uint64_t index;     /* of the next event */
    uint32_t time;      /* relative: of the next block entry */
    uint32_t called;    /* the thread's block before, if that ended with a call; else 0 */
    const struct tbd_plan *last_plan; /* of the last block entered */
    uint32_t last_index;              /* and its entry's event */
    struct cut_block *cuts;
    size_t cut_count, cut_room;
    struct tbd_turns turns;
    struct tbd_thread_state *regs; /* REGS messages since the last event; of the thread in control last */
    size_t reg_count, reg_room;

    struct tbd_log_entry *log;
    size_t log_count, log_capacity;
    size_t *log_offsets; /* where messages lie; pointers are made at the end */
    struct tbd_page_note *pages;
    size_t page_count, page_capacity;
    size_t pages_pending; /* the last so many may be the window's end state */
    uint64_t *reads;
    size_t read_count, read_capacity;
    size_t side_capacity;
};

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

static void *keep(struct work *w, const void *data, size_t bytes)
{
    void *copy = tbd_window_memory(w->window, bytes);

    if (copy && bytes)
        memcpy(copy, data, bytes);
    return copy;
}

static enum tbd_status damage(struct work *w, const char *what)
{
    w->out->damaged = true;
    snprintf(w->out->damage, sizeof(w->out->damage), "entry %zu: %s", w->kept_entries, what);
    return TBD_NOTFOUND;
}

/* ---- moving events together ---- */

/* What was read since the last time stays: closes the gap in front of it. */
static void close_gap(struct work *w)
{
    size_t bytes = w->in - w->moved_from;

    if (w->kept != w->moved_from && bytes)
        memmove(w->operands + w->kept, w->operands + w->moved_from, bytes);
    w->kept += bytes;
    w->moved_from = w->in;
}

/* Another event follows: pages that were pending are not the end state, and must be copied
 * before events are moved over them (B3). */
static enum tbd_status go_on(struct work *w)
{
    while (w->pages_pending) {
        struct tbd_page_note *note = &w->pages[w->page_count - w->pages_pending--];

        note->at_end = false;
        note->bytes = keep(w, note->bytes, PAGE_BYTES);
        if (!note->bytes)
            return TBD_NOMEM;
    }
    if (w->reg_count && !w->index)
        w->out->has_start_regs = true;
    w->reg_count = 0;
    return TBD_OK;
}

/* ---- block entries ---- */

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

static bool note_id(struct tbd_builder *b, uint32_t id)
{
    if (!tbd_array_grow(&b->sets, b->set_count, &b->set_room, sizeof(*b->sets)) ||
        !tbd_array_grow(&b->ids, b->id_count, &b->id_room, sizeof(*b->ids)))
        return false;
    b->sets[b->set_count++] = (struct tbd_row_set){ .id = id };
    if (!b->counts[id].count)
        b->ids[b->id_count++] = id;
    return true;
}

/* How often each block occurs in the segment that begins with entry i, at most. */
static bool count_segment(struct work *w, size_t i)
{
    struct tbd_builder *b = w->builder;
    size_t left = TBD_SEGMENT_ENTRIES;

    b->set_count = 0;
    for (; i < w->entry_count && left; i++) {
        uint32_t entry = w->entries[i];
        struct block_count *count;

        if (entry - 1 >= w->plan_count) {
            left -= tbd_message_is_event(entry & ~TBD_ENTRY_MESSAGE);
            continue;
        }
        left--;
        count = &b->counts[w->plans[entry].id];
        count->plan = entry;
        if (!count->most++ && !note_id(b, w->plans[entry].id))
            return false;
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
        struct block_count *count = &b->counts[b->sets[k].id];
        uint32_t operand_bytes = w->plans[count->plan].operand_bytes;

        count->row = operand_bytes ? (uint32_t)bytes : 0;
        count->stride = operand_bytes ? operand_bytes + PREFIX : 0;
        b->sets[k].start = count->row;
        if (operand_bytes)
            bytes += (size_t)count->most * count->stride + TBD_ROW_STEP;
    }
    w->segment_end = w->kept_entries + TBD_SEGMENT_ENTRIES;
    if (bytes + TBD_ROW_SLACK <= b->row_room)
        return true;
    free(b->rows);
    b->row_room = bytes + bytes / 2 + TBD_ROW_SLACK;
    b->rows = malloc(b->row_room);
    return b->rows;
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
static void finish_set(struct work *w, struct tbd_row_set *set)
{
    struct block_count *count = &w->builder->counts[set->id];
    const struct tbd_plan *plan = &w->plans[count->plan];

    set->count = count->stride ? (count->row - set->start) / count->stride : 0;
    count->most = 0;
    for (uint16_t i = 0; i < plan->store_count; i++)
        count_stores(w, plan->stores + i, w->builder->rows + set->start, count->stride, set->count);
}

static void finish_segment(struct work *w)
{
    struct tbd_builder *b = w->builder;
    size_t sets = 0;
    bool is_empty = w->kept_entries + TBD_SEGMENT_ENTRIES == w->segment_end;

    for (size_t i = 0; i < b->set_count; i++) {
        finish_set(w, &b->sets[i]);
        if (b->sets[i].count)
            b->sets[sets++] = b->sets[i];
    }
    b->set_count = 0;
    if (b->codes && !is_empty)
        tbd_coder_put_segment(b->coder, &b->coded, b->sets, sets, b->rows, PREFIX);
}

/* Block entries from entry i on, up to the next message, the first impossible one, or the
 * segment's end. */
static size_t take_blocks(struct work *w, size_t i)
{
    struct block_count *counts = w->builder->counts;
    uint8_t *rows = w->builder->rows;
    const struct tbd_plan *plans = w->plans;
    const uint32_t plan_count = w->plan_count;
    const size_t in_end = w->operand_bytes;
    size_t in = w->in, kept_entries = w->kept_entries;
    uint64_t next_index = w->index;
    uint32_t time = w->time;
    uint32_t called = w->called != 0;
    const struct tbd_plan *last_plan = w->last_plan;

    for (; i < w->entry_count && kept_entries < w->segment_end; i++) {
        uint32_t entry = w->entries[i];
        const struct tbd_plan *plan;
        struct block_count *count;
        uint32_t index = (uint32_t)next_index;

        if (entry - 1 >= plan_count) /* a message, 0, or not defined */
            break;
        plan = &plans[entry];
        if (!plan->id || plan->operand_bytes > in_end - in)
            break;
        count = &counts[plan->id];
        memcpy(rows + count->row, &index, sizeof(index));
        tbd_row_copy(rows + count->row + PREFIX, w->operands + in, plan->operand_bytes);
        count->row += count->stride;
        count->count++;
        count->last = time;
        count->enters += called;
        count->last_enter = called ? time : count->last_enter;
        called = plan->calls != 0;
        in += plan->operand_bytes;
        next_index += 1u + plan->op_count;
        last_plan = plan;
        w->entries[kept_entries++] = plan->id;
        time++;
    }
    w->in = in;
    w->kept_entries = kept_entries;
    if (time != w->time) {
        w->last_index = (uint32_t)(next_index - 1u - last_plan->op_count);
        w->called = called ? last_plan->id : 0;
    }
    w->last_plan = last_plan;
    w->index = next_index;
    w->time = time;
    return i;
}

/* ---- messages ---- */

/* The block entered last was left before its instruction `limit`: what its record says about later
 * instructions did not happen. */
static bool cut_last_block(struct work *w, uint64_t limit)
{
    struct tbd_window_summary *counts = &w->out->counts;
    const struct tbd_block *block =
        w->last_plan ? tbd_window_block(w->window, w->last_plan->id) : NULL;

    if (!block || limit >= block->def.insn_count)
        return true;
    if (!tbd_array_grow(&w->cuts, w->cut_count, &w->cut_room, sizeof(*w->cuts)))
        return false;
    w->cuts[w->cut_count++] = (struct cut_block){ w->last_index, (uint32_t)limit };
    for (uint16_t i = 0; i < block->def.op_count; i++) {
        bool is_real = block->ops[i].insn < limit;

        counts->stores -= !is_real && block->ops[i].kind == TBD_OP_STORE;
        counts->calls -= !is_real && block->ops[i].kind == TBD_OP_CALL;
        counts->returns -= !is_real && block->ops[i].kind == TBD_OP_RET;
    }
    w->called = 0;
    w->last_plan = NULL; /* once */
    return true;
}

/* The block entered last is another thread's: what follows is not about it. */
static bool take_thread(struct work *w, const uint8_t *payload)
{
    struct tbd_msg_thread message;

    memcpy(&message, payload, sizeof(message));
    w->out->thread_messages++;
    if (message.event == TBD_THREAD_SWITCH)
        w->last_plan = NULL;
    return tbd_turns_take(&w->turns, &message, &w->called);
}

static bool take_interruption(struct work *w, uint32_t kind, const uint8_t *payload)
{
    uint64_t limit;

    if (kind != TBD_MSG_INTERRUPTED)
        return true;
    memcpy(&limit, payload, sizeof(limit));
    return cut_last_block(w, limit);
}

static enum tbd_status take_event(struct work *w, uint32_t kind, const uint8_t *payload,
                                  uint32_t bytes)
{
    struct tbd_write_cursor cursor;
    struct tbd_write_view write;

    if (!tbd_message_check(kind, payload, bytes))
        return damage(w, "a message that is too short");
    if (w->log_count == w->log_capacity) {
        size_t capacity = w->log_capacity;

        if (!tbd_array_grow(&w->log, w->log_count, &w->log_capacity, sizeof(*w->log)) ||
            !tbd_array_grow(&w->log_offsets, w->log_count, &capacity, sizeof(*w->log_offsets)))
            return TBD_NOMEM;
    }
    if (!take_interruption(w, kind, payload))
        return TBD_NOMEM;
    if (kind != TBD_MSG_THREAD)
        tbd_turns_settle(&w->turns);
    else if (!take_thread(w, payload))
        return TBD_NOMEM;
    tbd_writes_first(kind, payload, bytes, &cursor);
    while (tbd_writes_next(&cursor, &write))
        if (write.address < TBD_USER_END && write.bytes <= TBD_USER_END - write.address)
            tbd_shadow_range(&w->builder->shadow, write.address, write.bytes, (uint32_t)w->index);
    w->log[w->log_count].time = w->time;
    w->log_offsets[w->log_count++] = w->kept + (w->in - w->moved_from);
    w->out->counts.syscalls += kind == TBD_MSG_SYSCALL;
    w->out->counts.specials += kind == TBD_MSG_SPECIAL;
    w->out->counts.signals += kind == TBD_MSG_SIGNAL;
    if (kind == TBD_MSG_SIGNAL)
        w->called = 0;
    w->index++;
    return TBD_OK;
}

static enum tbd_status take_page(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_msg_page head;

    if (bytes != sizeof(head) + PAGE_BYTES)
        return damage(w, "a page message of another length");
    memcpy(&head, payload, sizeof(head));
    if (head.address % PAGE_BYTES || head.address >= TBD_USER_END)
        return damage(w, "an impossible page");
    if (!tbd_array_grow(&w->pages, w->page_count, &w->page_capacity, sizeof(*w->pages)))
        return TBD_NOMEM;
    w->pages[w->page_count++] = (struct tbd_page_note){
        .address = head.address, .flags = head.flags, .bytes = payload + sizeof(head),
        .time = w->time, .order = (uint32_t)w->log_count, .at_end = true,
    };
    w->pages_pending++;
    return TBD_OK;
}

static enum tbd_status take_reads(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    for (uint32_t at = 0; at + 8 <= bytes; at += 8) {
        uint64_t address;

        memcpy(&address, payload + at, sizeof(address));
        if (address % PAGE_BYTES || address >= TBD_USER_END)
            return damage(w, "an impossible page");
        if (!tbd_array_grow(&w->reads, w->read_count, &w->read_capacity, sizeof(*w->reads)))
            return TBD_NOMEM;
        w->reads[w->read_count++] = address;
    }
    return TBD_OK;
}

/* Registers: of the window's end, unless an event follows, then of its start.  Of two messages about
 * one thread the later one counts. */
static enum tbd_status take_regs(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_thread_state state;
    size_t kept = 0;

    if (bytes < sizeof(state.regs))
        return damage(w, "a register message that is too short");
    memcpy(&state.regs, payload, sizeof(state.regs));
    if (state.regs.xsave_bytes > bytes - sizeof(state.regs))
        return damage(w, "a register message that is too short");
    state.xsave = keep(w, payload + sizeof(state.regs), state.regs.xsave_bytes);
    if (!state.xsave || !tbd_array_grow(&w->regs, w->reg_count, &w->reg_room, sizeof(state)))
        return TBD_NOMEM;
    if (!w->index && !w->reg_count) {
        w->window->regs = state.regs;
        w->window->xsave = state.xsave;
    }
    for (size_t i = 0; i < w->reg_count; i++)
        if (w->regs[i].regs.thread != state.regs.thread)
            w->regs[kept++] = w->regs[i];
    w->regs[kept++] = state;
    w->reg_count = kept;
    return TBD_OK;
}

static enum tbd_status take_side(struct work *w, uint32_t kind, const uint8_t *payload,
                                 uint32_t bytes)
{
    static const uint32_t least[TBD_MSG_KIND_COUNT] = {
        [TBD_MSG_REGION] = sizeof(struct tbd_msg_region) + 1,
        [TBD_MSG_UNMAP] = sizeof(struct tbd_range),
        [TBD_MSG_NOTE] = 5,
    };
    struct tbd_side_message side = { .kind = kind, .bytes = bytes, .time = w->time,
                                     .order = (uint32_t)w->log_count };
    struct tbd_range range;

    if (bytes < least[kind] || (kind != TBD_MSG_UNMAP && payload[bytes - 1]))
        return damage(w, "a message that is too short");
    memcpy(&range, payload, kind == TBD_MSG_NOTE ? 0 : sizeof(range)); /* a region begins with it */
    if (kind != TBD_MSG_NOTE && !tbd_range_check(range.start, range.end))
        return damage(w, "an impossible range");
    if (!tbd_array_grow(&w->out->side, w->out->side_count, &w->side_capacity, sizeof(side)))
        return TBD_NOMEM;
    side.payload = keep(w, payload, bytes);
    if (!side.payload)
        return TBD_NOMEM;
    w->out->side[w->out->side_count++] = side;
    return TBD_OK;
}

static enum tbd_status take_end(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_product *out = w->out;

    if (bytes < sizeof(out->end))
        return damage(w, "an end message that is too short");
    memcpy(&out->end, payload, sizeof(out->end));
    snprintf(out->end_text, sizeof(out->end_text), "%.*s", (int)(bytes - sizeof(out->end)),
             (const char *)payload + sizeof(out->end));
    out->has_end = true;
    return cut_last_block(w, out->end.offset) ? TBD_OK : TBD_NOMEM;
}

static enum tbd_status take_window_end(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_msg_window_end end;

    if (bytes < sizeof(end))
        return damage(w, "a window end that is too short");
    memcpy(&end, payload, sizeof(end));
    w->out->end_time = end.time;
    w->window->complete = w->reg_count != 0;
    return TBD_OK;
}

/* A message of which nothing goes into the order of events. */
static enum tbd_status take_state(struct work *w, uint32_t kind, const uint8_t *payload,
                                  uint32_t bytes)
{
    switch (kind) {
    case TBD_MSG_START:
        if (!tbd_start_check(payload, bytes))
            return damage(w, "an impossible start message");
        w->out->start = keep(w, payload, bytes);
        w->out->start_bytes = bytes;
        return w->out->start ? TBD_OK : TBD_NOMEM;
    case TBD_MSG_PAGE:
        return take_page(w, payload, bytes);
    case TBD_MSG_READ_PAGES:
        return take_reads(w, payload, bytes);
    case TBD_MSG_REGS:
        return take_regs(w, payload, bytes);
    case TBD_MSG_REGION:
    case TBD_MSG_UNMAP:
    case TBD_MSG_NOTE:
        return take_side(w, kind, payload, bytes);
    case TBD_MSG_WINDOW_END:
        return take_window_end(w, payload, bytes);
    case TBD_MSG_END:
        return take_end(w, payload, bytes);
    default:
        return damage(w, "a message of unknown kind");
    }
}

static enum tbd_status take_message(struct work *w, uint32_t kind)
{
    size_t left = w->operand_bytes - w->in;
    struct tbd_message head;
    const uint8_t *payload;
    enum tbd_status status;

    if (left < sizeof(head))
        return damage(w, "a message outside the operands");
    memcpy(&head, w->operands + w->in, sizeof(head));
    if (head.kind != kind || head.bytes > left - sizeof(head))
        return damage(w, "a message outside the operands");
    payload = w->operands + w->in + sizeof(head);
    if (tbd_message_is_event(kind)) {
        status = go_on(w);
        if (!status)
            status = take_event(w, kind, payload, head.bytes);
        if (!status)
            w->entries[w->kept_entries++] = TBD_ENTRY_MESSAGE | kind;
        w->in += status ? 0 : sizeof(head) + head.bytes;
        return status;
    }
    close_gap(w);
    status = take_state(w, kind, payload, head.bytes);
    w->in += sizeof(head) + head.bytes;
    w->moved_from = w->in;
    return status;
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
            status = take_message(w, entry & ~TBD_ENTRY_MESSAGE);
            if (status)
                return status;
            ++*i;
            continue;
        }
        status = go_on(w);
        if (status)
            return status;
        if (tbd_turns_is_open(&w->turns) && entry && entry <= w->plan_count &&
            !tbd_turns_open(&w->turns, w->plans[entry].id, w->time))
            return TBD_NOMEM;
        *i = take_blocks(w, *i);
        if (*i < w->entry_count && w->kept_entries < w->segment_end &&
            !(w->entries[*i] & TBD_ENTRY_MESSAGE))
            return damage(w, why_not_a_block(w, w->entries[*i]));
    }
    return w->index > UINT32_MAX ? damage(w, "too many events") : TBD_OK;
}

static enum tbd_status pass(struct work *w)
{
    enum tbd_status status = TBD_OK;
    size_t i = 0;

    if (w->entry_count > TOO_MANY_ENTRIES)
        return damage(w, "too many entries");
    while (i < w->entry_count && !status) {
        if (!begin_segment(w, i))
            return TBD_NOMEM;
        status = take_segment(w, &i);
        finish_segment(w);
    }
    return status;
}

/* ---- afterwards: the log, pages, summaries ---- */

static bool adopt(struct work *w, void *memory)
{
    return !memory || tbd_window_adopt(w->window, memory);
}

static bool finish_log(struct work *w)
{
    for (size_t i = 0; i < w->log_count; i++)
        w->log[i].message = (const void *)(w->operands + w->log_offsets[i]);
    free(w->log_offsets);
    w->log_offsets = NULL;
    w->window->log = w->log;
    w->window->log_count = w->log_count;
    if (!adopt(w, w->log))
        w->log = NULL;
    return w->log || !w->log_count;
}

static int compare_page_contents(const void *left, const void *right)
{
    const struct tbd_page_contents *a = left;
    const struct tbd_page_contents *b = right;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* The page messages that `wanted` picks, sorted. */
static struct tbd_page_contents *pick_pages(struct work *w,
                                            bool (*wanted)(const struct tbd_page_note *),
                                            size_t *out_count)
{
    struct tbd_page_contents *pages;
    size_t count = 0;

    for (size_t i = 0; i < w->page_count; i++)
        count += wanted(&w->pages[i]);
    pages = tbd_window_memory(w->window, count * sizeof(*pages));
    if (!pages)
        return NULL;
    *out_count = 0;
    for (size_t i = 0; i < w->page_count; i++)
        if (wanted(&w->pages[i]))
            pages[(*out_count)++] = (struct tbd_page_contents){
                w->pages[i].address, w->pages[i].time, w->pages[i].order, w->pages[i].bytes
            };
    if (count)
        qsort(pages, count, sizeof(*pages), compare_page_contents);
    return pages;
}

static bool is_dirty(const struct tbd_page_note *note)
{
    return note->at_end && note->flags & TBD_PAGE_DIRTY;
}

static bool is_gone(const struct tbd_page_note *note)
{
    return !note->at_end && note->flags & TBD_PAGE_DIRTY;
}

static bool is_image(const struct tbd_page_note *note)
{
    return note->flags & TBD_PAGE_IMAGE;
}

/* ---- summaries ---- */

static int compare_ids(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;

    return a < b ? -1 : a > b;
}

static bool finish_words(struct work *w)
{
    struct tbd_shadow *shadow = &w->builder->shadow;
    size_t count = shadow->word_count;
    struct tbd_word_summary *words = tbd_window_memory(w->window, count * sizeof(*words));

    if (!words || shadow->failed)
        return false;
    tbd_shadow_drain(shadow, words);
    w->window->words = words;
    w->window->word_count = count;
    return true;
}

/* Sums over the blocks that were entered, and their summaries; clears what was counted. */
static bool finish_blocks(struct work *w)
{
    struct tbd_builder *b = w->builder;
    struct tbd_window_summary *counts = &w->out->counts;
    struct tbd_block_summary *blocks =
        tbd_window_memory(w->window, b->id_count * sizeof(*blocks));
    size_t n = 0;

    if (!blocks)
        return false;
    if (b->id_count)
        qsort(b->ids, b->id_count, sizeof(*b->ids), compare_ids);
    for (size_t i = 0; i < b->id_count; i++) {
        struct block_count *count = &b->counts[b->ids[i]];
        const struct tbd_plan *plan = &w->plans[count->plan];

        if (count->count)
            blocks[n++] = (struct tbd_block_summary){ .id = b->ids[i], .count = count->count,
                                                      .last = count->last, .enters = count->enters,
                                                      .last_enter = count->last_enter };
        counts->stores += (uint64_t)plan->store_count * count->count;
        counts->calls += (uint64_t)plan->calls * count->count;
        counts->returns += (uint64_t)plan->returns * count->count;
        *count = (struct block_count){ 0 };
    }
    b->id_count = 0;
    w->window->block_summaries = blocks;
    w->window->block_summary_count = n;
    return true;
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

static bool finish_reads(struct work *w)
{
    size_t kept = 0;

    if (w->read_count)
        qsort(w->reads, w->read_count, sizeof(*w->reads), compare_addresses);
    for (size_t i = 0; i < w->read_count; i++)
        if (!kept || w->reads[kept - 1] != w->reads[i])
            w->reads[kept++] = w->reads[i];
    w->window->read_pages = w->reads;
    w->window->read_page_count = kept;
    if (adopt(w, w->reads))
        return true;
    w->reads = NULL;
    return false;
}

static int compare_threads(const void *left, const void *right)
{
    const struct tbd_thread_state *a = left, *b = right;

    return a->regs.thread < b->regs.thread ? -1 : a->regs.thread > b->regs.thread;
}

/* The end state: of the thread in control, and of all others by tid. */
static bool finish_regs(struct work *w)
{
    struct tbd_window *window = w->window;
    size_t others = w->reg_count ? w->reg_count - 1 : 0;
    struct tbd_thread_state *threads = tbd_window_memory(window, others * sizeof(*threads));

    if (!threads)
        return false;
    if (w->reg_count) {
        window->end_regs = w->regs[others].regs;
        window->end_xsave = w->regs[others].xsave;
    }
    if (others) {
        memcpy(threads, w->regs, others * sizeof(*threads));
        qsort(threads, others, sizeof(*threads), compare_threads);
    }
    window->end_threads = threads;
    window->end_thread_count = others;
    return true;
}

/* Whose turn it was is asked when the window is joined to the one before. */
static bool finish_turns(struct work *w)
{
    bool good;

    w->turns.turns[w->turns.current].called = w->called;
    w->out->turns = w->turns;
    good = adopt(w, w->turns.turns);
    good = adopt(w, w->turns.opens) && good;
    w->turns = (struct tbd_turns){ 0 };
    return good;
}

static bool find_first_contents(struct work *w)
{
    struct tbd_page_notes notes = { w->pages, w->page_count, w->out->side, w->out->side_count,
                                    w->out->has_end ? w->out->end.offset : UINT64_MAX };

    return tbd_undo_first_contents(w->window, &notes);
}

static bool finish(struct work *w)
{
    struct tbd_window *window = w->window;
    bool good;

    close_gap(w);
    window->entries = w->entries;
    window->entry_count = w->kept_entries;
    window->operands = w->operands;
    window->operand_bytes = w->kept;
    window->blocks = w->time;
    window->has_events = true;
    if (w->out->damaged || w->cut)
        window->complete = false;
    good = finish_turns(w);
    good = good && finish_regs(w) && finish_log(w) && finish_reads(w) && finish_words(w) && finish_blocks(w);
    if (good)
        window->dirty = pick_pages(w, is_dirty, &window->dirty_count);
    if (good)
        window->gone = pick_pages(w, is_gone, &window->gone_count);
    if (good)
        w->out->image = pick_pages(w, is_image, &w->out->image_count);
    good = good && window->dirty && window->gone && w->out->image && find_first_contents(w);
    if (good)
        window->digest = tbd_window_digest(window);
    if (w->builder->codes)
        w->out->coded = &w->builder->coded;
    return good && !w->builder->coded.failed;
}

static bool prepare(struct tbd_builder *b, uint32_t highest_id, struct tbd_block_table *table)
{
    b->coded.used = 0;
    b->coded.failed = false;
    if (b->codes && b->coder_table != table) {
        tbd_coder_free(b->coder);
        b->coder = tbd_coder_new(table);
        b->coder_table = table;
    }
    return reserve_counts(b, highest_id) && (b->coder || !b->codes);
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
    if (w.window && adopt(&w, raw->entries)) {
        raw->entries = NULL;
        if (adopt(&w, raw->operands)) {
            raw->operands = NULL;
            w.window->first_time = raw->first_time;
            drop_last(&w);
            status = prepare(builder, raw->highest_id, table) && tbd_turns_begin(&w.turns)
                         ? pass(&w)
                         : TBD_NOMEM;
            if (status != TBD_NOMEM)
                status = finish(&w) ? TBD_OK : TBD_NOMEM;
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
    if (!adopt(&w, out->side))
        status = TBD_NOMEM;
    if (status) {
        free(w.log_offsets);
        tbd_shadow_free(&builder->shadow);
        if (builder->counts)
            memset(builder->counts, 0, builder->count_capacity * sizeof(*builder->counts));
        builder->id_count = 0;
        tbd_product_free(out);
        return status;
    }
    fill_counts(out);
    return TBD_OK;
}
