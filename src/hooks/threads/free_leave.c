// SPDX-License-Identifier: MIT
/* free_leave.c - see free_leave.h */
#include "hooks/threads/free_leave.h"

#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/vector.h"
#include "hooks/memory/code_areas.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/free_threads.h"
#include "hooks/threads/native.h"
#include "patcher/engine_lock.h"

enum { NUDGE_EVERY_MS = 1, DYING_WAITS_MS = 1000, LEAVING_WAITS_MS = 100 };
enum { ARRIVED = 1, LEAVES = 2 }; /* struct tbd_saved_context, turn */

static uint32_t handlers_are_restored;
static bool is_told;        /* with the lock */
static uint32_t is_pausing; /* futex: all threads but one wait at a boundary */

/* ---- the others ---- */

static bool is_to_come(const struct tbd_saved_context *saved)
{
    return __atomic_load_n(&saved->tid, __ATOMIC_RELAXED) &&
           !__atomic_load_n(&saved->turn, __ATOMIC_ACQUIRE);
}

/* Its handler looks whether the program is to be let go (signals_catch.c).  A thread that ends meanwhile, or a
 * process that shares this memory, does not count. */
static void nudge(struct tbd_saved_context *saved)
{
    siginfo_t info = { .si_signo = SIGTRAP, .si_code = SI_QUEUE };

    info.si_ptr = (void *)(is_pausing ? TBD_PAUSE_VALUE : TBD_LET_GO_VALUE);
    if (tbd_sys4(__NR_rt_tgsigqueueinfo, tbd_recording.pid, saved->tid, SIGTRAP,
                 tbd_sys_pointer(&info)) == -ESRCH)
        saved->turn = 1;
}

static bool nudge_all(const struct tbd_saved_context *own)
{
    bool some = false;

    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++) {
        struct tbd_saved_context *saved = tbd_saved_context_at(i);

        if (saved == own || !is_to_come(saved))
            continue;
        nudge(saved);
        some = true;
    }
    return some;
}

/* Again and again: a thread may begin, or be between two places where it would notice. */
static void gather(const struct tbd_saved_context *own, uint64_t most_ms)
{
    for (uint64_t ms = 0; nudge_all(own) && ms < most_ms; ms += NUDGE_EVERY_MS)
        tbd_sys_pause_ms(NUDGE_EVERY_MS);
}

/* ---- this one ---- */

static void restore(struct tbd_saved_context *own)
{
    gather(own, UINT64_MAX);
    if (tbd_threads.saved_contexts == 1)
        tbd_signals_repeat_last_fault();
    __atomic_store_n(&tbd_threads.is_leaving, true, __ATOMIC_RELEASE);
    tbd_signals_drop_calls();
    tbd_signals_restore_handlers();
    tbd_crash_ends();
    tbd_code_areas_release();
    tbd_sys_munmap(TBD_STREAM_BASE, tbd_recording.ring.bytes);
    __atomic_store_n(&handlers_are_restored, 1, __ATOMIC_RELEASE);
    tbd_sys_futex_wake(&handlers_are_restored);
}

static void wait_for_others(void)
{
    while (!__atomic_load_n(&handlers_are_restored, __ATOMIC_ACQUIRE))
        tbd_sys_futex_wait(&handlers_are_restored, 0, -1);
    __atomic_store_n(&tbd_context_now()->turn, LEAVES, __ATOMIC_RELEASE);
}

/* Its state is what it goes on with, and what a dump has of it. */
static void arrive(struct tbd_thread *thread, struct tbd_saved_context *own)
{
    tbd_x87_settle();
    own->regs = thread->regs;
    own->image_bytes = tbd_vector_store(&tbd_processor.vector, own->image);
    tbd_signals_block_all();
    __atomic_store_n(&own->turn, ARRIVED, __ATOMIC_RELEASE);
}

static void detach(struct tbd_thread *thread, const char *why, uint64_t offset)
{
    struct tbd_saved_context *own = tbd_context_now();
    bool is_first;

    (void)offset;
    tbd_free_lock(thread);
    is_first = !is_told;
    is_told = true;
    tbd_leave_soon(why);
    arrive(thread, own);
    tbd_engine_unlock_all(thread);
    if (is_first && tbd_log_level >= TBD_LOG_WARN && !tbd_leaving_is_asked())
        tbd_say("process %u goes on untraced: %s", tbd_recording.pid, why);
    if (is_first)
        restore(own);
    else
        wait_for_others();
    tbd_threads_leave(own);
}

/* A thread that cannot come (it waits for a child of vfork) is not waited for.  Of two that die the second one
 * waits for the end of the process. */
void tbd_free_stop_others(struct tbd_thread *thread)
{
    struct tbd_saved_context *own = tbd_context_now();
    bool is_first;

    tbd_free_lock(thread);
    while (tbd_free_is_pausing()) /* a dump is being made in another thread */
        tbd_free_pause(thread);
    is_first = !is_told;
    is_told = true;
    tbd_leave_soon("it dies");
    arrive(thread, own);
    tbd_engine_unlock_all(thread);
    if (!is_first) {
        wait_for_others();
        tbd_threads_leave(own);
    }
    gather(own, DYING_WAITS_MS);
    tbd_free_lock(thread);
}

bool tbd_free_is_pausing(void)
{
    return __atomic_load_n(&is_pausing, __ATOMIC_RELAXED);
}

void tbd_free_pause(struct tbd_thread *thread)
{
    struct tbd_saved_context *own = tbd_context_now();
    uint64_t mask = tbd_signals_block_all();

    arrive(thread, own);
    tbd_engine_unlock_all(thread);
    while (__atomic_load_n(&is_pausing, __ATOMIC_ACQUIRE))
        tbd_sys_futex_wait(&is_pausing, 1, -1);
    __atomic_store_n(&own->turn, 0, __ATOMIC_RELEASE);
    tbd_signals_set_kernel_mask(mask);
    tbd_free_lock(thread);
}

void tbd_free_pause_others(struct tbd_thread *thread)
{
    __atomic_store_n(&is_pausing, 1, __ATOMIC_RELEASE);
    tbd_engine_unlock_all(thread);
    gather(tbd_context_now(), DYING_WAITS_MS);
    tbd_free_lock(thread);
}

void tbd_free_resume_others(void)
{
    __atomic_store_n(&is_pausing, 0, __ATOMIC_RELEASE);
    tbd_sys_futex_wake(&is_pausing);
}

static bool some_wait(const struct tbd_saved_context *own)
{
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++) {
        const struct tbd_saved_context *saved = tbd_saved_context_at(i);

        if (saved != own && __atomic_load_n(&saved->tid, __ATOMIC_RELAXED) &&
            __atomic_load_n(&saved->turn, __ATOMIC_ACQUIRE) == ARRIVED)
            return true;
    }
    return false;
}

/* The last instructions of the engine in a thread take no time compared with the wait for it. */
void tbd_free_let_others_go(void)
{
    if (tbd_threads.saved_contexts == 1)
        return;
    tbd_signals_restore_handlers();
    __atomic_store_n(&handlers_are_restored, 1, __ATOMIC_RELEASE);
    tbd_sys_futex_wake(&handlers_are_restored);
    for (uint64_t ms = 0; ms < LEAVING_WAITS_MS; ms += NUDGE_EVERY_MS) {
        bool wait = some_wait(tbd_context_now());

        tbd_sys_pause_ms(NUDGE_EVERY_MS);
        if (!wait)
            return;
    }
}

/* Nobody waits for another thread's turn. */
static void let_go(const char *why, uint64_t offset)
{
    (void)offset;
    tbd_leave_soon(why);
}

const struct tbd_leaving tbd_leaving_free = { .detach = detach, .let_go = let_go };
