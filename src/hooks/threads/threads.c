// SPDX-License-Identifier: MIT
/* threads.c - see threads.h */
#include "hooks/threads/threads.h"

#include "base/assert.h"
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "base/sys_clock.h"
#include "hooks/instructions/processor.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/native.h"

enum {
    ROBUST_HEAD_BYTES = sizeof(struct robust_list_head),
    /* threads that wait for their turn check at this interval whether the holder waits for them, */
    SECOND_NS = 1000000000,
    ASK_NS = 2000000, /* threads that come back from a call ask the holder for it at this one */
    PATIENCE = 3,     /* and take the turn lock away after this many checks */
    LOCK_FREE = 0,
    LOCK_TAKEN = 1,
    LOCK_WANTED = 2,
};

_Static_assert(sizeof(struct tbd_saved_context) <= 4 * TBD_PAGE_SIZE,
               "the stack above it must stay large");
_Static_assert(TBD_STACKS_BASE + (TBD_MAX_FREE_THREADS + 1) * TBD_STACK_SLOT_BYTES <=
                   TBD_ARENAS_BASE,
               "slots lie below the arenas");

/* threads_x86_64.S: the child calls begin(saved context) on `stack`. */
int64_t tbd_thread_clone(uint64_t flags, uint64_t stack, uint32_t *alive, uint64_t tls,
                         void (*begin)(void *), struct tbd_saved_context *saved);

struct tbd_threads tbd_threads;
static void (*begin_in_turn)(struct tbd_thread *thread);
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

static void lock(void)
{
    uint32_t *word = &tbd_threads.lock;
    uint32_t seen = LOCK_FREE;

    if (__atomic_compare_exchange_n(word, &seen, LOCK_TAKEN, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(word, LOCK_WANTED, __ATOMIC_ACQUIRE) != LOCK_FREE)
        wait_on(word, LOCK_WANTED);
}

static void unlock(void)
{
    uint32_t *word = &tbd_threads.lock;

    if (__atomic_exchange_n(word, LOCK_FREE, __ATOMIC_RELEASE) == LOCK_WANTED)
        wake_one(word);
}

/* ---- saved contexts ---- */

struct tbd_saved_context *tbd_saved_context_of_sigsafe(const void *stack)
{
    return (struct tbd_saved_context *)(tbd_sys_pointer(stack) & ~(TBD_STACK_SLOT_BYTES - 1));
}

bool tbd_saved_context_is_holder_sigsafe(const struct tbd_saved_context *saved)
{
    return tbd_threads.is_free || __atomic_load_n(&tbd_threads.holder, __ATOMIC_RELAXED) == saved;
}

static uint64_t stack_top(const struct tbd_saved_context *saved)
{
    return tbd_sys_pointer(saved) + TBD_STACK_SLOT_BYTES / 2;
}

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

static void use(struct tbd_thread *thread, struct tbd_saved_context *saved)
{
    tbd_threads.runner = saved;
    thread->context = tbd_sys_pointer(saved);
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
    use(thread, tbd_saved_context_at(0));
}

void tbd_threads_ask_by(void (*given)(const struct tbd_saved_context *holder))
{
    ask_holder_locked = given;
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

bool tbd_threads_are_many(void)
{
    return tbd_threads.count > 1;
}

/* ---- registers ---- */

static void save(struct tbd_thread *thread, struct tbd_saved_context *saved)
{
    saved->regs = thread->regs;
    saved->image_bytes = tbd_vector_store(&tbd_processor.vector, saved->image);
}

static void send_thread(struct tbd_thread *thread, const struct tbd_msg_thread *message)
{
    struct tbd_part part = { message, sizeof(*message) };

    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_THREAD, &part, 1);
}

/* The saved context has the turn lock, so it gets the processor. */
static void load(struct tbd_thread *thread, struct tbd_saved_context *saved)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_msg_thread message = { .event = TBD_THREAD_SWITCH,
                                      .thread = saved->tid,
                                      .from = thread->tid,
                                      .reason = threads->reason,
                                      .block_time = saved->block_time };

    if (threads->runner == saved)
        return;
    use(thread, saved);
    saved->rseq.is_preempted = true;
    thread->regs = saved->regs;
    thread->tid = saved->tid;
    thread->engine_stack = stack_top(saved);
    send_thread(thread, &message);
}

/* ---- the turn lock ---- */

static void append(struct tbd_saved_context *saved)
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

    lock();
    if (again)
        append(again);
    next = take_next_locked();
    held = tbd_threads.first ? &tbd_threads.first->turn : NULL;
    set_holder(next);
    unlock();
    wake_next(next, held);
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

    lock();
    done = threads->holder && !saved->turn &&
           __atomic_compare_exchange_n(&threads->holder->outside, &call, TBD_STOLEN, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    if (done) {
        unlink_locked(saved);
        threads->reason = TBD_SWITCH_BLOCKED;
        set_holder(saved);
    }
    unlock();
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
    load(thread, saved);
    tbd_let_go("a system call that is made without giving way waits for another thread",
               TBD_END_WHOLE);
}

/* Nobody has the turn lock: it is decided (again) who gets it. */
static void decide(void)
{
    struct tbd_saved_context *next = NULL;

    lock();
    if (!tbd_threads.holder && !is_detached()) {
        next = take_next_locked();
        set_holder(next);
    }
    unlock();
    wake_next(next, NULL);
}

/* Threads that are ready are held for so long; 0: they are not. */
static int64_t held_ns(void)
{
    int64_t left = 0;

    if (!tbd_threads.chaos.is_on)
        return 0;
    lock();
    if (!tbd_threads.holder && !is_detached())
        left = tbd_threads.held_until_ns - (int64_t)tbd_sys_clock_ns();
    if (!tbd_threads.holder && !is_detached() && left <= 0)
        left = 1;
    unlock();
    return left;
}

static int64_t place_locked(const struct tbd_saved_context *saved)
{
    int64_t place = 1;

    for (const struct tbd_saved_context *at = tbd_threads.first; at && at != saved; at = at->next)
        place++;
    return place;
}

/* The first in the queue does; each looks again when its turn may have come nearer.  Returns nanoseconds until then. */
static int64_t ask_for_turn(const struct tbd_saved_context *saved)
{
    const struct tbd_saved_context *holder;
    int64_t place;

    lock();
    place = place_locked(saved);
    holder = tbd_threads.holder;
    if (place == 1 && holder && !holder->outside && !is_detached())
        ask_holder_locked(holder);
    unlock();
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
    save(thread, threads->holder);
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

    lock();
    if (is_detached()) {
        unlock();
        return false;
    }
    if (!threads->holder && !threads->chaos.is_on) {
        set_holder(saved);
        mine = true;
    } else {
        append(saved);
    }
    tbd_arrivals_came(&saved->arrival);
    unlock();
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
    save(thread, threads->holder);
    threads->holder->block_time = block_time;
    threads->reason = reason;
    tbd_chaos_gave_way(&threads->chaos);
    if (threads->holder->arrival.kind == TBD_ARRIVAL_NONE) /* otherwise tbd_arrivals_leave has */
        await_arrivals();
    hand_over(NULL);
}

/* The thread is in the queue, at a block boundary; it goes on natively if the program is let go. */
static void await_turn(struct tbd_thread *thread, struct tbd_saved_context *saved)
{
    wait_for_turn(saved, false);
    if (is_detached())
        tbd_threads_leave(saved);
    load(thread, saved);
}

bool tbd_threads_take(struct tbd_thread *thread, struct tbd_saved_context *saved)
{
    if (!get_turn_lock(saved))
        return false;
    load(thread, saved);
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

static void set_tick(uint64_t now)
{
    struct tbd_threads *threads = &tbd_threads;

    tbd_chaos_look(&threads->chaos, now);
    threads->tick =
        now + (threads->chaos.is_on ? tbd_chaos_turn(&threads->chaos) : threads->quantum);
}

bool tbd_threads_are_ready(void)
{
    bool ready;

    lock();
    ready = tbd_threads.first;
    unlock();
    return ready;
}

/* The thread goes on when it is chosen, perhaps at once. */
static void offer_turn(struct tbd_thread *thread, uint64_t block_time)
{
    struct tbd_saved_context *saved = tbd_threads.holder;

    save(thread, saved);
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
    set_tick(now);
    await_arrivals();
    if (!tbd_threads_are_ready() && !tbd_chaos_starves(&threads->chaos, threads->holder->number))
        return;
    saved = threads->holder;
    offer_turn(thread, TBD_NO_BLOCK_TIME);
    await_turn(thread, saved);
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
    load(thread, saved);
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
    set_tick(tbd_ring_time(&tbd_recording.ring, thread));
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

    tbd_signals_set_stack(stack_top(saved), &none);
    await_turn(tbd_thread_now(), saved);
    tbd_threads_begin(tbd_thread_now());
}

int64_t tbd_threads_clone(struct tbd_saved_context *saved, uint64_t flags, uint64_t tls)
{
    int64_t result;

    saved->alive = 1;
    saved->turn = 0;
    saved->outside = 0;
    saved->is_watched = true;
    result = tbd_thread_clone(flags, stack_top(saved), &saved->alive, tls, begin, saved);
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
    lock();
    append(saved);
    unlock();
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
    tbd_signals_take_stack(&saved->signals, stack_top(saved));
    watch(saved);
    await_turn(tbd_thread_now(), saved);
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

    send_thread(thread, &message);
    TBD_LOG(TBD_LOG_DEBUG, "thread", "%u ended", thread->tid);
    if (thread->tid == tbd_recording.pid)
        threads->leader_status = (uint32_t)status & 0xff;
    threads->count--;
    threads->reason = TBD_SWITCH_EXIT;
    saved->tid = 0;
    tbd_sys3(__NR_set_robust_list, 0, ROBUST_HEAD_BYTES, 0);
    await_arrivals();
    hand_over(NULL);
    for (;;)
        tbd_sys3(__NR_exit, status, 0, 0);
}

/* ---- windows ---- */

void tbd_threads_send_regs(struct tbd_thread *thread)
{
    for (uint32_t i = 0; tbd_threads_are_many() && i < tbd_threads.saved_contexts; i++) {
        struct tbd_saved_context *saved = tbd_saved_context_at(i);
        struct tbd_part parts[2] = { { &saved->regs, sizeof(saved->regs) },
                                     { saved->image, saved->image_bytes } };

        if (!saved->tid || saved == tbd_threads.holder)
            continue;
        saved->regs.xsave_bytes = saved->image_bytes;
        saved->regs.thread = saved->tid;
        tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_REGS, parts, 2);
    }
}

/* ---- letting go ---- */

static bool is_queued(const struct tbd_saved_context *saved)
{
    const struct tbd_saved_context *at;

    lock();
    for (at = tbd_threads.first; at && at != saved; at = at->next)
        ;
    unlock();
    return at;
}

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

        if (!saved->tid || saved == tbd_threads.holder || is_queued(saved))
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

void tbd_threads_release(void)
{
    struct tbd_saved_context *saved;

    lock();
    __atomic_store_n(&tbd_threads.is_detached, true, __ATOMIC_RELEASE);
    while ((saved = take_first()) != NULL)
        grant(saved);
    unlock();
}
