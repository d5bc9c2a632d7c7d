// SPDX-License-Identifier: MIT
/* disas.h - disassembled instructions, and the instruction boundaries of blocks
 *
 * Text comes from Zydis, in Intel syntax unless asked otherwise, with symbol names for branch
 * targets and rip-relative operands.  Instruction boundaries of a block come from its definition,
 * decoded once per block and kept: tbd_disas_insn() is meant to be called per event.
 *
 * One object from one thread.  Nothing here prints. */
#ifndef TBD_QUERY_DISAS_H
#define TBD_QUERY_DISAS_H

#include "query/session/code/symbols.h"

enum tbd_syntax { TBD_SYNTAX_INTEL = 0, TBD_SYNTAX_ATT };

struct tbd_disas;

/* `symbols` may be NULL: addresses stay numbers.  Both are borrowed until tbd_disas_free(). */
TBD_MUST_CHECK enum tbd_status tbd_disas_new(const struct tbd_trace *trace,
                                             struct tbd_symbols *symbols, enum tbd_syntax syntax,
                                             struct tbd_disas **out);
void tbd_disas_free(struct tbd_disas *disas); /* NULL is fine */

struct tbd_block_insn {
    uint64_t pc;
    const uint8_t *bytes;
    uint32_t length;
};
/* Instruction `insn` (the K of TIME+K) of block `id`.  For insn == insn_count: pc one past the
 * block, length 0. False if there is no such block or instruction. */
bool tbd_disas_insn(struct tbd_disas *disas, uint32_t id, uint32_t insn,
                    struct tbd_block_insn *out);
/* Which instruction of block `id` is at `pc`; false if none starts there. */
bool tbd_disas_index_of(struct tbd_disas *disas, uint32_t id, uint64_t pc, uint32_t *out_insn);

/* Text of the instruction at `code` (at most `bytes` are looked at), which is at address `pc` in
 * `window`.  Returns its length in bytes, or 0 if it does not decode; then `out` is "(bad)". */
uint32_t tbd_disas_text(struct tbd_disas *disas, uint32_t window, const uint8_t *code, size_t bytes,
                        uint64_t pc, char *out, size_t out_bytes);

#endif
