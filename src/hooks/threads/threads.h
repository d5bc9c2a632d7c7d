// SPDX-License-Identifier: MIT
/* threads.h - the program's threads take turns
 *
 * Every thread of the program is a kernel thread of its own, but the engine has one processor for
 * all: one struct tbd_thread, one gs base, one set of tables and one stream.  The holder of the
 * turn lock runs translated code and may touch the engine's state; the others wait in the kernel.
 * While another thread runs, a thread's own state is in its saved context, at the bottom of its
 * stack slot; its vector state stays in its own kernel thread.
 *
 *     give   saves the registers, passes the turn lock to the first ready thread (or frees it)
 *     take   waits for the turn lock, loads the registers, sends SWITCH if another thread ran
 *
 * A thread gives the turn lock away before a system call that may wait, at sched_yield, at its end,
 * and after `quantum` block entries if another thread is ready.  Threads that are ready get it in
 * the order they came.
 *
 * Invariants
 * THREADS-1  At most one thread holds the turn lock. Only the holder touches the engine's state,
 *     except for fields under `lock`.
 * THREADS-2  `holder` changes only under `lock`, by the thread that gives the turn lock or by the
 *     one that takes a free one. So a signal handler that finds its own saved context there runs on
 *     the holder, and that stays so until the handler returns.
 * THREADS-3  A saved context is reused only after the kernel has cleared `alive`: its stack is free
 *     then.
 * THREADS-4  With one thread none of this is done. (not checked: it is about what is not done)
 * THREADS-5  After `is_detached` nobody gets the turn lock: a thread that wakes goes on natively
 *     from its own saved context. (not checked: programs that are let go do, thread_let_go.c)
 * THREADS-6  A holder that makes a call which may wait for other threads has stepped out: it
 *     touches none of the engine's state until it has stepped in again.  If threads that are ready
 *     have waited too long for it, one of them steals the turn lock and lets the program go.
 * THREADS-7  With chaos (chaos.h) nobody may hold the turn lock although threads are ready: for a while, if all of these
 *     are starved. The first of them ends that. (not checked: it is about time)
 *
 * In free run (free_threads.h) there are no turns: every thread has a thread block of its own, and whoever has
 * the engine lock is entered here as the holder.
 *
 * Contexts: APP; _sigsafe SIG too. */
#ifndef TBD_HOOKS_THREADS_H
#define TBD_HOOKS_THREADS_H

#include "hooks/threads/arrivals.h"
#include "hooks/threads/chaos.h"
#include "hooks/threads/rseq.h"
#include "hooks/threads/seccomp_state.h"
#include "hooks/threads/signals.h"
#include "hooks/threads/user_dispatch_state.h"
#include "hooks/instructions/vector.h"

#define TBD_MAX_THREADS      895u  /* that take turns */
#define TBD_MAX_FREE_THREADS 4800u /* stack slots */

/* A call that is made while holding the turn lock: for a thread that steals the lock
 * (THREADS-6). */
struct tbd_outside_call {
    void (*close)(
        void *call); /* records its effects so far, with its registers in the thread block */
    void *call;      /* lives on the caller's stack */
};

struct tbd_saved_context {
    struct tbd_signals signals;
    struct tbd_seccomp seccomp;
    struct tbd_user_dispatch user_dispatch;
    struct tbd_rseq rseq;
    struct tbd_regs regs; /* while it does not hold the turn lock */
    uint64_t block_time;  /* of the block whose system call it waits in, or TBD_NO_BLOCK_TIME */
    /* the program's word that the kernel clears at the thread's end (CLONE_CHILD_CLEARTID) */
    uint64_t cleared;
    uint64_t scratch_bytes;         /* mapped at its scratch area */
    uint64_t scratch_used;          /* most of these that calls can have touched */
    struct tbd_saved_context *next; /* after it in the queue of ready threads */
    uint64_t gs_base;               /* of the engine in this thread */
    uint32_t index;
    uint32_t number;            /* threads that were made before it */
    struct tbd_arrival arrival; /* of the call that it is in */
    uint64_t signal_due; /* chaos: time at which a queued signal is delivered; 0: when it can be */
    struct tbd_late_answer
        *late_answer; /* hooks/calls/call_run.h; NULL: answers are written at once */
    uint64_t resumes; /* taken over in this call, which restart_syscall resumes; 0: not */
    bool can_resume;  /* no handler has run since: the kernel would have forgotten it */
    bool is_watched;  /* the kernel clears `alive` in place of `cleared` */
    uint32_t tid;     /* 0: the saved context is free, or its thread has ended */
    uint32_t alive;   /* cleared by the kernel */
    uint32_t turn;    /* futex: 1 = it has got the turn lock, or must leave */
    /* number of the call for which it has stepped out; 0: it has not; TBD_STOLEN */
    uint32_t outside;
    struct tbd_outside_call outside_call; /* the call that `outside` counts */
    uint32_t image_bytes;
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES]; /* vector state, for window ends */
};

#define TBD_STOLEN UINT32_MAX /* the turn lock was stolen meanwhile */

struct tbd_threads {
    struct tbd_saved_context *holder; /* NULL: nobody */
    struct tbd_saved_context *first;  /* of the queue of ready threads */
    struct tbd_saved_context *last;
    struct tbd_saved_context *runner; /* held the turn lock last: the stream describes it */
    uint64_t tick;                    /* time at which another thread's turn comes */
    uint32_t lock;
    uint32_t count;          /* live threads */
    uint32_t saved_contexts; /* number of those ever used */
    uint32_t reason;         /* why the runner gave way: enum tbd_thread_reason */
    uint32_t leader_status;  /* status of the main thread, if it left first */
    uint32_t steps;          /* number of times that holders have stepped out */
    uint64_t quantum;        /* block entries until another thread's turn comes */
    uint32_t made;           /* number of threads made after the first one */
    int64_t held_until_ns;   /* chaos: starved threads that are alone wait until then */
    struct tbd_chaos chaos;
    bool is_free;    /* free run: threads do not take turns (threads/free_threads.h) */
    bool is_leaving; /* handlers are about to be the program's */
    bool is_detached;
};

extern struct tbd_threads tbd_threads;

/* The saved context of the thread whose state is in the thread block; its signals. */
static inline struct tbd_saved_context *tbd_context_now(void)
{
    return (struct tbd_saved_context *)tbd_thread_now()->context;
}

static inline struct tbd_signals *tbd_signals_now(void)
{
    return &tbd_context_now()->signals;
}

/* BOOT: sets up the first thread's saved context; its stack slot is mapped.  New threads call
 * `begin` in their first turn; it does not return. */
void tbd_threads_init(struct tbd_thread *thread, uint64_t quantum, uint64_t chaos,
                      void (*begin)(struct tbd_thread *thread));
/* BOOT: `ask` is called, with the lock of the queue, when a thread that came back from a call waits long for its turn: the holder
 * shall come to a boundary.  Nobody is asked without. */
void tbd_threads_ask_by(void (*ask)(const struct tbd_saved_context *holder));
/* In a forked child, which has one thread. */
__attribute__((visibility("hidden"))) void tbd_threads_after_fork(struct tbd_thread *thread);

static inline struct tbd_saved_context *tbd_saved_context_at(uint32_t index)
{
    return (struct tbd_saved_context *)(TBD_STACKS_BASE + index * TBD_STACK_SLOT_BYTES);
}
/* The saved context of the thread whose signal or engine stack holds this address. */
struct tbd_saved_context *tbd_saved_context_of_sigsafe(const void *stack);
bool tbd_saved_context_is_holder_sigsafe(const struct tbd_saved_context *saved);

/* Are there other threads? */
bool tbd_threads_are_many(void);

/* Gives the turn lock away; the caller goes on without touching the engine's state. */
void tbd_threads_give(struct tbd_thread *thread, enum tbd_thread_reason reason,
                      uint64_t block_time);
/* Takes the turn lock again.  False: the program was let go; the caller can only call
 * tbd_threads_leave(). */
bool tbd_threads_take(struct tbd_thread *thread, struct tbd_saved_context *saved);
/* Called around a call that is made while holding the turn lock; with one thread they do nothing.
 * False: the program was let go, and the registers in the saved context are not the ones to go on
 * with. */
void tbd_threads_step_out(struct tbd_thread *thread, const struct tbd_outside_call *call);
bool tbd_threads_step_in(struct tbd_saved_context *saved);
/* At a block boundary, when the tick is due: gives another thread its turn, if one is ready. */
void tbd_threads_tick(struct tbd_thread *thread);
/* With chaos, before or after a system call: another thread may have its turn there.  `before`: the call's block is
 * `block_time`, and the call follows.  False: the program was let go, as for tbd_threads_take(). */
bool tbd_threads_call_begins(struct tbd_thread *thread, uint64_t block_time);
void tbd_threads_call_ended(struct tbd_thread *thread);
/* With chaos, at a block boundary: a queued signal may have to wait there.  True: it waits. */
void tbd_threads_delay_signal(struct tbd_thread *thread);
bool tbd_threads_signal_waits(const struct tbd_thread *thread);
/* Is another thread ready? */
bool tbd_threads_are_ready(void);
/* The latest time at which the ring must stop for a tick. */
uint64_t tbd_threads_next_tick(void);

/* For a thread made by a system call that has returned its tid.  `regs`: what it starts with; it
 * starts with the caller's vector state. */
struct tbd_saved_context *tbd_threads_new_context(void);
/* Makes clone with the saved context's stack; returns the child's tid or an error. */
int64_t tbd_threads_clone(struct tbd_saved_context *saved, uint64_t flags, uint64_t tls);
void tbd_threads_started(struct tbd_thread *thread, struct tbd_saved_context *saved,
                         const struct tbd_regs *regs);
/* BOOT: a thread that is there already, stopped; the caller is the first one.  `vectors`: its vector state, as for
 * tbd_vector_load(). */
void tbd_threads_take_in(struct tbd_thread *thread, struct tbd_saved_context *saved,
                         const struct tbd_regs *regs, const void *vectors);
/* Its first function of the engine: every signal is blocked.  Waits for its turn. */
_Noreturn void tbd_threads_come_in(struct tbd_saved_context *saved);
/* The calling thread has ended and its messages are sent; it leaves the kernel with `status`. */
_Noreturn void tbd_threads_end(struct tbd_thread *thread, uint64_t status);

/* Runs a new thread, in its first turn, or in free run as soon as it exists: calls what
 * tbd_threads_init() was given. */
void tbd_threads_begin(struct tbd_thread *thread);

/* Sends REGS of all threads but the running one. */
void tbd_threads_send_regs(struct tbd_thread *thread);

/* By the holder, before it lets the program go: all others come back from their calls, which are then made again natively, and
 * wait for their turn.  False: some have not after `most_ms`. */
bool tbd_threads_call_in(uint64_t most_ms);
/* The program was let go: all other threads continue natively as soon as they wake. */
void tbd_threads_release(void);

#endif
