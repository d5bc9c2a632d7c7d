// SPDX-License-Identifier: MIT
/* seccomp.h - filters that the program sets for its own system calls
 *
 * They are not given to the kernel, because they would judge the engine's calls too: the engine
 * keeps them, and judges each call of the program before it makes it.  When a thread leaves the
 * engine (it is let go, it executes a program, it dies of its filters) the kernel gets them first.
 *
 * Invariants
 * SECCOMP-1  A thread never runs natively without the filters that it has set.
 * SECCOMP-2  Filters are kept only of threads that have given up new privileges: so the kernel
 *     takes them whenever they are given to it, whatever became of the thread's rights meanwhile.
 * SECCOMP-3  A filter is never changed or taken away; threads and forked children share them.
 *
 * Context: APP. */
#ifndef TBD_HOOKS_SECCOMP_H
#define TBD_HOOKS_SECCOMP_H

#include <stdbool.h>
#include <stdint.h>

#include "hooks/threads/seccomp_state.h"

struct tbd_call;
/* Judges a call.  True: it is refused, and done with.  May not return. */
bool tbd_seccomp_refuses(struct tbd_call *call);

/* Would a new program under these filters be one that can be recorded? */
bool tbd_seccomp_lets_record(const struct tbd_seccomp *state);
/* The environment at `envp` (of the program) without this library, in the engine's memory; 0: it
 * cannot be read. */
uint64_t tbd_seccomp_environment(uint64_t envp);

#endif
