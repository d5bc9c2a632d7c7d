// SPDX-License-Identifier: MIT
/* user_dispatch_state.c - see user_dispatch_state.h */
#include "hooks/threads/user_dispatch_state.h"

#include "base/linux_abi.h"
#include "base/sys.h"

bool tbd_user_dispatch_looks_at(const struct tbd_user_dispatch *state, uint64_t after)
{
    bool is_inside = after - state->start < state->bytes;

    return state->is_on && is_inside == (state->mode == PR_SYS_DISPATCH_INCLUSIVE_ON);
}

void tbd_user_dispatch_install(const struct tbd_user_dispatch *state)
{
    if (state->is_on)
        tbd_sys6(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, state->mode, state->start, state->bytes,
                 state->selector, 0);
}
