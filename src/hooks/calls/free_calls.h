// SPDX-License-Identifier: MIT
/* free_calls.h - the program's system calls in free run: the kernel's own, made by each thread for itself
 *
 * The engine takes part only where its own state is concerned: what is mapped, signals, processes and
 * threads that begin and end, filters.  Nothing is recorded.  Context: APP, without the engine lock. */
#ifndef TBD_HOOKS_FREE_CALLS_H
#define TBD_HOOKS_FREE_CALLS_H

#include "hooks/calls/call_run.h"

/* Performs a whole system call.  The caller delivers signals afterwards. */
void tbd_free_syscall(struct tbd_thread *thread, uint32_t insn_bytes);

/* free_fork.c: clone, clone3, fork, vfork; exit of one thread. */
void tbd_free_fork(struct tbd_call *call);
void tbd_free_exit(struct tbd_call *call);
/* For struct tbd_call_policy. */
__attribute__((visibility("hidden"))) void tbd_free_thread_killed(struct tbd_call *call);

#endif
