// SPDX-License-Identifier: MIT
/* register_moves.h - what a block makes of a call's operands, as far as its code alone tells
 *
 * A function that only passes a call on moves its operands, adds to them or gives numbers, and jumps.  Then what it hands over follows from
 * what it was given, and no replay is needed. */
#ifndef TBD_QUERY_REGISTER_MOVES_H
#define TBD_QUERY_REGISTER_MOVES_H

#include "format/window/blocks.h"
#include "replay/simulate/moved.h"

#define TBD_OPERAND_ARGS 6u

/* The stack pointer at a function's entry, and its arguments in the order of their registers. */
struct tbd_call_operands {
    uint64_t sp;
    uint64_t args[TBD_OPERAND_ARGS];
};

struct tbd_register_moves {
    bool is_known; /* all arguments follow, and the stack pointer is at the same return address */
    struct tbd_moved args[TBD_OPERAND_ARGS]; /* of registers (TBD_RDI, ...) at the block's start */
};

/* Reads the whole block, which ran to its end. */
void tbd_register_moves_of(const struct tbd_block *block, struct tbd_register_moves *out);
/* For moves that are known. */
void tbd_register_moves_apply(const struct tbd_register_moves *moves,
                              struct tbd_call_operands *operands);

#endif
