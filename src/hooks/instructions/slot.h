// SPDX-License-Identifier: MIT
/* slot.h - running one instruction of the program with its own registers
 *
 * The instruction is copied to a slot near its own address (within reach of rip-relative operands)
 * and executed with the program's general registers, flags and vector registers.  Its stores are
 * found from its operands.  Context: APP; tbd_slot_owns() and _last_insn() SIG as well. */
#ifndef TBD_HOOKS_SLOT_H
#define TBD_HOOKS_SLOT_H

#include "hooks/memory/effects.h"
#include "patcher/thread.h"

#include <stdbool.h>

struct tbd_slot;
struct tbd_decoder_api;

/* Sets the decoder library's functions; `reserve` gives memory for slots, as the patcher's callback
 * does.  Context: BOOT. */
void tbd_slot_init(const struct tbd_decoder_api *functions,
                   uint64_t (*reserve)(uint64_t lo, uint64_t hi, uint64_t bytes));

/* The slot for the instruction at regs.rip, of `bytes` bytes; NULL if it cannot be made. */
const struct tbd_slot *tbd_slot_get(struct tbd_thread *thread, uint32_t bytes);
/* The same for an instruction that raises a signal, of which `limit` bytes can be fetched.  NULL:
 * it is not known what the bytes do, or, *out_lacks_bytes, these are not all of it. */
const struct tbd_slot *tbd_slot_get_raising(struct tbd_thread *thread, uint32_t limit,
                                            bool *out_lacks_bytes);
enum tbd_slot_fault { TBD_SLOT_INVALID, TBD_SLOT_PROTECTION };
/* Slot that raises SIGILL or SIGSEGV at regs.rip, as an invalid or a forbidden instruction does. */
const struct tbd_slot *tbd_slot_get_fault(const struct tbd_thread *thread,
                                          enum tbd_slot_fault fault);
/* Runs it; updates registers and flags, but not rip.  Does not return after a fault. */
void tbd_slot_run(struct tbd_thread *thread, const struct tbd_slot *slot);
/* Runs one element of a string instruction, without prefixes for segments and 32-bit addresses: its
 * pointers are full addresses. */
void tbd_slot_run_element(struct tbd_thread *thread, const struct tbd_slot *slot);
/* Does it use gs?  Such an instruction can be run only with fsgsbase. */
bool tbd_slot_uses_gs(const struct tbd_slot *slot);

/* Most ranges of a scatter or masked store. */
#define TBD_SLOT_MAX_RANGES 64u
enum tbd_slot_stores {
    TBD_SLOT_UNKNOWN, /* the engine does not know its memory operand */
    TBD_SLOT_UP_TO,   /* it writes at most the ranges */
    TBD_SLOT_EXACTLY, /* it writes all of the ranges (mask register known) */
};
/* The ranges that the instruction writes: `count`, which may be 0. */
enum tbd_slot_stores tbd_slot_stores(const struct tbd_thread *thread, const struct tbd_slot *slot,
                                     struct tbd_sys_range *out, size_t *count);
/* The address of its memory operand, if it has no vector index. */
uint64_t tbd_slot_operand(const struct tbd_thread *thread, const struct tbd_slot *slot);
/* The accesses of a gather or scatter, in order: address i is for element place[i] of vector
 * register `data`. */
struct tbd_slot_elements {
    size_t count;
    uint64_t address[TBD_SLOT_MAX_RANGES];
    uint8_t place[TBD_SLOT_MAX_RANGES];
    uint16_t bytes; /* of an element */
    uint8_t data;
    uint8_t mask; /* number of the mask register; 0 = none */
};
/* The number of elements; also 0 for another instruction. */
size_t tbd_slot_elements(const struct tbd_thread *thread, const struct tbd_slot *slot,
                         struct tbd_slot_elements *out);
#define TBD_SLOT_NO_TILE        255u
#define TBD_SLOT_TILE_ROWS      16u
#define TBD_SLOT_TILE_ROW_BYTES 64u
/* The number of the tile that the instruction loads or stores; TBD_SLOT_NO_TILE: another instruction. */
uint8_t tbd_slot_tile(const struct tbd_slot *slot);
/* The rows of it in memory, in order, from row *out_first on: a fault may have ended the instruction before it.  0: it has
 * none, the instruction will raise SIGILL. */
size_t tbd_slot_tile_rows(const struct tbd_thread *thread, const struct tbd_slot *slot,
                          struct tbd_sys_range out[TBD_SLOT_TILE_ROWS], uint8_t *out_first);
/* Bytes of a string instruction's element; 0: another instruction, or an unknown one. */
uint32_t tbd_slot_string_bytes(const struct tbd_slot *slot);
bool tbd_slot_reads_string(const struct tbd_slot *slot); /* movs: rsi is the source */

/* A repeated string load: its operands, and its condition; bytes = 0: another instruction. */
struct tbd_string_loads {
    uint32_t bytes; /* of an element */
    bool from_rsi;
    bool from_rdi;
    bool while_equal; /* repe, repne; neither: until the count is 0 */
    bool until_equal;
};
struct tbd_string_loads tbd_slot_string_loads(const struct tbd_slot *slot);
/* The base of the source's segment, which is added to rsi (after rsi was cut to 32 bits by an
 * address-size prefix). */
uint64_t tbd_slot_source_base(const struct tbd_thread *thread, const struct tbd_slot *slot);
/* The bits of pointers and count that the instruction uses. */
uint64_t tbd_slot_address_mask(const struct tbd_slot *slot);

/* Index in thread->scratch: the part of a string instruction's count that is not in rcx while a
 * piece of it runs. */
#define TBD_SLOT_REST 3

/* Forgets all slots, whose memory a forked child does not inherit. */
void tbd_slot_forget(void);

bool tbd_slot_owns(uint64_t pc);
/* The address of the program's instruction whose slot contains `pc` now; 0: none. */
uint64_t tbd_slot_program_pc(uint64_t pc);
/* The offset of `pc` in its slot. */
uint32_t tbd_slot_offset(uint64_t pc);
/* The index of the last instruction of the block entered last: the one that a slot runs. */
uint32_t tbd_slot_last_insn(const struct tbd_thread *thread);

#endif
