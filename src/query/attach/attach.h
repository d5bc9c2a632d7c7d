// SPDX-License-Identifier: MIT
/* attach.h - the engine comes into a process that was not started under tbd arm
 *
 * One of its threads is borrowed by ptrace for some milliseconds; all others run on.  It maps the engine (tbd-replay, beside
 * this program) by system calls made in it, and calls the engine's boot function with mode=armed, which leaves
 * the keeper beside the process (docs/adr/018-a-keeper-beside-the-program.md).  No function of the program or of a library is called, so no lock
 * of theirs is needed.  Then the thread goes on at its instruction, with its registers and mask, or in its system call.
 *
 * Whatever is in the way is said before anything changes. */
#ifndef TBD_QUERY_ATTACH_H
#define TBD_QUERY_ATTACH_H

#include "query/text/query_error.h"

#include <sys/types.h>

/* After it the keeper listens, or begins to. */
bool tbd_attach_arm(pid_t pid, struct tbd_query_error *error);

/* The kernel does not let us attach to it, as Yama does not if it is no descendant of ours.  It is not stopped. */
bool tbd_attach_is_forbidden(pid_t pid);

/* It has Yama, where there is one, let `tracer` attach to it from now on, and no other (PR_SET_PTRACER). */
bool tbd_attach_name_tracer(pid_t pid, pid_t tracer, struct tbd_query_error *error);

#endif
