// SPDX-License-Identifier: MIT
// links: tbd_simulate tbd_base Zydis
// sources: native_insn.c
/* test_simulate_native.c - what the table says of instructions, against the processor
 *
 * Random instructions of every row run natively from random states.  Then some of the registers, flags and memory before and
 * after, or some bits of them, are hidden and solved for: a bit that is said to be known and differs is a failure.  So
 * is a place that changed although the instruction is not said to write it.  With all inputs known all defined
 * outputs must be found.  SIMULATE_SEED and SIMULATE_ROUNDS choose another run. */
#include "native_insn.h"
#include "random_numbers.h"
#include "replay/simulate/operations.h"
#include "replay/simulate/simulate.h"

#include <Zydis/Zydis.h>
#include <asm/prctl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { MIDDLE = NATIVE_MEMORY / 2, TRIES = 100, HIDINGS = 24 };

/* One run: the instruction, and all there was before and after it. */
struct run {
    struct tbd_sim_insn *insn;
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    struct native_state before, after;
    uint8_t memory_before[NATIVE_MEMORY];
    bool taken;
};

static struct run run;

static const struct {
    ZydisMnemonic mnemonic;
    const char *name, *form;
} table[] = {
#define X(name, form, operation, aux) { ZYDIS_MNEMONIC_##name, #name, #form },
#include "replay/simulate/instructions.def"
#undef X
};

/* ---- random instructions and states ---- */

static uint64_t random_value(void)
{
    switch (below(6)) {
    case 0: return below(70);
    case 1: return (uint64_t)0 - below(70);
    case 2: return 1ull << below(64);
    case 3: return random64() & 0xffffffff;
    case 4: return random64() & random64();
    default: return random64();
    }
}

static ZydisRegister random_general(unsigned width)
{
    switch (width) {
    case 8: return ZYDIS_REGISTER_AL + below(20);
    case 16: return ZYDIS_REGISTER_AX + below(16);
    case 32: return ZYDIS_REGISTER_EAX + below(16);
    default: return ZYDIS_REGISTER_RAX + below(16);
    }
}

static unsigned random_width(void)
{
    return 8u << below(4);
}

static void random_memory(ZydisEncoderOperand *operand, unsigned width)
{
    operand->type = ZYDIS_OPERAND_TYPE_MEMORY;
    operand->mem.base = random_general(64);
    if (below(2)) {
        operand->mem.index = random_general(64);
        operand->mem.scale = (ZyanU8)(1u << below(4));
    }
    operand->mem.displacement = below(2) ? 0 : (ZyanI64)below(512) - 256;
    operand->mem.size = (ZyanU16)(width / 8);
}

static void random_operand(ZydisEncoderOperand *operand, unsigned width)
{
    unsigned kind = below(10);

    if (kind < 4) {
        operand->type = ZYDIS_OPERAND_TYPE_REGISTER;
        operand->reg.value = random_general(below(8) ? width : random_width());
    } else if (kind < 6) {
        random_memory(operand, below(8) ? width : random_width());
    } else if (kind == 6) {
        operand->type = ZYDIS_OPERAND_TYPE_IMMEDIATE;
        operand->imm.s = below(3) ? (int)below(256) - 128 : (int32_t)random64();
    } else if (kind == 7) {
        operand->type = ZYDIS_OPERAND_TYPE_REGISTER;
        operand->reg.value = below(2) ? ZYDIS_REGISTER_CL : random_general(32);
    } else {
        random_memory(operand, width);
    }
}

/* Vectors of one width, most of the time; perhaps something else among them, a mask, a number at the end. */
static void random_vectors(ZydisEncoderRequest *request)
{
    unsigned kind = below(3), scalars = below(4);

    for (unsigned i = 0; i < request->operand_count; i++) {
        ZydisEncoderOperand *operand = &request->operands[i];

        operand->type = ZYDIS_OPERAND_TYPE_REGISTER;
        operand->reg.value =
            ZYDIS_REGISTER_XMM0 + 32 * (ZydisRegister)kind + (ZydisRegister)below(32);
        if (scalars == 0 && below(2))
            operand->reg.value = below(4) ? ZYDIS_REGISTER_XMM0 + (ZydisRegister)below(16)
                                          : random_general(below(2) ? 32 : 64);
        if (i == 1 && below(4) == 0)
            operand->reg.value = ZYDIS_REGISTER_K0 + (ZydisRegister)(below(2) ? 0 : below(8));
        else if (below(request->operand_count + 1u) == 0)
            random_memory(operand, scalars == 0 ? 8u << below(5) : 128u << kind);
        if (i >= 1 && i + 1u == request->operand_count && below(2)) {
            memset(operand, 0, sizeof(*operand));
            operand->type = ZYDIS_OPERAND_TYPE_IMMEDIATE;
            operand->imm.s = below(2) ? (int)below(20) : (int)below(256) - 128;
        }
    }
    request->evex.zeroing_mask = request->operand_count > 1 &&
                                 request->operands[1].reg.value > ZYDIS_REGISTER_K0 &&
                                 request->operands[1].reg.value <= ZYDIS_REGISTER_K7 && below(2);
}

static void vector_of(ZydisEncoderOperand *operand, unsigned kind)
{
    operand->type = ZYDIS_OPERAND_TYPE_REGISTER;
    operand->reg.value =
        ZYDIS_REGISTER_XMM0 + 32 * (ZydisRegister)kind + (ZydisRegister)below(below(4) ? 16 : 32);
}

static void scalar_of(ZydisEncoderOperand *operand)
{
    if (below(2)) {
        random_memory(operand, 8u << below(6));
        return;
    }
    operand->type = ZYDIS_OPERAND_TYPE_REGISTER;
    operand->reg.value = random_general(below(2) ? 32 : 64);
}

static void random_mask(ZydisEncoderOperand *operand);

/* Shapes that chance seldom makes: a vector and a shorter one, an element, and a number. */
static void random_pieces(ZydisEncoderRequest *request)
{
    unsigned kind = below(3), from = below(3), n = 0;

    if (below(3))
        vector_of(&request->operands[n++], kind);
    else
        scalar_of(&request->operands[n++]);
    if (below(3) == 0) {
        random_mask(&request->operands[n++]);
        request->evex.zeroing_mask =
            request->operands[1].reg.value != ZYDIS_REGISTER_K0 && below(2);
    }
    if (below(2))
        vector_of(&request->operands[n++], kind);
    if (below(2))
        vector_of(&request->operands[n++], from);
    else
        scalar_of(&request->operands[n++]);
    if (below(3)) {
        request->operands[n].type = ZYDIS_OPERAND_TYPE_IMMEDIATE;
        request->operands[n++].imm.s = below(2) ? (int)below(20) : (int)below(256) - 128;
    } else if (below(2)) {
        request->operands[n].reg.is4 = true;
        vector_of(&request->operands[n++], kind);
    }
    request->operand_count = (ZyanU8)n;
}

static void random_mask(ZydisEncoderOperand *operand)
{
    operand->type = ZYDIS_OPERAND_TYPE_REGISTER;
    operand->reg.value = ZYDIS_REGISTER_K0 + (ZydisRegister)below(8);
}

/* Two or three masks, a move between masks and others, or a mask, the mask for it, two vectors of one width, and perhaps a predicate. */
static void random_masks(ZydisEncoderRequest *request)
{
    unsigned kind = below(3);

    random_mask(&request->operands[0]);
    if (below(3) == 0) {
        request->operand_count = (ZyanU8)(2 + below(2));
        for (unsigned i = 1; i < request->operand_count; i++)
            random_mask(&request->operands[i]);
        if (request->operand_count == 3 && below(2)) {
            request->operands[2].type = ZYDIS_OPERAND_TYPE_IMMEDIATE;
            request->operands[2].imm.u = below(70);
        }
        return;
    }
    if (below(2)) {
        request->operand_count = 2;
        random_operand(&request->operands[below(2)], below(2) ? 32 : random_width());
        if (request->operands[1].type == ZYDIS_OPERAND_TYPE_UNUSED)
            random_mask(&request->operands[1]);
        return;
    }
    request->operand_count = (ZyanU8)(4 + below(2));
    random_mask(&request->operands[1]);
    if (below(2))
        request->operands[1].reg.value = ZYDIS_REGISTER_K0;
    for (unsigned i = 2; i < 4; i++) {
        request->operands[i].type = ZYDIS_OPERAND_TYPE_REGISTER;
        request->operands[i].reg.value =
            ZYDIS_REGISTER_XMM0 + 32 * (ZydisRegister)kind + (ZydisRegister)below(32);
    }
    if (below(4) == 0) {
        memset(&request->operands[3], 0, sizeof(request->operands[3]));
        random_memory(&request->operands[3], 128u << kind);
    }
    request->operands[4].type = ZYDIS_OPERAND_TYPE_IMMEDIATE;
    request->operands[4].imm.u = below(2) ? 0 : below(8);
}

enum operands { GENERAL, VECTORS, MASKS };

static void random_operands(ZydisEncoderRequest *request, enum operands operands)
{
    unsigned width = random_width();

    request->operand_count = (ZyanU8)below(operands == VECTORS ? 6 : 5);
    if (operands == MASKS)
        random_masks(request);
    else if (operands == VECTORS && below(3) == 0)
        random_pieces(request);
    else if (operands == VECTORS && below(8))
        random_vectors(request);
    else
        for (unsigned i = 0; i < request->operand_count; i++)
            random_operand(&request->operands[i], width);
}

static bool is_string(ZydisMnemonic mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSQ:
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSW:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ: return true;
    default: return false;
    }
}

static bool is_string_comparison(ZydisMnemonic mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_SCASB:
    case ZYDIS_MNEMONIC_SCASW:
    case ZYDIS_MNEMONIC_SCASD:
    case ZYDIS_MNEMONIC_SCASQ:
    case ZYDIS_MNEMONIC_CMPSB:
    case ZYDIS_MNEMONIC_CMPSW:
    case ZYDIS_MNEMONIC_CMPSD:
    case ZYDIS_MNEMONIC_CMPSQ: return true;
    default: return false;
    }
}

/* A branch leads to the landing, or on. */
static void aim(ZydisEncoderRequest *request)
{
    request->operand_count = 1;
    request->operands[0].type = ZYDIS_OPERAND_TYPE_IMMEDIATE;
    request->operands[0].imm.u = native_landing();
}

static bool is_relative(ZydisMnemonic mnemonic)
{
    return (mnemonic >= ZYDIS_MNEMONIC_JB && mnemonic <= ZYDIS_MNEMONIC_JZ &&
            mnemonic != ZYDIS_MNEMONIC_JMP) ||
           (mnemonic >= ZYDIS_MNEMONIC_LOOP && mnemonic <= ZYDIS_MNEMONIC_LOOPNE);
}

static bool encode(ZydisMnemonic mnemonic, enum operands operands, ZyanUSize *length)
{
    ZydisEncoderRequest request;

    memset(&request, 0, sizeof(request));
    request.machine_mode = ZYDIS_MACHINE_MODE_LONG_64;
    request.mnemonic = mnemonic;
    random_operands(&request, operands);
    if (is_string(mnemonic) && below(2))
        request.prefixes = ZYDIS_ATTRIB_HAS_REP;
    if (is_string_comparison(mnemonic) && below(2))
        request.prefixes = below(2) ? ZYDIS_ATTRIB_HAS_REPE : ZYDIS_ATTRIB_HAS_REPNE;
    if (mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B)
        request.operands[0].mem.size = 16;
    if (is_relative(mnemonic) ||
        ((mnemonic == ZYDIS_MNEMONIC_CALL || mnemonic == ZYDIS_MNEMONIC_JMP) && below(2)))
        aim(&request);
    *length = 15;
    return ZYAN_SUCCESS(ZydisEncoderEncodeInstructionAbsolute(&request, native_code, length,
                                                              (ZyanU64)(uintptr_t)native_code));
}

static uint64_t somewhere(void)
{
    return (uint64_t)(uintptr_t)native_memory + MIDDLE + below(64);
}

static void random_state(struct native_state *state)
{
    /* in some states bytes are so few that elements are often equal or 0 */
    uint64_t few = below(4) ? UINT64_MAX : 0x8103810381038103;

    for (unsigned i = 0; i < 16; i++)
        state->gpr[i] = random_value();
    state->gpr[4] = somewhere() & ~7ull;
    state->gpr[6] = somewhere();
    state->gpr[7] = below(2) ? somewhere() : state->gpr[7];
    state->flags = 0x202 | (random64() & NATIVE_STATUS);
    for (unsigned i = 0; i < 32; i++)
        for (unsigned k = 0; k < 64; k += 8)
            memcpy(&state->vector[i][k], &(uint64_t){ random_value() & few }, 8);
    for (unsigned i = 0; i < 8; i++)
        state->mask[i] = random_value();
    for (unsigned i = 0; i < NATIVE_MEMORY; i += 8)
        memcpy(native_memory + i, &(uint64_t){ random_value() }, 8);
}

static uint64_t *general(struct native_state *state, ZydisRegister reg)
{
    return &state->gpr[ZydisRegisterGetId(
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg))];
}

static bool is_general(ZydisRegister reg)
{
    return reg == ZYDIS_REGISTER_NONE || (reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15);
}

static uint64_t effective(const ZydisDecodedOperandMem *mem)
{
    uint64_t at = (uint64_t)mem->disp.value;

    if (mem->base != ZYDIS_REGISTER_NONE)
        at += *general(&run.before, mem->base);
    if (mem->index != ZYDIS_REGISTER_NONE)
        at += *general(&run.before, mem->index) * mem->scale;
    return at;
}

/* Does the address leave space for any operand around it? */
static bool is_inside(uint64_t address)
{
    uint64_t at = address - (uint64_t)(uintptr_t)native_memory;

    return at >= 512 && at < NATIVE_MEMORY - 512;
}

/* Writes far from its operand: a bit at an index in a register. */
static bool is_far(void)
{
    return run.decoded.meta.category == ZYDIS_CATEGORY_BITBYTE &&
           run.operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
           run.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

/* Registers are made to fit: addresses lie in memory, repetitions are few, branches lead to where they may. */
static bool prepare(void)
{
    if (is_far() || run.decoded.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
        return false;
    for (unsigned i = 0; i < run.decoded.operand_count; i++) {
        const ZydisDecodedOperand *operand = &run.operands[i];

        if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY ||
            operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
            continue;
        if (operand->mem.base == operand->mem.index || !is_general(operand->mem.base) ||
            !is_general(operand->mem.index))
            return false;
        if (operand->mem.type != ZYDIS_MEMOP_TYPE_MEM)
            continue;
        if (operand->mem.base != ZYDIS_REGISTER_RSP && operand->mem.base != ZYDIS_REGISTER_NONE)
            *general(&run.before, operand->mem.base) += somewhere() - effective(&operand->mem);
        if (!is_inside(effective(&operand->mem)))
            return false;
    }
    switch (run.decoded.mnemonic) {
    case ZYDIS_MNEMONIC_POPFQ: /* not those that trap or check alignment */
        memcpy((void *)(uintptr_t)run.before.gpr[4],
               &(uint64_t){ 0x202 | (random64() & NATIVE_STATUS) }, 8);
        break;
    case ZYDIS_MNEMONIC_LEAVE: run.before.gpr[5] = somewhere(); break;
    case ZYDIS_MNEMONIC_XLAT: run.before.gpr[3] = somewhere(); break;
    case ZYDIS_MNEMONIC_RET:
        memcpy((void *)(uintptr_t)run.before.gpr[4], &(uint64_t){ native_landing() }, 8);
        return (run.operands[0].imm.value.u & 0xffff) < 256;
    case ZYDIS_MNEMONIC_JMP:
    case ZYDIS_MNEMONIC_CALL:
        if (run.operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
            *general(&run.before, run.operands[0].reg.value) = native_landing();
        else if (run.operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
            memcpy((void *)(uintptr_t)effective(&run.operands[0].mem),
                   &(uint64_t){ native_landing() }, 8);
        return run.before.gpr[4] - (uint64_t)(uintptr_t)native_memory < NATIVE_MEMORY;
    default: break;
    }
    if (run.decoded.attributes &
        (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
        run.before.gpr[1] = below(9);
    if (run.decoded.meta.category == ZYDIS_CATEGORY_STRINGOP)
        run.before.gpr[7] = somewhere();
    return true;
}

/* ---- one run ---- */

static bool execute(size_t length)
{
    ZydisDecoder decoder;

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder, native_code, length, &run.decoded, run.operands)) ||
        run.decoded.length != length)
        return false;
    random_state(&run.before);
    if (!prepare())
        return false;
    memcpy(run.memory_before, native_memory, NATIVE_MEMORY);
    if (!native_run(&run.before, length, &run.after, &run.taken))
        return false;
    return tbd_insn_make((uint64_t)(uintptr_t)native_code, native_code, length, &run.insn) ==
           TBD_OK;
}

/* The true value of a place; what the harness does not look at has unknown bits. */
static struct tbd_bits truth_of_place(const struct native_state *state, unsigned place)
{
    static const unsigned registers[] = { 16, 16, 32 }, lanes[] = { 2, 4, 8 };
    unsigned lane = place - TBD_PLACE_VECTOR;
    uint64_t value;

    if (place < 16)
        return tbd_bits_of(state->gpr[place]);
    if (place == TBD_PLACE_FLAGS)
        return (struct tbd_bits){ state->flags & TBD_STATUS_FLAGS, TBD_STATUS_FLAGS };
    if (place == TBD_PLACE_DF)
        return tbd_bits_of(state->flags >> 10 & 1);
    if (place == TBD_PLACE_FS || place == TBD_PLACE_GS) {
        syscall(SYS_arch_prctl, place == TBD_PLACE_FS ? ARCH_GET_FS : ARCH_GET_GS, &value);
        return tbd_bits_of(value);
    }
    if (place >= TBD_PLACE_MASK && native_vectors() == NATIVE_AVX512)
        return tbd_bits_of(state->mask[place - TBD_PLACE_MASK]);
    if (place < TBD_PLACE_VECTOR || place >= TBD_PLACE_MASK ||
        lane / 8 >= registers[native_vectors()] || lane % 8 >= lanes[native_vectors()])
        return (struct tbd_bits){ 0, 0 };
    memcpy(&value, &state->vector[lane / 8][lane % 8 * 8], 8);
    return tbd_bits_of(value);
}

/* The address of a piece of memory, from all that was before. */
static void solve_inputs(struct tbd_solver *solver)
{
    tbd_solver_begin(solver, run.insn);
    for (unsigned i = 0; i < run.insn->read_count; i++)
        tbd_solver_learn(solver, run.insn->reads[i].slot,
                         truth_of_place(&run.before, run.insn->reads[i].place));
    tbd_solver_solve(solver, run.insn);
}

/* How many bytes are written: rcx elements of a string, or as many words as the instruction saves. */
static uint64_t true_bytes(const struct tbd_insn_memory *memory)
{
    struct tbd_solver solver;

    if (!memory->range)
        return memory->bytes;
    solve_inputs(&solver);
    return tbd_bits_full(solver.slot[memory->count])
               ? solver.slot[memory->count].value * memory->bytes
               : NATIVE_MEMORY;
}

static bool true_address(const struct tbd_insn_memory *memory, uint64_t *out)
{
    struct tbd_solver solver;

    solve_inputs(&solver);
    *out = solver.slot[memory->address].value + memory->offset - (uint64_t)(uintptr_t)native_memory;
    return tbd_bits_full(solver.slot[memory->address]) && *out < NATIVE_MEMORY - 64;
}

static struct tbd_bits truth_of_memory(const struct tbd_insn_memory *memory)
{
    uint64_t at, value = 0;

    if (!true_address(memory, &at) || memory->range)
        return (struct tbd_bits){ 0, 0 };
    memcpy(&value, (memory->write ? native_memory : run.memory_before) + at, memory->bytes);
    return tbd_bits_of(value);
}

static struct tbd_bits hidden(struct tbd_bits bits, bool in, unsigned how)
{
    if (how == 0)
        return tbd_bits_only(bits, in ? UINT64_MAX : 0);
    if (how == 1)
        return tbd_bits_only(bits, in ? 0 : UINT64_MAX);
    switch (below(4)) {
    case 0: return (struct tbd_bits){ 0, 0 };
    case 1: return tbd_bits_only(bits, random64());
    default: return bits;
    }
}

static void explain(const char *what, unsigned number, struct tbd_bits said, struct tbd_bits truth)
{
    ZydisFormatter formatter;
    char text[128];

    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    ZydisFormatterFormatInstruction(&formatter, &run.decoded, run.operands,
                                    run.decoded.operand_count_visible, text, sizeof(text),
                                    run.insn->address, NULL);
    fprintf(stderr, "%s: %s %u: said %#lx (known %#lx), is %#lx\n", text, what, number,
            (unsigned long)said.value, (unsigned long)said.known, (unsigned long)truth.value);
    for (unsigned i = 0; i < 16; i++)
        fprintf(stderr, "  r%u %#lx -> %#lx\n", i, (unsigned long)run.before.gpr[i],
                (unsigned long)run.after.gpr[i]);
    fprintf(stderr, "  flags %#lx -> %#lx\n", (unsigned long)run.before.flags,
            (unsigned long)run.after.flags);
}

static void check(const char *what, unsigned number, struct tbd_bits said, struct tbd_bits truth)
{
    if (((said.value ^ truth.value) & said.known & truth.known) == 0)
        return;
    explain(what, number, said, truth);
    fail();
}

/* `how` 0: all inputs are shown and no outputs; 1: the other way round; else a random part of everything. */
static void solve_hidden(struct tbd_solver *solver, unsigned how)
{
    const struct tbd_sim_insn *insn = run.insn;

    tbd_solver_begin(solver, insn);
    for (unsigned i = 0; i < insn->read_count; i++)
        tbd_solver_learn(solver, insn->reads[i].slot,
                         hidden(truth_of_place(&run.before, insn->reads[i].place), true, how));
    for (unsigned i = 0; i < insn->write_count; i++)
        tbd_solver_learn(solver, insn->writes[i].slot,
                         hidden(truth_of_place(&run.after, insn->writes[i].place), false, how));
    for (unsigned i = 0; i < insn->memory_count; i++)
        tbd_solver_learn(solver, insn->memory[i].data,
                         hidden(truth_of_memory(&insn->memory[i]), !insn->memory[i].write, how));
    if (insn->next != TBD_INSN_NO_SLOT && insn->conditional)
        tbd_solver_learn(solver, insn->next, hidden(tbd_bits_of(run.taken), false, how));
    else if (insn->next != TBD_INSN_NO_SLOT)
        tbd_solver_learn(solver, insn->next, hidden(tbd_bits_of(native_landing()), false, how));
    tbd_solver_solve(solver, insn);
    if (solver->conflict) {
        explain("conflict", how, (struct tbd_bits){ 0, 0 }, (struct tbd_bits){ 0, 0 });
        fail();
    }
}

static void check_solved(const struct tbd_solver *solver)
{
    const struct tbd_sim_insn *insn = run.insn;

    for (unsigned i = 0; i < insn->read_count; i++)
        check("read", insn->reads[i].place, solver->slot[insn->reads[i].slot],
              truth_of_place(&run.before, insn->reads[i].place));
    for (unsigned i = 0; i < insn->write_count; i++)
        check("written", insn->writes[i].place, solver->slot[insn->writes[i].slot],
              truth_of_place(&run.after, insn->writes[i].place));
    for (unsigned i = 0; i < insn->memory_count; i++)
        check("memory", i, solver->slot[insn->memory[i].data], truth_of_memory(&insn->memory[i]));
    if (insn->next != TBD_INSN_NO_SLOT)
        check("next", 0, solver->slot[insn->next],
              tbd_bits_of(insn->conditional ? run.taken : native_landing()));
}

/* ---- what is not said to change does not change ---- */

static bool is_written(unsigned place)
{
    for (unsigned i = 0; i < run.insn->write_count; i++)
        if (run.insn->writes[i].place == place)
            return true;
    return false;
}

static void check_places(void)
{
    struct tbd_bits expected[TBD_PLACE_COUNT];

    for (unsigned i = 0; i < TBD_PLACE_COUNT; i++)
        expected[i] = truth_of_place(&run.before, i);
    for (unsigned i = 0; i < run.insn->copy_count; i++)
        expected[run.insn->copies[i].to] =
            run.insn->copies[i].from == TBD_PLACE_COUNT
                ? tbd_bits_of(0)
                : truth_of_place(&run.before, run.insn->copies[i].from);
    for (unsigned i = 0; i < TBD_PLACE_COUNT; i++)
        if (!is_written(i))
            check("unwritten", i, expected[i], truth_of_place(&run.after, i));
}

static void check_memory(void)
{
    static bool may_change[NATIVE_MEMORY];
    uint64_t at;

    memset(may_change, 0, sizeof(may_change));
    for (unsigned i = 0; i < run.insn->memory_count; i++) {
        const struct tbd_insn_memory *memory = &run.insn->memory[i];
        uint64_t bytes = true_bytes(memory);

        if (!memory->write || !true_address(memory, &at))
            continue;
        for (uint64_t k = 0; k < bytes && at + k < NATIVE_MEMORY; k++)
            may_change[at + k] = true;
    }
    for (unsigned i = 0; i < NATIVE_MEMORY && !run.insn->barrier; i++)
        if (!may_change[i] && native_memory[i] != run.memory_before[i])
            check("memory at", i, tbd_bits_of(run.memory_before[i]), tbd_bits_of(native_memory[i]));
}

/* Are all outputs found from all inputs, but for flags? */
static bool is_found(const struct tbd_solver *solver)
{
    for (unsigned i = 0; i < run.insn->write_count; i++) {
        unsigned place = run.insn->writes[i].place;

        if (place != TBD_PLACE_FLAGS && (truth_of_place(&run.after, place).known &
                                         ~solver->slot[run.insn->writes[i].slot].known))
            return false;
    }
    return true;
}

/* False: the instruction faulted, or cannot be run here. */
static bool try_instruction(size_t length, bool *out_found)
{
    struct tbd_solver solver;
    bool ran;

    run.insn = NULL;
    ran = execute(length);
    if (ran && run.insn->kind != TBD_INSN_HAVOC) {
        check_places();
        check_memory();
        for (unsigned how = 0; how < HIDINGS; how++) {
            solve_hidden(&solver, how);
            check_solved(&solver);
            if (how == 0)
                *out_found = is_found(&solver);
        }
    }
    tbd_insn_free(run.insn);
    return ran;
}

static unsigned rounds(unsigned usual)
{
    const char *text = getenv("SIMULATE_ROUNDS");

    return text ? (unsigned)strtoul(text, NULL, 10) : usual;
}

/* Rows that may run natively here, of which not even one in a hundred gives a result from its inputs, do nothing. */
static void test_every_row_agrees_with_the_processor(void **state)
{
    (void)state;
    assert_true(native_begin()); /* after cmocka's handlers of faults, in their place */
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        unsigned ran = 0, found = 0, left = rounds(60) * TRIES;
        ZyanUSize length;
        bool all = false;
        enum operands operands = strncmp(table[row].form, "mask_", 5) == 0 ? MASKS
                                 : strncmp(table[row].form, "vector_", 7) == 0 ||
                                         strcmp(table[row].form, "scalar_move") == 0
                                     ? VECTORS
                                     : GENERAL;

        if (table[row].mnemonic == ZYDIS_MNEMONIC_SYSCALL ||
            strncmp(table[row].form, "state_", 6) == 0) /* more than the memory here */
            continue;
        while (left-- > 0 && ran < rounds(60)) {
            if (!encode(table[row].mnemonic, operands, &length) || !try_instruction(length, &all))
                continue;
            ran++;
            found += all;
        }
        if (getenv("SIMULATE_VERBOSE"))
            fprintf(stderr, "%-12s ran %u, all results found %u\n", table[row].name, ran, found);
        if (ran > 20 && found == 0)
            fail_msg("%s: its results are never found", table[row].name);
    }
}

/* ---- any instruction, also what the table does not have ---- */

/* What would change the state of this process, or lead away from it. */
static bool is_harmful(void)
{
    ZydisInstructionAttributes bad =
        ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS | ZYDIS_ATTRIB_IS_PRIVILEGED;

    switch (run.decoded.meta.category) {
    case ZYDIS_CATEGORY_X87_ALU:
    case ZYDIS_CATEGORY_MMX:
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_SCATTER:
    case ZYDIS_CATEGORY_CET: return true;
    default: break;
    }
    switch (run.decoded.mnemonic) {
    case ZYDIS_MNEMONIC_LDMXCSR:
    case ZYDIS_MNEMONIC_VLDMXCSR:
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_WRPKRU: return true;
    default: return (run.decoded.attributes & bad) != 0;
    }
}

static bool random_bytes(ZyanUSize *length)
{
    ZydisDecoder decoder;

    for (unsigned i = 0; i < 16; i++)
        native_code[i] = (uint8_t)random64();
    switch (below(5)) {
    case 0: native_code[0] = 0x0f; break;
    case 1: native_code[0] = 0xc4; break;
    case 2: native_code[0] = 0x62; break;
    case 3: memcpy(native_code, (const uint8_t[2]){ 0x66, 0x0f }, 2); break;
    default: break;
    }
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder, native_code, 15, &run.decoded, run.operands)) ||
        run.decoded.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || is_harmful())
        return false;
    *length = run.decoded.length;
    return true;
}

static bool is_havoc(size_t length)
{
    struct tbd_sim_insn *insn;
    bool havoc =
        tbd_insn_make((uint64_t)(uintptr_t)native_code, native_code, length, &insn) != TBD_OK ||
        insn->kind == TBD_INSN_HAVOC || insn->kind == TBD_INSN_SYSCALL ||
        insn->kind == TBD_INSN_RESTORE; /* the simulation renews its places */

    tbd_insn_free(insn);
    return havoc;
}

static void test_any_instruction_changes_only_what_it_is_said_to(void **state)
{
    unsigned ran = 0, left = rounds(60) * 8000;
    ZyanUSize length;
    bool all;

    (void)state;
    assert_true(native_begin());
    while (left-- > 0 && ran < rounds(60) * 100)
        if (random_bytes(&length) && !is_havoc(length))
            ran += try_instruction(length, &all);
    assert_true(ran > 100);
}

/* ---- sequences: a simulation, against what each step's registers were ---- */

enum { STEPS = 600 };

struct truth {
    struct native_state before;
};

static struct truth truths[STEPS + 1];
static uint8_t memory_at_end[NATIVE_MEMORY];

static void add_step(struct tbd_simulation *sim, size_t *count, size_t length)
{
    assert_int_equal(tbd_simulation_add(sim, (uint64_t)(uintptr_t)native_code, native_code, length),
                     TBD_OK);
    (*count)++;
}

static bool repeats_often(void)
{
    return (run.decoded.attributes &
            (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) &&
           run.before.gpr[1] > 16;
}

static bool reaches_memory(void)
{
    if (is_far() || repeats_often())
        return false;
    for (unsigned i = 0; i < run.decoded.operand_count; i++) {
        const ZydisDecodedOperandMem *mem = &run.operands[i].mem;

        if (run.operands[i].type != ZYDIS_OPERAND_TYPE_MEMORY)
            continue;
        if (!is_general(mem->base) || !is_general(mem->index))
            return false;
        if (!is_inside(effective(mem)))
            return false;
    }
    return true;
}

static bool decode(size_t length)
{
    ZydisDecoder decoder;

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return ZYAN_SUCCESS(
               ZydisDecoderDecodeFull(&decoder, native_code, length, &run.decoded, run.operands)) &&
           run.decoded.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE &&
           run.decoded.mnemonic != ZYDIS_MNEMONIC_SYSCALL && !is_harmful() &&
           run.decoded.mnemonic != ZYDIS_MNEMONIC_POPFQ;
}

static bool try_step(struct tbd_simulation *sim, size_t *count, size_t length)
{
    if (!decode(length) || !reaches_memory())
        return false;
    truths[*count].before = run.before;
    memcpy(run.memory_before, native_memory, NATIVE_MEMORY);
    if (!native_run(&run.before, length, &run.after, &run.taken)) {
        memcpy(native_memory, run.memory_before, NATIVE_MEMORY);
        return false;
    }
    add_step(sim, count, length);
    run.before = run.after;
    return true;
}

/* mov r64, an address in memory. */
static void give_pointer(struct tbd_simulation *sim, size_t *count)
{
    ZydisEncoderRequest request;
    ZyanUSize length = 15;

    memset(&request, 0, sizeof(request));
    request.machine_mode = ZYDIS_MACHINE_MODE_LONG_64;
    request.mnemonic = ZYDIS_MNEMONIC_MOV;
    request.operand_count = 2;
    request.operands[0].type = ZYDIS_OPERAND_TYPE_REGISTER;
    request.operands[0].reg.value = random_general(64);
    request.operands[1].type = ZYDIS_OPERAND_TYPE_IMMEDIATE;
    request.operands[1].imm.u = somewhere();
    if (ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&request, native_code, &length)))
        try_step(sim, count, length);
}

static void run_sequence(struct tbd_simulation *sim)
{
    size_t count = 0;
    ZyanUSize length;

    random_state(&run.before);
    while (count < STEPS) {
        size_t row = below(sizeof(table) / sizeof(table[0]));

        if (below(3) == 0)
            row = below(60);
        if (below(10) == 0)
            give_pointer(sim, &count);
        if (count < STEPS && encode(table[row].mnemonic, row > 130 ? VECTORS : GENERAL, &length))
            try_step(sim, &count, length);
    }
    truths[STEPS].before = run.before;
    memcpy(memory_at_end, native_memory, NATIVE_MEMORY);
}

static struct tbd_bits end_memory(void *arg, uint64_t address)
{
    uint64_t at = address - (uint64_t)(uintptr_t)native_memory, value;

    (void)arg;
    if (at >= NATIVE_MEMORY)
        return (struct tbd_bits){ 0, 0 };
    memcpy(&value, memory_at_end + at, 8);
    return tbd_bits_of(value);
}

struct tally {
    size_t exact, inferred, wrong, unknown;
};

static void judge(struct tbd_simulated said, struct tbd_bits truth, struct tally *tally)
{
    uint64_t differs = (said.bits.value ^ truth.value) & said.bits.known & truth.known;

    if (truth.known == 0)
        return;
    assert_true((said.exact & ~said.bits.known) == 0);
    if (differs & said.exact)
        fail_msg("exact %#lx is %#lx", (unsigned long)said.bits.value, (unsigned long)truth.value);
    if (differs != 0)
        tally->wrong++;
    else if ((truth.known & ~said.exact) == 0)
        tally->exact++;
    else if ((truth.known & ~said.bits.known) == 0)
        tally->inferred++;
    else
        tally->unknown++;
}

static void test_a_simulation_agrees_with_each_step(void **state)
{
    struct tbd_simulation_source source = { .final = end_memory };

    (void)state;
    assert_true(native_begin());
    for (unsigned n = 0; n < rounds(60) / 10; n++) {
        struct tbd_simulation *sim;
        struct tally tally = { 0, 0, 0, 0 };

        assert_int_equal(tbd_simulation_new(&source, &sim), TBD_OK);
        run_sequence(sim);
        for (unsigned place = 0; place < TBD_PLACE_COUNT; place++)
            tbd_simulation_know(sim, place, truth_of_place(&truths[STEPS].before, place));
        assert_int_equal(tbd_simulation_run(sim, true), TBD_OK);
        assert_int_equal(tbd_simulation_counts(sim).contradictions, 0);
        for (size_t i = 0; i <= STEPS; i++)
            for (unsigned place = 0; place < TBD_PLACE_DF; place++)
                judge(tbd_simulation_place(sim, i, place), truth_of_place(&truths[i].before, place),
                      &tally);
        if (getenv("SIMULATE_VERBOSE"))
            fprintf(stderr, "exact %zu, inferred %zu, wrong %zu, unknown %zu; %zu passes\n",
                    tally.exact, tally.inferred, tally.wrong, tally.unknown,
                    tbd_simulation_counts(sim).passes);
        assert_true(tally.exact > 17 * STEPS / 4);
        tbd_simulation_free(sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_agrees_with_the_processor),
        cmocka_unit_test(test_any_instruction_changes_only_what_it_is_said_to),
        cmocka_unit_test(test_a_simulation_agrees_with_each_step),
    };

    if (getenv("SIMULATE_SEED"))
        seed = strtoull(getenv("SIMULATE_SEED"), NULL, 10) | 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
