// SPDX-License-Identifier: MIT
/* sys_table.h - the rows of syscalls.def as the code sees them
 *
 * Private to syscalls.c (the rows), sys_effects.c (the rules), sys_print.c and the sys_<family>.c
 * files, which have what no rule can state.  All of it is constant data without relocations at run
 * time.
 */
#ifndef TBD_HOOKS_SYS_TABLE_H
#define TBD_HOOKS_SYS_TABLE_H

#include "hooks/table/syscalls.h"

/* How an argument is shown. */
enum tbd_sys_show {
    TBD_SHOW_NONE = 0, /* there is no such argument */
    TBD_SHOW_INT,      /* signed 32 bits */
    TBD_SHOW_FD,       /* a descriptor */
    TBD_SHOW_UINT,     /* unsigned 32 bits */
    TBD_SHOW_LONG,     /* signed 64 bits */
    TBD_SHOW_ULONG,    /* unsigned 64 bits */
    TBD_SHOW_HEX,
    TBD_SHOW_PTR,
    TBD_SHOW_STR,     /* NUL-terminated string that the kernel reads */
    TBD_SHOW_DATA,    /* bytes that the kernel reads; their number is argument `length` */
    TBD_SHOW_IOVEC,   /* struct iovec[argument `length`] of memory that the kernel reads */
    TBD_SHOW_MASK,    /* signals blocked while the call waits */
    TBD_SHOW_MASK_IN, /* a pointer to such a mask and its size */
    TBD_SHOW_OUT,     /* memory that the kernel writes, as `effect` says */
    TBD_SHOW_MODE,    /* octal */
    TBD_SHOW_SIGNAL,
    TBD_SHOW_ATFD,  /* descriptor or AT_FDCWD */
    TBD_SHOW_FLAGS, /* `set` says which: enum tbd_sys_set */
};

/* Names for numbers; the sets are in sys_print.c. */
enum tbd_sys_set {
    TBD_SET_OPEN = 1,
    TBD_SET_PROT,
    TBD_SET_MAP,
    TBD_SET_AT,
    TBD_SET_WHENCE,
    TBD_SET_CLOCK,
    TBD_SET_FUTEX,
    TBD_SET_HOW,
    TBD_SET_IOCTL,
    TBD_SET_FCNTL,
    TBD_SET_ADVICE,
    TBD_SET_FAMILY,
    TBD_SET_SOCKTYPE,
    TBD_SET_CLONE,
    TBD_SET_ACCESS,
    TBD_SET_PRCTL,
    TBD_SET_ARCH,
    TBD_SET_EPOLL_OP,
    TBD_SET_RESOURCE,
    TBD_SET_WAIT,
    TBD_SET_MSG,
    TBD_SET_COUNT
};

/* Which bytes at the pointer the kernel writes. */
enum tbd_sys_effect {
    TBD_EFFECT_NONE = 0,
    TBD_EFFECT_FIXED,  /* `unit` bytes */
    TBD_EFFECT_ARRAY,  /* argument `length` times `unit` bytes, all of them */
    TBD_EFFECT_RESULT, /* up to argument `length` times `unit` bytes; result times `unit` written */
    TBD_EFFECT_LENGTH, /* argument `length` points to a uint32_t: capacity before, length after */
    TBD_EFFECT_FD_SET, /* a bit per descriptor below argument `length`, in 8-byte words */
    TBD_EFFECT_IOVEC, /* struct iovec[argument `length`]; result bytes written over them in order */
    TBD_EFFECT_OTHER, /* `unit` is an enum tbd_sys_other: a function in sys_<family>.c */
};

enum tbd_sys_when {
    TBD_WHEN_SUCCESS,  /* result >= 0 */
    TBD_WHEN_POSITIVE, /* result > 0 */
    TBD_WHEN_EINTR,    /* only when a signal interrupted it (remaining times) */
    TBD_WHEN_RESULT_OR_EINTR,
    TBD_WHEN_ALWAYS, /* after all failures, too */
};

/* The C type of a length argument: the kernel ignores the upper half of the narrow ones. */
enum tbd_sys_width {
    TBD_WIDTH_64,
    TBD_WIDTH_U32,
    TBD_WIDTH_I32, /* negative: nothing is written */
};

struct tbd_sys_arg {
    uint8_t show;   /* enum tbd_sys_show */
    uint8_t set;    /* enum tbd_sys_set */
    uint8_t effect; /* enum tbd_sys_effect */
    uint8_t when;   /* enum tbd_sys_when */
    uint8_t length; /* number of the argument that `effect` or `show` refers to */
    uint8_t width;  /* enum tbd_sys_width of that argument */
    uint16_t unit;  /* bytes, or enum tbd_sys_other */
};
_Static_assert(sizeof(struct tbd_sys_arg) == 8, "470 rows of six");

struct tbd_sys_row {
    const char *name; /* NULL: no such call */
    uint8_t mode;     /* enum tbd_sys_mode */
    uint16_t flags;   /* TBD_SYS_BLOCKS, ... */
    struct tbd_sys_arg args[6];
};

/* NULL for an unknown number. */
const struct tbd_sys_row *tbd_sys_row(uint64_t number);

/* Effects that no rule states.  X(name): function tbd_effect_<name>(). */
// clang-format off
#define TBD_SYS_OTHERS(X) \
    X(ioctl) X(fcntl) X(prctl) X(arch_prctl) X(futex) X(recvmsg) X(recvmmsg) X(sendmmsg) X(semctl) \
    X(shmctl) X(msgctl) X(msgrcv) X(sysfs) X(quotactl) X(quotactl_fd) X(keyctl) X(ptrace) X(clone) \
    X(clone3) X(capget) X(name_to_handle_at) X(get_mempolicy) \
    X(mincore) X(seccomp) X(statmount) X(lsm_get_self_attr) X(lsm_list_modules) X(getxattrat) \
    X(process_vm_writev) X(perf_event_open) X(setsockopt) X(getsockopt) X(syslog) X(vmsplice) \
    X(sched_setattr)
// clang-format on

enum tbd_sys_other {
#define X(name) TBD_OTHER_##name,
    TBD_SYS_OTHERS(X)
#undef X
        TBD_OTHER_COUNT
};

/* Receives effects; one description serves both questions.  A function says for each place "at most
 * `capacity` bytes, and after the call `written` of them"; the sink keeps the one that was asked
 * for. */
struct tbd_sys_sink {
    const struct tbd_sys_call *call;
    bool after;                      /* did_write: `result`, `may` are valid */
    bool described;                  /* cleared by tbd_sys_not_described() */
    bool cannot_wait;                /* set by tbd_sys_cannot_wait() */
    bool lost;                       /* after the call: a place was not among `may` */
    int64_t result;                  /* before: 0 */
    const struct tbd_sys_range *may; /* borrowed for the call */
    size_t may_count;
    struct tbd_sys_range *out; /* borrowed for the call */
    size_t max;
    size_t count;
};

/* The kernel may write `capacity` bytes at `address`; `written` of them if the sink is `after`. */
void tbd_sys_emit(struct tbd_sys_sink *sink, uint64_t address, uint64_t capacity, uint64_t written);
/* Likewise: all of `bytes`, if the call succeeded. */
void tbd_sys_emit_success(struct tbd_sys_sink *sink, uint64_t address, uint64_t bytes);
/* Likewise: all of `bytes`, whatever the result. */
void tbd_sys_emit_always(struct tbd_sys_sink *sink, uint64_t address, uint64_t bytes);
/* The kernel may write `capacity` bytes; a positive result times `unit` were written. */
void tbd_sys_emit_result(struct tbd_sys_sink *sink, uint64_t address, uint64_t capacity,
                         uint64_t unit);
/* `total` bytes spread over struct iovec[count] at `array`. */
void tbd_sys_emit_iovec(struct tbd_sys_sink *sink, uint64_t array, uint64_t count, uint64_t total);
/* This command's effects are not known (ioctl, prctl, ...). */
void tbd_sys_not_described(struct tbd_sys_sink *sink);
/* The call may wait, but this command of it does not. */
void tbd_sys_cannot_wait(struct tbd_sys_sink *sink);

/* Values in program memory; 0 where it cannot be read. */
uint32_t tbd_sys_u32(uint64_t address);
uint64_t tbd_sys_u64(uint64_t address);

static inline bool tbd_sys_succeeded(const struct tbd_sys_sink *sink)
{
    return sink->result >= 0;
}

#define X(name) void tbd_effect_##name(struct tbd_sys_sink *sink, const uint64_t *args);
TBD_SYS_OTHERS(X)
#undef X

#endif
