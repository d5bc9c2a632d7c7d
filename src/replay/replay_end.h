// SPDX-License-Identifier: MIT
/* replay_end.h - what a replay process says of registers and modified pages at its window's end
 *
 * Messages about state may come at any time; those count that no event follows.  They lie in memory that the process
 * shares, and are copied before they are looked at.
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
    size_t page_most;    /* more than so many are wrong */
    uint8_t *page_bytes; /* owned, room */
    bool has_end;        /* the window's end was said */
};

void tbd_replay_end_free(struct tbd_replay_end *state);
/* A window begins. */
void tbd_replay_end_clear(struct tbd_replay_end *state);
/* An event comes: what was the end state so far is not. */
static inline void tbd_replay_end_go_on(struct tbd_replay_end *state)
{
    state->regs.count = state->page_count = 0;
}
/* A message of kind TBD_MSG_PAGE, _REGS or _WINDOW_END.  *out_wrong (static) is set if it cannot be one. */
TBD_MUST_CHECK enum tbd_status tbd_replay_end_take(struct tbd_replay_end *state,
                                                   struct tbd_window *window, uint32_t kind,
                                                   const uint8_t *payload, uint32_t bytes,
                                                   const char **out_wrong);
/* It becomes the window's, `time` block entries and `order` messages of the log behind its start.  Contents of pages are
 * borrowed until the next window.  False without memory. */
TBD_MUST_CHECK bool tbd_replay_end_finish(const struct tbd_replay_end *state,
                                          struct tbd_window *window, uint64_t time, uint32_t order);

#endif
