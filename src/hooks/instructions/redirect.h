// SPDX-License-Identifier: MIT
/* redirect.h - running one instruction of the program on a copy of its memory operand
 *
 * A copy of the instruction has [rip + distance to a buffer] as its operand, and runs with all
 * registers of the program.  Context: APP; tbd_redirect_owns() SIG as well. */
#ifndef TBD_HOOKS_REDIRECT_H
#define TBD_HOOKS_REDIRECT_H

#include "patcher/decode.h"
#include "patcher/thread.h"

#include <stdbool.h>

/* Most bytes of an operand: of instructions in translated code; of any store (xsave). */
#define TBD_REDIRECT_MAX_BYTES   512u
#define TBD_REDIRECT_STORE_BYTES 4096u

struct tbd_redirected {
    uint64_t code;
    uint8_t *buffer; /* its address and the operand's are equal modulo 64 */
};

/* `reserve` gives memory for code and buffers, as the patcher's callback does.  Context: BOOT. */
void tbd_redirect_init(uint64_t (*reserve)(uint64_t lo, uint64_t hi, uint64_t bytes));

/* False: the instruction has no such operand, or there is no memory.  *out is valid until the next
 * call. */
bool tbd_redirect(const struct tbd_insn *insn, const uint8_t *bytes, uint64_t operand,
                  struct tbd_redirected *out);
/* Runs the copy; updates registers and flags, but not rip.  Does not return after a fault. */
void tbd_redirect_run(struct tbd_thread *thread, const struct tbd_redirected *redirected);
/* Forgets the code, which a forked child does not inherit. */
void tbd_redirect_forget(void);
bool tbd_redirect_owns(uint64_t pc);
/* The address of the program's instruction whose copy lies at `pc` now; 0: none. */
uint64_t tbd_redirect_program_pc(uint64_t pc);

#endif
