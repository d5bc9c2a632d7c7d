/* syscalls.h - what each system call does to user memory, from one declarative table (syscalls.def)
 *
 * A row describes effects; recording, replay, printing and questions use the same row.  No state;
 * any context.  User memory is read only through tbd_copy_from_program() (hooks/safe_copy.h), which
 * survives bad pointers.
 */
#ifndef TBD_HOOKS_SYSCALLS_H
#define TBD_HOOKS_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tbd_sys_replay {
    TBD_SYS_EMULATE,  /* replay supplies result and writes */
    TBD_SYS_MAP,      /* changes mappings: executed again in replay, at the recorded addresses */
    TBD_SYS_SPECIAL,  /* hooks/syscall.c has a function of its own (exit, execve, clone, signals, fs base, ...) */
    TBD_SYS_UNKNOWN,  /* no row: writes are found by comparison */
};

struct tbd_sys_call {
    uint64_t number;
    uint64_t args[6];
};

struct tbd_sys_range {
    uint64_t address;
    uint64_t bytes;
};

#define TBD_SYS_MAX_RANGES 1088 /* iovec limit of one call plus fixed ones */

enum tbd_sys_replay tbd_syscall_replay(uint64_t number);
/* "read"; NULL for an unknown number. */
const char *tbd_syscall_name(uint64_t number);
/* Number of arguments, 0..6. */
unsigned tbd_syscall_arg_count(uint64_t number);

/* Before the call: every range the kernel may write, upper bounds (old bytes are saved from it).  Returns how many
 * were stored in out[]; never more than `max`. */
size_t tbd_syscall_may_write(const struct tbd_sys_call *call, struct tbd_sys_range *out, size_t max);
/* After the call with `result` (rax): the ranges it did write, each inside one that may_write gave.  Reads lengths
 * that the kernel left in memory (addrlen, msghdr, ...). */
size_t tbd_syscall_did_write(const struct tbd_sys_call *call, int64_t result,
                             const struct tbd_sys_range *may, size_t may_count,
                             struct tbd_sys_range *out, size_t max);

#endif
