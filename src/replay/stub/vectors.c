// SPDX-License-Identifier: MIT
/* vectors.c - see vectors.h
 *
 * Components that only the recording's processor had are kept beside the live state
 * (hooks/instructions/vector.h).  These instructions depend on them: xsave, whose bytes are in the
 * log; xrstor, which is carried out here; instructions that name such registers, which end the
 * replay with a message that names the instruction; instructions with a VEX prefix, which clear the
 * upper halves of zmm registers, so these halves must be zero.
 *
 * The patcher emits a ud2 before xrstor, and before instructions that name missing registers. */
#include "replay/stub/vectors.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "hooks/instructions/processor.h"
#include "hooks/threads/sigframe.h"
#include "patcher/decode.h"
#include "patcher/patcher.h"
#include "replay/stub/memory.h"

#define UD2_BYTES   2u
#define NO_REGISTER 16u

const char *tbd_vectors_adopt(uint64_t components, uint32_t bytes)
{
    struct tbd_vector_info *vector = &tbd_processor.vector;

    if (components == vector->image.mask && bytes == vector->image.bytes)
        return NULL;
    if (!tbd_vector_adopt(vector, components, bytes))
        return "the layout of the vector registers of the recording's processor is not known";
    if (vector->is_foreign)
        tbd_patcher_vectors_differ(tbd_vector_missing(vector) & TBD_VECTOR_AVX512);
    return NULL;
}

const char *tbd_vectors_lacking(uint64_t pc)
{
    uint64_t missing = tbd_vector_missing(&tbd_processor.vector);
    uint8_t bytes[TBD_INSN_MAX_BYTES];
    size_t have = 0;

    if (!(missing & (TBD_VECTOR_AVX512 | TBD_VECTOR_AMX)))
        return NULL;
    while (have < sizeof(bytes) && tbd_memory_read(pc + have, &bytes[have], 1))
        have++;
    if (missing & TBD_VECTOR_AMX && tbd_decode_is_tile(bytes, have))
        return "AMX";
    return missing & TBD_VECTOR_AVX512 && tbd_decode_is_wide(bytes, have) ? "AVX-512" : NULL;
}

/* ---- xrstor ---- */

/* The value of a general register in a signal frame. */
static uint64_t register_of(const struct tbd_ucontext *frame, unsigned number)
{
    struct tbd_regs regs = { 0 };

    tbd_ucontext_get(frame, &regs);
    return number < TBD_REG_COUNT ? regs.gpr[number] : 0;
}

static int64_t displacement(const uint8_t *at, unsigned bytes)
{
    int32_t wide = 0;

    if (bytes == 1)
        return (int8_t)*at;
    if (bytes)
        memcpy(&wide, at, sizeof(wide));
    return wide;
}

/* The address of the memory operand of a translated instruction with this REX prefix and this
 * ModRM; `end` is the instruction's end. */
static uint64_t operand_address(const struct tbd_ucontext *frame, const uint8_t *modrm, uint8_t rex,
                                uint64_t end)
{
    static const uint8_t displacements[] = { 0, 1, 4 };
    unsigned mod = *modrm >> 6, base = (*modrm & 7u) | (rex & 1u) << 3, index = NO_REGISTER;
    unsigned bytes = displacements[mod], scale = 0;
    const uint8_t *at = modrm + 1;
    bool has_no_base = (*modrm & 7) == 5 && !mod;

    if ((*modrm & 7) == 4) {
        scale = *at >> 6;
        index = (*at >> 3 & 7u) | (rex >> 1 & 1u) << 3;
        base = (*at & 7u) | (rex & 1u) << 3;
        if (index == TBD_RSP)
            index = NO_REGISTER;
        has_no_base = (*at++ & 7) == 5 && !mod;
    } else if (has_no_base) {
        return end + (uint64_t)displacement(at, 4); /* relative to rip */
    }
    if (has_no_base)
        bytes = 4;
    return (has_no_base ? 0 : register_of(frame, base)) + (register_of(frame, index) << scale) +
           (uint64_t)displacement(at, bytes);
}

/* Reads the operand: only the legacy region and header, unless it has extended components. */
static bool read_operand(uint64_t address, uint8_t *out)
{
    uint64_t present = 0, bytes;

    memset(out, 0, TBD_VECTOR_MAX_BYTES);
    if (!tbd_memory_read(address, out, TBD_VECTOR_EXTENDED))
        return false;
    memcpy(&present, out + TBD_VECTOR_LEGACY, sizeof(present));
    bytes = present >> 2 ? tbd_processor.vector.image.bytes : TBD_VECTOR_EXTENDED;
    for (uint64_t at = TBD_VECTOR_EXTENDED; at < bytes; at += 8)
        if (!tbd_memory_read(address + at, out + at, 8))
            break; /* a compacted image may be shorter */
    return true;
}

bool tbd_vectors_xrstor_sigsafe(int signo, struct tbd_ucontext *frame)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];
    const uint8_t *code = (const uint8_t *)(uintptr_t)frame->rip;
    uint8_t rex;
    uint64_t asked;
    uint32_t length;

    if (signo != SIGILL || !tbd_processor.vector.is_foreign || !tbd_patcher_owns(frame->rip) ||
        code[0] != 0x0f || code[1] != 0x0b ||
        !tbd_decode_is_xrstor(code + UD2_BYTES, TBD_INSN_MAX_BYTES))
        return false;
    code += UD2_BYTES;
    rex = (*code & 0xf0) == 0x40 ? *code : 0;
    code += rex ? 3 : 2;
    length = 1 + tbd_decode_operand_bytes(code);
    if (!read_operand(operand_address(frame, code, rex, (uint64_t)(uintptr_t)code + length), image))
        return false;
    asked = (register_of(frame, TBD_RAX) & UINT32_MAX) | register_of(frame, TBD_RDX) << 32;
    tbd_vector_restore_in_frame(&tbd_processor.vector, image, asked,
                                (uint8_t *)(uintptr_t)frame->fpstate);
    frame->rip = (uint64_t)(uintptr_t)code + length;
    return true;
}
