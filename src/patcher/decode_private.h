// SPDX-License-Identifier: MIT
/* decode_private.h - an instruction as the decoder library sees it, for decode.c, decode_kind.c and
 * decode_memory.c
 *
 * Context: APP, with the vector state saved; no state. */
#ifndef TBD_PATCHER_DECODE_PRIVATE_H
#define TBD_PATCHER_DECODE_PRIVATE_H

#include "patcher/decode.h"

#include <Zydis/Decoder.h>

struct tbd_zinsn {
    ZydisDecodedInstruction i;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

/* General register number of any width; TBD_NO_REG for others. */
static inline uint8_t tbd_decode_gpr(ZydisRegister r)
{
    if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15)
        return (uint8_t)(r - ZYDIS_REGISTER_RAX);
    if (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D)
        return (uint8_t)(r - ZYDIS_REGISTER_EAX);
    if (r >= ZYDIS_REGISTER_AX && r <= ZYDIS_REGISTER_R15W)
        return (uint8_t)(r - ZYDIS_REGISTER_AX);
    if (r >= ZYDIS_REGISTER_AL && r <= ZYDIS_REGISTER_BL)
        return (uint8_t)(r - ZYDIS_REGISTER_AL);
    if (r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH)
        return (uint8_t)(r - ZYDIS_REGISTER_AH);
    if (r >= ZYDIS_REGISTER_SPL && r <= ZYDIS_REGISTER_R15B)
        return (uint8_t)(r - ZYDIS_REGISTER_SPL + 4);
    return TBD_NO_REG;
}

static inline bool tbd_decode_is_visible_memory(const ZydisDecodedOperand *op)
{
    return op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
           op->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
}

/* ---- decode_kind.c ---- */

/* Fills in kind and special. */
void tbd_decode_classify(struct tbd_insn *out, const struct tbd_zinsn *z);
/* The operand that is relative to gs base; NULL if there is none, or it is never accessed. */
const ZydisDecodedOperand *tbd_decode_gs_operand(const struct tbd_zinsn *z);
/* Does it have any of the six prefixes, even one without effect?  A gs before it would not
 * count. */
bool tbd_decode_has_segment_prefix(const struct tbd_zinsn *z);
/* Hints and cache maintenance name memory but do not access it. */
bool tbd_decode_only_names_memory(const struct tbd_zinsn *z);
bool tbd_decode_is_bit_test(ZydisMnemonic m);

/* ---- decode_memory.c ---- */

/* Fills in access[]: loads before stores. */
void tbd_decode_accesses(struct tbd_insn *out, const struct tbd_zinsn *z);
/* Is an access relative to gs base?  The engine executes it where no register is free
 * for its address. */
void tbd_decode_gs(struct tbd_insn *out, const struct tbd_zinsn *z);
/* Is an address relative to rip, and what is it? */
void tbd_decode_rip_relative(struct tbd_insn *out, const struct tbd_zinsn *z);

#endif
