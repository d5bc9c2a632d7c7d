// SPDX-License-Identifier: MIT
/* waiting_mask.h - calls that wait with a signal mask of their own: ppoll, pselect6, epoll_pwait, sigsuspend, io_uring_enter, ...
 *
 * In free run a thread is called in by SIGTRAP (free_leave.h), so the kernel must not block that one during such a
 * call, whatever the mask says: the call is made with a copy of the mask without it.  A SIGTRAP for
 * the program is held meanwhile (signals_held.c), and the call is made again.
 *
 * Context: APP, also without the turn lock. */
#ifndef TBD_HOOKS_WAITING_MASK_H
#define TBD_HOOKS_WAITING_MASK_H

#include "hooks/table/syscalls.h"
#include "hooks/threads/signals.h"

/* What the kernel looks at in place of the program's mask. */
struct tbd_waiting_mask {
    struct tbd_sys_call sys; /* the call, as it is made */
    uint64_t mask;
    struct {
        uint64_t pointer, bytes;
        uint64_t timeout; /* of io_uring_enter */
    } pair;               /* of calls that take the mask so */
};

/* Before such a call: a signal handler's mask is added to its mask, which becomes the thread's temporary one. */
void tbd_call_note_temporary_mask(const struct tbd_sys_call *sys);

/* The call that lets SIGTRAP through: *sys, or *out's.  `out` must stay until the call is over. */
const struct tbd_sys_call *tbd_waiting_mask_open(const struct tbd_signals *signals,
                                                 const struct tbd_sys_call *sys,
                                                 struct tbd_waiting_mask *out);

#endif
