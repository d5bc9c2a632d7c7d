// SPDX-License-Identifier: MIT
/* userfault_calls.h - userfaultfd and its ioctls; the calls that name memory whose pages may be
 * missing (hooks/memory/userfault.h)
 *
 * Context: APP; tbd_userfault_forget_descriptors() FORK_CHILD. */
#ifndef TBD_HOOKS_USERFAULT_CALLS_H
#define TBD_HOOKS_USERFAULT_CALLS_H

#include "hooks/calls/call_run.h"

/* Does the call name memory that may be missing? */
bool tbd_userfault_has_pointer(const struct tbd_sys_call *sys);

/* userfaultfd itself, and ioctl on a descriptor of this process; false: it is another
 * descriptor. */
void tbd_call_userfault_open(struct tbd_call *call);
bool tbd_call_userfault_ioctl(struct tbd_call *call);

/* A forked child has other descriptors. */
void tbd_userfault_forget_descriptors(void);

#endif
