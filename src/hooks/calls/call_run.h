// SPDX-License-Identifier: MIT
/* call_run.h - a system call of the program in progress: making it, its registers and its message,
 * for all families of calls
 *
 * Context: APP. */
#ifndef TBD_HOOKS_CALL_RUN_H
#define TBD_HOOKS_CALL_RUN_H

#include "hooks/memory/effects.h"
#include "hooks/table/syscalls.h"
#include "hooks/threads/program_call.h"
#include "hooks/threads/signals.h"

/* An answer that is written when its thread has no lock any more: a page may be missing until another thread of the program fills it, and
 * that one may need the lock. */
#define TBD_LATE_ANSWER_BYTES 32u
struct tbd_late_answer {
    uint64_t address;
    size_t bytes; /* 0: there is none */
    uint8_t data[TBD_LATE_ANSWER_BYTES];
};

struct tbd_call {
    struct tbd_sys_call sys; /* as the program made it */
    struct tbd_thread *thread;
    struct tbd_effects *effects;
    int64_t result;
    uint32_t insn_bytes;
    uint64_t insns_before; /* in its block: the number that ran if the call is not made */
    uint32_t flags;        /* TBD_SYSCALL_* of the message */
};

/* Makes the call on the kernel; the result can be TBD_CALL_INTERRUPTED. */
int64_t tbd_call_perform(const struct tbd_sys_call *sys);
/* The same for a thread with these signals, also while it does not have the turn lock. */
int64_t tbd_call_perform_for(struct tbd_signals *signals, const struct tbd_sys_call *sys);
/* Sets result registers and rip as the kernel does, then sends the message. */
void tbd_call_finish(struct tbd_call *call);
/* Before a call that may not return: sends the message as it stands, with result 0. */
void tbd_call_send(struct tbd_call *call);
/* Detaches the program; it executes the system call instruction natively. */
_Noreturn void tbd_call_detach(struct tbd_call *call, const char *why);

/* Writes an answer to the program and records it as the kernel's write.  False: it cannot be
 * written.  It comes late if the thread's saved context has a place for that (free_calls.c). */
bool tbd_call_answer(struct tbd_call *call, uint64_t address, const void *data, size_t bytes);

/* Steps out for a call that is made while holding the turn lock (threads.h, THREADS-6); if the turn
 * lock is stolen, the effects so far are recorded. */
void tbd_call_step_out(struct tbd_call *call);

/* syscall.c: performs a whole system call, by its family; the patcher's callback. */
void tbd_syscall_perform(struct tbd_thread *thread, uint32_t insn_bytes);

#endif
