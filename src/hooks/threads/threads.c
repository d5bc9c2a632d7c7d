// SPDX-License-Identifier: MIT
/* threads.c - see threads.h: saved contexts, and how threads begin and end */
#include "hooks/threads/threads.h"

#include "base/assert.h"
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/native.h"
#include "hooks/threads/turn_lock.h"

enum { ROBUST_HEAD_BYTES = sizeof(struct robust_list_head) };

_Static_assert(sizeof(struct tbd_saved_context) <= 4 * TBD_PAGE_SIZE,
               "the stack above it must stay large");
_Static_assert(TBD_STACKS_BASE + (TBD_MAX_FREE_THREADS + 1) * TBD_STACK_SLOT_BYTES <=
                   TBD_ARENAS_BASE,
               "slots lie below the arenas");

/* threads_x86_64.S: the child calls begin(saved context) on `stack`. */
int64_t tbd_thread_clone(uint64_t flags, uint64_t stack, uint32_t *alive, uint64_t tls,
                         void (*begin)(void *), struct tbd_saved_context *saved);

static void (*begin_in_turn)(struct tbd_thread *thread);

/* ---- saved contexts ---- */

static void sit_alone(struct tbd_saved_context *saved, uint32_t tid)
{
    struct tbd_threads *threads = &tbd_threads;

    *threads = (struct tbd_threads){ .holder = saved,
                                     .runner = saved,
                                     .count = 1,
                                     .saved_contexts = threads->saved_contexts,
                                     .quantum = threads->quantum,
                                     .chaos = threads->chaos,
                                     .is_free = threads->is_free };
    saved->number = 0;
    saved->signal_due = 0;
    saved->arrival = (struct tbd_arrival){ 0 };
    saved->tid = tid;
    saved->alive = 1;
    saved->next = NULL;
    saved->turn = 0;
    saved->outside = 0;
    saved->is_watched = false;
    saved->block_time = TBD_NO_BLOCK_TIME;
}

void tbd_threads_init(struct tbd_thread *thread, uint64_t quantum, uint64_t chaos,
                      void (*given)(struct tbd_thread *thread))
{
    begin_in_turn = given;
    tbd_threads.quantum = quantum;
    tbd_chaos_init(&tbd_threads.chaos, chaos);
    tbd_threads.saved_contexts = 1;
    sit_alone(tbd_saved_context_at(0), thread->tid);
    tbd_saved_context_at(0)->gs_base = tbd_processor.gs_base;
    tbd_threads_use(thread, tbd_saved_context_at(0));
}

void tbd_threads_after_fork(struct tbd_thread *thread)
{
    struct tbd_saved_context *own = tbd_threads.holder;

    thread->tid = (uint32_t)tbd_sys_gettid();
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++) {
        tbd_saved_context_at(i)->tid = 0;
        tbd_saved_context_at(i)->alive = 0;
        tbd_saved_context_at(i)->arrival = (struct tbd_arrival){ .kind = TBD_ARRIVAL_NONE };
    }
    sit_alone(own, thread->tid);
    tbd_arrivals_forget();
    own->user_dispatch = (struct tbd_user_dispatch){ 0 };
    own->signals.has_tiles = false;
}

static bool map_context(uint32_t index)
{
    uint64_t at = TBD_STACKS_BASE + index * TBD_STACK_SLOT_BYTES;

    if (tbd_sys_mmap(at, TBD_STACK_SLOT_BYTES, TBD_PROT_RW, TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE,
                     -1, 0) != (long)at)
        return false;
    tbd_sys_madvise(at, TBD_STACK_SLOT_BYTES, MADV_DONTDUMP);
    tbd_saved_context_at(index)->index = index;
    tbd_saved_context_at(index)->gs_base = tbd_processor.gs_base;
    return true;
}

struct tbd_saved_context *tbd_threads_new_context(void)
{
    struct tbd_threads *threads = &tbd_threads;
    uint32_t max = threads->is_free ? TBD_MAX_FREE_THREADS : TBD_MAX_THREADS;

    for (uint32_t i = 0; i < threads->saved_contexts; i++) {
        struct tbd_saved_context *saved = tbd_saved_context_at(i);

        if (saved->tid || __atomic_load_n(&saved->alive, __ATOMIC_ACQUIRE))
            continue;
        TBD_INVARIANT("THREADS-3", saved != tbd_threads.holder && !saved->outside);
        return saved;
    }
    if (threads->saved_contexts == max || !map_context(threads->saved_contexts))
        return NULL;
    return tbd_saved_context_at(threads->saved_contexts++);
}

/* ---- a thread begins ---- */

/* While there is only one thread, the kernel clears the program's own word. */
static void watch_first(struct tbd_thread *thread)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_saved_context *saved = threads->holder;

    if (!saved->is_watched && !tbd_sys_failed(tbd_sys3(__NR_prctl, PR_GET_TID_ADDRESS,
                                                       tbd_sys_pointer(&saved->cleared), 0))) {
        tbd_sys3(__NR_set_tid_address, tbd_sys_pointer(&saved->alive), 0, 0);
        saved->is_watched = true;
    }
    tbd_turns_set_tick(tbd_ring_time(&tbd_recording.ring, thread));
}

void tbd_threads_begin(struct tbd_thread *thread)
{
    begin_in_turn(thread);
}

/* The first function of the new kernel thread: every signal is blocked, gs base is the engine's. */
static void begin(void *context)
{
    struct tbd_saved_context *saved = context;
    struct tbd_altstack none;

    tbd_signals_set_stack(tbd_threads_stack_top(saved), &none);
    tbd_turns_await(tbd_thread_now(), saved);
    tbd_threads_begin(tbd_thread_now());
}

int64_t tbd_threads_clone(struct tbd_saved_context *saved, uint64_t flags, uint64_t tls)
{
    int64_t result;

    saved->alive = 1;
    saved->turn = 0;
    saved->outside = 0;
    saved->is_watched = true;
    result =
        tbd_thread_clone(flags, tbd_threads_stack_top(saved), &saved->alive, tls, begin, saved);
    if (result < 0)
        saved->alive = 0;
    return result;
}

/* The vector state is in its context. */
static void start(struct tbd_thread *thread, struct tbd_saved_context *saved,
                  const struct tbd_regs *regs)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_msg_thread message = { .event = TBD_THREAD_START,
                                      .thread = regs->thread,
                                      .from = thread->tid,
                                      .block_time = TBD_NO_BLOCK_TIME };
    struct tbd_part parts[3] = { { &message, sizeof(message) },
                                 { &saved->regs, sizeof(saved->regs) },
                                 { saved->image, saved->image_bytes } };

    if (threads->count == 1)
        watch_first(thread);
    threads->count++;
    saved->tid = regs->thread;
    saved->regs = *regs;
    saved->regs.xsave_bytes = saved->image_bytes;
    saved->block_time = TBD_NO_BLOCK_TIME;
    saved->seccomp = threads->holder->seccomp;
    saved->user_dispatch = (struct tbd_user_dispatch){ 0 };
    saved->rseq = (struct tbd_rseq){ 0 };
    saved->number = ++threads->made;
    saved->signal_due = 0;
    saved->arrival = (struct tbd_arrival){ 0 };
    saved->signals = (struct tbd_signals){ .mask = tbd_signals_now()->mask,
                                           .altstack = { .flags = SS_DISABLE } };
    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_THREAD, parts, 3);
    tbd_turns_lock();
    tbd_turns_append_locked(saved);
    tbd_turns_unlock();
    TBD_LOG(TBD_LOG_DEBUG, "thread", "%u started by %u", regs->thread, thread->tid);
}

/* It has the caller's vector state, but for the contents of tiles (fpu_clone() of the kernel). */
void tbd_threads_started(struct tbd_thread *thread, struct tbd_saved_context *saved,
                         const struct tbd_regs *regs)
{
    tbd_vector_store(&tbd_processor.vector, saved->image);
    saved->image_bytes = tbd_vector_forget_tiles(&tbd_processor.vector, saved->image);
    start(thread, saved, regs);
}

/* ---- a thread that was there before the engine ---- */

void tbd_threads_take_in(struct tbd_thread *thread, struct tbd_saved_context *saved,
                         const struct tbd_regs *regs, const void *vectors)
{
    saved->alive = 1;
    saved->turn = 0;
    saved->outside = 0;
    tbd_vector_load(&tbd_processor.vector, vectors);
    saved->image_bytes = tbd_vector_store(&tbd_processor.vector, saved->image);
    start(thread, saved, regs);
}

/* The kernel clears the program's own word, unless it says which one that is. */
static void watch(struct tbd_saved_context *saved)
{
    saved->is_watched = !tbd_sys_failed(
        tbd_sys3(__NR_prctl, PR_GET_TID_ADDRESS, tbd_sys_pointer(&saved->cleared), 0));
    if (saved->is_watched)
        tbd_sys3(__NR_set_tid_address, tbd_sys_pointer(&saved->alive), 0, 0);
}

_Noreturn void tbd_threads_come_in(struct tbd_saved_context *saved)
{
    tbd_signals_take_stack(&saved->signals, tbd_threads_stack_top(saved));
    watch(saved);
    tbd_turns_await(tbd_thread_now(), saved);
    tbd_threads_begin(tbd_thread_now());
    __builtin_unreachable();
}

/* ---- a thread ends ---- */

void tbd_threads_end(struct tbd_thread *thread, uint64_t status)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_saved_context *saved = threads->holder;
    struct tbd_msg_thread message = { .event = TBD_THREAD_END,
                                      .thread = thread->tid,
                                      .reason = (uint32_t)status,
                                      .block_time = TBD_NO_BLOCK_TIME };

    tbd_threads_send(thread, &message);
    TBD_LOG(TBD_LOG_DEBUG, "thread", "%u ended", thread->tid);
    if (thread->tid == tbd_recording.pid)
        threads->leader_status = (uint32_t)status & 0xff;
    threads->count--;
    threads->reason = TBD_SWITCH_EXIT;
    saved->tid = 0;
    tbd_sys3(__NR_set_robust_list, 0, ROBUST_HEAD_BYTES, 0);
    tbd_turns_pass();
    for (;;)
        tbd_sys3(__NR_exit, status, 0, 0);
}

/* ---- letting go ---- */

/* The handler ends its call (signals_catch.c). */
static void nudge(const struct tbd_saved_context *saved)
{
    siginfo_t info = { .si_signo = SIGTRAP, .si_code = SI_QUEUE };

    info.si_ptr = (void *)TBD_PAUSE_VALUE;
    tbd_sys4(__NR_rt_tgsigqueueinfo, tbd_recording.pid, saved->tid, SIGTRAP,
             tbd_sys_pointer(&info));
}

static bool nudge_all(void)
{
    bool some = false;

    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++) {
        const struct tbd_saved_context *saved = tbd_saved_context_at(i);

        if (!saved->tid || saved == tbd_threads.holder || tbd_turns_have(saved))
            continue;
        nudge(saved);
        some = true;
    }
    return some;
}

bool tbd_threads_call_in(uint64_t most_ms)
{
    for (uint64_t ms = 0; ms < most_ms; ms++) {
        if (!nudge_all())
            return true;
        tbd_sys_pause_ms(1);
    }
    return false;
}
