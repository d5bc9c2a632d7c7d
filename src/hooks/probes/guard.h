// SPDX-License-Identifier: MIT
/* guard.h - keeps the signal of a trap deliverable
 *
 * The kernel ends a program whose thread meets a trap while it blocks SIGTRAP.  So a session has guards on the
 * system calls with which the C library changes masks and handlers: they are made here, and SIGTRAP stays
 * out of every mask.  A handler that the program sets for SIGTRAP is kept for it, and told to it.
 * Contexts: keeper; SIG. */
#ifndef TBD_HOOKS_PROBES_GUARD_H
#define TBD_HOOKS_PROBES_GUARD_H

#include "hooks/probes/handlers.h"
#include "hooks/threads/sigframe.h"
#include "patcher/native_step.h"

/* The calling thread is at a system call.  False: it is none that concerns SIGTRAP. */
bool tbd_guard_call(const struct tbd_native_step *step, struct tbd_ucontext *context,
                    struct tbd_kernel_action *program_action);

/* Takes SIGTRAP out of the masks of handlers that the program has now. */
void tbd_guard_handlers(void);

#endif
