// SPDX-License-Identifier: MIT
/* seccomp_state.h - filters for system calls that a thread has set, and how the kernel gets them (hooks/calls/seccomp.h)
 *
 * Context: APP, FORK_CHILD, also without the turn lock. */
#ifndef TBD_HOOKS_SECCOMP_STATE_H
#define TBD_HOOKS_SECCOMP_STATE_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

struct tbd_seccomp_filter {
    const struct tbd_seccomp_filter *older;
    struct sock_filter *program;
    uint32_t count;
    uint32_t flags; /* SECCOMP_FILTER_FLAG_* that are its own */
    bool by_prctl;
};

/* A thread's own. */
struct tbd_seccomp {
    const struct tbd_seccomp_filter *newest; /* NULL: none */
    bool is_strict;
};

/* The kernel gets the calling thread's filters; the last that is done before it leaves the engine.
 * A thread that the kernel would leave unconfined is killed instead. */
void tbd_seccomp_install(const struct tbd_seccomp *state);

/* The system call, by the prctl or the seccomp way. */
long tbd_seccomp_set_natively(uint64_t flags, bool by_prctl, const void *fprog);
void tbd_seccomp_give_up_privileges(void);

#endif
