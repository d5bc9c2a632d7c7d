// SPDX-License-Identifier: MIT
/* fork_calls.h - parts of clone, clone3, fork and vfork that all modes share
 *
 * Context: APP; the child's side is FORK_CHILD. */
#ifndef TBD_HOOKS_FORK_CALLS_H
#define TBD_HOOKS_FORK_CALLS_H

#include "hooks/calls/call_families.h"

#define TBD_CLONE_WORDS 11 /* of struct clone_args */

/* Builds the call that the engine makes; `block`: TBD_CLONE_WORDS for clone3.  Its differences from the
 * program's: parent and child keep the engine's stack (the child's registers get the program's stack
 * argument); the child keeps the engine's handlers (the engine clears the program's); vfork becomes the
 * equivalent clone.  False: the program's arguments cannot be read. */
bool tbd_fork_engine_call(const struct tbd_call *call, const struct tbd_clone *arguments,
                          struct tbd_sys_call *out, uint64_t *block);
/* The error with which every kernel refuses the request, or 0; of kernels that know more fields of
 * clone3, what one without them says. */
int64_t tbd_fork_refuses(const struct tbd_call *call, const struct tbd_clone *arguments);
/* No signal may come between the two processes: in a child of vfork a handler would write the
 * engine's state, and any other child has no stream until one is made.  `mask`: the mask to
 * restore.  False: a signal came before. */
bool tbd_fork_block_signals(bool shares_memory, uint64_t *mask);

/* The registers of a child, or of a thread, from those of its parent at the system call. */
void tbd_fork_child_registers(struct tbd_regs *regs, const struct tbd_clone *arguments,
                              uint32_t insn_bytes);
/* The new process goes on after the system call: recorded, or natively.  It has its own copy of the
 * thread block, unless it shares the parent's memory; then the parent sleeps until the child is
 * gone and finds its own registers changed, so the caller keeps a copy.  This is a function of its
 * own so that the parent's frame is not touched. */
_Noreturn __attribute__((noinline)) void
tbd_fork_become_child(struct tbd_call *call, const struct tbd_clone *arguments, uint64_t mask);

#endif
