// SPDX-License-Identifier: MIT
/* window_end.h - decides when a window ends, and sends the touched pages, the registers of all
 * threads and its end
 *
 * Context: APP. */
#ifndef TBD_HOOKS_WINDOW_END_H
#define TBD_HOOKS_WINDOW_END_H

#include "patcher/thread.h"

/* At a block boundary: the window's end and another thread's turn, if they are due. */
void tbd_window_handle_due(struct tbd_thread *thread);
/* Sends END and the last window's end; everything is handed over.  `offset`: as in struct
 * tbd_msg_end. */
void tbd_window_send_last(enum tbd_end_how how, uint32_t value, uint64_t offset, const char *text);
/* The same for a signal that ends the program; siginfo NULL: only the kernel knows it. */
void tbd_window_send_fatal(uint32_t signo, uint64_t offset, const uint8_t *siginfo);

/* Native play: the next window, and all after it, are of translated code, and begin with a message that says so. */
void tbd_window_translates(void);
/* That message, where the first window is one. */
void tbd_window_send_translated(struct tbd_thread *thread);
/* Native play, before the program is let go between two stops: the window has no end, and the trace ends at the last
 * stop. */
void tbd_window_cut(void);

#endif
