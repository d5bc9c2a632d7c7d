// SPDX-License-Identifier: MIT
/* vsyscall.h - the three functions of the vsyscall page
 *
 * Old programs call them at fixed addresses.  The kernel's page has no code: a jump to one of the
 * addresses faults, and the kernel makes the call and returns from the function
 * (arch/x86/entry/vsyscall).  The engine does the same; in the trace it is a system call of a block
 * without instructions.  Context: APP. */
#ifndef TBD_HOOKS_VSYSCALL_H
#define TBD_HOOKS_VSYSCALL_H

#include "patcher/thread.h"

#include <stdbool.h>

#define TBD_VSYSCALL_PAGE 0xffffffffff600000ull

/* The number of the system call that the function at `address` makes; false: none is there. */
bool tbd_vsyscall_number(uint64_t address, uint64_t *out);
/* BOOT: this kernel has the page (some have none). */
void tbd_vsyscall_found(void);

/* Makes the call with the current registers, and adds `insn_bytes` to rip unless a signal came
 * first. */
typedef void (*tbd_vsyscall_make)(struct tbd_thread *thread, uint32_t insn_bytes);
/* Calls the function at regs.rip and returns from it to `caller`, the word at regs.rsp.  If a
 * signal comes first, all registers stay as they were. */
void tbd_vsyscall_run(struct tbd_thread *thread, uint64_t number, uint64_t caller,
                      tbd_vsyscall_make make);
/* Play: if regs.rip is a function of the page, calls it and returns true. */
bool tbd_vsyscall_perform(struct tbd_thread *thread);

#endif
