// SPDX-License-Identifier: MIT
/* syscalls.h - what each system call does to user memory, from one declarative table (syscalls.def)
 *
 * A row describes effects; recording, replay, printing and questions use the same row.  No state;
 * any context.  User memory is read only through tbd_copy_from_program() (program_bytes.h), which
 * survives bad pointers.
 *
 * Around a call:
 *
 *     n = tbd_syscall_may_write(&call, may, TBD_SYS_MAX_RANGES);   save old bytes of may[0..n)
 *     result = the call
 *     m = tbd_syscall_did_write(&call, result, may, n, did, TBD_SYS_MAX_RANGES);
 *
 * Ranges are upper bounds from untrusted arguments: parts may be unmapped or not writable, they may
 * overlap, and they may be huge (read(fd, p, SIZE_MAX) gives 2 GiB, the kernel's own limit).  The
 * caller clips them to what is mapped writable.
 */
#ifndef TBD_HOOKS_SYSCALLS_H
#define TBD_HOOKS_SYSCALLS_H

#include "base/linux.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who makes a call in play, and what replay does; syscalls.def says more about these and about the flags. */
enum tbd_sys_mode {
    TBD_SYS_EMULATE, /* made as it is; replay supplies result and writes */
    TBD_SYS_MAP, /* a function of its own; executed again in replay, at the recorded addresses */
    TBD_SYS_SPECIAL, /* a function of its own; replay supplies result and writes */
    TBD_SYS_REFUSED, /* -ENOSYS */
    TBD_SYS_UNKNOWN, /* no row, or effects that no row can state: writes are found by comparison */
};

/* For lists made of some rows: the rest of the arguments if the row's mode is MAP; if it has a
 * function of its own (OWN). */
#define TBD_SYS_IF_MAP(mode, ...) TBD_SYS_IF_MAP_##mode(__VA_ARGS__)
#define TBD_SYS_IF_MAP_EMULATE(...)
#define TBD_SYS_IF_MAP_MAP(...) __VA_ARGS__
#define TBD_SYS_IF_MAP_SPECIAL(...)
#define TBD_SYS_IF_MAP_REFUSED(...)
#define TBD_SYS_IF_MAP_UNKNOWN(...)
#define TBD_SYS_IF_OWN(mode, ...) TBD_SYS_IF_OWN_##mode(__VA_ARGS__)
#define TBD_SYS_IF_OWN_EMULATE(...)
#define TBD_SYS_IF_OWN_MAP(...)     __VA_ARGS__
#define TBD_SYS_IF_OWN_SPECIAL(...) __VA_ARGS__
#define TBD_SYS_IF_OWN_REFUSED(...)
#define TBD_SYS_IF_OWN_UNKNOWN(...)

/* Flags. */
#define TBD_SYS_BLOCKS   1u
#define TBD_SYS_YIELDS   2u
#define TBD_SYS_ASYNC    4u
#define TBD_SYS_OPENS    8u
#define TBD_SYS_WRITES   16u
#define TBD_SYS_VDSO     32u
#define TBD_SYS_STRICT   64u
#define TBD_SYS_CHANGES  128u
#define TBD_SYS_CONNECTS 256u

struct tbd_sys_call {
    uint64_t number;
    uint64_t args[6];
};

struct tbd_sys_range {
    uint64_t address;
    uint64_t bytes;
};

#define TBD_SYS_MAX_RANGES 1088 /* iovec limit of one call plus fixed ones */

/* One more than the highest number that has a row. */
#define TBD_SYS_COUNT 470u

/* The command in the second argument of a futex call: FUTEX_WAIT, ... */
static inline uint32_t tbd_sys_futex_command(uint64_t operation)
{
    return (uint32_t)operation & (uint32_t)FUTEX_CMD_MASK;
}

/* TBD_SYS_UNKNOWN for an unknown number. */
enum tbd_sys_mode tbd_syscall_mode(uint64_t number);
/* 0 for an unknown number. */
uint32_t tbd_syscall_flags(uint64_t number);
/* "read"; NULL for an unknown number. */
const char *tbd_syscall_name(uint64_t number);
/* The number of the call with this name (`bytes` long, not NUL-terminated); -1 if there is none. */
int64_t tbd_syscall_number(const char *name, size_t bytes);
/* Number of arguments, 0..6. */
unsigned tbd_syscall_arg_count(uint64_t number);

/* Is this argument a descriptor, or one or AT_FDCWD? */
bool tbd_syscall_is_descriptor(uint64_t number, unsigned arg);

/* Whether the ranges below are all that this very call may write.  False for unknown numbers and
 * for commands (ioctl, prctl, ...) whose effects the table does not state: may_write is then a
 * guess from the command's encoding, and comparison is the only proof. */
bool tbd_syscall_is_described(const struct tbd_sys_call *call);

/* Whether this very call may wait: its row says BLOCKS, and its command (futex, ioctl) can wait. */
bool tbd_syscall_may_wait(const struct tbd_sys_call *call);

/* Before the call: every range the kernel may write, as upper bounds (the old bytes there are
 * saved).  Returns the number stored in out[], at most `max`.  A return of exactly `max` means that
 * there may be more (recvmmsg with thousands of buffers): treat the call as not described. */
size_t tbd_syscall_may_write(const struct tbd_sys_call *call, struct tbd_sys_range *out,
                             size_t max);
/* After the call with `result` (rax): the ranges it did write, each inside one that may_write gave.
 * Reads lengths that the kernel left in memory (addrlen, msghdr, ...).  After -EFAULT, any part may
 * have been written: returns all of may[]. */
size_t tbd_syscall_did_write(const struct tbd_sys_call *call, int64_t result,
                             const struct tbd_sys_range *may, size_t may_count,
                             struct tbd_sys_range *out, size_t max);

/* All that a finished call may have written, as far as that follows from its arguments, of which bit i of `known` says that argument i
 * is known.  False: it may have written, mapped or unmapped anything.  Host only. */
bool tbd_syscall_bounds(const struct tbd_sys_call *call, unsigned known,
                        struct tbd_sys_range out[6], size_t *out_count);

/* The same for a call of which everything is known, its result too; pages that it has mapped anew or unmapped count as written.
 * Host only. */
bool tbd_syscall_changed(const struct tbd_sys_call *call, int64_t result,
                         struct tbd_sys_range out[6], size_t *out_count);

/* Reads `bytes` bytes at `address` of the program into `out`; false if it cannot. */
typedef bool (*tbd_syscall_reader)(void *context, uint64_t address, void *out, size_t bytes);

/* A line as strace would print it, NUL-terminated, cut at `size`: `read(3, 0x7ffe.., 4096) = 832`.
 * Strings and written data are shown as text if `reader` is not NULL.  Returns the length the
 * whole line has.  Host only (target tbd_syscalls), not in the engine. */
size_t tbd_syscall_print(const struct tbd_sys_call *call, int64_t result, tbd_syscall_reader reader,
                         void *context, char *buffer, size_t size);

#endif
