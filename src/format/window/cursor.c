// SPDX-License-Identifier: MIT
/* cursor.c - walking a window's events in order
 *
 * The window was checked (WINDOW-1), so nothing is checked here.  A block that a fault left in the
 * middle has a record of full length; events after the fault are skipped, but keep their
 * numbers. */
#include "format/window/cursor.h"

#include "base/binary_search.h"
#include "format/window/block_lookup.h"
#include "format/window/window_state.h"

#include <string.h>

/* The operands of the entry after the cursor's block. */
static const uint8_t *entry_after(const struct tbd_cursor *c)
{
    const struct tbd_window *window = c->window;

    return window->is_picked ? window->state->places[c->entry + 1].at
                             : window->operands + c->operand + c->block->def.operand_bytes;
}

/* From the message after the block, or from the trace's end. */
uint64_t tbd_cursor_insn_limit(const struct tbd_cursor *c)
{
    const struct tbd_window *window = c->window;
    uint64_t limit = UINT64_MAX;

    if (c->entry + 1 < window->entry_count &&
        window->entries[c->entry + 1] == (TBD_ENTRY_MESSAGE | TBD_MSG_INTERRUPTED))
        memcpy(&limit, entry_after(c) + sizeof(struct tbd_message), sizeof(limit));
    else if (window->has_last_block && c->time == window->last_time)
        limit = window->last_offset;
    return limit;
}

static uint32_t op_limit(const struct tbd_cursor *c)
{
    uint64_t limit = tbd_cursor_insn_limit(c);
    uint32_t ops = c->block->def.op_count;

    if (limit >= c->block->def.insn_count)
        return ops;
    while (ops && c->block->ops[ops - 1].insn >= limit)
        ops--;
    return ops;
}

/* After a switch, events are the new thread's; the first may be about the system call in which it
 * waited. */
static void take_thread_message(struct tbd_cursor *c)
{
    struct tbd_msg_thread thread = tbd_thread_message(c->message);

    if (thread.event != TBD_THREAD_SWITCH)
        return;
    c->thread = thread.thread;
    c->began = thread.block_time == TBD_NO_BLOCK_TIME ? c->time : thread.block_time;
}

/* Sets the cursor to the entry at c->entry, c->operand. */
static bool arrive(struct tbd_cursor *c)
{
    const struct tbd_window *window = c->window;
    const struct tbd_picked_place *place = NULL;
    uint32_t entry;

    c->op = NULL;
    c->op_index = 0;
    c->message = NULL;
    if (c->entry >= window->entry_count) {
        c->kind = TBD_AT_END;
        return false;
    }
    entry = window->entries[c->entry];
    if (window->is_picked) {
        place = &window->state->places[c->entry];
        c->next_time = window->first_time + place->time;
    }
    if (entry & TBD_ENTRY_MESSAGE) {
        c->kind = TBD_AT_MESSAGE;
        c->message = (const void *)(place ? place->at : window->operands + c->operand);
        if (entry == (TBD_ENTRY_MESSAGE | TBD_MSG_THREAD))
            take_thread_message(c);
        return true;
    }
    c->kind = TBD_AT_BLOCK;
    c->id = entry;
    c->block = tbd_block_at(window->blocks_by_id, entry);
    c->record = place ? place->at : window->operands + c->operand;
    c->time = c->began = c->next_time++;
    c->op_limit = place && !place->has_ops ? 0 : op_limit(c);
    return true;
}

void tbd_cursor_first(const struct tbd_window *window, struct tbd_cursor *out)
{
    *out = (struct tbd_cursor){
        .window = window,
        .time = window->first_time,
        .began = window->first_time,
        .next_time = window->first_time,
        .thread = window->regs.thread,
    };
    arrive(out);
}

static bool leave(struct tbd_cursor *c)
{
    struct tbd_message message;

    if (c->kind == TBD_AT_MESSAGE) {
        memcpy(&message, c->message, sizeof(message));
        c->operand += sizeof(message) + message.bytes;
    } else {
        c->operand += c->block->def.operand_bytes;
    }
    c->index += c->kind == TBD_AT_MESSAGE ? 1 : 1 + c->block->def.op_count - c->op_index;
    c->entry++;
    return arrive(c);
}

static void pass_ops(struct tbd_cursor *c)
{
    while (c->op_index < c->op_limit &&
           ((uint32_t)c->passes >> (c->block->ops[c->op_index].kind & 7u) & 1u) != 0) {
        c->op_index++;
        c->index++;
    }
}

bool tbd_cursor_next(struct tbd_cursor *c)
{
    if (c->kind == TBD_AT_END)
        return false;
    if (c->kind != TBD_AT_MESSAGE)
        pass_ops(c);
    if (c->kind == TBD_AT_MESSAGE || c->op_index >= c->op_limit)
        return leave(c);
    c->kind = TBD_AT_OP;
    c->op = c->block->ops + c->op_index++;
    c->index++;
    return true;
}

bool tbd_cursor_skip_block(struct tbd_cursor *c)
{
    if (c->kind == TBD_AT_END)
        return false;
    return leave(c);
}

/* Does an access of this kind touch [start, end)? */
static bool has_access(const struct tbd_block *block, const uint8_t *record, uint8_t kind,
                       uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < block->def.op_count; i++) {
        const struct tbd_op *op = &block->ops[i];
        uint64_t address = 0;

        if (op->kind != kind)
            continue;
        if (op->base != TBD_BASE_NONE)
            memcpy(&address, record + op->base, sizeof(address));
        address += (uint64_t)op->add;
        if (address < end && (address >= start || start - address < op->size))
            return true;
    }
    return false;
}

static bool has_call(const struct tbd_block *block)
{
    for (uint32_t i = 0; i < block->def.op_count; i++)
        if (block->ops[i].kind == TBD_OP_CALL || block->ops[i].kind == TBD_OP_RET)
            return true;
    return false;
}

/* Can the block be skipped? */
static bool can_pass(const struct tbd_pass *pass, const struct tbd_block *block, uint32_t id,
                     const uint8_t *record)
{
    if (pass->blocks && pass->blocks[id] &&
        (!pass->accesses || has_access(block, record, pass->accesses, pass->start, pass->end)))
        return false;
    if (pass->calls && has_call(block))
        return false;
    return pass->watch_start >= pass->watch_end ||
           !has_access(block, record, TBD_OP_STORE, pass->watch_start, pass->watch_end);
}

void tbd_cursor_pass(struct tbd_cursor *c, const struct tbd_pass *pass)
{
    const struct tbd_window *window = c->window;
    const struct tbd_block *block = c->block;
    const uint8_t *record = c->record;
    uint32_t id = c->id, index = c->index;
    uint64_t time = c->time;
    size_t entry = c->entry;

    if (c->kind != TBD_AT_BLOCK || window->is_picked)
        return;
    while (entry + 1 < window->entry_count && time <= pass->until &&
           !(window->entries[entry + 1] & TBD_ENTRY_MESSAGE) && can_pass(pass, block, id, record)) {
        record += block->def.operand_bytes;
        index += 1u + block->def.op_count;
        time++;
        id = window->entries[++entry];
        block = tbd_block_at(window->blocks_by_id, id);
    }
    if (entry == c->entry)
        return;
    c->entry = entry;
    c->operand = (size_t)(record - window->operands);
    c->index = index;
    c->next_time = time;
    arrive(c);
}

static void start_at(const struct tbd_window *window, const struct tbd_checkpoint *from,
                     struct tbd_cursor *out)
{
    tbd_cursor_first(window, out);
    if (!from)
        return;
    out->entry = from->entry;
    out->operand = from->operand;
    out->index = from->index;
    out->next_time = from->time;
    out->thread = from->thread;
    arrive(out);
}

/* Sets the cursor to the first entry at or after `time`. */
static void start_at_place(const struct tbd_window *window, uint64_t time, struct tbd_cursor *out)
{
    const struct tbd_picked_place *places = window->state->places;
    size_t at =
        TBD_COUNT_BEFORE(i, window->entry_count, places[i].time + window->first_time < time);

    tbd_cursor_first(window, out);
    if (!at)
        return;
    out->entry = at;
    if (at < window->entry_count)
        out->thread = places[at].thread;
    arrive(out);
}

bool tbd_cursor_seek(const struct tbd_window *window, uint64_t time, struct tbd_cursor *out)
{
    const struct tbd_window_state *state = window->state;
    size_t upto = TBD_COUNT_BEFORE(i, state->checkpoint_count, state->checkpoints[i].time <= time);

    if (window->is_picked)
        start_at_place(window, time, out);
    else
        start_at(window, upto ? &state->checkpoints[upto - 1] : NULL, out);
    while (out->kind != TBD_AT_END && (out->kind != TBD_AT_BLOCK || out->time < time))
        tbd_cursor_skip_block(out);
    if (out->kind == TBD_AT_BLOCK && out->time != time) {
        out->kind = TBD_AT_END;
        out->entry = window->entry_count;
    }
    return out->kind == TBD_AT_BLOCK;
}

bool tbd_cursor_seek_index(const struct tbd_window *window, uint32_t index, struct tbd_cursor *out)
{
    const struct tbd_window_state *state = window->state;
    size_t upto =
        TBD_COUNT_BEFORE(i, state->checkpoint_count, state->checkpoints[i].index <= index);

    start_at(window, upto ? &state->checkpoints[upto - 1] : NULL, out);
    while (out->kind != TBD_AT_END && out->index < index)
        tbd_cursor_next(out);
    return out->kind != TBD_AT_END;
}
