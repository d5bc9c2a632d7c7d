// SPDX-License-Identifier: MIT
/* native.h - one thread leaves the engine for good: its registers, signals and gs base are the program's again
 *
 * Context: APP, also without the turn lock; FORK_CHILD. */
#ifndef TBD_HOOKS_NATIVE_H
#define TBD_HOOKS_NATIVE_H

#include "hooks/threads/threads.h"

/* The program was let go: a thread that waited goes on at its saved registers. */
_Noreturn void tbd_threads_leave(struct tbd_saved_context *saved);
/* Lets the running thread go on at thread->regs without a message, after END was sent.  Other
 * threads stay where they are. */
_Noreturn void tbd_detach_silently(struct tbd_thread *thread);
/* The same in a forked child (`shares_memory`: vfork; `clears_handlers`: CLONE_CLEAR_SIGHAND). */
_Noreturn void tbd_detach_child(struct tbd_thread *thread, bool shares_memory,
                                bool clears_handlers);

#endif
