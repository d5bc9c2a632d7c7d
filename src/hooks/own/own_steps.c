// SPDX-License-Identifier: MIT
/* own_steps.c - native play: a program that sets its own trap flag is let go
 *
 * The processor steps through its own code as ever, but no replay can: blocks have no place between their
 * instructions at which a signal comes.  Where the flag was set is not known, only that it is set at this stop or fault.
 * So the trace ends with the stop before, as if the program had been killed after it, and says why. */
#include "hooks/own/own.h"

#include "hooks/stream/recording.h"
#include "hooks/threads/signals_private.h"
#include "hooks/threads/window_end.h"

/* What comes from here on is the program's own. */
static void end_trace(void)
{
    tbd_recording_note(1, "detached: %s", TBD_STEPS_ITSELF);
    tbd_window_cut();
    tbd_window_send_last(TBD_ENDED_DETACHED, 0, TBD_END_WHOLE, TBD_STEPS_ITSELF);
    tbd_recording.ring.discard = true;
}

/* The instruction before has run: its trap comes first, then what else has come. */
static void raise_trap(struct tbd_thread *thread)
{
    struct tbd_signals *signals = tbd_signals_now();
    uint32_t pending;

    tbd_signals_block_all();
    pending = __atomic_exchange_n(&signals->pending, 0, __ATOMIC_ACQ_REL);
    signals->fault.insn = TBD_SIGNAL_NOT_IN_BLOCK;
    tbd_signals_raise(thread, &signals->fault);
    __atomic_store_n(&signals->pending, pending, __ATOMIC_RELEASE);
}

void tbd_own_leave_steps(struct tbd_thread *thread, bool is_trap)
{
    if (!(thread->regs.rflags & TBD_RFLAGS_TRAP))
        return;
    tbd_ring_unprotect_sigsafe(&tbd_recording.ring);
    end_trace();
    if (is_trap)
        raise_trap(thread);
    tbd_detach(thread, TBD_STEPS_ITSELF, TBD_END_WHOLE);
}
