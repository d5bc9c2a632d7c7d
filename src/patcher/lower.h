// SPDX-License-Identifier: MIT
/* lower.h - lowering: the code for one instruction of the program
 *
 * For the files that translate a block: lower_access.c has the hooks of accesses and what operands need, lower_transfer.c what
 * ends a block, translate.c all other instructions and the block itself.
 *
 * LOWER-1  Hooks stand before the instruction and read its addresses from the registers before it.
 *     (not checked: test_patcher_random compares registers, flags and records with the
 *     processor's)
 * LOWER-2  An indirect exit has the target in r11, and the program's registers where they are
 *     at every exit. (not checked: test_patcher_random compares registers, flags and records with
 *     the processor's)
 */
#ifndef TBD_PATCHER_LOWER_H
#define TBD_PATCHER_LOWER_H

#include "patcher/translate.h"

/* ---- lower_access.c ---- */

/* What the code from here on is for. */
void tbd_lower_phase(struct tbd_translation *t, enum tbd_phase phase);
/* The hardware registers that have these registers of the program. */
uint16_t tbd_lower_mask(const struct tbd_translation *t, uint16_t registers);
/* They are in hardware registers then.  `avoid` has all of these but rsp. */
void tbd_lower_need(struct tbd_translation *t, uint16_t registers, uint16_t avoid);
/* The operand with hardware registers in place of the program's, which are in some. */
struct tbd_ea tbd_lower_ea(const struct tbd_translation *t, const struct tbd_ea *ea);
static inline struct tbd_ea tbd_lower_at(unsigned reg)
{
    return (struct tbd_ea){ .base = (uint8_t)reg, .index = TBD_NO_REG, .scale = 1 };
}
/* The address of the instruction's operand in gs, into `s`.  The instruction itself adds bit offsets. */
void tbd_lower_gs_operand(struct tbd_translation *t, const struct tbd_insn *insn, unsigned s,
                          uint16_t avoid);
/* The op of this kind, for this access of the instruction; NULL if it is not reported. */
const struct tbd_op *tbd_lower_op(const struct tbd_translation *t, unsigned access, unsigned kind);
/* Reports the accesses of the instruction. */
void tbd_lower_hooks(struct tbd_translation *t, uint16_t avoid);

/* ---- lower_transfer.c ---- */

/* Leaves through the area's exit jump, with this block's index. */
void tbd_lower_leave(struct tbd_translation *t, enum tbd_exit_kind kind);
/* The block is done but for leaving, or for jumping to `target`. */
void tbd_lower_finish_and_leave(struct tbd_translation *t, enum tbd_exit_kind kind);
void tbd_lower_finish_and_jump(struct tbd_translation *t, uint64_t target);
/* The engine executes it; registers of a call or return are reported here. */
void tbd_lower_special(struct tbd_translation *t);
void tbd_lower_jump(struct tbd_translation *t, const struct tbd_insn *insn);
void tbd_lower_branch(struct tbd_translation *t, const struct tbd_insn *insn);
/* jrcxz, loop */
void tbd_lower_branch_rcx(struct tbd_translation *t, const struct tbd_insn *insn);
void tbd_lower_call(struct tbd_translation *t, const struct tbd_insn *insn);
void tbd_lower_call_indirect(struct tbd_translation *t, const struct tbd_insn *insn);
void tbd_lower_jump_indirect(struct tbd_translation *t, const struct tbd_insn *insn);
void tbd_lower_return(struct tbd_translation *t, const struct tbd_insn *insn);

#endif
