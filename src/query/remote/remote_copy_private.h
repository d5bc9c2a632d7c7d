// SPDX-License-Identifier: MIT
/* remote_copy_private.h - what remote_copy.c and remote_copy_calls.c share */
#ifndef TBD_QUERY_REMOTE_COPY_PRIVATE_H
#define TBD_QUERY_REMOTE_COPY_PRIVATE_H

#include "query/remote/remote_copy.h"

#include "base/address_table.h"

#include <sys/types.h>
#include <sys/user.h>

struct tbd_copy {
    const struct tbd_copy_owner *owner; /* borrowed */
    const struct tbd_region *regions; /* borrowed from the trace: what is mapped at the position */
    size_t region_count;
    struct tbd_address_table pieces; /* of regions, that are in the process */
    pid_t pid;                       /* 0: it has ended */
    int memory;                      /* /proc/PID/mem */
    struct user_regs_struct regs;    /* the program's, while it stands */
    struct tbd_reg_state state;      /* the same, as the trace has them */
};

/* Makes the system call in the process, with no effect on its registers; the result, or -errno. */
long tbd_copy_call(struct tbd_copy *copy, long number, const uint64_t arguments[6]);
/* Takes all memory of the trace in this range into the process.  False: it is too much, or there is none. */
TBD_MUST_CHECK bool tbd_copy_take(struct tbd_copy *copy, uint64_t address, uint64_t bytes);

/* Carries out the system call that regs.orig_rax names, and sets regs.rax.  0, or the signal that the program would get: SIGKILL: it
 * would end, or wait for ever. */
int tbd_copy_carry_out(struct tbd_copy *copy);

#endif
