// SPDX-License-Identifier: MIT
/* own_jumps.h - native play: system calls that are made often enter the engine by a jump
 *
 *     mov $N, %eax; syscall      -->   jmp stub; syscall
 *     mov 8(%rsp), %r9; syscall  -->   jmp stub; syscall
 *     xor %eax, %eax; syscall    -->   jmp to padding near it, which becomes jmp stub; syscall
 *
 * User dispatch costs a signal for each call.  The instruction before a system call that has stopped a few times becomes
 * a jump to a stub, which has that instruction, and goes on to the engine.  The system call itself stays where it is: who
 * jumps there, or comes back there to make the call again, is dispatched.
 *
 * OWN_JUMPS-1  Only an instruction that is replaced whole, and neither reads its address nor stores, is replaced:
 *     no way of the program leads into the jump.  The same holds for padding between functions. (not checked: nearly all ways of decoding agree where it begins)
 *
 * Contexts: APP; _sigsafe SIG. */
#ifndef TBD_HOOKS_OWN_JUMPS_H
#define TBD_HOOKS_OWN_JUMPS_H

#include "patcher/thread.h"

#include <stdbool.h>

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

/* BOOT: reserves memory near the code that is mapped. */
void tbd_own_jumps_begin(void);
/* A system call of the program at `pc` was dispatched. */
void tbd_own_jumps_dispatched(uint64_t pc);
/* Is this a stub, or a jump to one?  The program's code is about to leave, or has just left, nothing of it is done. */
bool tbd_own_jumps_own_sigsafe(uint64_t rip);
/* The program steps through the stub, or its instruction faults there: it is put back for good.  Returns its address. */
uint64_t tbd_own_jumps_undo_sigsafe(uint64_t rip);
/* FORK_CHILD: the child's areas are empty. */
void tbd_own_jumps_renew(void);
/* The program's instructions are all back. */
void tbd_own_jumps_end(void);

#pragma GCC visibility pop

#endif
