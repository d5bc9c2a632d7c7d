// SPDX-License-Identifier: MIT
/* turn_lock.c - see threads.h: whose turn it is, how long, and how a thread waits for its own */
#include "hooks/threads/turn_lock.h"

#include "base/assert.h"
#include "base/linux_abi.h"
#include "base/sys.h"
#include "base/sys_clock.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/native.h"

enum {
    /* threads that wait for their turn check at this interval whether the holder waits for them, */
    SECOND_NS = 1000000000,
    ASK_NS = 2000000, /* threads that come back from a call ask the holder for it at this one */
    PATIENCE = 3,     /* and take the turn lock away after this many checks */
    LOCK_FREE = 0,
    LOCK_TAKEN = 1,
    LOCK_WANTED = 2,
};

static void (*ask_holder_locked)(const struct tbd_saved_context *holder);

/* ---- futexes ---- */

static void wait_on(const uint32_t *word, uint32_t expected)
{
    tbd_sys4(__NR_futex, tbd_sys_pointer(word), FUTEX_WAIT_PRIVATE, expected, 0);
}

/* True: the time is over, and nobody has woken it. */
static bool wait_on_for(const uint32_t *word, uint32_t expected, int64_t ns)
{
    const int64_t timeout[2] = { ns / SECOND_NS, ns % SECOND_NS };

    return tbd_sys4(__NR_futex, tbd_sys_pointer(word), FUTEX_WAIT_PRIVATE, expected,
                    tbd_sys_pointer(timeout)) == -ETIMEDOUT;
}

static void wake_one(const uint32_t *word)
{
    tbd_sys3(__NR_futex, tbd_sys_pointer(word), FUTEX_WAKE_PRIVATE, 1);
}

void tbd_turns_lock(void)
{
    uint32_t *word = &tbd_threads.lock;
    uint32_t seen = LOCK_FREE;

    if (__atomic_compare_exchange_n(word, &seen, LOCK_TAKEN, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(word, LOCK_WANTED, __ATOMIC_ACQUIRE) != LOCK_FREE)
        wait_on(word, LOCK_WANTED);
}

void tbd_turns_unlock(void)
{
    uint32_t *word = &tbd_threads.lock;

    if (__atomic_exchange_n(word, LOCK_FREE, __ATOMIC_RELEASE) == LOCK_WANTED)
        wake_one(word);
}

/* ---- the turn lock ---- */

void tbd_turns_append_locked(struct tbd_saved_context *saved)
{
    struct tbd_threads *threads = &tbd_threads;

    saved->next = NULL;
    if (threads->last)
        threads->last->next = saved;
    else
        threads->first = saved;
    threads->last = saved;
}

static struct tbd_saved_context *take_first(void)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_saved_context *saved = threads->first;

    if (!saved)
        return NULL;
    threads->first = saved->next;
    if (!threads->first)
        threads->last = NULL;
    return saved;
}

static void set_holder(struct tbd_saved_context *saved)
{
    TBD_INVARIANT("THREADS-2", __atomic_load_n(&tbd_threads.lock, __ATOMIC_RELAXED) != 0);
    __atomic_store_n(&tbd_threads.holder, saved, __ATOMIC_RELAXED);
}

static void grant(struct tbd_saved_context *saved)
{
    __atomic_store_n(&saved->turn, 1, __ATOMIC_RELEASE);
    wake_one(&saved->turn);
}

static void unlink_locked(struct tbd_saved_context *saved)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_saved_context *before = NULL;

    for (struct tbd_saved_context *at = threads->first; at && at != saved; at = at->next)
        before = at;
    if (before)
        before->next = saved->next;
    else
        threads->first = saved->next;
    if (threads->last == saved)
        threads->last = before;
}

/* ---- whose turn is next ---- */

/* The ready thread that has the next turn; starved ones count only if `starved` says so. */
static struct tbd_saved_context *draw_locked(bool starved)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_saved_context *best = NULL;
    uint64_t draw = threads->chaos.random, rank, least = UINT64_MAX;

    for (struct tbd_saved_context *at = threads->first; at; at = at->next) {
        if (!starved && tbd_chaos_starves(&threads->chaos, at->number))
            continue;
        rank = tbd_chaos_rank(draw, at->number);
        if (!best || rank < least) {
            best = at;
            least = rank;
        }
    }
    return best;
}

/* May starved threads not run although nobody else is ready? */
static bool are_held_locked(void)
{
    struct tbd_threads *threads = &tbd_threads;
    int64_t now = (int64_t)tbd_sys_clock_ns();
    uint32_t ms = tbd_chaos_hold(&threads->chaos);

    if (ms)
        threads->held_until_ns = now + (int64_t)ms * 1000000;
    return now < threads->held_until_ns;
}

/* Takes it from the queue; NULL: nobody is ready, or may run. */
static struct tbd_saved_context *take_next_locked(void)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_saved_context *next;

    if (!threads->chaos.is_on || !threads->first)
        return take_first();
    next = draw_locked(false);
    if (!next && are_held_locked())
        return NULL;
    if (!next)
        next = draw_locked(true);
    (void)tbd_chaos_draw(&threads->chaos);
    unlink_locked(next);
    return next;
}

/* The new holder goes on; without one, the first thread that is held looks at the time. */
static void wake_next(struct tbd_saved_context *next, const uint32_t *held)
{
    if (next)
        grant(next);
    else if (held)
        wake_one(held);
}

/* Before it is decided who is next: with chaos the ready threads must be the same in each run. */
static void await_arrivals(void)
{
    if (tbd_threads.chaos.is_on)
        tbd_arrivals_await();
}

/* `again`: the giver is ready itself and queues after all others. */
static void hand_over(struct tbd_saved_context *again)
{
    struct tbd_saved_context *next;
    const uint32_t *held;

    tbd_turns_lock();
    if (again)
        tbd_turns_append_locked(again);
    next = take_next_locked();
    held = tbd_threads.first ? &tbd_threads.first->turn : NULL;
    set_holder(next);
    tbd_turns_unlock();
    wake_next(next, held);
}

void tbd_turns_pass(void)
{
    await_arrivals();
    hand_over(NULL);
}

static bool is_detached(void)
{
    return __atomic_load_n(&tbd_threads.is_detached, __ATOMIC_ACQUIRE);
}

/* The call for which the holder has stepped out. */
static uint32_t call_of_holder(void)
{
    const struct tbd_saved_context *holder = __atomic_load_n(&tbd_threads.holder, __ATOMIC_RELAXED);

    return holder ? __atomic_load_n(&holder->outside, __ATOMIC_ACQUIRE) : 0;
}

static bool steal(struct tbd_saved_context *saved, uint32_t call)
{
    struct tbd_threads *threads = &tbd_threads;
    bool done;

    tbd_turns_lock();
    done = threads->holder && !saved->turn &&
           __atomic_compare_exchange_n(&threads->holder->outside, &call, TBD_STOLEN, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    if (done) {
        unlink_locked(saved);
        threads->reason = TBD_SWITCH_BLOCKED;
        set_holder(saved);
    }
    tbd_turns_unlock();
    return done;
}

/* The trace gets the effects that the call has had so far, and no later ones. */
static void let_go(struct tbd_saved_context *saved)
{
    struct tbd_thread *thread = tbd_thread_now();
    struct tbd_saved_context *stolen = tbd_threads.runner;

    thread->regs = stolen->regs;
    stolen->outside_call.close(stolen->outside_call.call);
    stolen->regs = thread->regs;
    stolen->block_time = TBD_NO_BLOCK_TIME;
    tbd_threads_load(thread, saved);
    tbd_let_go("a system call that is made without giving way waits for another thread",
               TBD_END_WHOLE);
}

/* Nobody has the turn lock: it is decided (again) who gets it. */
static void decide(void)
{
    struct tbd_saved_context *next = NULL;

    tbd_turns_lock();
    if (!tbd_threads.holder && !is_detached()) {
        next = take_next_locked();
        set_holder(next);
    }
    tbd_turns_unlock();
    wake_next(next, NULL);
}

/* Threads that are ready are held for so long; 0: they are not. */
static int64_t held_ns(void)
{
    int64_t left = 0;

    if (!tbd_threads.chaos.is_on)
        return 0;
    tbd_turns_lock();
    if (!tbd_threads.holder && !is_detached())
        left = tbd_threads.held_until_ns - (int64_t)tbd_sys_clock_ns();
    if (!tbd_threads.holder && !is_detached() && left <= 0)
        left = 1;
    tbd_turns_unlock();
    return left;
}

static int64_t place_locked(const struct tbd_saved_context *saved)
{
    int64_t place = 1;

    for (const struct tbd_saved_context *at = tbd_threads.first; at && at != saved; at = at->next)
        place++;
    return place;
}

void tbd_threads_ask_by(void (*given)(const struct tbd_saved_context *holder))
{
    ask_holder_locked = given;
}

/* The first in the queue does; each looks again when its turn may have come nearer.  Returns nanoseconds until then. */
static int64_t ask_for_turn(const struct tbd_saved_context *saved)
{
    const struct tbd_saved_context *holder;
    int64_t place;

    tbd_turns_lock();
    place = place_locked(saved);
    holder = tbd_threads.holder;
    if (place == 1 && holder && !holder->outside && !is_detached())
        ask_holder_locked(holder);
    tbd_turns_unlock();
    return place * ASK_NS;
}

/* As wait_on_for(&saved->turn, 0, SECOND_NS); the holder, which may only compute, is asked to give way. */
static bool wait_and_ask(const struct tbd_saved_context *saved)
{
    int64_t next = ASK_NS;

    for (int64_t waited = 0; waited < SECOND_NS; waited += next) {
        if (!wait_on_for(&saved->turn, 0, next))
            return false;
        next = ask_for_turn(saved);
    }
    return true;
}

/* `asks`: it has given way itself, and not because its turn was over. */
static void wait_for_turn(struct tbd_saved_context *saved, bool asks)
{
    uint32_t call = 0;
    unsigned looked = 0;
    int64_t held;

    while (!__atomic_load_n(&saved->turn, __ATOMIC_ACQUIRE)) {
        held = held_ns();
        if (held) {
            wait_on_for(&saved->turn, 0, held);
            decide();
            continue;
        }
        if (!(asks && ask_holder_locked ? wait_and_ask(saved)
                                        : wait_on_for(&saved->turn, 0, SECOND_NS)))
            continue;
        looked = call && call == call_of_holder() ? looked + 1 : 0;
        call = call_of_holder();
        if (looked < PATIENCE || !steal(saved, call))
            continue;
        let_go(saved);
        break;
    }
    saved->turn = 0;
}

void tbd_threads_step_out(struct tbd_thread *thread, const struct tbd_outside_call *call)
{
    struct tbd_threads *threads = &tbd_threads;
    uint64_t now = tbd_ring_time(&tbd_recording.ring, thread);

    if (!tbd_threads_are_many())
        return;
    TBD_INVARIANT("THREADS-6", !threads->holder->outside);
    tbd_threads_save(thread, threads->holder);
    threads->holder->block_time = now ? now - 1 : TBD_NO_BLOCK_TIME;
    threads->holder->outside_call = *call;
    threads->steps = threads->steps % (TBD_STOLEN - 1) + 1;
    __atomic_store_n(&threads->holder->outside, threads->steps, __ATOMIC_RELEASE);
}

bool tbd_threads_step_in(struct tbd_saved_context *saved)
{
    bool stolen = __atomic_exchange_n(&saved->outside, 0, __ATOMIC_ACQ_REL) == TBD_STOLEN;

    if (!stolen)
        saved->block_time = TBD_NO_BLOCK_TIME;
    while (stolen && !is_detached())
        tbd_sys3(__NR_sched_yield, 0, 0, 0);
    return !stolen;
}

/* The caller is in the queue, perhaps with others that come at the same time. */
static void claim(void)
{
    if (__atomic_load_n(&tbd_threads.holder, __ATOMIC_RELAXED))
        return;
    tbd_arrivals_await();
    decide();
}

/* False: the program was let go, and nobody gets the turn lock any more. */
static bool get_turn_lock(struct tbd_saved_context *saved)
{
    struct tbd_threads *threads = &tbd_threads;
    bool mine = false;

    tbd_turns_lock();
    if (is_detached()) {
        tbd_turns_unlock();
        return false;
    }
    if (!threads->holder && !threads->chaos.is_on) {
        set_holder(saved);
        mine = true;
    } else {
        tbd_turns_append_locked(saved);
    }
    tbd_arrivals_came(&saved->arrival);
    tbd_turns_unlock();
    if (threads->chaos.is_on)
        claim();
    if (!mine)
        wait_for_turn(saved, !threads->chaos.is_on);
    return !is_detached();
}

void tbd_threads_give(struct tbd_thread *thread, enum tbd_thread_reason reason, uint64_t block_time)
{
    struct tbd_threads *threads = &tbd_threads;

    TBD_INVARIANT("THREADS-1", threads->holder && threads->holder == threads->runner);
    tbd_threads_save(thread, threads->holder);
    threads->holder->block_time = block_time;
    threads->reason = reason;
    tbd_chaos_gave_way(&threads->chaos);
    if (threads->holder->arrival.kind == TBD_ARRIVAL_NONE) /* otherwise tbd_arrivals_leave has */
        await_arrivals();
    hand_over(NULL);
}

/* The thread is in the queue, at a block boundary; it goes on natively if the program is let go. */
void tbd_turns_await(struct tbd_thread *thread, struct tbd_saved_context *saved)
{
    wait_for_turn(saved, false);
    if (is_detached())
        tbd_threads_leave(saved);
    tbd_threads_load(thread, saved);
}

bool tbd_threads_take(struct tbd_thread *thread, struct tbd_saved_context *saved)
{
    if (!get_turn_lock(saved))
        return false;
    tbd_threads_load(thread, saved);
    saved->block_time = TBD_NO_BLOCK_TIME;
    return true;
}

/* ---- quantum ---- */

uint64_t tbd_threads_next_tick(void)
{
    uint64_t tick = tbd_threads_are_many() ? tbd_threads.tick : TBD_TIME_NEVER;
    uint64_t due = tbd_context_now()->signal_due;

    return due && due < tick ? due : tick;
}

void tbd_turns_set_tick(uint64_t now)
{
    struct tbd_threads *threads = &tbd_threads;

    tbd_chaos_look(&threads->chaos, now);
    threads->tick =
        now + (threads->chaos.is_on ? tbd_chaos_turn(&threads->chaos) : threads->quantum);
}

bool tbd_threads_are_ready(void)
{
    bool ready;

    tbd_turns_lock();
    ready = tbd_threads.first;
    tbd_turns_unlock();
    return ready;
}

/* The thread goes on when it is chosen, perhaps at once. */
static void offer_turn(struct tbd_thread *thread, uint64_t block_time)
{
    struct tbd_saved_context *saved = tbd_threads.holder;

    tbd_threads_save(thread, saved);
    saved->block_time = block_time;
    tbd_threads.reason = TBD_SWITCH_QUANTUM;
    await_arrivals();
    hand_over(saved);
}

void tbd_threads_tick(struct tbd_thread *thread)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_saved_context *saved;
    uint64_t now = tbd_ring_time(&tbd_recording.ring, thread);

    if (!tbd_threads_are_many() || now < threads->tick)
        return;
    tbd_turns_set_tick(now);
    await_arrivals();
    if (!tbd_threads_are_ready() && !tbd_chaos_starves(&threads->chaos, threads->holder->number))
        return;
    saved = threads->holder;
    offer_turn(thread, TBD_NO_BLOCK_TIME);
    tbd_turns_await(thread, saved);
}

/* ---- chaos at calls and signals ---- */

#define CALL_ONCE_IN 4u /* another thread may have its turn before a call, and after it */

bool tbd_threads_call_begins(struct tbd_thread *thread, uint64_t block_time)
{
    struct tbd_saved_context *saved = tbd_threads.holder;

    if (!tbd_threads_are_many() || !tbd_chaos_once_in(&tbd_threads.chaos, CALL_ONCE_IN))
        return true;
    offer_turn(thread, block_time);
    wait_for_turn(saved, false);
    if (is_detached())
        return false;
    tbd_threads_load(thread, saved);
    saved->block_time = TBD_NO_BLOCK_TIME;
    return true;
}

void tbd_threads_call_ended(struct tbd_thread *thread)
{
    if (tbd_threads_are_many() && tbd_chaos_once_in(&tbd_threads.chaos, CALL_ONCE_IN))
        tbd_threads.tick = tbd_ring_time(&tbd_recording.ring, thread);
}

void tbd_threads_delay_signal(struct tbd_thread *thread)
{
    struct tbd_saved_context *saved = tbd_context_now();
    uint64_t delay;

    if (!tbd_threads.chaos.is_on || saved->signal_due ||
        !__atomic_load_n(&saved->signals.pending, __ATOMIC_ACQUIRE))
        return;
    delay = tbd_chaos_signal_delay(&tbd_threads.chaos);
    if (delay)
        saved->signal_due = tbd_ring_time(&tbd_recording.ring, thread) + delay;
}

bool tbd_threads_signal_waits(const struct tbd_thread *thread)
{
    struct tbd_saved_context *saved = tbd_context_now();

    if (saved->signal_due && tbd_ring_time(&tbd_recording.ring, thread) >= saved->signal_due)
        saved->signal_due = 0;
    return saved->signal_due;
}

/* ---- letting go ---- */

bool tbd_turns_have(const struct tbd_saved_context *saved)
{
    const struct tbd_saved_context *at;

    tbd_turns_lock();
    for (at = tbd_threads.first; at && at != saved; at = at->next)
        ;
    tbd_turns_unlock();
    return at;
}

void tbd_threads_release(void)
{
    struct tbd_saved_context *saved;

    tbd_turns_lock();
    __atomic_store_n(&tbd_threads.is_detached, true, __ATOMIC_RELEASE);
    while ((saved = take_first()) != NULL)
        grant(saved);
    tbd_turns_unlock();
}
