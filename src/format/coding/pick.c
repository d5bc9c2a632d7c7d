// SPDX-License-Identifier: MIT
/* pick.c - see pick.h
 *
 * Invariants
 * PICK-1  A picked message is picked with the block entries directly before and after it, and the
 *     first and the last entry are picked: so a message about the block before it, or about the
 *     block after it, keeps its meaning. (not checked: test_pick compares with the whole window)
 * PICK-2  A call that is picked with its ops is followed by the entry that follows it in the
 *     window. (not checked: test_pick compares with the whole window) */
#include "format/coding/pick_private.h"

#include "base/array.h"
#include "format/files/large_buffers.h"
#include "format/window/block_lookup.h"

#include <stdlib.h>

/* If more than 1 / this of a window's entries are wanted, a walk over all of them is as fast. */
#define PART_MOST    4u
#define ENTRIES_FREE 4096u

/* ---- blocks ---- */

struct tbd_picker *tbd_picker_new(const struct tbd_pick *pick)
{
    struct tbd_picker *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->pick = *pick;
    for (uint32_t id = 0; id < pick->block_count; id++)
        p->wanted |= pick->blocks[id];
    return p;
}

void tbd_picker_free(struct tbd_picker *p)
{
    if (!p)
        return;
    tbd_pick_columns_free(p->columns);
    tbd_block_table_release(p->table);
    free(p->looks);
    free(p->tests_of);
    free(p->tests);
    free(p->entries);
    free(p->places);
    free(p);
}

static bool grow_ids(struct tbd_picker *p, uint32_t id)
{
    return tbd_array_reach_both(&p->looks, sizeof(*p->looks), &p->tests_of, sizeof(*p->tests_of),
                                id, &p->ids);
}

/* The bits that an access, at `add` from its base or at this address, sets for its block. */
static uint8_t look_at_access(struct tbd_picker *p, const struct tbd_op *op,
                              const struct tbd_pick_range *range)
{
    uint64_t before = op->size ? op->size - 1 : 0;
    uint64_t low = range->start > before ? range->start - before : 0, span = range->end - low;

    if (range->end <= range->start)
        return 0;
    if (op->base == TBD_BASE_NONE)
        return (uint64_t)op->add - low < span ? TBD_LOOK_OPS : 0;
    if (!tbd_array_grow(&p->tests, p->test_count, &p->test_capacity, sizeof(*p->tests))) {
        p->status = TBD_NOMEM;
        return 0;
    }
    p->tests[p->test_count++] =
        (struct tbd_pick_test){ .base = op->base, .low = low - (uint64_t)op->add, .span = span };
    return TBD_LOOK_TEST;
}

static uint8_t look_at_ops(struct tbd_picker *p, const struct tbd_block *block)
{
    uint8_t what = 0;

    for (uint16_t i = 0; i < block->def.op_count; i++) {
        const struct tbd_op *op = &block->ops[i];

        if (op->kind == TBD_OP_CALL || op->kind == TBD_OP_RET)
            what |= p->pick.calls ? TBD_LOOK_OPS : 0;
        if (op->kind == TBD_OP_CALL && p->wanted & TBD_PICK_ENTERED)
            what |= TBD_LOOK_CALL;
        if (op->kind != TBD_OP_STORE)
            continue;
        for (uint32_t k = 0; k < p->pick.range_count; k++)
            what |= look_at_access(p, op, &p->pick.ranges[k]);
    }
    return what;
}

const struct tbd_look *tbd_picker_meet(struct tbd_picker *p, uint32_t id)
{
    const struct tbd_block *block = tbd_block_at(p->table, id);
    uint8_t wanted = id < p->pick.block_count ? p->pick.blocks[id] : 0;
    struct tbd_look *look;

    if (!block || (id >= p->ids && !grow_ids(p, id))) {
        p->status = block ? TBD_NOMEM : p->status;
        return NULL;
    }
    look = &p->looks[id];
    p->tests_of[id].first = (uint32_t)p->test_count;
    look->operand_bytes = (uint16_t)block->def.operand_bytes;
    look->what = (uint8_t)(TBD_LOOK_KNOWN | look_at_ops(p, block) |
                           (wanted & TBD_PICK_ENTRIES ? TBD_LOOK_ENTRIES : 0) |
                           (wanted & TBD_PICK_OPS ? TBD_LOOK_OPS : 0) |
                           (wanted & TBD_PICK_ENTERED ? TBD_LOOK_TARGET : 0) |
                           (wanted & TBD_PICK_LED ? TBD_LOOK_LED : 0) |
                           (wanted & TBD_PICK_LEADING ? TBD_LOOK_LEADING : 0));
    p->tests_of[id].count = (uint32_t)p->test_count - p->tests_of[id].first;
    return look;
}

static void set_table(struct tbd_picker *p, struct tbd_block_table *table)
{
    if (p->table == table)
        return;
    tbd_block_table_release(p->table);
    p->table = tbd_block_table_retain(table);
    if (p->looks)
        memset(p->looks, 0, p->ids * sizeof(*p->looks));
    p->test_count = 0;
    tbd_pick_columns_forget(p);
}

bool tbd_picker_needs_records(const struct tbd_picker *p)
{
    return p->pick.calls || p->pick.range_count || p->wanted & (TBD_PICK_OPS | TBD_PICK_ENTERED);
}

/* ---- what is picked ---- */

enum tbd_status tbd_picker_begin(struct tbd_picker *p, struct tbd_window *out,
                                 const uint32_t *entries, size_t count)
{
    set_table(p, out->blocks_by_id);
    p->from = entries;
    p->from_count = count;
    p->most = count / PART_MOST + ENTRIES_FREE;
    p->out = out;
    p->count = p->last = 0;
    p->is_beside = true;
    p->thread = out->regs.thread;
    p->status = TBD_OK;
    return TBD_OK;
}

static bool make_space(struct tbd_picker *p)
{
    size_t capacity = p->capacity * 2 + 1024;
    uint32_t *entries;
    struct tbd_picked_place *places;

    if (p->count < p->capacity)
        return true;
    if (p->count >= p->most) {
        p->status = TBD_NOTFOUND;
        return false;
    }
    entries = realloc(p->entries, capacity * sizeof(*entries));
    if (entries)
        p->entries = entries;
    places = realloc(p->places, capacity * sizeof(*places));
    if (places)
        p->places = places;
    if (entries && places)
        p->capacity = capacity;
    else
        p->status = TBD_NOMEM;
    return entries && places;
}

void tbd_picker_put(struct tbd_picker *p, size_t i, uint32_t time, const uint8_t *at)
{
    if (!make_space(p))
        return;
    p->entries[p->count] = p->from[i];
    p->places[p->count++] = (struct tbd_picked_place){
        .at = at, .time = time, .thread = p->thread, .has_ops = at != NULL
    };
    p->last = i + 1;
    p->is_beside = false;
}

void tbd_picker_decide(struct tbd_picker *p, size_t i, uint8_t what, uint32_t time,
                       const uint8_t *at)
{
    if (what & TBD_LOOK_LED && i && p->last != i)
        tbd_picker_put(p, i - 1, time - 1, NULL);
    if (!at && !p->is_beside && !(what & (TBD_LOOK_ENTRIES | TBD_LOOK_LED | TBD_LOOK_LEADING)) &&
        !(what & TBD_LOOK_TARGET && tbd_picker_was_called(p, i)))
        return;
    tbd_picker_put(p, i, time, at);
    p->is_beside = what & TBD_LOOK_LEADING || (at && what & TBD_LOOK_CALL);
}

void tbd_picker_put_message(struct tbd_picker *p, size_t i, uint32_t time,
                            const struct tbd_message *message)
{
    struct tbd_msg_thread thread;

    if (i && p->last != i)
        tbd_picker_put(p, i - 1, time - 1, NULL);
    tbd_picker_put(p, i, time, (const uint8_t *)message);
    p->is_beside = true;
    if (tbd_message_kind(message) != TBD_MSG_THREAD)
        return;
    thread = tbd_thread_message(message);
    if (thread.event == TBD_THREAD_SWITCH)
        p->thread = thread.thread;
}

bool tbd_picker_leads(struct tbd_picker *p, size_t i)
{
    const struct tbd_look *next;

    if (i + 1 >= p->from_count || p->from[i + 1] & TBD_ENTRY_MESSAGE)
        return true;
    next = tbd_picker_look(p, p->from[i + 1]);
    return next && next->what & TBD_LOOK_TARGET;
}

enum tbd_status tbd_picker_finish(struct tbd_picker *p, uint32_t time)
{
    struct tbd_window *out = p->out;
    size_t count;
    void *entries;

    if (p->from_count && p->last != p->from_count)
        tbd_picker_put(p, p->from_count - 1, time - 1, NULL);
    if (p->status)
        return p->status;
    count = p->count;
    entries = tbd_window_large_buffer(out, count * sizeof(*p->entries));
    out->state->places = tbd_large_buffer_take((count + 1) * sizeof(*p->places));
    if (!entries || !out->state->places)
        return TBD_NOMEM;
    tbd_large_buffer_ready(out->state->places, count * sizeof(*p->places));
    memcpy(entries, p->entries, count * sizeof(*p->entries));
    memcpy(out->state->places, p->places, count * sizeof(*p->places));
    out->entries = entries;
    out->entry_count = count;
    out->operands = NULL;
    out->operand_bytes = 0;
    out->has_events = out->is_picked = true;
    return TBD_OK;
}

/* ---- of a whole window ---- */

static void consider(struct tbd_picker *p, size_t i, uint8_t what, uint32_t time, const uint8_t *at)
{
    bool with_ops = what & TBD_LOOK_OPS ||
                    (what & TBD_LOOK_TEST && tbd_picker_touches(p, p->from[i], at)) ||
                    (what & TBD_LOOK_CALL && tbd_picker_leads(p, i));

    tbd_picker_decide(p, i, what, time, with_ops ? at : NULL);
}

struct entry_place {
    size_t i;
    uint32_t time;
    const uint8_t *at;
};

/* Skips blocks that are known and not wanted. */
static void pass(const struct tbd_picker *p, struct entry_place *here)
{
    const struct tbd_look *looks = p->looks;
    const uint32_t *from = p->from;
    size_t i = here->i, ids = p->ids, count = p->from_count;
    const uint8_t *at = here->at;

    for (; i < count && from[i] < ids && looks[from[i]].what == TBD_LOOK_KNOWN; i++)
        at += looks[from[i]].operand_bytes;
    here->time += (uint32_t)(i - here->i);
    here->i = i;
    here->at = at;
}

static void pick_message(struct tbd_picker *p, struct entry_place *here)
{
    struct tbd_message head;

    memcpy(&head, here->at, sizeof(head));
    tbd_picker_put_message(p, here->i, here->time, (const void *)here->at);
    here->at += sizeof(head) + head.bytes;
}

/* Returns the number of block entries. */
static uint32_t pick_entries(struct tbd_picker *p, const uint8_t *operands)
{
    struct entry_place here = { .at = operands };

    for (; here.i < p->from_count && !p->status; here.i++) {
        const struct tbd_look *look;

        if (!p->is_beside)
            pass(p, &here);
        if (here.i == p->from_count)
            break;
        if (p->from[here.i] & TBD_ENTRY_MESSAGE) {
            pick_message(p, &here);
            continue;
        }
        look = tbd_picker_look(p, p->from[here.i]);
        if (!look)
            break;
        consider(p, here.i, look->what, here.time++, here.at);
        here.at += p->looks[p->from[here.i]].operand_bytes;
    }
    return here.time;
}

/* A window with its own events that borrows everything else. */
static struct tbd_window *borrow(const struct tbd_window *from)
{
    struct tbd_window *out = tbd_window_new(from->blocks_by_id);
    struct tbd_window_state *state = out ? out->state : NULL;

    if (!out)
        return NULL;
    *out = *from;
    out->state = state;
    return out;
}

enum tbd_status tbd_picker_pick(struct tbd_picker *p, const struct tbd_window *from,
                                struct tbd_window **out)
{
    struct tbd_window *window = borrow(from);
    enum tbd_status status = window ? TBD_OK : TBD_NOMEM;

    *out = NULL;
    if (!status)
        status = tbd_picker_begin(p, window, from->entries, from->entry_count);
    if (!status)
        status = tbd_picker_finish(p, pick_entries(p, from->operands));
    if (status)
        tbd_window_free(window);
    else
        *out = window;
    return status;
}
