// SPDX-License-Identifier: MIT
/* attach_check.h - why a process cannot be attached to, found out by reading only */
#ifndef TBD_QUERY_ATTACH_CHECK_H
#define TBD_QUERY_ATTACH_CHECK_H

#include "query/text/query_error.h"

#include <stdint.h>
#include <sys/types.h>

/* False: the error says why. */
bool tbd_attach_check(pid_t pid, struct tbd_query_error *error);

/* After PTRACE_SEIZE has failed with this errno. */
bool tbd_attach_refused(pid_t pid, int number, struct tbd_query_error *error);

/* Has it been armed before? */
bool tbd_attach_has_engine(pid_t pid);

/* Does another process have the same memory: a keeper, a child of vfork?  Only of the same program; false if the kernel does
 * not tell. */
bool tbd_attach_shares_memory(pid_t pid);

/* Does it run under the engine now: recorded, or with rings?  The memory shared with the organizer tells. */
bool tbd_attach_has_stream(pid_t pid);

/* What the kernel says of a thread; sets of signals have bit signo - 1. */
struct tbd_attach_thread {
    uint64_t pending, shared_pending, blocked, caught;
    char state; /* 'X' if there is no such thread */
};
void tbd_attach_read_thread(pid_t pid, pid_t tid, struct tbd_attach_thread *out);

/* Which of the calls that restart_syscall resumes a thread waits in, by the name of its place in the kernel: SYS_futex, SYS_poll, or
 * SYS_nanosleep, which may be clock_nanosleep.  0: in none, or it is not known. */
uint64_t tbd_attach_waits_in(pid_t pid, pid_t tid);

/* Where "[vdso]" is mapped; false: it is not. */
struct tbd_attach_range {
    uint64_t start, end;
};
bool tbd_attach_find_vdso(pid_t pid, struct tbd_attach_range *out);
/* All of libtbd.so, which a program has that was started under tbd; false: it has none. */
bool tbd_attach_find_library(pid_t pid, struct tbd_attach_range *out);

#endif
