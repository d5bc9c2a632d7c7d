// SPDX-License-Identifier: MIT
/* leaving.h - the program cannot be recorded, or replayed, any further
 *
 * The code that finds this out calls tbd_detach() or tbd_leave_soon(); the consequences are the
 * mode's (boot/mode.h), set at the beginning.  Contexts: BOOT for tbd_leaving_init(), else APP. */
#ifndef TBD_HOOKS_LEAVING_H
#define TBD_HOOKS_LEAVING_H

#include "patcher/thread.h"

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
/* At the next boundary; `why` is borrowed.  The last reason counts. */
void tbd_leave_soon(const char *why);
/* The reason given to tbd_leave_soon(); NULL: none. */
const char *tbd_leaving_why(void);

#endif
