// SPDX-License-Identifier: MIT
/* leaving.h - ends the recording, or the replay, of the program
 *
 * Code that cannot go on calls tbd_detach() or tbd_leave_soon(); the mode (boot/mode.h) sets at the
 * beginning what these do.  Contexts: BOOT for tbd_leaving_init(), else APP; tbd_leave_soon() SIG
 * too. */
#ifndef TBD_HOOKS_LEAVING_H
#define TBD_HOOKS_LEAVING_H

#include "patcher/thread.h"

#include <stdbool.h>

/* `offset`: as in struct tbd_msg_end. */
struct tbd_leaving {
    /* Does not return. */
    void (*detach)(struct tbd_thread *thread, const char *why, uint64_t offset);
    /* Lets go all threads but the caller's own, which the caller handles. */
    void (*let_go)(const char *why, uint64_t offset);
};

/* Borrowed for ever. */
void tbd_leaving_init(const struct tbd_leaving *leaving);

/* Detaches now, with the program's state in thread->regs. */
_Noreturn void tbd_detach(struct tbd_thread *thread, const char *why, uint64_t offset);
void tbd_let_go(const char *why, uint64_t offset);
/* Detaches at the next boundary; `why` is borrowed.  A later reason replaces an earlier one. */
void tbd_leave_soon(const char *why);
/* Somebody has asked that the program go on natively, and that nothing of us stay in its way. */
void tbd_leave_as_asked(void);
bool tbd_leaving_is_asked(void);
/* The reason last given to tbd_leave_soon(); NULL: none. */
const char *tbd_leaving_why(void);

#endif
