// SPDX-License-Identifier: MIT
/* arrivals.h - with chaos: which threads are about to come back from a call
 *
 * Threads in calls come back when the kernel likes.  Before it is decided whose turn is next, those that are about to come
 * are waited for, so that with the same seed the same threads are ready:
 *
 *     a futex was woken     until as many of the program's threads as the call has woken have come
 *     one waits at a futex  until the kernel has it among those that sleep there, or it has come: the word had changed
 *     sched_yield           until the thread is ready: it does not wait
 *     any other call        a thread that began one, or can have been woken by one, has GRACE_NS to come
 *
 * A wait is bounded: where the guess is wrong only the schedule differs.
 *
 * Context: APP; tbd_arrivals_back and tbd_arrivals_came without the turn lock. */
#ifndef TBD_HOOKS_ARRIVALS_H
#define TBD_HOOKS_ARRIVALS_H

#include "hooks/table/syscalls.h"

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum tbd_arrival_kind {
    TBD_ARRIVAL_NONE,
    TBD_ARRIVAL_FUTEX, /* it waits at one */
    TBD_ARRIVAL_YIELD,
    TBD_ARRIVAL_OTHER,
};

/* A call for which a thread gave the turn lock away, until it is ready again. */
struct tbd_arrival {
    enum tbd_arrival_kind kind;
    bool was_woken;
    bool is_settled;  /* it sleeps at its futex, as far as can be known */
    uint64_t address; /* of its futex */
    uint64_t flags;   /* FUTEX_PRIVATE_FLAG or 0 */
};

/* The holder of the turn lock gives it away for this call, once all others that are about to come have come. */
void tbd_arrivals_leave(struct tbd_arrival *arrival, const struct tbd_sys_call *sys);
/* The call has ended; the thread is about to be ready. */
void tbd_arrivals_back(struct tbd_arrival *arrival, int64_t result);
/* It is ready. */
void tbd_arrivals_came(struct tbd_arrival *arrival);
/* The holder is about to make a call: those that it may wake at a futex are asleep then. */
void tbd_arrivals_before(const struct tbd_sys_call *sys);
/* The holder has made a call that gives nothing away. */
void tbd_arrivals_called(const struct tbd_sys_call *sys, int64_t result);
/* The holder wakes threads of the program itself, as the kernel does where a thread ends. */
void tbd_arrivals_wake(uint64_t address, uint32_t count);
/* Waits for those that are about to come. */
void tbd_arrivals_await(void);
/* In a forked child there is nobody. */
void tbd_arrivals_forget(void);

#pragma GCC visibility pop

#endif
