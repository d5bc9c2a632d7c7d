// SPDX-License-Identifier: MIT
/* remote_thread.h - a thread of another process, borrowed by ptrace
 *
 * It makes system calls and calls a function, with all signals blocked but SIGTRAP, and then is as it was: a system call in which it waited goes
 * on waiting, also one that the kernel ends with EINTR after a stop. */
#ifndef TBD_QUERY_REMOTE_THREAD_H
#define TBD_QUERY_REMOTE_THREAD_H

#include "query/text/query_error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct tbd_remote {
    pid_t pid, tid;
    int memory;          /* /proc/PID/mem */
    uint64_t syscall_at; /* of an instruction `syscall` */
    uint64_t mask;
    uint64_t waits_in; /* before it was stopped: tbd_attach_waits_in() */
    struct user_regs_struct saved;
    void *vectors; /* kept by tbd_remote_keep_vectors(), NULL: they are not */
    size_t vector_bytes;
    int held; /* a signal that came meanwhile and cannot be blocked; 0 */
};

/* `tid` 0: the thread that minds least. */
bool tbd_remote_borrow(struct tbd_remote *remote, pid_t pid, pid_t tid,
                       struct tbd_query_error *error);
void tbd_remote_let_go(struct tbd_remote *remote);
#define TBD_REMOTE_VECTOR_BYTES 65536u
/* A stopped thread's vector state, in XSAVE's standard format; how many bytes, 0: errno says why. */
size_t tbd_remote_read_vectors(pid_t tid, void *out);
/* It gets its vector state back when it is let go. */
bool tbd_remote_keep_vectors(struct tbd_remote *remote, struct tbd_query_error *error);

/* A stopped thread: its call has ended with an EINTR that only the stop has made.  True: with these registers it makes the call again. */
bool tbd_remote_mend_call(pid_t pid, pid_t tid, struct user_regs_struct *regs);

/* Steps until it is outside of [start, end).  False: it does not come out. */
bool tbd_remote_step_out(struct tbd_remote *remote, uint64_t start, uint64_t end);

/* The result, -errno; -ESRCH: the process has ended. */
long tbd_remote_call_system(struct tbd_remote *remote, long number, const uint64_t *arguments);

/* Calls function(argument) on the stack below `stack`, and returns to `trap`, an int3.  False: it did not come back. */
bool tbd_remote_call(struct tbd_remote *remote, uint64_t function, uint64_t argument,
                     uint64_t stack, uint64_t trap, uint64_t *out_result);

bool tbd_remote_read(const struct tbd_remote *remote, uint64_t address, void *out, size_t count);
bool tbd_remote_write(struct tbd_remote *remote, uint64_t address, const void *bytes, size_t count);

#endif
