// SPDX-License-Identifier: MIT
/* trap.h - a thread of the program has met a trap
 *
 * The handler of SIGTRAP runs the code of the place's probes, and then the instruction that the trap has
 * replaced, with all signals blocked: so a signal of the program comes before the place or after it, as
 * natively, and the place is the only address that a handler, an exception or a debugger sees.  One signal is not
 * blocked, which would end the program, or is ignored: by that hole in its mask a thread in the handler is known.
 *
 * The handler is entered with the program's fs and gs, on its stack or its signal stack; it never writes
 * between rsp and rsp - 128.  A SIGTRAP that is none of ours goes to whom it went before.
 * Contexts: keeper to begin; SIG. */
#ifndef TBD_HOOKS_PROBES_TRAP_H
#define TBD_HOOKS_PROBES_TRAP_H

#include "hooks/probes/probe_table.h"
#include "hooks/threads/sigframe.h"

/* Counts a hit, and runs the code of all uses.  `registers`: in the kernel's order, TBD_NATIVE_WORDS. */
void tbd_probe_report(struct tbd_probe *probe, const uint64_t *registers);

/* The instruction is carried out on the context, which is at it. */
void tbd_trap_run_instruction(const struct tbd_native_step *step, struct tbd_ucontext *context);

/* Becomes the handler of SIGTRAP.  The caller shares the program's table of handlers.  It stays: a thread
 * may have met a trap that has been taken away meanwhile, and its signal comes later. */
void tbd_trap_begin(void);
/* SIGTRAP goes to whom it went before, if nobody has changed that.  No thread is in a probe any more. */
void tbd_trap_end(void);

/* Is it the mask of a thread in the handler, as the kernel shows it?  Where the program handles each signal that could be the
 * one that is not blocked there, it is not to be told from the program's. */
bool tbd_trap_is_handler_mask(uint64_t mask);
/* The program is about to handle this signal, or has begun to: it must not come in the handler. */
void tbd_trap_block(int signal);

#endif
