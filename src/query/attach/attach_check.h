// SPDX-License-Identifier: MIT
/* attach_check.h - why a process cannot be attached to, found out by reading only */
#ifndef TBD_QUERY_ATTACH_CHECK_H
#define TBD_QUERY_ATTACH_CHECK_H

#include "query/text/query_error.h"

#include <stdint.h>
#include <sys/types.h>

/* False: the error says why. */
bool tbd_attach_check(pid_t pid, struct tbd_query_error *error);

/* After PTRACE_SEIZE has failed with this errno. */
bool tbd_attach_refused(pid_t pid, int number, struct tbd_query_error *error);

/* Has it been armed before? */
bool tbd_attach_has_engine(pid_t pid);

/* Does another process have the same memory: a keeper, a child of vfork?  Only of the same program; false if the kernel does
 * not tell. */
bool tbd_attach_shares_memory(pid_t pid);

/* Where "[vdso]" is mapped; false: it is not. */
struct tbd_attach_range {
    uint64_t start, end;
};
bool tbd_attach_find_vdso(pid_t pid, struct tbd_attach_range *out);

#endif
