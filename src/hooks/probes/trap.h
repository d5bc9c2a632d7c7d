// SPDX-License-Identifier: MIT
/* trap.h - a thread of the program has met a trap
 *
 * The handler of SIGTRAP runs the code of the place's probes, and then the instruction that the trap has
 * replaced, with all signals blocked: so a signal of the program comes before the place or after it, as
 * natively, and the place is the only address that a handler, an exception or a debugger sees.
 *
 * The handler is entered with the program's fs and gs, on its stack or its signal stack; it never writes
 * between rsp and rsp - 128.  A SIGTRAP that is none of ours goes to whom it went before.
 * Contexts: keeper to begin; SIG. */
#ifndef TBD_HOOKS_PROBES_TRAP_H
#define TBD_HOOKS_PROBES_TRAP_H

/* Becomes the handler of SIGTRAP.  The caller shares the program's table of handlers.  It stays: a thread
 * may have met a trap that has been taken away meanwhile, and its signal comes later. */
void tbd_trap_begin(void);

#endif
