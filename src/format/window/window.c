// SPDX-License-Identifier: MIT
/* window.c - windows in memory: ownership, checks, digest
 *
 * Invariants
 * WINDOW-1  After tbd_window_index() (or where it holds from the start: coding.c, replay/gather.c)
 *     every entry names a block of the table or a message whose payload is complete, and records
 *     and messages fill the operands exactly: cursors need no checks. (not checked: whoever makes a
 *     window goes through it; the fuzzers do it again) */
#include "format/window/window.h"

#include "base/array.h"
#include "base/layout.h"
#include "base/binary_search.h"
#include "format/files/large_buffers.h"
#include "format/window/window_state.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct tbd_window *tbd_window_new(struct tbd_block_table *blocks)
{
    struct tbd_window *window = calloc(1, sizeof(*window));
    struct tbd_window_state *state = calloc(1, sizeof(*state));

    if (!window || !state) {
        free(window);
        free(state);
        return NULL;
    }
    window->state = state;
    window->blocks_by_id = tbd_block_table_retain(blocks);
    return window;
}

bool tbd_window_adopt_with(struct tbd_window *window, void *memory, void (*release)(void *))
{
    struct tbd_window_state *state = window->state;

    if (!tbd_array_grow(&state->owned, state->owned_count, &state->owned_capacity,
                        sizeof(*state->owned))) {
        release(memory);
        return false;
    }
    state->owned[state->owned_count++] = (struct tbd_owned){ memory, release };
    return true;
}

bool tbd_window_adopt(struct tbd_window *window, void *memory)
{
    return tbd_window_adopt_with(window, memory, free);
}

bool tbd_window_adopt_large_buffer(struct tbd_window *window, void *buffer)
{
    return tbd_window_adopt_with(window, buffer, tbd_large_buffer_give);
}

void *tbd_window_large_buffer(struct tbd_window *window, size_t bytes)
{
    void *buffer = tbd_large_buffer_take(bytes);

    return buffer && tbd_window_adopt_large_buffer(window, buffer) ? buffer : NULL;
}

void *tbd_window_memory(struct tbd_window *window, size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);

    return memory && tbd_window_adopt(window, memory) ? memory : NULL;
}

void tbd_window_free(struct tbd_window *window)
{
    struct tbd_window_state *state;

    if (!window)
        return;
    state = window->state;
    for (size_t i = 0; i < state->owned_count; i++)
        state->owned[i].release(state->owned[i].memory);
    free(state->owned);
    free(state->checkpoints);
    free(state->last_stores);
    tbd_large_buffer_give(state->places);
    free(state);
    tbd_block_table_release(window->blocks_by_id);
    free(window);
}

static const struct tbd_page_contents *find_page(const struct tbd_page_contents *pages,
                                                 size_t count, uint64_t address)
{
    size_t i = TBD_COUNT_BEFORE(k, count, pages[k].address < address);

    return i < count && pages[i].address == address ? &pages[i] : NULL;
}

const struct tbd_page_contents *tbd_window_dirty(const struct tbd_window *window, uint64_t address)
{
    return find_page(window->dirty, window->dirty_count, address);
}

const struct tbd_page_contents *tbd_window_first(const struct tbd_window *window, uint64_t address)
{
    return find_page(window->first, window->first_count, address);
}

const struct tbd_page_contents *tbd_window_start(const struct tbd_window *window, uint64_t address)
{
    return find_page(window->start, window->start_count, address);
}

bool tbd_window_inherit(struct tbd_window *window, struct tbd_window *from)
{
    struct tbd_window_state *state = window->state;
    size_t count = state->owned_count + from->state->owned_count;
    struct tbd_owned *owned = realloc(state->owned, (count + 1) * sizeof(*owned));

    if (!owned)
        return false;
    memcpy(owned + state->owned_count, from->state->owned,
           from->state->owned_count * sizeof(*owned));
    state->owned = owned;
    state->owned_count = count;
    state->owned_capacity = count + 1;
    from->state->owned_count = 0;
    tbd_window_free(from);
    return true;
}

void tbd_window_count_early_calls(struct tbd_window *window)
{
    struct tbd_block_summary *blocks =
        (struct tbd_block_summary *)(uintptr_t)window->block_summaries;

    for (size_t i = 0; i < window->early_call_count; i++) {
        const struct tbd_early_call *call = &window->early_calls[i];
        size_t found = TBD_COUNT_BEFORE(k, window->block_summary_count, blocks[k].id < call->id);

        if (found == window->block_summary_count || blocks[found].id != call->id)
            continue;
        if (!blocks[found].enters++ || blocks[found].last_enter < call->time)
            blocks[found].last_enter = call->time;
    }
}

bool tbd_window_take_events(struct tbd_window *window, struct tbd_window *from)
{
    struct tbd_window_state *to = window->state, *source = from->state;
    struct tbd_window events = *from;
    struct tbd_checkpoint *checkpoints = source->checkpoints;
    size_t count = source->checkpoint_count;

    tbd_block_table_retain(events.blocks_by_id);
    source->checkpoints = NULL;
    if (!tbd_window_inherit(window, from)) {
        source->checkpoints = checkpoints;
        tbd_block_table_release(events.blocks_by_id);
        return false;
    }
    free(to->checkpoints);
    to->checkpoints = checkpoints;
    to->checkpoint_count = to->checkpoint_capacity = count;
    tbd_block_table_release(window->blocks_by_id);
    window->blocks_by_id = events.blocks_by_id;
    window->entries = events.entries;
    window->entry_count = events.entry_count;
    window->operands = events.operands;
    window->operand_bytes = events.operand_bytes;
    window->log = events.log;
    window->log_count = events.log_count;
    window->has_events = true;
    return true;
}

/* ---- messages ---- */

static uint32_t fixed_bytes(uint32_t kind)
{
    switch (kind) {
    case TBD_MSG_SYSCALL: return sizeof(struct tbd_msg_syscall);
    case TBD_MSG_SPECIAL:
    case TBD_MSG_UNLOGGED: return sizeof(struct tbd_msg_special);
    case TBD_MSG_SIGNAL: return sizeof(struct tbd_msg_signal);
    case TBD_MSG_THREAD: return sizeof(struct tbd_msg_thread);
    case TBD_MSG_CODE: return sizeof(struct tbd_msg_code);
    case TBD_MSG_MAPPED: return sizeof(struct tbd_msg_mapped);
    case TBD_MSG_RSEQ: return sizeof(struct tbd_msg_rseq);
    case TBD_MSG_CUT: return sizeof(struct tbd_msg_cut);
    case TBD_MSG_READ: return sizeof(struct tbd_msg_read);
    case TBD_MSG_CALLING: return sizeof(struct tbd_msg_calling);
    default: return 8;
    }
}

static bool check_shared(const uint8_t *payload, uint32_t bytes)
{
    struct tbd_msg_shared shared;

    memcpy(&shared, payload, sizeof(shared));
    return shared.count == (bytes - sizeof(shared)) / sizeof(uint64_t) &&
           bytes % sizeof(uint64_t) == 0;
}

static uint32_t write_count(uint32_t kind, const uint8_t *payload)
{
    uint32_t count = 0;

    if (kind == TBD_MSG_SYSCALL)
        memcpy(&count, payload + offsetof(struct tbd_msg_syscall, write_count), sizeof(count));
    else if (kind == TBD_MSG_SPECIAL || kind == TBD_MSG_UNLOGGED)
        memcpy(&count, payload + offsetof(struct tbd_msg_special, write_count), sizeof(count));
    else if (kind == TBD_MSG_SIGNAL)
        memcpy(&count, payload + offsetof(struct tbd_msg_signal, write_count), sizeof(count));
    else if (kind == TBD_MSG_CODE)
        memcpy(&count, payload + offsetof(struct tbd_msg_code, write_count), sizeof(count));
    else if (kind == TBD_MSG_RSEQ)
        memcpy(&count, payload + offsetof(struct tbd_msg_rseq, write_count), sizeof(count));
    return count;
}

void tbd_writes_first(uint32_t kind, const uint8_t *payload, uint32_t bytes,
                      struct tbd_write_cursor *out)
{
    uint32_t fixed = fixed_bytes(kind);

    *out = (struct tbd_write_cursor){ .at = payload, .end = payload + bytes };
    if (bytes < fixed)
        return;
    out->at += fixed;
    out->left = write_count(kind, payload);
}

bool tbd_writes_next(struct tbd_write_cursor *cursor, struct tbd_write_view *out)
{
    struct tbd_write write;
    uint64_t stored;

    if (!cursor->left || (size_t)(cursor->end - cursor->at) < sizeof(write))
        return false;
    memcpy(&write, cursor->at, sizeof(write));
    stored = (uint64_t)write.bytes * (write.flags & TBD_WRITE_NO_OLD ? 1 : 2);
    if ((size_t)(cursor->end - cursor->at) - sizeof(write) < stored)
        return false;
    cursor->at += sizeof(write);
    out->address = write.address;
    out->bytes = write.bytes;
    out->old_bytes = write.flags & TBD_WRITE_NO_OLD ? NULL : cursor->at;
    out->new_bytes = write.flags & TBD_WRITE_NO_OLD ? cursor->at : cursor->at + write.bytes;
    cursor->at += stored;
    cursor->left--;
    return true;
}

/* Checks the registers that must follow the writes of a signal, or the start of a thread. */
static bool check_registers(const uint8_t *at, size_t bytes)
{
    struct tbd_regs regs;

    if (bytes < sizeof(regs))
        return false;
    memcpy(&regs, at, sizeof(regs));
    return regs.xsave_bytes <= bytes - sizeof(regs);
}

static bool check_thread(const uint8_t *payload, uint32_t bytes)
{
    struct tbd_msg_thread thread;

    memcpy(&thread, payload, sizeof(thread));
    if (thread.event == TBD_THREAD_START)
        return check_registers(payload + sizeof(thread), bytes - sizeof(thread));
    return thread.event == TBD_THREAD_SWITCH || thread.event == TBD_THREAD_END;
}

static bool check_mapped(const uint8_t *payload)
{
    struct tbd_msg_mapped mapped;

    memcpy(&mapped, payload, sizeof(mapped));
    return tbd_range_check(mapped.start, mapped.end);
}

bool tbd_message_check(uint32_t kind, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_write_cursor cursor;
    struct tbd_write_view write;

    if (bytes < fixed_bytes(kind))
        return false;
    if (kind == TBD_MSG_SHARED && !check_shared(payload, bytes))
        return false;
    if (kind == TBD_MSG_MAPPED && !check_mapped(payload))
        return false;
    tbd_writes_first(kind, payload, bytes, &cursor);
    while (tbd_writes_next(&cursor, &write))
        ;
    if (cursor.left)
        return false;
    if (kind == TBD_MSG_THREAD)
        return check_thread(payload, bytes);
    return kind != TBD_MSG_SIGNAL || check_registers(cursor.at, (size_t)(cursor.end - cursor.at));
}

bool tbd_start_check(const uint8_t *payload, size_t bytes)
{
    const uint8_t *at = payload + sizeof(struct tbd_msg_start);
    const uint8_t *end = payload + bytes;
    struct tbd_msg_start start;

    if (bytes < sizeof(start))
        return false;
    memcpy(&start, payload, sizeof(start));
    for (uint64_t strings = start.argc + 2ull; strings; strings--) {
        const uint8_t *nul = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;

        if (!nul)
            return false;
        at = nul + 1;
    }
    return true;
}

bool tbd_range_check(uint64_t start, uint64_t end)
{
    return start <= end && !((start | end) % TBD_PAGE_SIZE) && end <= TBD_USER_END;
}

/* ---- index ---- */

static bool put_checkpoint(struct tbd_window_state *state, const struct tbd_checkpoint *here)
{
    if (state->checkpoint_count == state->checkpoint_capacity) {
        size_t capacity = state->checkpoint_capacity * 2 + 64;
        struct tbd_checkpoint *grown = realloc(state->checkpoints, capacity * sizeof(*grown));

        if (!grown)
            return false;
        state->checkpoints = grown;
        state->checkpoint_capacity = capacity;
    }
    state->checkpoints[state->checkpoint_count++] = *here;
    return true;
}

bool tbd_window_put_checkpoint(struct tbd_window *window, const struct tbd_checkpoint *here)
{
    return put_checkpoint(window->state, here);
}

/* Length of the message at `operand`, 0 if it is not complete or not `kind`. */
static size_t message_length(const struct tbd_window *window, size_t operand, uint32_t kind)
{
    size_t left = window->operand_bytes - operand;
    struct tbd_message message;

    if (left < sizeof(message))
        return 0;
    memcpy(&message, window->operands + operand, sizeof(message));
    if (message.kind != kind || !tbd_message_is_event(kind) ||
        message.bytes > left - sizeof(message) ||
        !tbd_message_check(kind, window->operands + operand + sizeof(message), message.bytes))
        return 0;
    return sizeof(message) + message.bytes;
}

/* The thread that runs after the message at `here`. */
static uint32_t thread_after(const struct tbd_window *window, const struct tbd_checkpoint *here)
{
    const struct tbd_message *message = (const void *)(window->operands + here->operand);
    struct tbd_msg_thread thread;

    if (tbd_message_kind(message) != TBD_MSG_THREAD)
        return here->thread;
    thread = tbd_thread_message(message);
    return thread.event == TBD_THREAD_SWITCH ? thread.thread : here->thread;
}

enum tbd_status tbd_window_index(struct tbd_window *window, size_t *out_entry)
{
    struct tbd_checkpoint here = { .time = window->first_time, .thread = window->regs.thread };
    size_t due = 0;
    uint64_t index = 0;

    for (; here.entry < window->entry_count; here.entry++) {
        uint32_t entry = window->entries[here.entry];
        const struct tbd_block *block;
        size_t length;

        *out_entry = here.entry;
        if (entry & TBD_ENTRY_MESSAGE) {
            length = message_length(window, here.operand, entry & ~TBD_ENTRY_MESSAGE);
            if (!length)
                return TBD_CORRUPT;
            here.thread = thread_after(window, &here);
            index++;
        } else {
            here.index = (uint32_t)index;
            if (here.entry >= due && !put_checkpoint(window->state, &here))
                return TBD_NOMEM;
            if (here.entry >= due)
                due = here.entry + TBD_CHECKPOINT_ENTRIES;
            block = tbd_window_block(window, entry);
            if (!block || block->def.operand_bytes > window->operand_bytes - here.operand)
                return TBD_CORRUPT;
            length = block->def.operand_bytes;
            index += 1u + block->def.op_count;
            here.time++;
        }
        here.operand += length;
    }
    *out_entry = window->entry_count;
    return here.operand == window->operand_bytes &&
                   here.time - window->first_time == window->blocks && index <= UINT32_MAX
               ? TBD_OK
               : TBD_CORRUPT;
}

uint64_t tbd_window_digest(const struct tbd_window *window)
{
    XXH3_state_t *state = XXH3_createState();
    uint64_t digest;

    if (!state)
        return 0;
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, &window->end_regs, sizeof(window->end_regs));
    XXH3_64bits_update(state, window->end_xsave,
                       window->end_xsave ? window->end_regs.xsave_bytes : 0);
    for (size_t i = 0; i < window->end_thread_count; i++) {
        const struct tbd_thread_state *thread = &window->end_threads[i];

        XXH3_64bits_update(state, &thread->regs, sizeof(thread->regs));
        XXH3_64bits_update(state, thread->xsave, thread->regs.xsave_bytes);
    }
    for (size_t i = 0; i < window->dirty_count; i++) {
        const struct tbd_page_contents *page = &window->dirty[i];

        XXH3_64bits_update(state, &page->address, sizeof(uint64_t));
        XXH3_64bits_update(state, page->bytes ? page->bytes : page->packed,
                           page->bytes ? TBD_PAGE_SIZE : page->packed_bytes);
    }
    digest = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return digest;
}

static int compare_contents(const void *left, const void *right)
{
    const struct tbd_page_contents *a = left;
    const struct tbd_page_contents *b = right;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

void tbd_page_contents_sort(struct tbd_page_contents *pages, size_t count)
{
    if (count)
        qsort(pages, count, sizeof(*pages), compare_contents);
}
