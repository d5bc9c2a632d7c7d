// SPDX-License-Identifier: MIT
/* arrivals.c - see arrivals.h */
#include "hooks/threads/arrivals.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "base/sys_clock.h"
#include "hooks/threads/threads.h"

#include <limits.h>

#define GRACE_NS                                                                                   \
    200000 /* after a call, until its caller, or whom it woke, is ready: a context switch or two */
#define SURE_MOST_NS 300000000 /* for those that come for sure: a busy machine may take long */

static struct {
    uint32_t at_futexes; /* threads that wait at one */
    uint32_t unsettled;  /* of these, threads that may not sleep yet */
    uint32_t yielding;   /* threads that come back as soon as the kernel lets them */
    uint32_t elsewhere;  /* threads in other calls */
    int32_t woken;       /* of the first, threads that were woken and have not come */
    uint32_t most_woken; /* threads at the futex that the holder is about to wake */
    uint64_t last_call;  /* when a call that may wake threads was made */
} arrivals;

/* ---- futexes ---- */

static bool waits_at_futex(const struct tbd_sys_call *sys)
{
    uint32_t command = tbd_sys_futex_command(sys->args[1]);

    return sys->number == __NR_futex && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET);
}

static bool wakes_at_futex(const struct tbd_sys_call *sys)
{
    uint32_t command = tbd_sys_futex_command(sys->args[1]);

    return sys->number == __NR_futex &&
           (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET || command == FUTEX_WAKE_OP);
}

/* Threads that have left for this futex, or, for an operation at two, for any.  Under no lock: where it is wrong only the
 * schedule differs. */
static uint32_t count_left_for(uint64_t address, bool is_any)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++) {
        const struct tbd_arrival *arrival = &tbd_saved_context_at(i)->arrival;

        count += __atomic_load_n(&arrival->kind, __ATOMIC_ACQUIRE) == TBD_ARRIVAL_FUTEX &&
                 (is_any || arrival->address == address);
    }
    return count;
}

static void settle(struct tbd_arrival *arrival)
{
    if (!__atomic_exchange_n(&arrival->is_settled, true, __ATOMIC_ACQ_REL))
        __atomic_fetch_sub(&arrivals.unsettled, 1, __ATOMIC_RELEASE);
}

/* FUTEX_REQUEUE from a futex to itself wakes nobody, moves nobody, and says how many sleep there (futex(2)).  An error: there
 * is no such way to know. */
static void look_at(struct tbd_arrival *arrival)
{
    long asleep = tbd_sys6(__NR_futex, arrival->address, FUTEX_REQUEUE | arrival->flags, 0, INT_MAX,
                           arrival->address, 0);

    if (asleep < 0 || asleep >= (long)count_left_for(arrival->address, false))
        settle(arrival);
}

/* True: whoever has left for a futex sleeps there, or has come.  `for_good`: who has not, counts as asleep from now on. */
static bool are_settled(bool for_good)
{
    for (uint32_t i = 0;
         i < tbd_threads.saved_contexts && __atomic_load_n(&arrivals.unsettled, __ATOMIC_ACQUIRE);
         i++) {
        struct tbd_arrival *arrival = &tbd_saved_context_at(i)->arrival;

        if (__atomic_load_n(&arrival->kind, __ATOMIC_ACQUIRE) != TBD_ARRIVAL_FUTEX ||
            __atomic_load_n(&arrival->is_settled, __ATOMIC_ACQUIRE))
            continue;
        if (for_good)
            settle(arrival);
        else
            look_at(arrival);
    }
    return !__atomic_load_n(&arrivals.unsettled, __ATOMIC_ACQUIRE);
}

/* Those that a futex operation may wake are asleep then, or count as asleep.  Without chaos nobody is known to wait. */
static void before_wake(uint64_t address, bool is_any)
{
    uint64_t until;

    arrivals.most_woken = 0;
    if (!__atomic_load_n(&arrivals.at_futexes, __ATOMIC_ACQUIRE))
        return;
    until = tbd_sys_clock_ns() + SURE_MOST_NS;
    while (!are_settled(false) && tbd_sys_clock_ns() < until)
        tbd_sys3(__NR_sched_yield, 0, 0, 0);
    (void)are_settled(true);
    arrivals.most_woken = count_left_for(address, is_any);
}

/* The kernel may have woken threads of other processes, too. */
static void note_woken(int64_t count)
{
    if (count > arrivals.most_woken)
        count = arrivals.most_woken;
    if (count > 0)
        __atomic_fetch_add(&arrivals.woken, (int32_t)count, __ATOMIC_RELAXED);
}

/* ---- what the threads do ---- */

static void note_call(void)
{
    __atomic_store_n(&arrivals.last_call, tbd_sys_clock_ns(), __ATOMIC_RELAXED);
}

static uint32_t *counter_of(enum tbd_arrival_kind kind)
{
    return kind == TBD_ARRIVAL_FUTEX   ? &arrivals.at_futexes
           : kind == TBD_ARRIVAL_YIELD ? &arrivals.yielding
                                       : &arrivals.elsewhere;
}

static enum tbd_arrival_kind kind_of(const struct tbd_sys_call *sys)
{
    if (waits_at_futex(sys))
        return TBD_ARRIVAL_FUTEX;
    return tbd_syscall_flags(sys->number) & TBD_SYS_YIELDS ? TBD_ARRIVAL_YIELD : TBD_ARRIVAL_OTHER;
}

void tbd_arrivals_leave(struct tbd_arrival *arrival, const struct tbd_sys_call *sys)
{
    enum tbd_arrival_kind kind = kind_of(sys);

    tbd_arrivals_await();
    *arrival = (struct tbd_arrival){ .is_settled = kind != TBD_ARRIVAL_FUTEX,
                                     .address = sys->args[0],
                                     .flags = sys->args[1] & FUTEX_PRIVATE_FLAG };
    if (kind == TBD_ARRIVAL_FUTEX)
        __atomic_fetch_add(&arrivals.unsettled, 1, __ATOMIC_RELEASE);
    else if (kind == TBD_ARRIVAL_OTHER)
        note_call();
    __atomic_fetch_add(counter_of(kind), 1, __ATOMIC_RELEASE);
    __atomic_store_n(&arrival->kind, kind, __ATOMIC_RELEASE);
}

void tbd_arrivals_back(struct tbd_arrival *arrival, int64_t result)
{
    arrival->was_woken = arrival->kind == TBD_ARRIVAL_FUTEX && result == 0;
    if (arrival->kind == TBD_ARRIVAL_OTHER)
        note_call(); /* it can have woken others */
}

void tbd_arrivals_came(struct tbd_arrival *arrival)
{
    enum tbd_arrival_kind kind = arrival->kind;

    if (kind == TBD_ARRIVAL_NONE)
        return;
    __atomic_store_n(&arrival->kind, TBD_ARRIVAL_NONE, __ATOMIC_RELEASE);
    if (arrival->was_woken)
        __atomic_fetch_sub(&arrivals.woken, 1, __ATOMIC_RELAXED);
    settle(arrival);
    __atomic_fetch_sub(counter_of(kind), 1, __ATOMIC_RELEASE);
}

void tbd_arrivals_before(const struct tbd_sys_call *sys)
{
    if (wakes_at_futex(sys))
        before_wake(sys->args[0], tbd_sys_futex_command(sys->args[1]) == FUTEX_WAKE_OP);
}

void tbd_arrivals_called(const struct tbd_sys_call *sys, int64_t result)
{
    if (wakes_at_futex(sys))
        note_woken(result);
    else if (__atomic_load_n(&arrivals.elsewhere, __ATOMIC_RELAXED))
        note_call();
}

void tbd_arrivals_wake(uint64_t address, uint32_t count)
{
    before_wake(address, false);
    note_woken(tbd_sys3(__NR_futex, address, FUTEX_WAKE, count));
}

/* Until when they may still come; 0: nobody does. */
static uint64_t awaited_until(uint64_t begin)
{
    if (!are_settled(false) || __atomic_load_n(&arrivals.yielding, __ATOMIC_ACQUIRE) ||
        (__atomic_load_n(&arrivals.woken, __ATOMIC_RELAXED) > 0 &&
         __atomic_load_n(&arrivals.at_futexes, __ATOMIC_ACQUIRE)))
        return begin + SURE_MOST_NS;
    if (__atomic_load_n(&arrivals.elsewhere, __ATOMIC_ACQUIRE))
        return __atomic_load_n(&arrivals.last_call, __ATOMIC_RELAXED) + GRACE_NS;
    return 0;
}

void tbd_arrivals_await(void)
{
    uint64_t begin = tbd_sys_clock_ns();

    while (tbd_sys_clock_ns() < awaited_until(begin))
        tbd_sys3(__NR_sched_yield, 0, 0, 0);
    __atomic_store_n(&arrivals.woken, 0, __ATOMIC_RELAXED); /* or they do not come */
    (void)are_settled(true);
}

void tbd_arrivals_forget(void)
{
    arrivals.at_futexes = 0;
    arrivals.unsettled = 0;
    arrivals.yielding = 0;
    arrivals.elsewhere = 0;
    arrivals.woken = 0;
}
