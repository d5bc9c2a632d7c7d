// SPDX-License-Identifier: MIT
/* own.h - native play: the program runs its own code, and stops where something must be recorded
 *
 *     program --> system call (user dispatch, jump)  --+
 *             --> int3 before a special instruction  --+-> stop (SIG): registers -> stopped (APP) -> run
 *             --> a fault of its own                 --+
 *
 * A stop counts as one block entry, of a block that has the stopping instruction alone: so the stream is that of a
 * program that only has such blocks, and time is the number of stops.  Windows end at a stop.  The blocks between
 * are found by a replay (replay/native/).
 *
 * What cannot be followed in this way is played translated from the next stop on, to the program's end
 * (own_translated.c): the rest of the trace is that of count=later.
 *
 * OWN-1  The program's code runs only after tbd_own_run(), with user dispatch on: every system call outside the
 *     engine stops. (not checked: a replay meets each call, test_native.py)
 *
 * Contexts: APP; _sigsafe SIG. */
#ifndef TBD_HOOKS_OWN_H
#define TBD_HOOKS_OWN_H

#include "hooks/stream/leaving.h"
#include "hooks/threads/signals.h"
#include "patcher/decode.h"

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

/* Can this kernel and processor do it?  NULL: yes; else why not, one clause.  Context: BOOT, before anything is
 * changed. */
const char *tbd_own_check(void);
/* What traced play does at these points. */
struct tbd_own_ways {
    void (*settle)(struct tbd_thread *thread); /* after every stop */
    void (*after_fault)(struct tbd_thread *thread);
};
/* BOOT, after the image was sent.  A computation is cut after `cut_ns` (0: as windows cost); `ways` is borrowed for ever. */
void tbd_own_begin(uint64_t cut_ns, const struct tbd_own_ways *ways);
/* FORK_CHILD, before it has an organizer.  False: its pages cannot be followed. */
bool tbd_own_prepare_child(void);
/* FORK_CHILD, after the image was sent: its code has its parent's traps. */
void tbd_own_begin_child(void);
/* FORK_CHILD: it is not recorded. */
void tbd_own_leave_child(void);
/* APP: a new thread in its first turn. */
_Noreturn void tbd_own_begin_thread(struct tbd_thread *thread);
/* Goes on with the program's code at thread->regs. */
_Noreturn void tbd_own_run(struct tbd_thread *thread);
/* As tbd_leaving_play; before, the program's code is made as it was, and the kernel makes its calls again. */
extern const struct tbd_leaving tbd_leaving_own;
/* The thread is about to execute the instruction again that it dies of: it is the program's.  False: no dump is left. */
bool tbd_own_dies(struct tbd_thread *thread);

/* Is the signal a stop?  True: the registers are in the thread block, and tbd_own_stopped() is to be called. */
bool tbd_own_stops_sigsafe(int signo, const uint8_t *info, struct tbd_ucontext *context,
                           uint64_t gs_base);
/* Is the program's own code interrupted there? */
bool tbd_own_has_sigsafe(uint64_t rip);
_Noreturn void tbd_own_stopped(struct tbd_thread *thread);

/* own_translated.c: from the next stop on the program's code is translated; `why` is borrowed. */
void tbd_own_translate_soon(const char *why);
/* It is wanted, and has not happened yet. */
bool tbd_own_translate_is_due(void);
bool tbd_own_is_translated(void);
/* APP, at a stop, or BOOT: it happens.  The window that begins at the next boundary is of translated code. */
void tbd_own_translate(struct tbd_thread *thread);
/* own_run.c: native play's means are given back; pages written so far are marked. */
void tbd_own_end(void);

/* own_syscalls.c: APP, at a system call.  `is_jump`: this place was dispatched before. */
void tbd_own_perform_call(struct tbd_thread *thread, bool is_jump);
/* own_syscalls.c: APP: one of 32-bit programs lets the program go. */
void tbd_own_leave_old_calls(struct tbd_thread *thread);

/* own_pushed.c: APP, at a fault that has no address: memory is as translated code would leave it. */
void tbd_own_push_of_fault(const struct tbd_regs *regs);

/* own_steps.c: APP, at a stop or a fault: a program whose trap flag is set is let go; `is_trap`: it has made a step. */
void tbd_own_leave_steps(struct tbd_thread *thread, bool is_trap);

/* own_sites.c: sets traps in the code of the range, and follows its pages: it `is_new`, or has another protection. */
void tbd_own_look(uint64_t start, uint64_t end, bool is_new);
/* own_sites.c: a private mapping shows what others write to its file. */
void tbd_own_leave_changing_file(void);
/* own_sites.c: is the result another one in another run? */
bool tbd_own_must_stop(const struct tbd_insn *insn);
/* own_sites.c: the instruction at the trap; bytes 0: it is none of those. */
enum tbd_special tbd_own_site(uint64_t pc, uint32_t *out_bytes);

#pragma GCC visibility pop

#endif
