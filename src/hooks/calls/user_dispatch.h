// SPDX-License-Identifier: MIT
/* user_dispatch.h - system calls that the program has the kernel hand back to it as SIGSYS
 * (PR_SET_SYSCALL_USER_DISPATCH)
 *
 * The kernel would hand back the engine's own calls, too: the engine does it in the kernel's place.
 * Context: APP. */
#ifndef TBD_HOOKS_USER_DISPATCH_H
#define TBD_HOOKS_USER_DISPATCH_H

#include "hooks/calls/call_run.h"

/* Before any filter looks at the call.  True: it is not made, and the rest is done. */
bool tbd_user_dispatch_takes(struct tbd_call *call);
/* prctl(PR_SET_SYSCALL_USER_DISPATCH). */
void tbd_user_dispatch_set(struct tbd_call *call);

#endif
