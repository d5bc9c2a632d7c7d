// SPDX-License-Identifier: MIT
/* held_threads.h - all threads of another process, stopped by ptrace
 *
 *   seize, interrupt -> all stopped, also threads that were made meanwhile -> their registers, masks, restartable sequences
 *                    -> each goes on where it was, or where it is sent
 *
 * A thread that waited in a system call has it interrupted by the stop.  If it goes on where it was, the kernel resumes the call.  If
 * it is sent elsewhere, its registers say how the call is resumed: the instruction again, with the call's number in
 * rax, or that of restart_syscall, for the rest of a sleep's time. */
#ifndef TBD_QUERY_HELD_THREADS_H
#define TBD_QUERY_HELD_THREADS_H

#include "query/text/query_error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct tbd_held_thread {
    pid_t tid;
    bool is_stopped;
    bool has_regs;  /* they have been read, and its mask */
    bool is_mended; /* the kernel does not resume its call: the registers do */
    bool is_moved;  /* it has made calls or steps for us, with all signals blocked */
    struct user_regs_struct regs;
    uint64_t mask;
    uint64_t waits_in; /* before it was stopped: tbd_attach_waits_in() */
    uint64_t resumes;  /* rax is restart_syscall, for this call */
    uint64_t rseq;     /* area; 0: none */
    uint32_t rseq_bytes, rseq_signature;
};

struct tbd_held {
    pid_t pid;
    struct tbd_held_thread *all;
    size_t count, capacity;
};

/* Stops all threads but `but`, which is stopped already, unless tbd_clock_ns() is past `until_ns` before they are, which is TBD_BUSY.  False: none is. */
bool tbd_held_stop(struct tbd_held *held, pid_t pid, pid_t but, uint64_t until_ns,
                   struct tbd_query_error *error);
/* Each goes on where it was; frees the list.  False: one does not stop, which it has to before; it goes on when this process ends. */
bool tbd_held_go_on(struct tbd_held *held);
/* The thread goes on with these registers and all signals blocked.  False: it has ended. */
bool tbd_held_send(const struct tbd_held_thread *thread, const struct user_regs_struct *regs);
void tbd_held_free(struct tbd_held *held);
/* What is remembered of one stop, for the next: which call each waits in, if the kernel has only resumed it since. */
bool tbd_held_copy(const struct tbd_held *held, struct tbd_held *out,
                   struct tbd_query_error *error);
void tbd_held_recall(struct tbd_held *held, const struct tbd_held *before);
/* Each goes on where it was, for a moment, in which the kernel resumes its call; *io_before remembers which that was. */
bool tbd_held_let_run(struct tbd_held *held, struct tbd_held *io_before,
                      struct tbd_query_error *error);

/* A system call that stopped threads make by the instruction at `syscall_at`, all at the same time: each needs a processor for it.
 * begin false: the thread does not; end: the result, or -errno. */
bool tbd_held_call_begin(struct tbd_held_thread *thread, uint64_t syscall_at, long number,
                         const uint64_t *arguments);
long tbd_held_call_end(const struct tbd_held_thread *thread);
/* Steps until it is outside of [start, end).  False: it does not come out, or not in time. */
bool tbd_held_step_out(struct tbd_held_thread *thread, uint64_t start, uint64_t end,
                       uint64_t until_ns);

/* What the kernel has of the stopped thread: its restartable sequences, into `out`. */
void tbd_held_read_rseq(pid_t tid, struct tbd_held_thread *out);
/* Changes the registers of a stopped thread that is to go on elsewhere first: so that a call that was interrupted is resumed by
 * them.  False: it made a call by another instruction than syscall, or it is not known which call sleeps. */
bool tbd_held_resume(int memory, uint64_t waits_in, struct user_regs_struct *regs,
                     uint64_t *out_resumes);

#endif
