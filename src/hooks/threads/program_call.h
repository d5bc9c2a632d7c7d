// SPDX-License-Identifier: MIT
/* program_call.h - the program's system call, which a signal can still stop before the kernel
 * begins it
 *
 * Context: APP, also without the turn lock. */
#ifndef TBD_HOOKS_PROGRAM_CALL_H
#define TBD_HOOKS_PROGRAM_CALL_H

#include "hooks/table/syscalls.h"

/* Not a kernel result: the call was not made because a signal must be delivered first, or the thread is
 * wanted at a boundary. */
#define TBD_CALL_INTERRUPTED (-512)

struct tbd_signals;

/* `signals`: the thread's. */
int64_t tbd_program_syscall(const struct tbd_sys_call *call, const struct tbd_signals *signals);

#endif
