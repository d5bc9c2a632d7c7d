// SPDX-License-Identifier: MIT
/* end_state.h - what a replay process says of registers and modified pages at its window's end
 *
 * Messages about state may come at any time; those count that no event follows.  They lie in memory that the process
 * shares, and are copied before they are looked at.
 *
 * Context: ORG; one thread each. */
#ifndef TBD_REPLAY_END_STATE_H
#define TBD_REPLAY_END_STATE_H

#include "format/window.h"

/* What was copied from shared memory is not read from there again, whatever the compiler thinks of
 * it. */
#define READ_ONCE_UP_TO_HERE() __asm__ volatile("" ::: "memory")

struct tbd_end_page;

struct tbd_end_state {
    struct tbd_thread_state *regs; /* owned, of each thread the last ones; xsave lives in the window */
    size_t reg_count, reg_room;
    struct tbd_end_page *pages;    /* owned */
    size_t page_count, page_room;
    uint8_t *page_bytes;           /* owned, room */
    bool has_end;                  /* the window's end was said */
};

void tbd_end_state_free(struct tbd_end_state *state);
/* A window begins. */
void tbd_end_state_clear(struct tbd_end_state *state);
/* An event comes: what was the end state so far is not. */
static inline void tbd_end_state_go_on(struct tbd_end_state *state)
{
    state->reg_count = state->page_count = 0;
}
/* A message of kind TBD_MSG_PAGE, _REGS or _WINDOW_END.  *out_wrong (static) is set if it cannot be one. */
TBD_MUST_CHECK enum tbd_status tbd_end_state_take(struct tbd_end_state *state, struct tbd_window *window, uint32_t kind,
                                                  const uint8_t *payload, uint32_t bytes, const char **out_wrong);
/* It becomes the window's, `time` block entries and `order` messages of the log behind its start.  Contents of pages are
 * borrowed until the next window.  False without memory. */
TBD_MUST_CHECK bool tbd_end_state_finish(const struct tbd_end_state *state, struct tbd_window *window, uint64_t time,
                                         uint32_t order);

#endif
