// SPDX-License-Identifier: MIT
/* seccomp_bpf.h - programs of classic BPF that judge system calls, as the kernel
 * takes and runs them
 *
 * No state; any context. */
#ifndef TBD_HOOKS_SECCOMP_BPF_H
#define TBD_HOOKS_SECCOMP_BPF_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Would the kernel take it as a filter for system calls? */
bool tbd_bpf_is_valid(const struct sock_filter *program, size_t count);
/* What a valid one returns: an action (SECCOMP_RET_*) and its data. */
uint32_t tbd_bpf_run(const struct sock_filter *program, const struct seccomp_data *data);

#endif
