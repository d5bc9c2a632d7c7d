// SPDX-License-Identifier: MIT
/* build_messages.c - messages of a raw window
 *
 * Messages that belong to the order of events stay in it, and are noted in the log; messages about
 * state and about the trace are taken out.  Invariants BUILD-1, BUILD-3 hold here. */
#include "organizer/build_private.h"

#include "base/array.h"
#include "base/layout.h"
#include "format/window/opened.h"
#include "format/window/window_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The block entered last was left before its instruction `limit`: what its record says about later
 * instructions did not happen. */
static bool cut_last_block(struct work *w, uint64_t limit)
{
    struct tbd_window_summary *counts = &w->out->counts;
    const struct tbd_block *block =
        w->last_plan ? tbd_window_block(w->window, w->last_plan->id) : NULL;

    if (!block || limit >= block->def.insn_count)
        return true;
    if (w->window->is_uncounted) {
        w->called = 0;
        w->last_plan = NULL;
        return true;
    }
    if (!tbd_array_grow(&w->cuts, w->cut_count, &w->cut_capacity, sizeof(*w->cuts)))
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

static bool put_log(struct work *w)
{
    size_t capacity = w->log_capacity;

    if (w->log_count == w->log_capacity &&
        (!tbd_array_grow(&w->log, w->log_count, &w->log_capacity, sizeof(*w->log)) ||
         !tbd_array_grow(&w->log_offsets, w->log_count, &capacity, sizeof(*w->log_offsets))))
        return false;
    w->log[w->log_count].time = w->time;
    w->log_offsets[w->log_count++] = w->kept + (w->in - w->moved_from);
    return true;
}

static enum tbd_status take_event(struct work *w, uint32_t kind, const uint8_t *payload,
                                  uint32_t bytes)
{
    struct tbd_write_cursor cursor;
    struct tbd_write_view write;

    if (!tbd_message_check(kind, payload, bytes))
        return tbd_build_damage(w, "a message that is too short");
    if (tbd_message_is_logged(kind) && !put_log(w))
        return TBD_NOMEM;
    if (!take_interruption(w, kind, payload))
        return TBD_NOMEM;
    if (kind == TBD_MSG_THREAD && !take_thread(w, payload))
        return TBD_NOMEM;
    if (kind != TBD_MSG_THREAD && tbd_message_is_done_by_thread(kind))
        tbd_turns_settle(&w->turns);
    tbd_writes_first(kind, payload, bytes, &cursor);
    while (tbd_writes_next(&cursor, &write))
        if (write.address < TBD_USER_END && write.bytes <= TBD_USER_END - write.address)
            tbd_shadow_range(&w->builder->shadow, write.address, write.bytes, (uint32_t)w->index,
                             1);
    w->out->counts.syscalls += kind == TBD_MSG_SYSCALL;
    w->out->counts.specials += kind == TBD_MSG_SPECIAL;
    w->out->counts.signals += kind == TBD_MSG_SIGNAL;
    if (kind == TBD_MSG_SIGNAL)
        w->called = 0;
    w->index++;
    return TBD_OK;
}

/* A page's frame is no longer than the page by this, however badly it packs. */
#define FRAME_MORE 64u

/* The next page that was packed when it came.  False: this is not it. */
static bool take_packed(struct work *w, const struct tbd_msg_page *head, struct tbd_page_note *note)
{
    const struct tbd_packed_page *page;

    if (head->flags != (TBD_PAGE_DIRTY | TBD_PAGE_PACKED) || w->packed_taken == w->packed.count)
        return false;
    page = &w->packed.list[w->packed_taken++];
    note->packed = w->packed.bytes + page->offset;
    note->packed_bytes = page->length;
    note->is_difference = page->address & TBD_PACKED_DIFFERENCE;
    return (page->address & ~(uint64_t)TBD_PACKED_DIFFERENCE) == head->address;
}

/* What follows the head: the page, its frame, or nothing, as it was packed.  False: something else. */
static bool take_contents(struct work *w, const struct tbd_msg_page *head, const uint8_t *contents,
                          uint32_t bytes, struct tbd_page_note *note)
{
    if (head->flags & TBD_PAGE_FRAME) {
        note->packed = contents;
        note->packed_bytes = bytes;
        note->is_difference = head->flags & TBD_PAGE_DIFFERENCE;
        return w->takes_frames && bytes < PAGE_BYTES + FRAME_MORE &&
               !(head->flags & TBD_PAGE_FIRST);
    }
    if (!bytes)
        return take_packed(w, head, note);
    note->bytes = contents;
    return bytes == PAGE_BYTES;
}

static enum tbd_status take_page(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_page_note note = { .time = w->time,
                                  .order = (uint32_t)w->log_count,
                                  .at_end = true };
    struct tbd_msg_page head;

    if (bytes < sizeof(head))
        return tbd_build_damage(w, "a page message that is too short");
    memcpy(&head, payload, sizeof(head));
    if (head.address % PAGE_BYTES || head.address >= TBD_USER_END)
        return tbd_build_damage(w, "an impossible page");
    if (!take_contents(w, &head, payload + sizeof(head), bytes - (uint32_t)sizeof(head), &note))
        return tbd_build_damage(w, "a page without its contents");
    if (!tbd_array_grow(&w->pages, w->page_count, &w->page_capacity, sizeof(*w->pages)))
        return TBD_NOMEM;
    note.address = head.address;
    note.flags = head.flags;
    w->pages[w->page_count++] = note;
    w->pages_pending++;
    return TBD_OK;
}

static enum tbd_status take_reads(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    for (uint32_t at = 0; at + 8 <= bytes; at += 8) {
        uint64_t address;

        memcpy(&address, payload + at, sizeof(address));
        if (address % PAGE_BYTES || address >= TBD_USER_END)
            return tbd_build_damage(w, "an impossible page");
        if (!tbd_array_grow(&w->reads, w->read_count, &w->read_capacity, sizeof(*w->reads)))
            return TBD_NOMEM;
        w->reads[w->read_count++] = address;
    }
    return TBD_OK;
}

/* Registers: of the window's end, unless an event follows, then of its start. */
static enum tbd_status take_regs(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_thread_state state;

    if (bytes < sizeof(state.regs))
        return tbd_build_damage(w, "a register message that is too short");
    memcpy(&state.regs, payload, sizeof(state.regs));
    if (state.regs.xsave_bytes > bytes - sizeof(state.regs))
        return tbd_build_damage(w, "a register message that is too short");
    state.xsave = tbd_build_keep(w, payload + sizeof(state.regs), state.regs.xsave_bytes);
    if (!state.xsave)
        return TBD_NOMEM;
    if (!w->index && !w->time && !w->regs.count) {
        w->window->regs = state.regs;
        w->window->xsave = state.xsave;
    }
    return tbd_end_regs_put(&w->regs, &state) ? TBD_OK : TBD_NOMEM;
}

static enum tbd_status take_side(struct work *w, uint32_t kind, const uint8_t *payload,
                                 uint32_t bytes)
{
    static const uint32_t least[TBD_MSG_KIND_COUNT] = {
        [TBD_MSG_REGION] = sizeof(struct tbd_msg_region) + 1,
        [TBD_MSG_UNMAP] = sizeof(struct tbd_range),
        [TBD_MSG_NOTE] = 5,
    };
    struct tbd_side_message side = {
        .kind = kind, .bytes = bytes, .time = w->time, .order = (uint32_t)w->log_count
    };
    struct tbd_range range;

    if (bytes < least[kind] || (kind != TBD_MSG_UNMAP && payload[bytes - 1]))
        return tbd_build_damage(w, "a message that is too short");
    memcpy(&range, payload, kind == TBD_MSG_NOTE ? 0 : sizeof(range)); /* a region begins with it */
    if (kind != TBD_MSG_NOTE && !tbd_range_check(range.start, range.end))
        return tbd_build_damage(w, "an impossible range");
    if (!tbd_array_grow(&w->out->side, w->out->side_count, &w->side_capacity, sizeof(side)))
        return TBD_NOMEM;
    side.payload = tbd_build_keep(w, payload, bytes);
    if (!side.payload)
        return TBD_NOMEM;
    w->out->side[w->out->side_count++] = side;
    return TBD_OK;
}

static enum tbd_status take_end(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_product *out = w->out;
    uint32_t text_bytes, before = sizeof(out->end);

    if (bytes < before)
        return tbd_build_damage(w, "an end message that is too short");
    memcpy(&out->end, payload, before);
    snprintf(out->end_text, sizeof(out->end_text), "%.*s", (int)(bytes - before),
             (const char *)payload + before);
    text_bytes = (uint32_t)strnlen((const char *)payload + before, bytes - before) + 1;
    if (bytes >= before + text_bytes + TBD_SIGINFO_BYTES) {
        out->end_siginfo = tbd_build_keep(w, payload + before + text_bytes, TBD_SIGINFO_BYTES);
        if (!out->end_siginfo)
            return TBD_NOMEM;
    }
    out->has_end = true;
    return cut_last_block(w, out->end.offset) ? TBD_OK : TBD_NOMEM;
}

static enum tbd_status take_window_end(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_msg_window_end end;

    if (bytes < sizeof(end))
        return tbd_build_damage(w, "a window end that is too short");
    memcpy(&end, payload, sizeof(end));
    w->out->end_time = end.time;
    w->window->complete = w->regs.count != 0;
    return TBD_OK;
}

/* Blocks of which only the first and the last are known (count=later). */
static enum tbd_status take_passed(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    const struct tbd_block_plan *plans = w->plans;
    struct tbd_msg_passed passed;
    enum tbd_status status;

    if (bytes < sizeof(passed))
        return tbd_build_damage(w, "a count of blocks that is too short");
    memcpy(&passed, payload, sizeof(passed));
    if (!passed.blocks || !passed.first || passed.first > w->plan_count || !passed.last ||
        passed.last > w->plan_count || !plans[passed.first].id || !plans[passed.last].id)
        return tbd_build_damage(w, "a block that was not defined");
    if (passed.blocks > UINT32_MAX - w->time)
        return tbd_build_damage(w, "too many entries");
    status = tbd_build_go_on(w);
    if (status)
        return status;
    if (tbd_turns_is_open(&w->turns) && !tbd_turns_open(&w->turns, plans[passed.first].id, w->time))
        return TBD_NOMEM;
    w->window->is_uncounted = true;
    w->time += passed.blocks;
    w->last_plan = &plans[passed.last];
    w->called = w->last_plan->calls ? w->last_plan->id : 0;
    return TBD_OK;
}

static enum tbd_status take_clock(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_msg_clock clock;

    if (bytes < sizeof(clock))
        return tbd_build_damage(w, "a time that is too short");
    memcpy(&clock, payload, sizeof(clock));
    if (!tbd_array_grow(&w->stamps, w->stamp_count, &w->stamp_capacity, sizeof(*w->stamps)))
        return TBD_NOMEM;
    w->stamps[w->stamp_count++] = (struct tbd_stamp){ w->time, clock.realtime_ns };
    return TBD_OK;
}

/* About the last message of the log.  A window that begins between the two does not get it. */
static enum tbd_status take_opened(struct work *w, const uint8_t *payload, uint32_t bytes)
{
    uint32_t head[2] = { (uint32_t)w->log_count - 1, bytes };

    if (!tbd_opened_is_good(payload, bytes))
        return tbd_build_damage(w, "an impossible descriptor");
    if (w->log_count == 0)
        return TBD_OK;
    tbd_buffer_put(&w->opened, head, sizeof(head));
    tbd_buffer_put(&w->opened, payload, bytes);
    return w->opened.failed ? TBD_NOMEM : TBD_OK;
}

/* A message that is taken out of the order of events. */
static enum tbd_status take_state(struct work *w, uint32_t kind, const uint8_t *payload,
                                  uint32_t bytes)
{
    switch (kind) {
    case TBD_MSG_START:
        if (!tbd_start_check(payload, bytes))
            return tbd_build_damage(w, "an impossible start message");
        w->out->start = tbd_build_keep(w, payload, bytes);
        w->out->start_bytes = bytes;
        return w->out->start ? TBD_OK : TBD_NOMEM;
    case TBD_MSG_PAGE: return take_page(w, payload, bytes);
    case TBD_MSG_READ_PAGES: return take_reads(w, payload, bytes);
    case TBD_MSG_REGS: return take_regs(w, payload, bytes);
    case TBD_MSG_REGION:
    case TBD_MSG_UNMAP:
    case TBD_MSG_NOTE: return take_side(w, kind, payload, bytes);
    case TBD_MSG_WINDOW_END: return take_window_end(w, payload, bytes);
    case TBD_MSG_END: return take_end(w, payload, bytes);
    case TBD_MSG_PASSED: return take_passed(w, payload, bytes);
    case TBD_MSG_CLOCK: return take_clock(w, payload, bytes);
    case TBD_MSG_OPENED: return take_opened(w, payload, bytes);
    default: return tbd_build_damage(w, "a message of unknown kind");
    }
}

enum tbd_status tbd_build_message(struct work *w, uint32_t kind)
{
    size_t left = w->operand_bytes - w->in;
    struct tbd_message head;
    const uint8_t *payload;
    enum tbd_status status;

    if (left < sizeof(head))
        return tbd_build_outside(w, "a message outside the operands");
    memcpy(&head, w->operands + w->in, sizeof(head));
    if (head.kind != kind)
        return tbd_build_damage(w, "a message outside the operands");
    if (head.bytes > left - sizeof(head))
        return tbd_build_outside(w, "a message outside the operands");
    payload = w->operands + w->in + sizeof(head);
    if (tbd_message_is_event(kind)) {
        status = tbd_build_go_on(w);
        if (!status)
            status = take_event(w, kind, payload, head.bytes);
        if (!status)
            w->entries[w->kept_entries++] = TBD_ENTRY_MESSAGE | kind;
        w->in += status ? 0 : sizeof(head) + head.bytes;
        return status;
    }
    tbd_build_close_gap(w);
    status = take_state(w, kind, payload, head.bytes);
    w->in += sizeof(head) + head.bytes;
    w->moved_from = w->in;
    return status;
}
