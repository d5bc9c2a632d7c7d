// SPDX-License-Identifier: MIT
/* reencode.c - an instruction of the program with other registers or another displacement
 *
 * r14 and r15 become one of r8-r11: the extension bits in REX, VEX or EVEX are 1 for all of them,
 * so only three-bit fields change, and none of r8-r11 has a special meaning in ModRM or SIB.  A
 * rip-relative operand gets a new displacement, or, out of reach, becomes [scratch] with scratch
 * below r8.  An operand relative to gs base becomes [scratch], too, as the processor's gs base is
 * the engine's. */
#include "patcher/translate.h"

static void set_low3(uint8_t *byte, unsigned shift, unsigned hw)
{
    *byte = (uint8_t)((*byte & ~(7u << shift)) | (hw & 7) << shift);
}

/* VEX.vvvv and EVEX.vvvv are in the second byte after the escape, inverted; in two-byte VEX in the
 * first. */
static void set_vvvv(uint8_t *code, const struct tbd_insn *insn, unsigned hw)
{
    uint8_t *byte = code + insn->prefix_at + (insn->prefix_bytes == 2 ? 1 : 2);

    *byte = (uint8_t)((*byte & ~0x78u) | (~hw & 15u) << 3);
}

static void set_field(uint8_t *code, const struct tbd_insn *insn, unsigned field, unsigned hw)
{
    uint8_t *modrm = code + insn->modrm_at;
    bool has_sib = (*modrm & 7) == 4 && (*modrm >> 6) != 3;

    switch (field) {
    case TBD_FIELD_REG: set_low3(modrm, 3, hw); break;
    case TBD_FIELD_RM: set_low3(modrm, 0, hw); break;
    case TBD_FIELD_BASE: set_low3(has_sib ? modrm + 1 : modrm, 0, hw); break;
    case TBD_FIELD_INDEX: set_low3(modrm + 1, 3, hw); break;
    case TBD_FIELD_OPCODE: set_low3(code + insn->opcode_at, 0, hw); break;
    default: set_vvvv(code, insn, hw); break;
    }
}

static void substitute(struct tbd_translation *t, const struct tbd_insn *insn, uint8_t *code)
{
    for (unsigned f = 0; f < TBD_FIELD_COUNT; f++) {
        uint8_t r = insn->field[f];

        if ((r == TBD_R14 || r == TBD_R15) && tbd_place_hw(t, r) != TBD_NO_REG)
            set_field(code, insn, f, tbd_place_hw(t, r));
    }
}

static void clear_extension_b(uint8_t *code, const struct tbd_insn *insn)
{
    uint8_t *prefix = code + insn->prefix_at;

    if (insn->prefix_bytes == 1)
        *prefix &= (uint8_t)~1u;
    else if (insn->prefix_bytes >= 3)
        prefix[1] |= 0x20;
}

/* [rip + disp32] -> [scratch] */
static unsigned through_scratch(uint8_t *code, const struct tbd_insn *insn, unsigned scratch)
{
    unsigned tail = insn->length - insn->disp_at - 4u;

    clear_extension_b(code, insn);
    set_low3(code + insn->modrm_at, 0, scratch);
    __builtin_memmove(code + insn->disp_at, code + insn->disp_at + 4, tail);
    return insn->length - 4u;
}

/* ModRM with register form -> gs:[slot]: mod 00, rm 100, SIB without base and index, disp32 */
static void emit_slot_operand(struct tbd_emit *e, unsigned modrm, unsigned r)
{
    tbd_emit_u8(e, (modrm & 0x38) | 4);
    tbd_emit_u8(e, 0x25);
    tbd_emit_u32(e, (uint32_t)TBD_THREAD_GS_GPR(r));
}

static void emit_push_pop_slot(struct tbd_emit *e, const struct tbd_insn *insn)
{
    bool is_push = insn->stack_add < 0;

    tbd_emit_u8(e, 0x65);
    tbd_emit_u8(e, is_push ? 0xff : 0x8f);
    emit_slot_operand(e, is_push ? 6u << 3 : 0, insn->slot_form);
}

void tbd_reencode_slot(struct tbd_translation *t, const struct tbd_insn *insn)
{
    struct tbd_emit *e = &t->e;
    uint8_t code[16];
    unsigned opcode_end = insn->modrm_at;

    if (insn->field[TBD_FIELD_OPCODE] == insn->slot_form) {
        emit_push_pop_slot(e, insn);
        return;
    }
    __builtin_memcpy(code, insn->bytes, insn->length);
    substitute(t, insn, code);             /* the other one may be named too */
    code[insn->prefix_at] &= (uint8_t)~3u; /* REX.X, ignored so far, and REX.B */
    tbd_emit_u8(e, 0x65);
    tbd_emit_bytes(e, code, opcode_end);
    emit_slot_operand(e, code[opcode_end], insn->slot_form);
    tbd_emit_bytes(e, code + opcode_end + 1, insn->length - opcode_end - 1u);
}

/* Segment and address-size prefixes, which the address in the register does not need. */
static bool is_of_address(uint8_t prefix)
{
    return prefix != 0x66 && prefix < 0xf0;
}

/* Makes a mov from xlat and from moves between rax and a fixed address, which have no ModRM byte.
 * Returns the length. */
static unsigned make_mov(uint8_t *out, const struct tbd_insn *insn, unsigned scratch)
{
    bool is_store = (insn->opcode & 0xfe) == 0xa2;
    bool is_wide = insn->opcode != 0xd7 && (insn->opcode & 1);

    out[0] = (uint8_t)((is_store ? 0x88u : 0x8au) | (is_wide ? 1u : 0u));
    out[1] = (uint8_t)scratch;
    return 2;
}

/* A REX that is not directly before the opcode means nothing. */
static bool is_before(const uint8_t *code, unsigned at, const struct tbd_insn *insn)
{
    bool is_lost = (code[at] & 0xf0) == 0x40 && at != insn->prefix_at;

    return tbd_decode_is_prefix(code[at]) || is_lost;
}

/* gs:[...] -> [scratch] */
static void emit_without_gs(struct tbd_emit *e, uint8_t *code, const struct tbd_insn *insn,
                            unsigned scratch)
{
    uint8_t out[16];
    unsigned count = 0, at = 0, rest;

    clear_extension_b(code, insn);
    for (; is_before(code, at, insn); at++)
        if (!is_of_address(code[at]))
            out[count++] = code[at];
    if (!insn->modrm_at) {
        if (insn->prefix_bytes)
            out[count++] = code[at] & 0xf8; /* REX */
        tbd_emit_bytes(e, out, count + make_mov(out + count, insn, scratch));
        return;
    }
    while (at < insn->modrm_at)
        out[count++] = code[at++];
    out[count++] = (uint8_t)((code[at] & 0x38) | scratch);
    rest = at + 1 + tbd_decode_operand_bytes(code + at);
    __builtin_memcpy(out + count, code + rest, insn->length - rest);
    tbd_emit_bytes(e, out, count + insn->length - rest);
}

void tbd_reencode(struct tbd_translation *t, const struct tbd_insn *insn, unsigned scratch)
{
    uint8_t code[16];
    unsigned length = insn->length;

    __builtin_memcpy(code, insn->bytes, length);
    substitute(t, insn, code);
    if (insn->gs) {
        emit_without_gs(&t->e, code, insn, scratch);
        return;
    }
    if (insn->rip_relative && scratch != TBD_NO_REG) {
        length = through_scratch(code, insn, scratch);
    } else if (insn->rip_relative) {
        uint32_t disp = (uint32_t)(insn->target - (tbd_emit_pc(&t->e) + length));

        __builtin_memcpy(code + insn->disp_at, &disp, 4);
    }
    tbd_emit_bytes(&t->e, code, length);
}
