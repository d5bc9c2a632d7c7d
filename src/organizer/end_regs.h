// SPDX-License-Identifier: MIT
/* end_regs.h - registers of all threads at a window's end, collected from one message per thread
 *
 * If a thread has two messages, the later one counts; the last message is about the thread in
 * control.  One thread. */
#ifndef TBD_ORGANIZER_END_REGS_H
#define TBD_ORGANIZER_END_REGS_H

#include "base/status.h"
#include "format/window/window.h"

struct tbd_end_regs {
    struct tbd_thread_state *all; /* owned, except for the xsave images: the window's */
    size_t count, capacity;
};

void tbd_end_regs_free(struct tbd_end_regs *regs);
/* Adds a thread's message; false without memory. */
TBD_MUST_CHECK bool tbd_end_regs_put(struct tbd_end_regs *regs,
                                     const struct tbd_thread_state *state);
/* Stores them as the window's end state: the thread in control, and all others by tid.  False
 * without memory. */
TBD_MUST_CHECK bool tbd_end_regs_finish(const struct tbd_end_regs *regs, struct tbd_window *window);

#endif
