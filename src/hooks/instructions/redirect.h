// SPDX-License-Identifier: MIT
/* redirect.h - running one instruction of the program on a copy of its memory operand
 *
 * The instruction is written anew with [rip + distance to a buffer] in place of its
 * operand, and run with everything the program has in registers.  Context: APP;
 * tbd_redirect_owns() SIG as well. */
#ifndef TBD_HOOKS_REDIRECT_H
#define TBD_HOOKS_REDIRECT_H

#include "patcher/decode.h"
#include "patcher/thread.h"

#include <stdbool.h>

/* No operand of an instruction that translated code can have is longer; no store (xsave) at all. */
#define TBD_REDIRECT_MAX_BYTES   512u
#define TBD_REDIRECT_STORE_BYTES 4096u

struct tbd_redirected {
    uint64_t code;
    uint8_t *buffer; /* as far from a multiple of 64 as the operand */
};

/* BOOT: where code and buffers go, as a patcher's callback. */
void tbd_redirect_init(uint64_t (*reserve)(uint64_t lo, uint64_t hi, uint64_t bytes));

/* False: the instruction has no such operand, or there is no room.  Valid until the next call. */
bool tbd_redirect(const struct tbd_insn *insn, const uint8_t *bytes, uint64_t operand,
                  struct tbd_redirected *out);
/* Runs it; registers and flags are updated, rip is not.  A fault does not return. */
void tbd_redirect_run(struct tbd_thread *thread, const struct tbd_redirected *redirected);
/* The code is not there any more (a forked child). */
void tbd_redirect_forget(void);
bool tbd_redirect_owns(uint64_t pc);
/* The program's instruction that lies there now; 0 if none. */
uint64_t tbd_redirect_program_pc(uint64_t pc);

#endif
