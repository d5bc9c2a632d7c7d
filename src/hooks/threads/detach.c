// SPDX-License-Identifier: MIT
/* detach.c - see detach.h
 *
 * The other threads follow on their own, as soon as their waits end (THREADS-5).  By then the
 * program's handlers are installed again. */
#include "hooks/threads/detach.h"

#include "base/log.h"
#include "hooks/instructions/vector.h"
#include "hooks/memory/code_areas.h"
#include "hooks/memory/window_pages.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/native.h"
#include "hooks/threads/window_end.h"

enum { CALL_IN_MS = 300 }; /* who does not come by then leaves when its call ends */

static void (*undo)(struct tbd_regs *regs);

void tbd_detach_undoes(void (*given)(struct tbd_regs *regs))
{
    undo = given;
}

/* All others wait for their turn: nobody runs translated code, and nobody will. */
static void leave_nothing(struct tbd_thread *thread)
{
    tbd_x87_settle(); /* while the code is there */
    tbd_code_areas_release();
    if (!undo)
        return;
    undo(&thread->regs);
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++)
        if (tbd_saved_context_at(i)->tid && tbd_saved_context_at(i) != tbd_threads.holder)
            undo(&tbd_saved_context_at(i)->regs);
    undo(NULL);
}

static void let_go(const char *why, uint64_t offset)
{
    bool is_alone = tbd_leaving_is_asked() && tbd_threads_call_in(CALL_IN_MS);

    if (tbd_recording.is_on && !tbd_recording.ring.discard)
        tbd_recording_note(1, "detached: %s", why);
    tbd_window_send_last(TBD_ENDED_DETACHED, 0, offset, why);
    if (tbd_log_level >= TBD_LOG_WARN && !tbd_leaving_is_asked())
        tbd_say("process %u goes on untraced: %s", tbd_recording.pid, why);
    tbd_signals_block_all();
    tbd_signals_repeat_last_fault();
    __atomic_store_n(&tbd_threads.is_leaving, true, __ATOMIC_RELEASE);
    if (is_alone)
        leave_nothing(tbd_thread_now());
    if (tbd_leaving_is_asked())
        tbd_signals_drop_calls();
    tbd_signals_restore_handlers();
    tbd_threads_release();
}

static void detach(struct tbd_thread *thread, const char *why, uint64_t offset)
{
    let_go(why, offset);
    tbd_detach_silently(thread);
}

const struct tbd_leaving tbd_leaving_play = { .detach = detach, .let_go = let_go };
