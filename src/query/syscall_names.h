// SPDX-License-Identifier: MIT
/* syscall_names.h - names of system calls, from the kernel's own header at build time */
#ifndef TBD_QUERY_SYSCALL_NAMES_H
#define TBD_QUERY_SYSCALL_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* "read"; NULL for an unknown number. */
const char *tbd_syscall_number_name(uint64_t number);
/* Number of the call named `name` (not NUL-terminated); -1 if there is none. */
int64_t tbd_syscall_name_number(const char *name, size_t bytes);

#endif
