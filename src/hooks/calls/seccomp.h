// SPDX-License-Identifier: MIT
/* seccomp.h - the system call filters that the program sets for itself
 *
 * The kernel does not get these filters, because they would judge the engine's calls too.  The
 * engine keeps them, and judges each call of the program before it makes it.  When a thread leaves
 * the engine (it is let go, it executes a program, a filter kills it) the kernel gets the filters
 * first.
 *
 * Invariants
 * SECCOMP-1  A thread never runs natively without the filters that it has set. (not checked:
 *     programs with filters do, seccomp_*.c)
 * SECCOMP-2  Filters are kept only for threads that have given up new privileges: so the kernel
 *     accepts them later, whatever rights the thread has then. (not checked: programs with filters
 *     do, seccomp_*.c)
 * SECCOMP-3  A filter is never changed or taken away; threads and forked children share them. (not
 *     checked: programs with filters do, seccomp_*.c)
 *
 * Context: APP. */
#ifndef TBD_HOOKS_SECCOMP_H
#define TBD_HOOKS_SECCOMP_H

#include <stdbool.h>
#include <stdint.h>

#include "hooks/threads/seccomp_state.h"

struct tbd_call;
/* Natively the vDSO answers this call, and neither a filter nor a dispatch sees it. */
bool tbd_seccomp_is_no_call(const struct tbd_call *call);
/* SIGSYS comes after the call, with the registers from before the call.  `code`: SYS_...  Does not
 * return if no handler takes it. */
void tbd_seccomp_trap(struct tbd_call *call, int32_t code, uint32_t reason);
/* Judges a call.  True: the call is refused and finished.  May not return. */
bool tbd_seccomp_refuses(struct tbd_call *call);
/* True: the option is one of seccomp's, and the call is done. */
bool tbd_seccomp_answers_prctl(struct tbd_call *call);

/* Can a new program be recorded under these filters? */
bool tbd_seccomp_lets_record(const struct tbd_seccomp *state);
/* Copies the program's environment at `envp`, without this library, to the engine's memory.  0: it
 * cannot be read. */
uint64_t tbd_seccomp_environment(uint64_t envp);

#endif
