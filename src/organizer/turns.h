// SPDX-License-Identifier: MIT
/* turns.h - whose turn it is in a window, and whose next block is entered by a call
 *
 * A block whose record ends with a call is followed by the first block of the function, which
 * counts as entered by a call (struct tbd_block_summary).  With threads that is the next block of
 * the same thread, perhaps windows later.  A builder sees one window alone: what it cannot know
 * (`opens`) is filled in when windows are joined in order. */
#ifndef TBD_ORGANIZER_TURNS_H
#define TBD_ORGANIZER_TURNS_H

#include "base/status.h"
#include "format/trace/trace.h"

#define TBD_TURN_FIRST 0u /* the unknown thread that has control at the window's start */

/* The first block of a thread in a window: was it called in an earlier one? */
struct tbd_open_entry {
    uint32_t thread; /* tid or TBD_TURN_FIRST */
    uint32_t id;
    uint32_t time; /* relative */
};

struct tbd_turn {
    uint32_t thread;
    bool is_open;    /* nothing of it was seen yet in this window */
    uint32_t called; /* its last block, if that ended with a call; else 0 */
};

/* One window's.  Zero is empty; lives in the builder's work. */
struct tbd_turns {
    struct tbd_turn *turns; /* the current one is turns[current] */
    size_t count, capacity;
    size_t current;
    struct tbd_open_entry *opens;
    size_t open_count, open_capacity;
};

TBD_MUST_CHECK bool tbd_turns_begin(struct tbd_turns *turns);
void tbd_turns_free(struct tbd_turns *turns);
/* Takes a THREAD message.  Saves `*called` (as in struct tbd_turn) for the current turn and
 * replaces it by the next turn's. */
TBD_MUST_CHECK bool tbd_turns_take(struct tbd_turns *turns, const struct tbd_msg_thread *message,
                                   uint32_t *called);
/* The thread in control does something other than entering a block: it was not called. */
static inline void tbd_turns_settle(struct tbd_turns *turns)
{
    turns->turns[turns->current].is_open = false;
}
static inline bool tbd_turns_is_open(const struct tbd_turns *turns)
{
    return turns->turns[turns->current].is_open;
}
/* It enters block `id`, and nothing of it was seen before. */
TBD_MUST_CHECK bool tbd_turns_open(struct tbd_turns *turns, uint32_t id, uint32_t time);

/* ---- joining: over all windows, in order ---- */

/* Threads whose last block ended with a call, at the end of the windows so far. */
struct tbd_called {
    struct tbd_called_thread *threads;
    size_t count, capacity;
};

/* Adds the entries by a call that the builder could not see to the window's counts, and notes them
 * as its early calls.  The window's start registers must be set. */
TBD_MUST_CHECK bool tbd_turns_join(const struct tbd_turns *turns, struct tbd_called *called,
                                   struct tbd_window *window);

#endif
