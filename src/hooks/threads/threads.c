// SPDX-License-Identifier: MIT
/* threads.c - see threads.h */
#include "hooks/threads/threads.h"

#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/native.h"

enum {
    ROBUST_HEAD_BYTES = sizeof(struct robust_list_head),
    /* those who wait for their turn look so often whether the holder waits for them, */
    LOOK_SECONDS = 1,
    PATIENCE = 3, /* and give up after so many times */
    LOCK_FREE = 0,
    LOCK_TAKEN = 1,
    LOCK_WANTED = 2,
};

_Static_assert(sizeof(struct tbd_seat) <= 4 * TBD_PAGE_SIZE, "the stack above it must stay large");
_Static_assert(TBD_STACKS_BASE + (TBD_MAX_THREADS + 1) * TBD_STACK_SLOT_BYTES <= TBD_ARENAS_BASE,
               "slots lie below the arenas");

/* threads_x86_64.S: the child calls begin(seat) on `stack`. */
int64_t tbd_thread_clone(uint64_t flags, uint64_t stack, uint32_t *alive, uint64_t tls,
                         void (*begin)(void *), struct tbd_seat *seat);

struct tbd_threads tbd_threads;
static void (*begin_in_turn)(struct tbd_thread *thread);

/* ---- futexes ---- */

static void wait_on(const uint32_t *word, uint32_t expected)
{
    tbd_sys4(__NR_futex, tbd_sys_pointer(word), FUTEX_WAIT_PRIVATE, expected, 0);
}

/* True: nobody woke it. */
static bool wait_on_for(const uint32_t *word, uint32_t expected, int64_t seconds)
{
    const int64_t timeout[2] = { seconds, 0 };

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

/* ---- seats ---- */

struct tbd_seat *tbd_seat_of_sigsafe(const void *stack)
{
    return (struct tbd_seat *)(tbd_sys_pointer(stack) & ~(TBD_STACK_SLOT_BYTES - 1));
}

bool tbd_seat_is_holder_sigsafe(const struct tbd_seat *seat)
{
    return __atomic_load_n(&tbd_threads.holder, __ATOMIC_RELAXED) == seat;
}

static uint64_t stack_top(const struct tbd_seat *seat)
{
    return tbd_sys_pointer(seat) + TBD_STACK_SLOT_BYTES / 2;
}

static void sit_alone(struct tbd_seat *seat, uint32_t tid)
{
    struct tbd_threads *threads = &tbd_threads;

    *threads = (struct tbd_threads){ .holder = seat,
                                     .runner = seat,
                                     .count = 1,
                                     .seats = threads->seats,
                                     .quantum = threads->quantum };
    seat->tid = tid;
    seat->alive = 1;
    seat->next = NULL;
    seat->turn = 0;
    seat->outside = 0;
    seat->is_watched = false;
    seat->block_time = TBD_NO_BLOCK_TIME;
}

void tbd_threads_init(struct tbd_thread *thread, uint64_t quantum,
                      void (*given)(struct tbd_thread *thread))
{
    begin_in_turn = given;
    tbd_threads.quantum = quantum;
    tbd_threads.seats = 1;
    sit_alone(tbd_seat_at(0), thread->tid);
}

void tbd_threads_after_fork(struct tbd_thread *thread)
{
    struct tbd_seat *own = tbd_threads.holder;

    thread->tid = (uint32_t)tbd_sys_gettid();
    for (uint32_t i = 0; i < tbd_threads.seats; i++) {
        tbd_seat_at(i)->tid = 0;
        tbd_seat_at(i)->alive = 0;
    }
    sit_alone(own, thread->tid);
}

static bool map_seat(uint32_t index)
{
    uint64_t at = TBD_STACKS_BASE + index * TBD_STACK_SLOT_BYTES;

    if (tbd_sys_mmap(at, TBD_STACK_SLOT_BYTES, TBD_PROT_RW, TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE,
                     -1, 0) != (long)at)
        return false;
    tbd_sys_madvise(at, TBD_STACK_SLOT_BYTES, MADV_DONTDUMP);
    tbd_seat_at(index)->index = index;
    return true;
}

struct tbd_seat *tbd_threads_new_seat(void)
{
    struct tbd_threads *threads = &tbd_threads;

    for (uint32_t i = 0; i < threads->seats; i++) {
        struct tbd_seat *seat = tbd_seat_at(i);

        if (!seat->tid && !__atomic_load_n(&seat->alive, __ATOMIC_ACQUIRE))
            return seat;
    }
    if (threads->seats == TBD_MAX_THREADS || !map_seat(threads->seats))
        return NULL;
    return tbd_seat_at(threads->seats++);
}

bool tbd_threads_are_many(void)
{
    return tbd_threads.count > 1;
}

/* ---- registers ---- */

static void save(struct tbd_thread *thread, struct tbd_seat *seat)
{
    seat->regs = thread->regs;
    tbd_vector_store(&tbd_processor.vector, seat->image);
}

static void send_thread(struct tbd_thread *thread, const struct tbd_msg_thread *message)
{
    struct tbd_part part = { message, sizeof(*message) };

    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_THREAD, &part, 1);
}

/* The baton is the seat's: so is the processor. */
static void load(struct tbd_thread *thread, struct tbd_seat *seat)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_msg_thread message = { .event = TBD_THREAD_SWITCH,
                                      .thread = seat->tid,
                                      .from = thread->tid,
                                      .reason = threads->reason,
                                      .block_time = seat->block_time };

    if (threads->runner == seat)
        return;
    threads->runner = seat;
    thread->regs = seat->regs;
    thread->tid = seat->tid;
    thread->engine_stack = stack_top(seat);
    send_thread(thread, &message);
}

/* ---- the baton ---- */

static void append(struct tbd_seat *seat)
{
    struct tbd_threads *threads = &tbd_threads;

    seat->next = NULL;
    if (threads->last)
        threads->last->next = seat;
    else
        threads->first = seat;
    threads->last = seat;
}

static struct tbd_seat *take_first(void)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_seat *seat = threads->first;

    if (!seat)
        return NULL;
    threads->first = seat->next;
    if (!threads->first)
        threads->last = NULL;
    return seat;
}

static void set_holder(struct tbd_seat *seat)
{
    __atomic_store_n(&tbd_threads.holder, seat, __ATOMIC_RELAXED);
}

static void grant(struct tbd_seat *seat)
{
    __atomic_store_n(&seat->turn, 1, __ATOMIC_RELEASE);
    wake_one(&seat->turn);
}

/* `again`: the giver is ready itself, behind all others. */
static void hand_over(struct tbd_seat *again)
{
    struct tbd_seat *next;

    lock();
    if (again)
        append(again);
    next = take_first();
    set_holder(next);
    unlock();
    if (next)
        grant(next);
}

static bool is_detached(void)
{
    return __atomic_load_n(&tbd_threads.is_detached, __ATOMIC_ACQUIRE);
}

static void unlink_locked(struct tbd_seat *seat)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_seat *before = NULL;

    for (struct tbd_seat *at = threads->first; at && at != seat; at = at->next)
        before = at;
    if (before)
        before->next = seat->next;
    else
        threads->first = seat->next;
    if (threads->last == seat)
        threads->last = before;
}

/* The call for which the holder has stepped out. */
static uint32_t call_of_holder(void)
{
    const struct tbd_seat *holder = __atomic_load_n(&tbd_threads.holder, __ATOMIC_RELAXED);

    return holder ? __atomic_load_n(&holder->outside, __ATOMIC_ACQUIRE) : 0;
}

static bool rob(struct tbd_seat *seat, uint32_t call)
{
    struct tbd_threads *threads = &tbd_threads;
    bool done;

    lock();
    done = threads->holder && !seat->turn &&
           __atomic_compare_exchange_n(&threads->holder->outside, &call, TBD_ROBBED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    if (done) {
        unlink_locked(seat);
        threads->reason = TBD_SWITCH_BLOCKED;
        set_holder(seat);
    }
    unlock();
    return done;
}

/* What the call has done so far is all that the trace has of it. */
static void let_go(struct tbd_seat *seat)
{
    struct tbd_thread *thread = tbd_thread_now();
    struct tbd_seat *robbed = tbd_threads.runner;

    thread->regs = robbed->regs;
    robbed->outside_call.close(robbed->outside_call.call);
    robbed->regs = thread->regs;
    robbed->block_time = TBD_NO_BLOCK_TIME;
    load(thread, seat);
    tbd_let_go("a system call that is made without giving way waits for another thread",
               TBD_END_WHOLE);
}

static void wait_for_turn(struct tbd_seat *seat)
{
    uint32_t call = 0;
    unsigned looked = 0;

    while (!__atomic_load_n(&seat->turn, __ATOMIC_ACQUIRE)) {
        if (!wait_on_for(&seat->turn, 0, LOOK_SECONDS))
            continue;
        looked = call && call == call_of_holder() ? looked + 1 : 0;
        call = call_of_holder();
        if (looked < PATIENCE || !rob(seat, call))
            continue;
        let_go(seat);
        break;
    }
    seat->turn = 0;
}

void tbd_threads_step_out(struct tbd_thread *thread, const struct tbd_outside_call *call)
{
    struct tbd_threads *threads = &tbd_threads;
    uint64_t now = tbd_ring_time(&tbd_recording.ring, thread);

    if (!tbd_threads_are_many())
        return;
    save(thread, threads->holder);
    threads->holder->block_time = now ? now - 1 : TBD_NO_BLOCK_TIME;
    threads->holder->outside_call = *call;
    threads->steps = threads->steps % (TBD_ROBBED - 1) + 1;
    __atomic_store_n(&threads->holder->outside, threads->steps, __ATOMIC_RELEASE);
}

bool tbd_threads_step_in(struct tbd_seat *seat)
{
    bool robbed = __atomic_exchange_n(&seat->outside, 0, __ATOMIC_ACQ_REL) == TBD_ROBBED;

    if (!robbed)
        seat->block_time = TBD_NO_BLOCK_TIME;
    while (robbed && !is_detached())
        tbd_sys3(__NR_sched_yield, 0, 0, 0);
    return !robbed;
}

/* False: nobody gets it any more. */
static bool get_baton(struct tbd_seat *seat)
{
    struct tbd_threads *threads = &tbd_threads;
    bool mine = false;

    lock();
    if (is_detached()) {
        unlock();
        return false;
    }
    if (!threads->holder) {
        set_holder(seat);
        mine = true;
    } else {
        append(seat);
    }
    unlock();
    if (!mine)
        wait_for_turn(seat);
    return !is_detached();
}

void tbd_threads_give(struct tbd_thread *thread, enum tbd_thread_reason reason, uint64_t block_time)
{
    save(thread, tbd_threads.holder);
    tbd_threads.holder->block_time = block_time;
    tbd_threads.reason = reason;
    hand_over(NULL);
}

/* A thread that stands in the queue at a block boundary; it goes on natively if the program is let go. */
static void await_turn(struct tbd_thread *thread, struct tbd_seat *seat)
{
    wait_for_turn(seat);
    if (is_detached())
        tbd_threads_leave(seat);
    load(thread, seat);
}

bool tbd_threads_take(struct tbd_thread *thread, struct tbd_seat *seat)
{
    if (!get_baton(seat))
        return false;
    load(thread, seat);
    seat->block_time = TBD_NO_BLOCK_TIME;
    return true;
}

/* ---- quantum ---- */

uint64_t tbd_threads_next_tick(void)
{
    return tbd_threads_are_many() ? tbd_threads.tick : TBD_TIME_NEVER;
}

static bool is_anybody_ready(void)
{
    bool ready;

    lock();
    ready = tbd_threads.first;
    unlock();
    return ready;
}

void tbd_threads_tick(struct tbd_thread *thread)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_seat *seat = threads->holder;

    if (!tbd_threads_are_many() || tbd_ring_time(&tbd_recording.ring, thread) < threads->tick)
        return;
    threads->tick = tbd_ring_time(&tbd_recording.ring, thread) + tbd_threads.quantum;
    if (!is_anybody_ready())
        return;
    save(thread, seat);
    seat->block_time = TBD_NO_BLOCK_TIME;
    threads->reason = TBD_SWITCH_QUANTUM;
    hand_over(seat);
    await_turn(thread, seat);
}

/* ---- a thread begins ---- */

/* As long as there is one thread, the kernel knows the program's own word. */
static void watch_first(struct tbd_thread *thread)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_seat *seat = threads->holder;

    if (!seat->is_watched && !tbd_sys_failed(tbd_sys3(__NR_prctl, PR_GET_TID_ADDRESS,
                                                      tbd_sys_pointer(&seat->cleared), 0))) {
        tbd_sys3(__NR_set_tid_address, tbd_sys_pointer(&seat->alive), 0, 0);
        seat->is_watched = true;
    }
    threads->tick = tbd_ring_time(&tbd_recording.ring, thread) + tbd_threads.quantum;
}

/* The new kernel thread: every signal is blocked, gs base is the engine's. */
static void begin(void *context)
{
    struct tbd_seat *seat = context;
    struct tbd_altstack none;

    tbd_signals_set_stack(stack_top(seat), &none);
    await_turn(tbd_thread_now(), seat);
    begin_in_turn(tbd_thread_now());
}

int64_t tbd_threads_clone(struct tbd_seat *seat, uint64_t flags, uint64_t tls)
{
    int64_t result;

    seat->alive = 1;
    seat->turn = 0;
    seat->outside = 0;
    seat->is_watched = true;
    result = tbd_thread_clone(flags, stack_top(seat), &seat->alive, tls, begin, seat);
    if (result < 0)
        seat->alive = 0;
    return result;
}

void tbd_threads_started(struct tbd_thread *thread, struct tbd_seat *seat,
                         const struct tbd_regs *regs)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_msg_thread message = { .event = TBD_THREAD_START,
                                      .thread = regs->thread,
                                      .from = thread->tid,
                                      .block_time = TBD_NO_BLOCK_TIME };
    struct tbd_part parts[3] = { { &message, sizeof(message) },
                                 { regs, sizeof(*regs) },
                                 { seat->image, tbd_processor.vector.bytes } };

    if (threads->count == 1)
        watch_first(thread);
    threads->count++;
    seat->tid = regs->thread;
    seat->regs = *regs;
    seat->block_time = TBD_NO_BLOCK_TIME;
    seat->seccomp = threads->holder->seccomp;
    seat->signals = (struct tbd_signals){ .mask = tbd_signals_now()->mask,
                                          .altstack = { .flags = SS_DISABLE } };
    tbd_vector_store(&tbd_processor.vector, seat->image);
    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_THREAD, parts, 3);
    lock();
    append(seat);
    unlock();
    TBD_LOG(TBD_LOG_DEBUG, "thread", "%u started by %u", regs->thread, thread->tid);
}

/* ---- a thread ends ---- */

void tbd_threads_end(struct tbd_thread *thread, uint64_t status)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_seat *seat = threads->holder;
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
    seat->tid = 0;
    tbd_sys3(__NR_set_robust_list, 0, ROBUST_HEAD_BYTES, 0);
    hand_over(NULL);
    for (;;)
        tbd_sys3(__NR_exit, status, 0, 0);
}

/* ---- windows ---- */

void tbd_threads_send_regs(struct tbd_thread *thread)
{
    for (uint32_t i = 0; tbd_threads_are_many() && i < tbd_threads.seats; i++) {
        struct tbd_seat *seat = tbd_seat_at(i);
        struct tbd_part parts[2] = { { &seat->regs, sizeof(seat->regs) },
                                     { seat->image, tbd_processor.vector.bytes } };

        if (!seat->tid || seat == tbd_threads.holder)
            continue;
        seat->regs.xsave_bytes = tbd_processor.vector.bytes;
        seat->regs.thread = seat->tid;
        tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_REGS, parts, 2);
    }
}

/* ---- letting go ---- */

void tbd_threads_release(void)
{
    struct tbd_seat *seat;

    lock();
    __atomic_store_n(&tbd_threads.is_detached, true, __ATOMIC_RELEASE);
    while ((seat = take_first()) != NULL)
        grant(seat);
    unlock();
}
