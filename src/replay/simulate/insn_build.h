// SPDX-License-Identifier: MIT
/* insn_build.h - an instruction being described: slots, operands, operations
 *
 * Forms (lower_*.c) use this to say what an instruction does.  What does not fit is remembered in `full`; the instruction
 * is then described as unknown. */
#ifndef TBD_REPLAY_SIMULATE_INSN_BUILD_H
#define TBD_REPLAY_SIMULATE_INSN_BUILD_H

#include "replay/simulate/insn.h"
#include "replay/simulate/pure.h"

#include <Zydis/Zydis.h>

struct tbd_build {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
    uint64_t address;
    struct tbd_sim_insn out; /* its arrays are those below */
    struct tbd_insn_place reads[TBD_INSN_PLACES], writes[TBD_INSN_PLACES];
    struct tbd_insn_memory memory[TBD_INSN_MEMORY];
    struct tbd_insn_copy copies[TBD_INSN_COPIES];
    struct tbd_insn_constant constants[TBD_INSN_PLACES];
    struct tbd_insn_op ops[TBD_INSN_OPS];
    uint8_t address_of
        [ZYDIS_MAX_OPERAND_COUNT]; /* 1 + the slot of a memory operand's address; 0: none yet */
    bool full;
};

uint8_t tbd_build_slot(struct tbd_build *b);
uint8_t tbd_build_constant(struct tbd_build *b, uint64_t value);
void tbd_build_op(struct tbd_build *b, struct tbd_insn_op op);
/* One of three slots; returns d. */
uint8_t tbd_build_binary(struct tbd_build *b, enum tbd_operation code, unsigned width, uint8_t x,
                         uint8_t y);
uint8_t tbd_build_field(struct tbd_build *b, uint8_t from, unsigned shift, unsigned width);
/* `into` with the low `width` bits of `bits` from bit `shift` on. */
uint8_t tbd_build_put(struct tbd_build *b, uint8_t into, unsigned shift, unsigned width,
                      uint8_t bits);
uint8_t tbd_build_pure(struct tbd_build *b, enum tbd_pure function, unsigned width,
                       const uint8_t in[3]);
/* d has the bits of `mask` of `from`. */
void tbd_build_link(struct tbd_build *b, uint8_t d, uint8_t from, uint64_t mask);

/* A place before the instruction, and after it: a slot written twice has the value written last. */
uint8_t tbd_build_read_place(struct tbd_build *b, unsigned place);
void tbd_build_write_place(struct tbd_build *b, unsigned place, uint8_t slot);
void tbd_build_copy(struct tbd_build *b, unsigned to, unsigned from);

/* A general register of any width, the value with zeros above it. */
uint8_t tbd_build_read_register(struct tbd_build *b, ZydisRegister reg);
void tbd_build_write_register(struct tbd_build *b, ZydisRegister reg, uint8_t slot);

/* Memory of up to 8 bytes at the slot `address` + offset. */
uint8_t tbd_build_load(struct tbd_build *b, uint8_t address, unsigned offset, unsigned bytes);
void tbd_build_store(struct tbd_build *b, uint8_t address, unsigned offset, unsigned bytes,
                     uint8_t slot);
/* The address of operand i; with `segment` its base is added. */
uint8_t tbd_build_address(struct tbd_build *b, unsigned i, bool segment);

/* Operand i of up to 64 bits: register, memory or immediate. */
unsigned tbd_build_width(const struct tbd_build *b, unsigned i);
uint8_t tbd_build_read(struct tbd_build *b, unsigned i);
void tbd_build_write(struct tbd_build *b, unsigned i, uint8_t slot);
bool tbd_build_is_register(const struct tbd_build *b, unsigned i);
bool tbd_build_same(const struct tbd_build *b, unsigned i, unsigned j);

/* The status flags after the instruction, to be set by an operation; those of `unchanged` are as before. */
uint8_t tbd_build_flags(struct tbd_build *b, uint64_t unchanged);

/* Makes all that the decoder says is written unknown. */
void tbd_build_unknown(struct tbd_build *b);

/* Describes the instruction by its row in instructions.def.  False: it has none, or not this shape. */
bool tbd_build_by_table(struct tbd_build *b);

#endif
