// SPDX-License-Identifier: MIT
/* thread_states.h - thread state that one window hands on to the next, and threads' index records
 *
 * Windows are joined in order; one thread at a time. */
#ifndef TBD_ORGANIZER_THREAD_STATES_H
#define TBD_ORGANIZER_THREAD_STATES_H

#include "format/writer/writer.h"

/* All threads' registers at a window's end: the start of the next window. */
struct tbd_end_state {
    struct tbd_thread_state running; /* xsave NULL: there was no window yet */
    struct tbd_thread_state *others; /* by tid */
    size_t count;
    uint8_t *images; /* owned; all xsave pointers point into it */
};

TBD_MUST_CHECK bool tbd_end_state_take(struct tbd_end_state *state,
                                       const struct tbd_window *window);
/* Sets it as the window's start. */
TBD_MUST_CHECK bool tbd_end_state_give(const struct tbd_end_state *state,
                                       struct tbd_window *window);
void tbd_end_state_free(struct tbd_end_state *state);

/* Writes index records about the window's threads: THREAD and RAN.  Its start registers must be
 * set; `had_turns` false: the thread that had control before had it all the time.  False without
 * memory. */
TBD_MUST_CHECK bool tbd_threads_note(struct tbd_writer *writer, const struct tbd_window *window,
                                     bool had_turns);

#endif
