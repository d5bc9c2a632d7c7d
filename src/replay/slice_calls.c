// SPDX-License-Identifier: MIT
/* slice_calls.c - calls whose target comes in a later slice
 *
 * A call at the end of a thread's block enters the thread's next block, perhaps slices later.  The
 * window's TOC has such pending calls for its own start only. */
#include "replay/replayer_private.h"

#include "format/window/window_make.h"
#include "organizer/turns.h"

#include <string.h>

static bool ends_with_call(const struct tbd_block *block)
{
    for (uint32_t i = 0; i < block->def.op_count; i++)
        if (block->ops[i].kind == TBD_OP_CALL)
            return true;
    return false;
}

static bool is_left_early(const struct tbd_message *message, const struct tbd_block *block)
{
    uint64_t limit;

    memcpy(&limit, message + 1, sizeof(limit));
    return block && limit < block->def.insn_count;
}

struct follow {
    struct tbd_turns turns;
    const struct tbd_block *block; /* the block entered last */
    uint32_t called;
};

static bool follow_message(struct follow *f, const struct tbd_message *message)
{
    uint32_t kind = tbd_message_kind(message);
    struct tbd_msg_thread thread;

    if (kind == TBD_MSG_THREAD) {
        thread = tbd_thread_message(message);
        if (thread.event == TBD_THREAD_SWITCH)
            f->block = NULL;
        return tbd_turns_take(&f->turns, &thread, &f->called);
    }
    if (tbd_message_is_done_by_thread(kind))
        tbd_turns_settle(&f->turns);
    if (kind == TBD_MSG_SIGNAL || (kind == TBD_MSG_INTERRUPTED && is_left_early(message, f->block)))
        f->called = 0;
    return true;
}

/* Follows calls as the organizer does (build_messages.c), for windows of programs with threads. */
static bool follow_calls(struct tbd_called *called, struct tbd_window *slice)
{
    struct follow f = { .called = 0 };
    bool good = tbd_turns_begin(&f.turns);
    size_t message = 0;

    for (size_t i = 0; i < slice->entry_count && good; i++) {
        if (slice->entries[i] & TBD_ENTRY_MESSAGE &&
            !tbd_message_is_logged(slice->entries[i] & ~TBD_ENTRY_MESSAGE)) {
            tbd_turns_settle(&f.turns);
            continue;
        }
        if (slice->entries[i] & TBD_ENTRY_MESSAGE) {
            good = follow_message(&f, slice->log[message++].message);
            continue;
        }
        tbd_turns_settle(&f.turns);
        f.block = tbd_window_block(slice, slice->entries[i]);
        f.called = ends_with_call(f.block) ? slice->entries[i] : 0;
    }
    if (good) {
        f.turns.turns[f.turns.current].called = f.called;
        good = tbd_turns_join(&f.turns, called, slice);
    }
    tbd_turns_free(&f.turns);
    return good;
}

static bool has_threads(const struct tbd_window *window)
{
    for (size_t i = 0; i < window->log_count; i++)
        if (tbd_message_kind(window->log[i].message) == TBD_MSG_THREAD)
            return true;
    return window->thread_count;
}

static bool put_called(const struct tbd_called *called, struct tbd_window *slice)
{
    size_t bytes = called->count * sizeof(*called->threads);
    void *copy = tbd_window_memory(slice, bytes);

    if (!copy)
        return false;
    if (bytes)
        memcpy(copy, called->threads, bytes);
    slice->called = copy;
    slice->called_count = called->count;
    return true;
}

bool tbd_slice_calls(struct tbd_called *called, const struct tbd_window *whole,
                     struct tbd_window *slice)
{
    if (!has_threads(whole))
        return true;
    if (slice->thread_count && !put_called(called, slice))
        return false;
    return follow_calls(called, slice);
}
