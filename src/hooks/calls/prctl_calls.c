// SPDX-License-Identifier: MIT
/* prctl_calls.c - options of prctl that the engine answers, because the kernel's answer would be the
 * engine's own or would change how the engine's code runs
 *
 * Context: APP. */
#include "base/linux.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/calls/seccomp.h"
#include "hooks/calls/user_dispatch.h"
#include "hooks/stream/cycles.h"

static void finish(struct tbd_call *call, int64_t result)
{
    call->result = result;
    tbd_call_finish(call);
}

/* While there are several threads, the kernel has an address of the engine (THREADS-3). */
static void get_tid_address(struct tbd_call *call)
{
    const struct tbd_saved_context *saved = tbd_threads.holder;
    uint64_t kernels;
    long result = tbd_sys3(__NR_prctl, PR_GET_TID_ADDRESS, tbd_sys_pointer(&kernels), 0);

    if (result == 0 &&
        !tbd_call_answer(call, call->sys.args[1], saved->is_watched ? &saved->cleared : &kernels,
                         sizeof(uint64_t)))
        result = -EFAULT;
    finish(call, result);
}

void tbd_call_prctl(struct tbd_call *call)
{
    if (tbd_seccomp_answers_prctl(call))
        return;
    switch ((uint32_t)call->sys.args[0]) {
    case PR_GET_TID_ADDRESS: get_tid_address(call); break;
    case PR_SET_SYSCALL_USER_DISPATCH: tbd_user_dispatch_set(call); break;
    case PR_SET_TSC:
        tbd_cycles_forbid();
        tbd_call_plain(call);
        break;
    default: tbd_call_plain(call);
    }
}
