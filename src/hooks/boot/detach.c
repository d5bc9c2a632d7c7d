// SPDX-License-Identifier: MIT
/* detach.c - letting the program go on natively, exactly where it is
 *
 * Its registers are in the thread block, its vector state is in the processor, the kernel has its
 * masks and descriptors: what is left to undo are signal handlers, signal stack and gs base, and
 * last the filters for system calls that the engine has kept (seccomp.h).  The engine's memory
 * stays where it is, unused; only the stream is unmapped, so that the organizer's end is not held
 * up.  Other threads follow on their own, as soon as they come out of where they wait (threads.h,
 * THREADS-5): their handlers are the program's again before.  Contexts: APP, FORK_CHILD. */
#include "base/log.h"
#include "base/sys.h"
#include "hooks/boot/runtime.h"

void tbd_detach_child(struct tbd_thread *thread, bool shares_memory, bool clears_handlers)
{
    struct tbd_regs regs = thread->regs;
    const struct tbd_seccomp *filters = &tbd_runtime.threads.holder->seccomp;
    uint64_t mask = tbd_runtime.signals->mask;

    tbd_x87_settle();
    if (!shares_memory)
        tbd_threads_restore_cleared(tbd_runtime.threads.holder);
    if (shares_memory && clears_handlers)
        tbd_signals_restore_cleared();
    else
        tbd_signals_restore();
    if (!shares_memory)
        tbd_sys_munmap(TBD_STREAM_BASE, tbd_runtime.ring.bytes);
    tbd_set_gs_base(regs.gs_base);
    tbd_signals_go_native(&regs, mask, filters);
}

void tbd_detach_silently(struct tbd_thread *thread)
{
    tbd_detach_child(thread, false, false);
}

void tbd_let_go(const char *why, uint64_t offset)
{
    if (tbd_runtime.recording && !tbd_runtime.ring.discard)
        tbd_runtime_note(1, "detached: %s", why);
    tbd_runtime_send_end(TBD_ENDED_DETACHED, 0, offset, why);
    if (tbd_log_level >= TBD_LOG_WARN)
        tbd_say("process %u goes on untraced: %s", tbd_runtime.pid, why);
    tbd_signals_block_all();
    tbd_signals_repeat_last_fault();
    tbd_signals_restore_handlers();
    tbd_threads_release();
}

void tbd_detach(struct tbd_thread *thread, const char *why, uint64_t offset)
{
    if (tbd_runtime.instead_of_detach)
        tbd_runtime.instead_of_detach(why);
    tbd_let_go(why, offset);
    tbd_detach_silently(thread);
}
