// SPDX-License-Identifier: MIT
/* handlers.h - the program's signal handlers, while there are jumps
 *
 * A handler must not see that its signal came in the code of a jump (jump_settle.h).  So the kernel calls one of ours, which
 * goes on in the program's: that one has the stack and the registers that it would have had.  What the program reads
 * back through the C library (guard.h) is its own.  The same for faults that have no handler: the program shall
 * die at its own instruction.
 *
 * Contexts: keeper; SIG. */
#ifndef TBD_HOOKS_PROBES_HANDLERS_H
#define TBD_HOOKS_PROBES_HANDLERS_H

#include <stdint.h>

/* struct sigaction of the kernel */
struct tbd_kernel_action {
    uint64_t handler;
    uint64_t flags;
    uint64_t restorer;
    uint64_t mask;
};

/* Whose handlers; before there are guards. */
void tbd_handlers_prepare(uint32_t program);

/* From now on, and no more. */
void tbd_handlers_begin(void);
void tbd_handlers_end(void);

/* The program's rt_sigaction, with memory of ours; not of SIGTRAP.  0, or -errno. */
long tbd_handlers_change(uint64_t signal, const struct tbd_kernel_action *wanted,
                         struct tbd_kernel_action *old);

#endif
