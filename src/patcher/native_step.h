// SPDX-License-Identifier: MIT
/* native_step.h - one instruction of native code, carried out somewhere else
 *
 * For a place in the program's own code whose first byte has been replaced (native_patch.h).  What
 * depends on the address is emulated: branches, calls, returns.  Everything else is executed by a stub
 * that belongs to the place, is never changed, and serves all threads: it loads the program's registers
 * from a saved context, executes the instruction, and stores them back.  A rip-relative operand has its
 * address in a register that the instruction does not use.  The stub uses no thread pointer.
 *
 * Contexts: APP to make a step; any to carry one out. */
#ifndef TBD_PATCHER_NATIVE_STEP_H
#define TBD_PATCHER_NATIVE_STEP_H

#include "patcher/decode.h"
#include "patcher/emit.h"

/* The kernel's order of registers in a signal frame (asm/sigcontext.h). */
#define TBD_NATIVE_RIP    16u
#define TBD_NATIVE_RFLAGS 17u
#define TBD_NATIVE_WORDS  18u

/* The place of a register of the program (enum tbd_reg) in a saved context. */
uint32_t tbd_native_place(uint32_t reg);

enum tbd_native_step_kind {
    TBD_STEP_EXECUTE = 1, /* by the stub */
    TBD_STEP_NOTHING,
    TBD_STEP_JUMP,
    TBD_STEP_BRANCH,
    TBD_STEP_BRANCH_RCX,
    TBD_STEP_CALL,
    TBD_STEP_RETURN,
    TBD_STEP_SYSCALL, /* by the stub, as the last thing: the thread does not come back from it */
    TBD_STEP_XBEGIN,  /* the transaction aborts at once */
};

struct tbd_native_step {
    uint64_t pc;
    uint64_t next;
    uint64_t target; /* direct transfers */
    uint64_t stub;   /* address of the code; EXECUTE, SYSCALL */
    struct tbd_access access[TBD_INSN_MAX_ACCESSES];
    uint8_t access_count;
    uint8_t kind;       /* enum tbd_native_step_kind */
    uint8_t condition;  /* BRANCH: low bits of the opcode; BRANCH_RCX: the opcode, e0 to e3 */
    uint8_t target_reg; /* indirect: the register, TBD_NO_REG: memory, access[0] */
    bool is_direct;
    bool is_vector; /* needs the vector state, which the caller loads and saves */
    bool is_addr32; /* BRANCH_RCX counts in ecx */
    uint8_t first;  /* the byte that the trap replaced */
    uint8_t length;
    uint16_t pop_bytes;
};

enum tbd_step_refusal {
    TBD_STEP_OK,
    TBD_STEP_RAISES,      /* a signal */
    TBD_STEP_UNSUPPORTED, /* a far transfer, int 0x80, an indirect branch through fs or gs */
    TBD_STEP_NO_MEMORY,
};

#define TBD_STEP_STUB_BYTES 320u

/* Makes a step from a decoded instruction; its stub is written to `code`. */
enum tbd_step_refusal tbd_step_make(struct tbd_native_step *out, const struct tbd_insn *insn,
                                    struct tbd_emit *code);

/* The address of an access; the segment's base is not added. */
uint64_t tbd_step_address(const struct tbd_access *access, const uint64_t *context);

/* Carries out a step of any kind but SYSCALL on a saved context, rip too.  Its accesses must be
 * possible, the vector state be the program's if the step needs it. */
void tbd_step_run(const struct tbd_native_step *step, uint64_t *context);

/* SYSCALL: where the thread goes on. */
uint64_t tbd_step_syscall_entry(const struct tbd_native_step *step);

#endif
