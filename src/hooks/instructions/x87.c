// SPDX-License-Identifier: MIT
/* x87.c - the address of the last x87 instruction
 *
 * The processor keeps the address, the operand's address and the opcode of the last x87
 * instruction. fnstenv, fxsave, xsave and signal frames contain them.  The instruction ran in a
 * patch area or a slot, so these registers are set to the program's values before the program can
 * see them, and before the translation, from which they are found, is forgotten.
 *
 * Context: APP. */
#include "hooks/instructions/vector.h"

#include "base/string.h"
#include "hooks/instructions/slot.h"
#include "hooks/memory/code_areas.h"
#include "hooks/memory/safe_copy.h"
#include "patcher/decode.h"
#include "patcher/patcher.h"

enum { XCR0_X87 = 1, OPCODE_AT = 6, XSTATE_BV = 512, IMAGE_BYTES = 576 };

#define OPCODE_BITS 0x7ffu

static bool is_prefix(uint8_t byte)
{
    return tbd_decode_is_prefix(byte) || (byte & 0xf0) == 0x40;
}

/* The opcode as the processor keeps it: three bits of the first byte, and the second.  False: the
 * instruction is not an x87 one, so the code has changed since. */
static bool read_opcode(uint64_t pc, uint16_t *out)
{
    uint8_t bytes[15];
    size_t have = tbd_copy_prefix_from_program(bytes, pc, sizeof(bytes)), at = 0;

    while (at < have && is_prefix(bytes[at]))
        at++;
    if (at + 1 >= have || (bytes[at] & 0xf8) != 0xd8)
        return false;
    *out = (uint16_t)((bytes[at] & 7) << 8 | bytes[at + 1]) & OPCODE_BITS;
    return true;
}

static uint64_t program_pc(uint64_t rip)
{
    return tbd_slot_owns(rip) ? tbd_slot_program_pc(rip)
                              : tbd_patcher_program_pc(tbd_thread_now(), rip);
}

static bool is_ours(uint64_t rip)
{
    return tbd_slot_owns(rip) || tbd_patcher_owns(rip);
}

/* What fnstenv stores and fldenv loads (Intel SDM volume 1, 8.1.10). */
struct x87_environment {
    uint32_t words[3], rip;
    uint16_t selector, opcode;
    uint32_t operand, operand_selector;
};

/* For an address in a patch area we know only the lower 32 bits; several areas may share them.
 * Chooses the area that has an x87 instruction there, translated from an x87 instruction. 0: none
 * has. */
static uint64_t program_pc_of_half(uint32_t half, uint16_t *out_opcode)
{
    for (size_t i = 0; i < tbd_code_areas.count; i++) {
        uint64_t start = tbd_code_areas.area[i].start;
        uint64_t rip = start + (uint32_t)(half - (uint32_t)start), pc;

        if (rip >= tbd_code_areas.area[i].end)
            continue;
        pc = program_pc(rip);
        if (pc && read_opcode(rip, out_opcode) && read_opcode(pc, out_opcode))
            return pc;
    }
    return 0;
}

/* Processors that do not tell xsave take the address by fldenv, as they give it by fnstenv: its lower half. */
static void set_half(void)
{
    struct x87_environment environment;
    uint16_t opcode;
    uint64_t rip;

    __asm__ volatile("fnstenv %0" : "=m"(environment));
    rip = program_pc_of_half(environment.rip, &opcode);
    if (rip) {
        environment.rip = (uint32_t)rip;
        environment.opcode = opcode;
    }
    __asm__ volatile("fldenv %0" : : "m"(environment)); /* also the masks, which fnstenv has set */
}

/* The program's address for one of ours, and its opcode.  0: the code has changed since. */
static uint64_t settled_pc(uint64_t before, uint16_t *out_opcode)
{
    uint64_t pc = program_pc(before);

    if (pc && read_opcode(pc, out_opcode))
        return pc;
    *out_opcode = 0;
    return 0;
}

/* Some virtual machines keep the lower half of an address only, once another thread has run. */
static bool is_half_of_ours(uint64_t before, uint64_t *out_pc, uint16_t *out_opcode)
{
    if (before > UINT32_MAX || is_ours(before))
        return false;
    *out_pc = program_pc_of_half((uint32_t)before, out_opcode);
    return *out_pc != 0;
}

static void set(const uint64_t *operand)
{
    _Alignas(64) uint8_t image[IMAGE_BYTES] = { 0 };
    uint16_t opcode = 0;
    uint64_t rip, before;

    tbd_xsave(image, XCR0_X87);
    memcpy(&before, image + TBD_VECTOR_X87_RIP, sizeof(before));
    if (!before && !tbd_x87_is_exact())
        set_half();
    if (!before) /* else no instruction has run since the state was the initial one */
        return;
    if (is_ours(before))
        rip = settled_pc(before, &opcode);
    else if (!is_half_of_ours(before, &rip, &opcode))
        return;
    memcpy(image + TBD_VECTOR_X87_RIP, &rip, sizeof(rip));
    if (image[OPCODE_AT] | image[OPCODE_AT + 1]) /* some processors set it only for exceptions */
        memcpy(image + OPCODE_AT, &opcode, sizeof(opcode));
    if (operand && tbd_slot_owns(before))
        memcpy(image + TBD_VECTOR_X87_OPERAND, operand, sizeof(*operand));
    tbd_xrstor(image, XCR0_X87);
}

void tbd_x87_settle(void)
{
    set(NULL);
}

void tbd_x87_settle_operand(uint64_t operand)
{
    set(&operand);
}

/* ---- processors that give them only to fnstenv and fnsave ---- */

/* Tests the processor's behaviour: its feature bits were wrong on AMD's fourth EPYC generation. */
bool tbd_x87_is_exact(void)
{
    static enum { UNKNOWN, NOT_EXACT, EXACT } answer;
    _Alignas(64) uint8_t image[IMAGE_BYTES] = { 0 }, tried[IMAGE_BYTES] = { 0 };
    uint64_t rip;

    if (answer != UNKNOWN)
        return answer == EXACT;
    tbd_xsave(image, XCR0_X87);
    __asm__ volatile("fninit; fldz");
    tbd_xsave(tried, XCR0_X87);
    tbd_xrstor(image, XCR0_X87);
    memcpy(&rip, tried + TBD_VECTOR_X87_RIP, sizeof(rip));
    answer = rip ? EXACT : NOT_EXACT;
    return answer == EXACT;
}

enum environment_store { NO_ENVIRONMENT, FNSTENV, FNSAVE };

/* fnstenv is D9 /6, fnsave DD /6; *out_narrow: the form with 16 bits. */
static enum environment_store stored_environment(uint64_t pc, uint32_t length, bool *out_narrow)
{
    uint8_t bytes[15];
    uint32_t at = 0;

    *out_narrow = false;
    if (length > sizeof(bytes) || !tbd_copy_from_program(bytes, pc, length))
        return NO_ENVIRONMENT;
    for (; at < length && is_prefix(bytes[at]); at++)
        *out_narrow |= bytes[at] == 0x66;
    if (at + 1 >= length || (bytes[at + 1] & 0x38) != 0x30 || bytes[at + 1] >= 0xc0)
        return NO_ENVIRONMENT;
    return bytes[at] == 0xd9 ? FNSTENV : bytes[at] == 0xdd ? FNSAVE : NO_ENVIRONMENT;
}

void tbd_x87_correct_environment(uint64_t pc, uint32_t length, uint64_t address)
{
    struct x87_environment environment;
    uint16_t opcode;
    bool narrow;
    uint64_t rip;

    if (tbd_x87_is_exact() || !stored_environment(pc, length, &narrow) || narrow ||
        !tbd_copy_from_program(&environment, address, sizeof(environment)))
        return;
    rip = program_pc_of_half(environment.rip, &opcode);
    if (!rip)
        return;
    environment.opcode = opcode;
    environment.rip = (uint32_t)rip;
    tbd_copy_to_program(address, &environment, sizeof(environment));
}

void tbd_x87_environment_stored(uint64_t pc, uint32_t length)
{
    uint16_t control;
    bool narrow;

    switch (stored_environment(pc, length, &narrow)) {
    case FNSTENV:
        __asm__ volatile("fnstcw %0" : "=m"(control));
        control |= 0x3f; /* all exceptions masked */
        __asm__ volatile("fldcw %0" : : "m"(control));
        break;
    case FNSAVE: __asm__ volatile("fninit"); break;
    case NO_ENVIRONMENT: break;
    }
}
