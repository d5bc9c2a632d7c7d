// SPDX-License-Identifier: MIT
/* rseq.h - restartable sequences (rseq(2)), which the engine has in the kernel's place
 *
 * The kernel looks at the address where a thread was interrupted: that would be one of the engine.
 * So it is not told of the program's registrations.  The thread that has the turn lock is the one
 * that runs; it was preempted if another thread has had the lock meanwhile.  Then, and when the
 * processor has changed, the engine does what the kernel does on its way back to the program: it
 * ends a critical section at its abort address, and writes the processor's number.
 *
 * RSEQ-1  No two threads are inside of critical sections that neither was taken out of, because
 *     only a thread whose turn ends can be inside of one, and it is taken out before it goes on.
 *     (not checked: rseq.c counts what would be lost)
 *
 * In a free run, where threads do not take turns, a call that would succeed is refused as by a kernel without it, and the C library's variable says from the
 * start that it has registered none (__rseq_size 0).  A program that is taken over while it runs may have asked before: its sequences then fail until it asks for the
 * processor's number, which is none.  One that fails says why, as if
 * the registration that the thread had before still were there.
 *
 * Contexts: APP, FORK_CHILD; tbd_rseq_install() also without the turn lock. */
#ifndef TBD_HOOKS_RSEQ_H
#define TBD_HOOKS_RSEQ_H

#include "base/linux_abi.h"
#include "patcher/thread.h"

#include <stdbool.h>

struct tbd_effects;

#define TBD_RSEQ_ORIGINAL_BYTES    32u /* an area's, and its alignment */
#define TBD_RSEQ_ORIGINAL_FEATURES 20u /* bytes of it that the first kernels used */

/* One thread's. */
struct tbd_rseq {
    uint64_t area; /* 0: none is registered */
    uint32_t bytes;
    uint32_t signature;
    uint32_t place;    /* processor and node that the area shows */
    bool is_preempted; /* another thread has had its turn since */
    uint64_t kept;     /* free run: the area that it had before; the kernel gets it back */
};

/* BOOT: the C library's registration becomes the engine's; all of the area is in memory.
 * `features`: AT_RSEQ_FEATURE_SIZE, 0: the kernel does not say. */
void tbd_rseq_take_over(struct tbd_rseq *own, uint64_t features);

/* These three are for a thread that is taken over somewhere in the program, at `regs`; `own` says what the kernel has, or had.  First, as long as it
 * is stopped: a section that the stop came in ends as the kernel would have ended it. */
void tbd_rseq_end_section(const struct tbd_rseq *own, struct tbd_regs *regs);
/* The calling thread's registration ends. */
void tbd_rseq_unregister(struct tbd_rseq *own);
/* Then as tbd_rseq_take_over(). */
void tbd_rseq_take(struct tbd_rseq *own);

/* Shows the processor in the area, which the kernel has accepted.  Adds what it writes to the
 * effects, if there are any.  False: the area cannot be written. */
bool tbd_rseq_show(struct tbd_rseq *own, struct tbd_effects *effects);
/* Leaves the area as the kernel leaves one that is no longer registered. */
bool tbd_rseq_forget(struct tbd_rseq *own, struct tbd_effects *effects);

/* Before translated code is entered: does what is due, and sends it.  True: something was; more may
 * be due now.  `looks`: at which processor it runs, too; that can take 0.1 us. */
bool tbd_rseq_settle(struct tbd_thread *thread, bool looks);
/* Before a signal's frame is built: a critical section ends; regs.rip is then its abort address.
 * False: the program's description of it is wrong. */
bool tbd_rseq_leave_section(struct tbd_thread *thread, struct tbd_effects *effects);

/* A thread leaves the engine at `regs`: the kernel gets its registration. */
void tbd_rseq_install(const struct tbd_rseq *own, struct tbd_regs *regs);

#endif
