// SPDX-License-Identifier: MIT
/* end_regs.h - registers of all threads, as messages about a window's end say them one by one
 *
 * Of two messages about one thread the later one counts; the last of all is about the thread in control.  One thread. */
#ifndef TBD_ORGANIZER_END_REGS_H
#define TBD_ORGANIZER_END_REGS_H

#include "base/status.h"
#include "format/window/window.h"

struct tbd_end_regs {
    struct tbd_thread_state *all; /* owned, but for the xsave images: the window's */
    size_t count, room;
};

void tbd_end_regs_free(struct tbd_end_regs *regs);
/* A message about a thread; false without memory. */
TBD_MUST_CHECK bool tbd_end_regs_put(struct tbd_end_regs *regs,
                                     const struct tbd_thread_state *state);
/* They become the window's end state: of the thread in control, and of all others by tid.  False without memory. */
TBD_MUST_CHECK bool tbd_end_regs_finish(const struct tbd_end_regs *regs, struct tbd_window *window);

#endif
