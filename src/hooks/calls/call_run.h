// SPDX-License-Identifier: MIT
/* call_run.h - a system call of the program in progress, and what all families of calls need: making it, its registers
 * and message
 *
 * Context: APP. */
#ifndef TBD_HOOKS_CALL_RUN_H
#define TBD_HOOKS_CALL_RUN_H

#include "hooks/memory/effects.h"
#include "hooks/table/syscalls.h"
#include "hooks/threads/program_call.h"

struct tbd_call {
    struct tbd_sys_call sys; /* as the program made it */
    struct tbd_thread *thread;
    struct tbd_effects *effects;
    int64_t result;
    uint32_t insn_bytes;
    uint64_t insns_before; /* in its block: what ran if the call is not made */
    uint32_t flags;        /* TBD_SYSCALL_* of the message */
};

/* Makes the call for real; TBD_CALL_INTERRUPTED possible. */
int64_t tbd_call_perform(const struct tbd_sys_call *sys);
/* Sets result registers and rip as the kernel does, then sends the message. */
void tbd_call_finish(struct tbd_call *call);
/* Before a call that may not come back: the message as it stands, result 0. */
void tbd_call_send(struct tbd_call *call);
/* The program is detached with the system call instruction still to be executed, natively. */
_Noreturn void tbd_call_detach(struct tbd_call *call, const char *why);

/* Writes an answer to the program and records it as the kernel's doing.  False: it
 * cannot be written. */
bool tbd_call_answer(struct tbd_call *call, uint64_t address, const void *data, size_t bytes);

/* The call is made with the turn lock in hand (threads.h, THREADS-6); if that is taken away, what has been done so far
 * is recorded. */
void tbd_call_step_out(struct tbd_call *call);

/* syscall.c: the whole of it, by its family; the patcher's callback. */
void tbd_syscall_perform(struct tbd_thread *thread, uint32_t insn_bytes);

#endif
