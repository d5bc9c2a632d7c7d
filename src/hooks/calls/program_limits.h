// SPDX-License-Identifier: MIT
/* program_limits.h - the program's limits of address space and data (RLIMIT_AS, RLIMIT_DATA), which count what is the
 * program's alone
 *
 * The kernel counts the engine's reservations too, which are larger than most limits: a program that limits itself
 * would have no memory from then on.  So the kernel's own limit stays as high as it may be, and the engine answers the
 * program's questions and refuses what would go beyond, by the rules of mm/mmap.c (may_expand_vm()).  A limit
 * that the engine may not raise stays the kernel's.
 *
 * Not refused: the growth of stacks.  Others see the kernel's limit (/proc/PID/limits). */
#ifndef TBD_HOOKS_PROGRAM_LIMITS_H
#define TBD_HOOKS_PROGRAM_LIMITS_H

#include "base/sys_limit.h"
#include "hooks/table/syscalls.h"

/* Raises the limits that the program was started with, before anything large is mapped.  Context: BOOT. */
void tbd_program_limits_begin(void);
/* The program runs untraced: its limits are the kernel's again.  Context: BOOT. */
void tbd_program_limits_give_back(void);

/* Is it a limit of this process that the engine answers for?  `pid` as for prlimit64. */
bool tbd_program_limits_answers(uint64_t pid, uint32_t resource);
/* The result of prlimit64; `set` may be NULL.  Context: APP. */
int64_t tbd_program_limits_exchange(uint32_t resource, const struct tbd_sys_limit *set,
                                    struct tbd_sys_limit *out_old);

/* Would this mmap, mremap, brk or mprotect go beyond a limit?  Context: APP. */
bool tbd_program_limits_refuse(const struct tbd_sys_call *sys);
/* The same for a new mapping of shared memory. */
bool tbd_program_limits_refuse_shared(uint64_t bytes);

/* The program that execve starts has its limits from the kernel, as has a child of vfork, which runs natively. */
void tbd_program_limits_before_exec(void);
/* It has failed. */
void tbd_program_limits_after_exec(void);

#endif
