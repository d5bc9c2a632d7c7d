// SPDX-License-Identifier: MIT
/* arrivals.h - with chaos: which threads are about to come back from a call
 *
 * Threads in calls come back when the kernel likes.  Before it is decided whose turn is next, those that are about to come
 * are waited for, so that with the same seed the same threads are ready:
 *
 *     a futex was woken     until the number of threads that the call names have come
 *     sched_yield           until the thread is ready: it does not wait
 *     any other call        a thread that began one, or can have been woken by one, has GRACE_NS to come
 *
 * A wait is short and bounded: where the guess is wrong only the schedule differs.
 *
 * Context: APP; tbd_arrivals_back and tbd_arrivals_came without the turn lock. */
#ifndef TBD_HOOKS_ARRIVALS_H
#define TBD_HOOKS_ARRIVALS_H

#include "hooks/table/syscalls.h"

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A call for which a thread gave the turn lock away, until it is ready again. */
struct tbd_arrival {
    bool is_futex; /* it waits at one */
    bool is_yield;
    bool is_other;
    bool was_woken;
};

/* The holder of the turn lock gives it away for this call. */
void tbd_arrivals_leave(struct tbd_arrival *arrival, const struct tbd_sys_call *sys);
/* The call has ended; the thread is about to be ready. */
void tbd_arrivals_back(struct tbd_arrival *arrival, int64_t result);
/* It is ready. */
void tbd_arrivals_came(struct tbd_arrival *arrival);
/* The holder is about to make a call: those that it may wake at a futex are asleep then. */
void tbd_arrivals_before(const struct tbd_sys_call *sys);
/* The holder has made a call that gives nothing away. */
void tbd_arrivals_called(const struct tbd_sys_call *sys, int64_t result);
/* `count` threads that wait at a futex were woken. */
void tbd_arrivals_woken(int64_t count);
/* Waits for those that are about to come. */
void tbd_arrivals_await(void);
/* In a forked child there is nobody. */
void tbd_arrivals_forget(void);

#pragma GCC visibility pop

#endif
