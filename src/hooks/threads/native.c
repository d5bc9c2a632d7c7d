// SPDX-License-Identifier: MIT
/* native.c - see native.h
 *
 * The thread's registers are in the thread block, its vector state is in the processor, and the
 * kernel has its masks and descriptors.  What remains to be undone: signal handlers, signal stack,
 * restartable sequences (rseq.h), gs base, and last what the engine has kept from the kernel because it would concern the engine's
 * own calls: system call filters (seccomp_state.h) and user dispatch (user_dispatch_state.h).  The
 * engine's memory stays mapped, unused; only the stream is unmapped, so that the organizer can
 * end. */
#include "hooks/threads/native.h"

#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/seccomp_state.h"

_Noreturn void tbd_native_jump(const struct tbd_regs *regs, const uint64_t *mask);

/* What the kernel gets last. */
struct kept {
    struct tbd_seccomp filters;
    struct tbd_user_dispatch dispatch;
};

static struct kept kept_of(const struct tbd_saved_context *saved)
{
    return (struct kept){ saved->seccomp, saved->user_dispatch };
}

/* A filter, once installed, can forbid the call that sets the mask, and a dispatch can catch it: the
 * mask is set first. */
_Noreturn static void go_native(const struct tbd_regs *regs, uint64_t mask, const struct kept *kept)
{
    bool is_last = kept->filters.newest || kept->dispatch.is_on;

    if (is_last)
        tbd_signals_set_native_mask(mask);
    tbd_seccomp_install(&kept->filters);
    tbd_user_dispatch_install(&kept->dispatch);
    tbd_native_jump(regs, is_last ? NULL : &mask);
}

/* Gives the kernel the program's own word to clear at the thread's end. */
static void restore_cleared(const struct tbd_saved_context *saved)
{
    if (saved->is_watched)
        tbd_sys3(__NR_set_tid_address, saved->cleared, 0, 0);
}

/* It has not come to the call yet that it was taken over in. */
static void resume_natively(const struct tbd_saved_context *saved, struct tbd_regs *regs)
{
    if (saved->resumes && !saved->can_resume && regs->gpr[TBD_RAX] == __NR_restart_syscall)
        regs->gpr[TBD_RAX] = saved->resumes;
}

void tbd_threads_leave(struct tbd_saved_context *saved)
{
    struct tbd_regs regs = saved->regs;
    struct kept kept = kept_of(saved);

    tbd_signals_set_kernel_mask(~0ull); /* the handlers are the program's by now */
    tbd_sys6(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0,
             0); /* native play's */
    restore_cleared(saved);
    resume_natively(saved, &regs);
    tbd_signals_restore_thread(&saved->signals);
    tbd_rseq_install(&saved->rseq, &regs);
    tbd_set_gs_base(regs.gs_base);
    go_native(&regs, saved->signals.mask, &kept);
}

void tbd_detach_child(struct tbd_thread *thread, bool shares_memory, bool clears_handlers)
{
    struct tbd_regs regs = thread->regs;
    struct kept kept = kept_of(tbd_context_now());
    uint64_t mask = tbd_signals_now()->mask;

    tbd_x87_settle();
    if (!shares_memory)
        restore_cleared(tbd_context_now());
    if (shares_memory && clears_handlers)
        tbd_signals_restore_cleared();
    else
        tbd_signals_restore();
    if (shares_memory) {
        kept.dispatch.is_on = false; /* no child inherits it; nor, in shared memory, sequences */
    } else {
        tbd_rseq_install(&tbd_context_now()->rseq, &regs);
        tbd_sys_munmap(TBD_STREAM_BASE, tbd_recording.ring.bytes);
    }
    tbd_set_gs_base(regs.gs_base);
    go_native(&regs, mask, &kept);
}

void tbd_detach_silently(struct tbd_thread *thread)
{
    tbd_detach_child(thread, false, false);
}
