// SPDX-License-Identifier: MIT
/* insn.h - one instruction as equations between the values before and after it
 *
 * An instruction becomes a short list of operations over slots.  A slot is a value of 64 bits: a place
 * (register) as it was before or is after, a piece of memory that is read or written, a constant, or something in
 * between.  An operation says how its slots belong together; each can be solved for any of them (operations.c).
 * What is not described (instructions.def) makes what it writes unknown.
 *
 * Invariants: a slot that an instruction reads or writes of a narrower operand has known zeros above it.  A place
 * is written by one slot.  Addresses follow from places before the instruction alone. */
#ifndef TBD_REPLAY_SIMULATE_INSN_H
#define TBD_REPLAY_SIMULATE_INSN_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TBD_PLACE_FLAGS =
        16, /* status flags, at their bits of rflags; 0 to 15 are the general registers (TBD_RAX, ...) */
    TBD_PLACE_DF, /* the direction flag alone, 0 or 1 */
    TBD_PLACE_FS, /* segment bases */
    TBD_PLACE_GS,
    TBD_PLACE_VECTOR, /* lanes of 64 bits: 8 for each of 32 vector registers, the lowest first */
    TBD_PLACE_MASK = TBD_PLACE_VECTOR + 32 * 8, /* k0 to k7 */
    TBD_PLACE_COUNT = TBD_PLACE_MASK + 8,
};

enum {
    TBD_STATUS_FLAGS = 0x8d5,
    TBD_CF = 0x001,
    TBD_PF = 0x004,
    TBD_AF = 0x010,
    TBD_ZF = 0x040,
    TBD_SF = 0x080,
    TBD_OF = 0x800,
};

enum tbd_operation {
#define X(name, text) TBD_OP_##name,
#include "replay/simulate/operations.def"
#undef X
};

/* Which slots it joins, and what `width`, `aux`, `shift` and `mask` mean, is said in operations.def. */
struct tbd_insn_op {
    uint8_t code; /* enum tbd_operation */
    uint8_t width;
    uint8_t aux;
    uint8_t shift;
    uint8_t d, a, b, c, e;
    uint64_t mask;
};

struct tbd_insn_place {
    uint16_t place;
    uint8_t slot;
};

/* Up to 8 bytes of memory: what is read before, or written after. */
struct tbd_insn_memory {
    uint8_t address; /* slot */
    uint8_t data;    /* slot */
    uint8_t bytes;   /* 1 to 8 */
    uint8_t offset;  /* from the address */
    bool write;
    bool
        range; /* `count` elements of `bytes` from the address on: a repeated string instruction's */
    uint8_t count;
};

/* The place is renamed: its value is that of another place, or 0. */
struct tbd_insn_copy {
    uint16_t to;
    uint16_t from; /* TBD_PLACE_COUNT: zero */
};

struct tbd_insn_constant {
    uint64_t value;
    uint8_t slot;
};

enum {
    TBD_INSN_SLOTS = 128,
    TBD_INSN_OPS = 160,
    TBD_INSN_PLACES = 64,
    TBD_INSN_MEMORY = 24,
    TBD_INSN_COPIES = 256,
    TBD_INSN_NO_SLOT = 255,
};

enum tbd_sim_insn_kind {
    TBD_INSN_PLAIN,
    TBD_INSN_UNKNOWN, /* not in the table: what it writes is unknown after it */
    TBD_INSN_SYSCALL,
    TBD_INSN_RESTORE, /* loads vector and mask registers from memory: these are unknown after it */
    TBD_INSN_HAVOC,   /* after it nothing is known, of registers or of memory */
};

/* Made by tbd_insn_make(), freed with tbd_insn_free(). */
struct tbd_sim_insn {
    uint64_t address;
    uint64_t target; /* where a direct branch leads to; 0: not one */
    uint8_t length;
    uint8_t kind;     /* enum tbd_sim_insn_kind */
    bool barrier;     /* writes memory of which neither address nor length is known */
    bool conditional; /* a branch that may be taken or not */
    bool saves;       /* pushes or pops a register or a return address */
    uint8_t field;    /* a number of 1 to 63 for displacement and size of its memory; 0: none */
    bool indirect;    /* goes to what the slot `next` holds */
    bool
        repeats; /* a string instruction with a repeat prefix: it may be interrupted and run again */
    uint8_t
        next; /* slot: of the target, or whether a conditional branch is taken; or TBD_INSN_NO_SLOT */
    uint8_t slots;
    uint16_t mnemonic;
    uint16_t read_count, write_count, memory_count, copy_count, constant_count, op_count;
    struct tbd_insn_place *reads, *writes;
    struct tbd_insn_memory *memory;
    struct tbd_insn_copy *copies;
    struct tbd_insn_constant *constants;
    struct tbd_insn_op *ops;
};

/* Decodes the instruction in the first of `bytes` bytes at `code`, which lay at `address`.  TBD_CORRUPT: they are no
 * instruction that the decoder knows. */
enum tbd_status tbd_insn_make(uint64_t address, const uint8_t *code, size_t bytes,
                              struct tbd_sim_insn **out);
/* The system call rt_sigreturn there, which loads what a signal's frame has: general registers, flags and where it goes on. */
enum tbd_status tbd_insn_make_return(uint64_t address, struct tbd_sim_insn **out);
void tbd_insn_free(struct tbd_sim_insn *insn);

/* Can control go from the instruction to `next`? */
bool tbd_insn_leads_to(const struct tbd_sim_insn *insn, uint64_t next);

#endif
