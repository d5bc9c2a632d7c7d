// SPDX-License-Identifier: MIT
/* why_inputs.h - the inputs from which an instruction made a value
 *
 * Looks at one decoded instruction and finds which of its operands the written value depends on. */
#ifndef TBD_QUERY_WHY_INPUTS_H
#define TBD_QUERY_WHY_INPUTS_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_WHY_INPUTS_MAX 6u

struct tbd_why_insn {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

enum tbd_why_place { TBD_WHY_REGISTER, TBD_WHY_MEMORY, TBD_WHY_FLAGS, TBD_WHY_CONSTANT };

struct tbd_why_input {
    enum tbd_why_place place;
    ZydisRegister reg;                  /* REGISTER: the whole one */
    ZydisRegister named;                /* as the instruction has it */
    const ZydisDecodedOperand *operand; /* MEMORY; borrowed from the instruction */
    uint32_t first, bytes;              /* REGISTER, MEMORY: these of its bytes */
    ZydisAccessedFlagsMask flags;       /* FLAGS */
    int64_t constant;
};

struct tbd_why_inputs {
    bool is_copy;  /* of inputs[0] */
    bool is_moved; /* not changed, though perhaps put together from several inputs: why_copies.h */
    size_t count;  /* 0: made here, of nothing that could be followed */
    struct tbd_why_input inputs[TBD_WHY_INPUTS_MAX];
};

/* The register that all parts of `reg` are in. */
ZydisRegister tbd_why_whole(ZydisRegister reg);
/* The first operand that is read from memory; NULL: none is. */
const ZydisDecodedOperand *tbd_why_memory_read(const struct tbd_why_insn *insn);
bool tbd_why_writes_register(const struct tbd_why_insn *insn, ZydisRegister whole);
bool tbd_why_writes_flags(const struct tbd_why_insn *insn, ZydisAccessedFlagsMask flags);
/* The inputs of the value that the instruction writes to `place` (a register: `reg`). */
struct tbd_why_inputs tbd_why_inputs_of(const struct tbd_why_insn *insn, enum tbd_why_place place,
                                        ZydisRegister reg);

#endif
