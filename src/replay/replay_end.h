// SPDX-License-Identifier: MIT
/* replay_end.h - the registers and modified pages that a replay process sends at its window's end
 *
 * Messages about state may come at any time; those after the last event are the end state.  They
 * lie in memory shared with the process, and are copied before they are checked.
 *
 * Context: ORG; one thread each. */
#ifndef TBD_REPLAY_REPLAY_END_H
#define TBD_REPLAY_REPLAY_END_H

#include "organizer/end_regs.h"

struct tbd_end_page;

struct tbd_replay_end {
    struct tbd_end_regs regs;   /* owned */
    struct tbd_end_page *pages; /* owned */
    size_t page_count, page_capacity;
    size_t page_most;    /* more pages than this are an error */
    uint8_t *page_bytes; /* owned, large buffer */
    bool has_end;        /* the message of the window's end has come */
};

void tbd_replay_end_free(struct tbd_replay_end *state);
/* Begins a window. */
void tbd_replay_end_clear(struct tbd_replay_end *state);
/* Called at an event: earlier messages are not the end state. */
static inline void tbd_replay_end_go_on(struct tbd_replay_end *state)
{
    state->regs.count = state->page_count = 0;
}
static inline bool tbd_replay_end_takes(uint32_t kind)
{
    return kind == TBD_MSG_PAGE || kind == TBD_MSG_REGS || kind == TBD_MSG_WINDOW_END;
}
/* Takes a message of such a kind.  Sets *out_wrong (static text) if it
 * is invalid. */
TBD_MUST_CHECK enum tbd_status tbd_replay_end_take(struct tbd_replay_end *state,
                                                   struct tbd_window *window, uint32_t kind,
                                                   const uint8_t *payload, uint32_t bytes,
                                                   const char **out_wrong);
/* Likewise, of any message that is no event; others of these do not matter, or are wrong. */
TBD_MUST_CHECK enum tbd_status tbd_replay_end_message(struct tbd_replay_end *state,
                                                      struct tbd_window *window, uint32_t kind,
                                                      const uint8_t *payload, uint32_t bytes,
                                                      const char **out_wrong);
/* Makes it the end state of `window`, `time` block entries and `order` log messages after its
 * start.  Contents of pages are borrowed until the next window.  False without memory. */
TBD_MUST_CHECK bool tbd_replay_end_finish(const struct tbd_replay_end *state,
                                          struct tbd_window *window, uint64_t time, uint32_t order);

#endif
