// SPDX-License-Identifier: MIT
/* seccomp_bpf.h - programs of classic BPF that judge system calls: validated and run as the kernel
 * does
 *
 * No state; any context. */
#ifndef TBD_HOOKS_SECCOMP_BPF_H
#define TBD_HOOKS_SECCOMP_BPF_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Would the kernel accept it as a filter for system calls? */
bool tbd_bpf_is_valid(const struct sock_filter *program, size_t count);
/* Runs a valid program; returns its action (SECCOMP_RET_*) and data. */
uint32_t tbd_bpf_run(const struct sock_filter *program, const struct seccomp_data *data);

#endif
