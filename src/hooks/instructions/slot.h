// SPDX-License-Identifier: MIT
/* slot.h - running one instruction of the program with its own registers
 *
 * The instruction is copied to a slot near its own address (so that rip-relative operands reach) and
 * executed with everything the program has in general registers, flags and vector registers.  What it does
 * to memory is found from its operands.  Context: APP; tbd_slot_owns() and _last_insn() SIG as well. */
#ifndef TBD_HOOKS_SLOT_H
#define TBD_HOOKS_SLOT_H

#include "hooks/memory/effects.h"
#include "patcher/thread.h"

#include <stdbool.h>

struct tbd_slot;
struct tbd_decoder_api;

/* BOOT: the decoder library's functions; where slots go, as a patcher's callback. */
void tbd_slot_init(const struct tbd_decoder_api *functions,
                   uint64_t (*reserve)(uint64_t lo, uint64_t hi, uint64_t bytes));

/* Slot that holds the instruction at regs.rip; NULL if it cannot be made.  `bytes` is its length. */
const struct tbd_slot *tbd_slot_get(struct tbd_thread *thread, uint32_t bytes);
/* The same for an instruction that raises a signal, of which `limit` bytes can be fetched. */
const struct tbd_slot *tbd_slot_get_raising(struct tbd_thread *thread, uint32_t limit);
/* Runs it; registers and flags are updated, rip is not.  A fault does not return. */
void tbd_slot_run(struct tbd_thread *thread, const struct tbd_slot *slot);
/* The same for a string instruction, once and without prefixes for segments and 32-bit addresses: on pointers that are
 * whole addresses. */
void tbd_slot_run_element(struct tbd_thread *thread, const struct tbd_slot *slot);
/* It can be run only where the gs base can be written without a system call. */
bool tbd_slot_uses_gs(const struct tbd_slot *slot);

/* Most that a scatter or masked store has. */
#define TBD_SLOT_MAX_RANGES 64u
enum tbd_slot_stores {
    TBD_SLOT_UNKNOWN, /* no memory operand that is understood */
    TBD_SLOT_UP_TO,   /* it writes at most the ranges */
    TBD_SLOT_EXACTLY, /* it writes all of the ranges (mask register known) */
};
/* Where the instruction writes: `count` ranges, 0 is possible. */
enum tbd_slot_stores tbd_slot_stores(const struct tbd_thread *thread, const struct tbd_slot *slot,
                                     struct tbd_sys_range *out, size_t *count);
/* Where its memory operand begins, if it is not addressed by a vector. */
uint64_t tbd_slot_operand(const struct tbd_thread *thread, const struct tbd_slot *slot);
/* What a gather or scatter accesses, in order: the element number `place` of vector register `data` each. */
struct tbd_slot_elements {
    size_t count;
    uint64_t address[TBD_SLOT_MAX_RANGES];
    uint8_t place[TBD_SLOT_MAX_RANGES];
    uint16_t bytes; /* of an element */
    uint8_t data;
    uint8_t mask; /* number of the mask register; 0 = none */
};
/* How many; 0 also if it is another instruction. */
size_t tbd_slot_elements(const struct tbd_thread *thread, const struct tbd_slot *slot,
                         struct tbd_slot_elements *out);
/* For string instructions: bytes of an element; 0 = not one that the engine knows. */
uint32_t tbd_slot_string_bytes(const struct tbd_slot *slot);
bool tbd_slot_reads_string(const struct tbd_slot *slot); /* movs: rsi is the source */

/* Repeated string loads: what they read and when they end; bytes = 0: it is none. */
struct tbd_string_loads {
    uint32_t bytes; /* of an element */
    bool from_rsi;
    bool from_rdi;
    bool while_equal; /* repe, repne; neither: until the count is 0 */
    bool until_equal;
};
struct tbd_string_loads tbd_slot_string_loads(const struct tbd_slot *slot);
/* What is added to rsi, after it was cut. */
uint64_t tbd_slot_source_base(const struct tbd_thread *thread, const struct tbd_slot *slot);
/* The bits of pointers and count that it uses. */
uint64_t tbd_slot_address_mask(const struct tbd_slot *slot);

/* thread->scratch: how much of a string instruction's count is held back while a piece of it runs. */
#define TBD_SLOT_REST 5

/* Their memory is not what it was (a forked child): they are made again. */
void tbd_slot_forget(void);

bool tbd_slot_owns(uint64_t pc);
/* Address of the program's instruction that lies there now; 0 if none. */
uint64_t tbd_slot_program_pc(uint64_t pc);
/* How far into its slot. */
uint32_t tbd_slot_offset(uint64_t pc);
/* Index of the last instruction of the block entered last: the one that a slot runs. */
uint32_t tbd_slot_last_insn(const struct tbd_thread *thread);

#endif
