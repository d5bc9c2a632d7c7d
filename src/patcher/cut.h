// SPDX-License-Identifier: MIT
/* cut.h - cuts a block: its instructions, its definition, its record
 *
 * A block is a pure function of its start address, its bytes, which bytes are executable, which may
 * change, and the hook set.  It ends with the first instruction that transfers control or that the
 * engine executes, before the first one that cannot be executed, and at the instruction limit.  In
 * memory that is both writable and executable it also ends after every store: the check at the next
 * block's entry then sees what the store changed.
 *
 * The record's layout follows from the ops.  A store's address is not recorded if it is a constant,
 * or if it differs by a constant from a value in the record (CUT-1). */
#ifndef TBD_PATCHER_CUT_H
#define TBD_PATCHER_CUT_H

#include "patcher/decode.h"
#include "patcher/patcher.h"
#include "patcher/touch.h"

#define TBD_CUT_MAX_OPS (4u * TBD_BLOCK_MAX_INSNS)

/* What is recorded for an op's address: nothing (address_at is TBD_BASE_NONE), the address, or only
 * its base register, from which the address differs by a constant. */
struct tbd_cut_op {
    uint32_t address_at;
    uint8_t base_only;
    uint8_t access; /* of the instruction: which access the op describes */
};

struct tbd_cut {
    struct tbd_insn insn[TBD_BLOCK_MAX_INSNS];
    /* ops of instruction i: first_op[i] .. first_op[i + 1] - 1 */
    uint16_t first_op[TBD_BLOCK_MAX_INSNS + 1];
    /* operand bytes of instructions before i */
    uint32_t record_before[TBD_BLOCK_MAX_INSNS + 1];
    struct tbd_touch touch[TBD_BLOCK_MAX_INSNS][TBD_INSN_MAX_ACCESSES];
    struct tbd_op op[TBD_CUT_MAX_OPS];
    struct tbd_cut_op op_more[TBD_CUT_MAX_OPS];
    struct tbd_block_def def;
    uint32_t count;   /* instructions */
    bool is_of_cache; /* one thread at a time uses it: instructions seen before are looked up */
    /* 0: 0: the bytes do not change.  Otherwise every entry must compare this many: the block's
     * bytes, and the bytes after it if they made it end because they are no instruction. */
    uint32_t check_bytes;
};

/* Decodes and lays out the block at `pc`.  Inside with_vector_state. */
void tbd_cut_block(struct tbd_cut *cut, const struct tbd_patcher_callbacks *callbacks,
                   const struct tbd_codegen_config *config, uint64_t pc);
/* The same, but at most the first `insns` instructions and ended by TBD_END_LIMIT there (partial
 * replay). */
void tbd_cut_shorten(struct tbd_cut *cut, uint32_t insns);

#endif
