// SPDX-License-Identifier: MIT
/* branches.h - where translated code keeps the branch context of chosen functions (base/branching.h)
 *
 * Between blocks the value of the function that runs lies at BASE + (rsp mod 8 TiB): 8 bytes for each depth of each
 * stack, reserved, and made accessible at the first fault, 64 KiB at a time.  A function that has called another has
 * it where its rsp was before the call, which is where the return address is: the callee begins one word below, and
 * nobody else has this place until the call has returned.  So nothing is undone after longjmp and exceptions, and a
 * coroutine may move to another thread.
 *
 * While a block changes rsp, the value is in the thread block (struct tbd_thread, branch_value).
 *
 * Contexts: BOOT; _sigsafe SIG; the others any. */
#ifndef TBD_HOOKS_BRANCHES_H
#define TBD_HOOKS_BRANCHES_H

#include <stdbool.h>
#include <stdint.h>

/* False: the address space is taken or limited. */
bool tbd_branches_init(void);
bool tbd_branches_overlap(uint64_t start, uint64_t end);
/* Translated code has faulted at this address.  True: it was there, and can go on. */
bool tbd_branches_fault_sigsafe(uint64_t address);
/* A thread has been interrupted with the value in its thread block. */
void tbd_branches_put_down_sigsafe(uint64_t rsp, uint64_t value);

#endif
