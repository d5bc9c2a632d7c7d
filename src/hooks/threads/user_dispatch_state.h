// SPDX-License-Identifier: MIT
/* user_dispatch_state.h - the user dispatch of system calls that a thread has asked for
 * (PR_SET_SYSCALL_USER_DISPATCH), and how the kernel gets it (hooks/calls/user_dispatch.h)
 *
 * Context: APP, FORK_CHILD, also without the turn lock. */
#ifndef TBD_HOOKS_USER_DISPATCH_STATE_H
#define TBD_HOOKS_USER_DISPATCH_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct tbd_user_dispatch {
    bool is_on;
    uint32_t mode;  /* PR_SYS_DISPATCH_*: are the calls of the range let through, or the others? */
    uint64_t start; /* of the range */
    uint64_t bytes;
    uint64_t selector; /* address of the byte that says whether to dispatch; 0: always */
};

/* Is a call whose instruction ends at `after` outside of what is always let through? */
bool tbd_user_dispatch_looks_at(const struct tbd_user_dispatch *state, uint64_t after);

/* Gives it to the kernel: the last step before the thread leaves the engine, whose own calls are
 * dispatched from then on. */
void tbd_user_dispatch_install(const struct tbd_user_dispatch *state);

#endif
