// SPDX-License-Identifier: MIT
/* arrivals.c - see arrivals.h */
#include "hooks/threads/arrivals.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "base/sys_clock.h"

#define GRACE_NS                                                                                   \
    200000 /* after a call, until its caller, or whom it woke, is ready: a context switch or two */
#define WOKEN_MOST_NS 20000000 /* the kernel says how many come: a busy machine may take long */

static struct {
    uint32_t at_futexes; /* threads that wait at one */
    uint32_t yielding;   /* threads that come back as soon as the kernel lets them */
    uint32_t elsewhere;  /* threads in other calls */
    int32_t woken;       /* of the first, threads that were woken and have not come */
    uint64_t last_call;  /* when a call that may wake threads was made */
    uint64_t last_futex; /* when one began to wait at a futex */
} arrivals;

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

static void note_call(void)
{
    __atomic_store_n(&arrivals.last_call, tbd_sys_clock_ns(), __ATOMIC_RELAXED);
}

void tbd_arrivals_leave(struct tbd_arrival *arrival, const struct tbd_sys_call *sys)
{
    *arrival = (struct tbd_arrival){ .is_futex = waits_at_futex(sys) };
    arrival->is_yield = tbd_syscall_flags(sys->number) & TBD_SYS_YIELDS;
    arrival->is_other = !arrival->is_futex && !arrival->is_yield;
    if (arrival->is_futex)
        __atomic_store_n(&arrivals.last_futex, tbd_sys_clock_ns(), __ATOMIC_RELAXED);
    else if (arrival->is_other)
        note_call();
    __atomic_fetch_add(arrival->is_futex   ? &arrivals.at_futexes
                       : arrival->is_yield ? &arrivals.yielding
                                           : &arrivals.elsewhere,
                       1, __ATOMIC_RELEASE);
}

void tbd_arrivals_back(struct tbd_arrival *arrival, int64_t result)
{
    arrival->was_woken = arrival->is_futex && result == 0;
    if (arrival->is_other)
        note_call(); /* it can have woken others */
}

void tbd_arrivals_came(struct tbd_arrival *arrival)
{
    if (arrival->was_woken)
        __atomic_fetch_sub(&arrivals.woken, 1, __ATOMIC_RELAXED);
    if (arrival->is_futex)
        __atomic_fetch_sub(&arrivals.at_futexes, 1, __ATOMIC_RELEASE);
    if (arrival->is_yield)
        __atomic_fetch_sub(&arrivals.yielding, 1, __ATOMIC_RELEASE);
    if (arrival->is_other)
        __atomic_fetch_sub(&arrivals.elsewhere, 1, __ATOMIC_RELEASE);
    *arrival = (struct tbd_arrival){ 0 };
}

void tbd_arrivals_before(const struct tbd_sys_call *sys)
{
    while (wakes_at_futex(sys) && __atomic_load_n(&arrivals.at_futexes, __ATOMIC_ACQUIRE) &&
           tbd_sys_clock_ns() < __atomic_load_n(&arrivals.last_futex, __ATOMIC_RELAXED) + GRACE_NS)
        tbd_sys3(__NR_sched_yield, 0, 0, 0);
}

void tbd_arrivals_woken(int64_t count)
{
    if (count > 0)
        __atomic_fetch_add(&arrivals.woken, (int32_t)count, __ATOMIC_RELAXED);
}

void tbd_arrivals_called(const struct tbd_sys_call *sys, int64_t result)
{
    if (wakes_at_futex(sys))
        tbd_arrivals_woken(result);
    else if (__atomic_load_n(&arrivals.elsewhere, __ATOMIC_RELAXED))
        note_call();
}

/* Until when they may still come; 0: nobody does. */
static uint64_t awaited_until(uint64_t begin)
{
    if (__atomic_load_n(&arrivals.yielding, __ATOMIC_ACQUIRE) ||
        (__atomic_load_n(&arrivals.woken, __ATOMIC_RELAXED) > 0 &&
         __atomic_load_n(&arrivals.at_futexes, __ATOMIC_ACQUIRE)))
        return begin + WOKEN_MOST_NS;
    if (__atomic_load_n(&arrivals.elsewhere, __ATOMIC_ACQUIRE))
        return __atomic_load_n(&arrivals.last_call, __ATOMIC_RELAXED) + GRACE_NS;
    return 0;
}

void tbd_arrivals_await(void)
{
    uint64_t begin = tbd_sys_clock_ns();

    while (tbd_sys_clock_ns() < awaited_until(begin))
        tbd_sys3(__NR_sched_yield, 0, 0, 0);
    __atomic_store_n(&arrivals.woken, 0, __ATOMIC_RELAXED); /* or they are somebody else's */
}

void tbd_arrivals_forget(void)
{
    arrivals.at_futexes = 0;
    arrivals.yielding = 0;
    arrivals.elsewhere = 0;
    arrivals.woken = 0;
}
