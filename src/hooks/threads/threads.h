// SPDX-License-Identifier: MIT
/* threads.h - the program's threads take turns
 *
 * Every thread of the program is a kernel thread of its own, but there is one processor: one struct tbd_thread,
 * one gs base, one set of tables and one stream for all.  Who holds the turn lock runs translated code and may touch
 * the engine's state; the others wait in the kernel.  What is a thread's own while another one runs lies in its
 * saved context, at the bottom of its stack slot; its vector state stays in its own kernel thread.
 *
 *     give   registers to the saved context, the turn lock to the first that is ready (or to nobody)
 *     take   waits for the turn lock, registers from the saved context, a SWITCH message if another one ran meanwhile
 *
 * The turn lock is given away before a system call that may wait, at sched_yield, at a thread's end, and after
 * `quantum` block entries when somebody is ready; those who are ready get it in the order they came.
 *
 * Invariants
 * THREADS-1  At most one thread holds the turn lock; the engine's state but `lock`ed fields is
 *     its alone.
 * THREADS-2  `holder` changes under `lock`, by the one who gives, or by the one who takes a free
 *     turn lock.  So a signal handler that finds its own saved context there runs on the holder, and it stays
 *     that until the handler returns.
 * THREADS-3  A saved context is used again only when the kernel has cleared `alive`: its stack is free then.
 * THREADS-4  With one thread nothing of this is done.
 * THREADS-5  After `is_detached` nobody gets the turn lock: who wakes goes on natively from its own
 *     saved context.
 * THREADS-6  A holder that makes a call which may wait for other threads has stepped out: it
 *     touches nothing of the engine's until it has stepped in again.  When those who are ready have
 *     waited too long for it, one of them takes the turn lock away and lets the program go.
 *
 * Contexts: APP; _sigsafe SIG too. */
#ifndef TBD_HOOKS_THREADS_H
#define TBD_HOOKS_THREADS_H

#include "hooks/threads/seccomp_state.h"
#include "hooks/threads/signals.h"
#include "hooks/instructions/vector.h"

#define TBD_MAX_THREADS 895u /* stack slots */

/* A call that is made with the turn lock in hand, for whoever takes that away (THREADS-6). */
struct tbd_outside_call {
    void (*close)(
        void *call); /* records what has been done of it, with its registers in the thread block */
    void *call;      /* lives on the caller's stack */
};

struct tbd_saved_context {
    struct tbd_signals signals;
    struct tbd_seccomp seccomp;
    struct tbd_regs regs; /* while it does not hold the turn lock */
    uint64_t block_time;  /* of the block whose system call it waits in, or TBD_NO_BLOCK_TIME */
    /* the program's word that is cleared at the thread's end (CLONE_CHILD_CLEARTID) */
    uint64_t cleared;
    uint64_t scratch_bytes;         /* mapped at its scratch area */
    struct tbd_saved_context *next; /* behind it in the queue of those who are ready */
    uint32_t index;
    bool is_watched; /* the kernel clears `alive` in place of `cleared` */
    uint32_t tid;    /* 0: the saved context is free, or its thread has ended */
    uint32_t alive;  /* cleared by the kernel */
    uint32_t turn;   /* futex: 1 = it has been given the turn lock, or must leave */
    /* number of the call for which it has stepped out; 0: it has not; TBD_ROBBED */
    uint32_t outside;
    struct tbd_outside_call outside_call;             /* which that is */
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES]; /* vector state, for window ends */
};

#define TBD_STOLEN UINT32_MAX /* the turn lock was taken away meanwhile */

struct tbd_threads {
    struct tbd_saved_context *holder; /* NULL: nobody */
    struct tbd_saved_context *first;  /* of those who are ready */
    struct tbd_saved_context *last;
    struct tbd_saved_context *runner; /* held the turn lock last: the stream is in its name */
    uint64_t tick;                    /* time at which somebody else's turn comes */
    uint32_t lock;
    uint32_t count;          /* threads that live */
    uint32_t saved_contexts; /* that have ever been used */
    uint32_t reason;         /* why the runner gave way: enum tbd_thread_reason */
    uint32_t leader_status;  /* what the main thread left with, if it left first */
    uint32_t steps;          /* out, so far */
    uint64_t quantum;        /* block entries until somebody else's turn comes */
    bool is_detached;
};

extern struct tbd_threads tbd_threads;

/* The signals of the thread whose program state is in the thread block. */
static inline struct tbd_signals *tbd_signals_now(void)
{
    return &tbd_threads.runner->signals;
}

/* BOOT: the first thread's saved context; its stack slot is mapped.  `begin`, which does not return, is where new threads begin
 * in their first turn. */
void tbd_threads_init(struct tbd_thread *thread, uint64_t quantum,
                      void (*begin)(struct tbd_thread *thread));
/* In a forked child: the only thread there is. */
void tbd_threads_after_fork(struct tbd_thread *thread);

static inline struct tbd_saved_context *tbd_saved_context_at(uint32_t index)
{
    return (struct tbd_saved_context *)(TBD_STACKS_BASE + index * TBD_STACK_SLOT_BYTES);
}
/* The saved context of the thread whose signal or engine stack holds this address. */
struct tbd_saved_context *tbd_saved_context_of_sigsafe(const void *stack);
bool tbd_saved_context_is_holder_sigsafe(const struct tbd_saved_context *saved);

/* Are there others? */
bool tbd_threads_are_many(void);

/* Gives the turn lock away; the caller goes on without the engine's state. */
void tbd_threads_give(struct tbd_thread *thread, enum tbd_thread_reason reason,
                      uint64_t block_time);
/* Takes it again.  False: the program was let go; only tbd_threads_leave() is left. */
bool tbd_threads_take(struct tbd_thread *thread, struct tbd_saved_context *saved);
/* Around a call that is made with the turn lock in hand; with one thread nothing.  False: the program was let go, and what
 * the saved context has for registers is not what the thread goes on with. */
void tbd_threads_step_out(struct tbd_thread *thread, const struct tbd_outside_call *call);
bool tbd_threads_step_in(struct tbd_saved_context *saved);
/* At a block boundary, when the tick is due: somebody else's turn, if anybody is ready.  The next tick. */
void tbd_threads_tick(struct tbd_thread *thread);
/* When the ring must stop for a tick at the latest. */
uint64_t tbd_threads_next_tick(void);

/* A thread made by a system call that has returned its tid.  `regs`: what it starts with; its vector state is the
 * caller's. */
struct tbd_saved_context *tbd_threads_new_context(void);
/* clone with the saved context's stack; the child's tid or an error. */
int64_t tbd_threads_clone(struct tbd_saved_context *saved, uint64_t flags, uint64_t tls);
void tbd_threads_started(struct tbd_thread *thread, struct tbd_saved_context *saved,
                         const struct tbd_regs *regs);
/* The calling thread has ended and said so; it leaves the kernel with `status`. */
_Noreturn void tbd_threads_end(struct tbd_thread *thread, uint64_t status);

/* REGS of all but the running thread. */
void tbd_threads_send_regs(struct tbd_thread *thread);

/* The program is let go: all others continue natively as soon as they wake. */
void tbd_threads_release(void);

#endif
