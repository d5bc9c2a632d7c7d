// SPDX-License-Identifier: MIT
/* guard.c - see guard.h
 *
 * The thread's mask is the one in the signal frame, which becomes real when the handler returns.  The program
 * does not see SIGTRAP in a mask that it reads back. */
#include "hooks/probes/guard.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/probes/trap.h"

#define TRAP_BIT   (1ull << (SIGTRAP - 1))
#define NEVER      (TRAP_BIT | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1))
#define MASK_BYTES 8u

static bool copy(long call, uint64_t theirs, const void *ours, uint64_t bytes)
{
    struct {
        uint64_t base, length;
    } here = { tbd_sys_pointer(ours), bytes }, there = { theirs, bytes };

    return tbd_sys6(call, (uint64_t)tbd_sys_getpid(), tbd_sys_pointer(&here), 1,
                    tbd_sys_pointer(&there), 1, 0) == (long)bytes;
}

static bool take(uint64_t from, void *to, uint64_t bytes)
{
    return copy(__NR_process_vm_readv, from, to, bytes);
}

static bool give(uint64_t to, const void *from, uint64_t bytes)
{
    return copy(__NR_process_vm_writev, to, from, bytes);
}

static uint64_t argument(const struct tbd_ucontext *context, uint32_t reg)
{
    return context->gregs[tbd_native_place(reg)];
}

static long change_mask(struct tbd_ucontext *context)
{
    uint64_t set = argument(context, TBD_RSI), old = argument(context, TBD_RDX);
    uint64_t before = context->mask, bits;

    if (argument(context, TBD_R10) != MASK_BYTES)
        return -EINVAL;
    if (set) {
        if (!take(set, &bits, sizeof(bits)))
            return -EFAULT;
        switch ((int)argument(context, TBD_RDI)) {
        case SIG_BLOCK: context->mask |= bits; break;
        case SIG_UNBLOCK: context->mask &= ~bits; break;
        case SIG_SETMASK: context->mask = bits; break;
        default: return -EINVAL;
        }
        context->mask &= ~NEVER;
    }
    return old && !give(old, &before, sizeof(before)) ? -EFAULT : 0;
}

static long change_trap_action(struct tbd_kernel_action *own, uint64_t act, uint64_t old)
{
    struct tbd_kernel_action wanted, before = *own;

    if (act) {
        if (!take(act, &wanted, sizeof(wanted)))
            return -EFAULT;
        *own = wanted;
    }
    return old && !give(old, &before, sizeof(before)) ? -EFAULT : 0;
}

static long change_action(const struct tbd_ucontext *context, struct tbd_kernel_action *own)
{
    uint64_t signal = argument(context, TBD_RDI), act = argument(context, TBD_RSI);
    uint64_t old = argument(context, TBD_RDX), bytes = argument(context, TBD_R10);
    struct tbd_kernel_action wanted, before;
    bool handles;
    long result;

    if (bytes != MASK_BYTES)
        return -EINVAL;
    if ((int)signal == SIGTRAP)
        return change_trap_action(own, act, old);
    if (act && !take(act, &wanted, sizeof(wanted)))
        return -EFAULT;
    if (act)
        wanted.mask &= ~TRAP_BIT;
    handles = act && wanted.handler > 1 && signal - 1 < 64;
    if (handles)
        tbd_trap_block((int)signal);
    result = tbd_handlers_change((uint32_t)signal, act ? &wanted : NULL, &before);
    if (handles) /* it may have become the hole meanwhile */
        tbd_trap_block((int)signal);
    if (!result && old && !give(old, &before, sizeof(before)))
        return -EFAULT;
    return result;
}

bool tbd_guard_call(const struct tbd_native_step *step, struct tbd_ucontext *context,
                    struct tbd_kernel_action *program_action)
{
    uint64_t *rax = &context->gregs[TBD_FRAME_RAX];

    if (*rax == __NR_rt_sigprocmask)
        *rax = (uint64_t)change_mask(context);
    else if (*rax == __NR_rt_sigaction)
        *rax = (uint64_t)change_action(context, program_action);
    else
        return false;
    context->gregs[tbd_native_place(TBD_RCX)] = step->next;
    context->gregs[tbd_native_place(TBD_R11)] = context->rflags;
    context->rip = step->next;
    return true;
}

void tbd_guard_handlers(void)
{
    struct tbd_kernel_action action;

    for (uint64_t signal = 1; signal <= 64; signal++) {
        if (signal == SIGTRAP ||
            tbd_sys4(__NR_rt_sigaction, signal, 0, tbd_sys_pointer(&action), MASK_BYTES) != 0 ||
            action.handler <= 1 || !(action.mask & TRAP_BIT))
            continue;
        action.mask &= ~TRAP_BIT;
        tbd_sys4(__NR_rt_sigaction, signal, tbd_sys_pointer(&action), 0, MASK_BYTES);
    }
}
