// SPDX-License-Identifier: MIT
/* seccomp_state.h - the system call filters that a thread has set, and how the kernel gets them
 * (hooks/calls/seccomp.h)
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
    uint32_t flags; /* the filter's SECCOMP_FILTER_FLAG_* */
    bool by_prctl;
};

/* The filters of one thread. */
struct tbd_seccomp {
    const struct tbd_seccomp_filter *newest; /* NULL: none */
    bool is_strict;
};

/* Gives the kernel the calling thread's filters: the last step before the thread leaves the engine.
 * Kills the thread if the kernel refuses a filter, so that it never runs unconfined. */
void tbd_seccomp_install(const struct tbd_seccomp *state);

/* Sets a filter natively, with prctl or with seccomp. */
long tbd_seccomp_set_natively(uint64_t flags, bool by_prctl, const void *fprog);
void tbd_seccomp_give_up_privileges(void);

#endif
