// SPDX-License-Identifier: MIT
/* user_dispatch.c - see user_dispatch.h; after kernel/entry/syscall_user_dispatch.c of the kernel
 *
 * A call of the vDSO that the kernel would not see is not dispatched, nor is one of the vsyscall
 * page. */
#include "hooks/calls/user_dispatch.h"

#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/calls/seccomp.h"
#include "hooks/calls/vsyscall.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/threads/threads.h"

#define NOT_THE_ENGINE TBD_PAGE_SIZE /* no code of the engine is there */

static struct tbd_user_dispatch *own(void)
{
    return &tbd_context_now()->user_dispatch;
}

static bool is_on_vsyscall_page(uint64_t address)
{
    return address - TBD_VSYSCALL_PAGE < TBD_PAGE_SIZE;
}

/* The kernel kills the thread group, whatever handlers there are: it sees the call once more,
 * natively. */
_Noreturn static void die(struct tbd_call *call, uint32_t signo)
{
    tbd_signals_die_again(call->thread, signo, call->insns_before);
}

/* False: the call is let through. */
static bool selects(struct tbd_call *call, uint64_t selector)
{
    uint8_t says = SYSCALL_DISPATCH_FILTER_BLOCK;

    if (selector && !tbd_copy_from_program(&says, selector, sizeof(says)))
        die(call, SIGSEGV);
    if (says != SYSCALL_DISPATCH_FILTER_ALLOW && says != SYSCALL_DISPATCH_FILTER_BLOCK)
        die(call, SIGSYS);
    return says == SYSCALL_DISPATCH_FILTER_BLOCK;
}

bool tbd_user_dispatch_takes(struct tbd_call *call)
{
    const struct tbd_user_dispatch *state = own();
    uint64_t rip = call->thread->regs.rip;

    if (!state->is_on || is_on_vsyscall_page(rip) || tbd_seccomp_is_no_call(call) ||
        !tbd_user_dispatch_looks_at(state, rip + call->insn_bytes) ||
        !selects(call, state->selector))
        return false;
    tbd_seccomp_trap(call, SYS_USER_DISPATCH, 0);
    return true;
}

/* ---- setting it ---- */

static int64_t set_natively(uint64_t mode, uint64_t start, uint64_t bytes, uint64_t selector)
{
    return tbd_sys6(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, mode, start, bytes, selector, 0);
}

/* Does the kernel know the mode, and take the selector?  With a range that does not concern the
 * engine's calls it may have it for a moment. */
static int64_t ask(const struct tbd_user_dispatch *wanted)
{
    bool is_inclusive = wanted->mode == PR_SYS_DISPATCH_INCLUSIVE_ON;
    int64_t answer = is_inclusive
                         ? set_natively(wanted->mode, NOT_THE_ENGINE, 1, wanted->selector)
                         : set_natively(wanted->mode, TBD_ENGINE_BASE,
                                        TBD_DECODER_BASE - TBD_ENGINE_BASE, wanted->selector);

    if (answer == 0)
        set_natively(PR_SYS_DISPATCH_OFF, 0, 0, 0);
    return answer;
}

static bool is_range_good(const struct tbd_user_dispatch *wanted)
{
    uint64_t end = wanted->start + wanted->bytes;

    if (wanted->mode == PR_SYS_DISPATCH_INCLUSIVE_ON)
        return wanted->bytes && end > wanted->start;
    return !wanted->start || end > wanted->start;
}

static int64_t set(const uint64_t *args)
{
    struct tbd_user_dispatch wanted = {
        .mode = (uint32_t)args[1], .start = args[2], .bytes = args[3], .selector = args[4]
    };
    int64_t answer;

    if (args[1] == PR_SYS_DISPATCH_OFF)
        answer = set_natively(PR_SYS_DISPATCH_OFF, args[2], args[3], args[4]);
    else if (args[1] > PR_SYS_DISPATCH_INCLUSIVE_ON || !is_range_good(&wanted))
        answer = -EINVAL;
    else
        answer = ask(&wanted);
    if (answer == 0) {
        *own() = wanted;
        own()->is_on = args[1] != PR_SYS_DISPATCH_OFF;
    }
    return answer;
}

void tbd_user_dispatch_set(struct tbd_call *call)
{
    call->result = set(call->sys.args);
    tbd_call_finish(call);
}
