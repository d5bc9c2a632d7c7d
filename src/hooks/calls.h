// SPDX-License-Identifier: MIT
/* calls.h - the program's system calls during play, by family
 *
 * A call in progress: everything a family's function needs to perform and record it.
 * Context: APP. */
#ifndef TBD_HOOKS_CALLS_H
#define TBD_HOOKS_CALLS_H

#include "hooks/effects.h"
#include "hooks/runtime.h"
#include "hooks/syscalls.h"

/* Not a kernel result: the call was not made, because a signal must be delivered first. */
#define TBD_CALL_INTERRUPTED (-512)

struct tbd_call {
    struct tbd_sys_call sys; /* as the program made it */
    struct tbd_thread *thread;
    struct tbd_effects *effects;
    int64_t result;
    uint32_t insn_bytes;
    uint32_t flags;          /* TBD_SYSCALL_* of the message */
};

/* entry_x86_64.S */
int64_t tbd_program_syscall(const struct tbd_sys_call *call, const uint32_t *pending);

/* Makes the call for real; TBD_CALL_INTERRUPTED possible. */
int64_t tbd_call_perform(const struct tbd_sys_call *sys);
/* Sets result registers and rip as the kernel does, then sends the message. */
void tbd_call_finish(struct tbd_call *call);
/* Before a call that may not come back: the message as it stands, result 0. */
void tbd_call_send(struct tbd_call *call);
/* The program is detached with the system call instruction still to be executed, natively. */
_Noreturn void tbd_call_detach(struct tbd_call *call, const char *why);

/* Performs and records a call that the engine has no part in: by the table, or by comparison. */
void tbd_call_plain(struct tbd_call *call);

/* memory_calls.c: mmap and the like (TBD_SYS_MAP). */
void tbd_call_mapping(struct tbd_call *call);
/* special_calls.c (TBD_SYS_SPECIAL). */
void tbd_call_special(struct tbd_call *call);

#endif
