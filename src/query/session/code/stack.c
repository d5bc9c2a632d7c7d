// SPDX-License-Identifier: MIT
/* stack.c - finds the list of callers from registers and memory
 *
 * One step finds the caller's registers from the callee's.  In this order:
 *   1. call frame information for call_pc (libdw evaluates the table, we evaluate its expressions)
 *   2. at a function's first instruction, in an import stub, or outside all modules (a call through
 *      a wild pointer): the return address is at sp
 *   3. the frame pointer chain
 *   4. the first word up the stack that points just after a call instruction
 * Frames from 3 and 4 are guesses, and are marked so.
 *
 * STACK-1  A caller's sp is above its callee's, except across a signal frame (alternate stack),
 *     where a repeated sp ends the walk: so it ends.
 * STACK-2  Nothing is read but through the callback and the modules' files. (not checked: its
 *     callback is all that it has) */
#include "query/session/code/stack.h"

#include "base/assert.h"
#include "query/debuginfo/elf_file.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define EXPRESSION_DEPTH   64
#define EXPRESSION_MAX_OPS 512
#define SCAN_WORDS         512
#define DWARF_RBX          3
#define DWARF_RA           16
#define CALLEE_SAVED                                                                               \
    (1u << TBD_RBX | 1u << TBD_RBP | 1u << TBD_R12 | 1u << TBD_R13 | 1u << TBD_R14 | 1u << TBD_R15)

struct stack_walk {
    struct tbd_symbols *symbols;
    uint32_t window;
    const struct tbd_stack_memory *memory;
};

/* System V ABI, figure 3.36: DWARF register numbers. */
static const uint8_t reg_of_dwarf[TBD_REG_COUNT] = { TBD_RAX, TBD_RDX, TBD_RCX, TBD_RBX,
                                                     TBD_RSI, TBD_RDI, TBD_RBP, TBD_RSP,
                                                     TBD_R8,  TBD_R9,  TBD_R10, TBD_R11,
                                                     TBD_R12, TBD_R13, TBD_R14, TBD_R15 };

static bool read_word(const struct stack_walk *walk, uint64_t address, uint64_t *out)
{
    return walk->memory->read(walk->memory->context, address, out, sizeof(*out));
}

static void set_reg(struct tbd_frame *frame, unsigned reg, uint64_t value)
{
    frame->gpr[reg] = value;
    frame->known |= 1u << reg;
}

static bool dwarf_reg(const struct tbd_frame *frame, uint64_t number, uint64_t *out)
{
    if (number == DWARF_RA) {
        *out = frame->pc;
        return true;
    }
    if (number >= TBD_REG_COUNT || !(frame->known >> reg_of_dwarf[number] & 1))
        return false;
    *out = frame->gpr[reg_of_dwarf[number]];
    return true;
}

/* ---- DWARF expressions, as far as call frame information uses them ---- */

struct evaluation {
    const struct stack_walk *walk;
    const struct tbd_frame *frame; /* the callee */
    uint64_t stack[EXPRESSION_DEPTH];
    size_t depth;
    bool is_value; /* the result is the value, not its address */
};

static bool push(struct evaluation *e, uint64_t value)
{
    if (e->depth == EXPRESSION_DEPTH)
        return false;
    e->stack[e->depth++] = value;
    return true;
}

static bool pop(struct evaluation *e, uint64_t *out)
{
    if (e->depth == 0)
        return false;
    *out = e->stack[--e->depth];
    return true;
}

static bool binary(uint8_t atom, uint64_t a, uint64_t b, uint64_t *out)
{
    switch (atom) {
    case DW_OP_and: *out = a & b; return true;
    case DW_OP_or: *out = a | b; return true;
    case DW_OP_xor: *out = a ^ b; return true;
    case DW_OP_plus: *out = a + b; return true;
    case DW_OP_minus: *out = a - b; return true;
    case DW_OP_mul: *out = a * b; return true;
    case DW_OP_shl: *out = b < 64 ? a << b : 0; return true;
    case DW_OP_shr: *out = b < 64 ? a >> b : 0; return true;
    case DW_OP_eq: *out = a == b; return true;
    case DW_OP_ne: *out = a != b; return true;
    case DW_OP_lt: *out = (int64_t)a < (int64_t)b; return true;
    case DW_OP_le: *out = (int64_t)a <= (int64_t)b; return true;
    case DW_OP_gt: *out = (int64_t)a > (int64_t)b; return true;
    case DW_OP_ge: *out = (int64_t)a >= (int64_t)b; return true;
    default: return false;
    }
}

static bool push_reg(struct evaluation *e, uint64_t number, uint64_t add)
{
    uint64_t value;

    return dwarf_reg(e->frame, number, &value) && push(e, value + add);
}

static bool deref(struct evaluation *e, uint64_t bytes)
{
    uint64_t address, value = 0;

    return pop(e, &address) && bytes >= 1 && bytes <= 8 &&
           e->walk->memory->read(e->walk->memory->context, address, &value, bytes) &&
           push(e, value);
}

static bool pick(struct evaluation *e, uint64_t from_top)
{
    return from_top < e->depth && push(e, e->stack[e->depth - 1 - from_top]);
}

static bool swap(struct evaluation *e)
{
    uint64_t a, b;

    return pop(e, &a) && pop(e, &b) && push(e, a) && push(e, b);
}

static bool step_op(struct evaluation *e, const Dwarf_Op *op)
{
    uint64_t a, b, result;

    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
        return push(e, op->atom - DW_OP_lit0);
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
        return push_reg(e, op->atom - DW_OP_breg0, op->number);
    if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
        e->is_value = true;
        return push_reg(e, op->atom - DW_OP_reg0, 0);
    }
    switch (op->atom) {
    case DW_OP_addr:
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts: return push(e, op->number);
    case DW_OP_bregx: return push_reg(e, op->number, op->number2);
    case DW_OP_regx: e->is_value = true; return push_reg(e, op->number, 0);
    case DW_OP_call_frame_cfa: return push(e, e->frame->cfa);
    case DW_OP_dup: return pick(e, 0);
    case DW_OP_over: return pick(e, 1);
    case DW_OP_pick: return pick(e, op->number);
    case DW_OP_swap: return swap(e);
    case DW_OP_drop: return pop(e, &a);
    case DW_OP_deref: return deref(e, 8);
    case DW_OP_deref_size: return deref(e, op->number);
    case DW_OP_plus_uconst: return pop(e, &a) && push(e, a + op->number);
    case DW_OP_neg: return pop(e, &a) && push(e, 0 - a);
    case DW_OP_not: return pop(e, &a) && push(e, ~a);
    case DW_OP_nop: return true;
    case DW_OP_stack_value: e->is_value = true; return true;
    default: return pop(e, &b) && pop(e, &a) && binary(op->atom, a, b, &result) && push(e, result);
    }
}

/* Branches in expressions do not occur in frame information and are not followed. */
static bool evaluate(struct evaluation *e, const Dwarf_Op *ops, size_t count, uint64_t *out)
{
    if (count > EXPRESSION_MAX_OPS)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!step_op(e, &ops[i]))
            return false;
    return pop(e, out);
}

/* ---- call frame information ---- */

enum rule { RULE_UNKNOWN, RULE_SAME, RULE_VALUE };

static enum rule register_rule(const struct stack_walk *walk, const struct tbd_frame *frame,
                               Dwarf_Frame *cfi, unsigned number, uint64_t *out)
{
    struct evaluation e = { .walk = walk, .frame = frame };
    Dwarf_Op memory[3], *ops;
    size_t count;

    if (dwarf_frame_register(cfi, (int)number, memory, &ops, &count) != 0)
        return RULE_UNKNOWN;
    /* libdw's default rules for the ABI keep rax where they mean rbx (elfutils 0.188). */
    if (count == 0)
        return ops && number != DWARF_RBX ? RULE_UNKNOWN : RULE_SAME;
    if (!evaluate(&e, ops, count, out))
        return RULE_UNKNOWN;
    if (!e.is_value && !read_word(walk, *out, out))
        return RULE_UNKNOWN;
    return RULE_VALUE;
}

/* Sets frame->cfa: the CFA belongs to the callee, because it is computed from the callee's
 * registers. */
static bool compute_cfa(const struct stack_walk *walk, struct tbd_frame *frame, Dwarf_Frame *cfi)
{
    struct evaluation e = { .walk = walk, .frame = frame };
    Dwarf_Op *ops;
    size_t count;

    return dwarf_frame_cfa(cfi, &ops, &count) == 0 && count > 0 &&
           evaluate(&e, ops, count, &frame->cfa);
}

static void caller_regs(const struct stack_walk *walk, const struct tbd_frame *callee,
                        Dwarf_Frame *cfi, struct tbd_frame *out)
{
    for (unsigned number = 0; number < TBD_REG_COUNT; number++) {
        unsigned reg = reg_of_dwarf[number];
        uint64_t value = 0;
        enum rule rule = register_rule(walk, callee, cfi, number, &value);

        if (rule == RULE_VALUE)
            set_reg(out, reg, value);
        else if (rule == RULE_SAME && (CALLEE_SAVED & callee->known) >> reg & 1)
            set_reg(out, reg, callee->gpr[reg]);
    }
    if (!(out->known >> TBD_RSP & 1))
        set_reg(out, TBD_RSP, callee->cfa);
}

enum step { STEP_NO, STEP_CALLER, STEP_OUTERMOST };

static enum step apply_cfi(const struct stack_walk *walk, struct tbd_frame *callee,
                           Dwarf_Frame *cfi, struct tbd_frame *out)
{
    bool is_signal = false;
    int number = dwarf_frame_info(cfi, NULL, NULL, &is_signal);
    uint64_t pc = 0;
    enum rule rule;

    if (number < 0 || !compute_cfa(walk, callee, cfi))
        return STEP_NO;
    callee->is_signal_frame = is_signal;
    rule = register_rule(walk, callee, cfi, (unsigned)number, &pc);
    if (rule == RULE_UNKNOWN)
        return STEP_OUTERMOST; /* _start and clone mark in this way that they have no caller */
    if (rule == RULE_SAME && !dwarf_reg(callee, (unsigned)number, &pc))
        return STEP_NO;
    caller_regs(walk, callee, cfi, out);
    out->pc = pc;
    out->call_pc = is_signal ? pc : pc - 1;
    out->how = TBD_FRAME_CFI;
    return STEP_CALLER;
}

static enum step step_cfi(const struct stack_walk *walk, struct tbd_frame *callee,
                          struct tbd_frame *out)
{
    const struct tbd_module *module =
        tbd_symbols_module_at(walk->symbols, walk->window, callee->call_pc);
    Dwarf_Frame *cfi;
    enum step step;

    cfi = module ? tbd_elf_frame(module->file, callee->call_pc - module->bias) : NULL;
    /* A signal frame's information begins one byte before its first instruction, or at it. */
    if (!cfi && module && callee->call_pc != callee->pc)
        cfi = tbd_elf_frame(module->file, callee->pc - module->bias);
    if (!cfi)
        return STEP_NO;
    step = apply_cfi(walk, callee, cfi, out);
    free(cfi);
    return step;
}

/* ---- without information ---- */

static bool is_code(const struct stack_walk *walk, uint64_t address)
{
    const struct tbd_module *module = tbd_symbols_module_at(walk->symbols, walk->window, address);

    return module && tbd_elf_is_code(module->file, address - module->bias);
}

/* Does a call instruction end here?  E8 rel32, or FF /2 with any operand (2 to 7 bytes). */
static bool follows_call(const struct stack_walk *walk, uint64_t address)
{
    uint8_t bytes[8];

    if (address < sizeof(bytes) || !is_code(walk, address - 1) ||
        tbd_symbols_read_file(walk->symbols, walk->window, address - sizeof(bytes), bytes,
                              sizeof(bytes)) != sizeof(bytes))
        return false;
    if (bytes[3] == 0xe8)
        return true;
    for (size_t length = 2; length <= 7; length++)
        if (bytes[8 - length] == 0xff && (bytes[9 - length] & 0x38) == 0x10)
            return true;
    return false;
}

static void set_caller(const struct tbd_frame *callee, uint64_t pc, uint64_t sp,
                       enum tbd_frame_how how, struct tbd_frame *out)
{
    memcpy(out->gpr, callee->gpr, sizeof(out->gpr));
    out->known = callee->known & CALLEE_SAVED;
    set_reg(out, TBD_RSP, sp);
    out->pc = pc;
    out->call_pc = pc - 1;
    out->how = how;
}

/* At a function's first instruction nothing is pushed yet; an import stub never pushes before its
 * jump; after a call through a wild pointer the return address is at sp too. */
static bool has_pushed_nothing(const struct stack_walk *walk, uint64_t pc)
{
    struct tbd_symbol symbol;

    if (!tbd_symbols_at(walk->symbols, walk->window, pc, &symbol))
        return true;
    return symbol.name && (symbol.is_stub || (symbol.start == pc && !symbol.is_part));
}

/* Before a crash dump's end it may be unknown, and stand as 0. */
static bool has_stack_pointer(const struct tbd_frame *frame)
{
    return (frame->known >> TBD_RSP & 1) != 0;
}

static bool step_entry(const struct stack_walk *walk, struct tbd_frame *callee,
                       struct tbd_frame *out)
{
    uint64_t pc;

    if (callee->how != TBD_FRAME_REGS || !has_stack_pointer(callee) ||
        !has_pushed_nothing(walk, callee->pc) || !read_word(walk, callee->sp, &pc) ||
        !follows_call(walk, pc))
        return false;
    callee->cfa = callee->sp + 8;
    set_caller(callee, pc, callee->cfa, TBD_FRAME_ENTRY, out);
    return true;
}

static bool step_frame_pointer(const struct stack_walk *walk, struct tbd_frame *callee,
                               struct tbd_frame *out)
{
    uint64_t rbp = callee->gpr[TBD_RBP], saved, pc;

    if (!(callee->known >> TBD_RBP & 1) || rbp < callee->sp || rbp % 8 || rbp > UINT64_MAX - 16 ||
        !read_word(walk, rbp, &saved) || !read_word(walk, rbp + 8, &pc) || !follows_call(walk, pc))
        return false;
    callee->cfa = rbp + 16;
    set_caller(callee, pc, callee->cfa, TBD_FRAME_POINTER, out);
    set_reg(out, TBD_RBP, saved);
    return true;
}

static bool step_scan(const struct stack_walk *walk, struct tbd_frame *callee,
                      struct tbd_frame *out)
{
    uint64_t at = callee->sp & ~7ull, pc;

    if (!has_stack_pointer(callee))
        return false;
    for (unsigned i = 0; i < SCAN_WORDS && at <= UINT64_MAX - 16; i++, at += 8) {
        if (!read_word(walk, at, &pc))
            return false;
        if (!follows_call(walk, pc))
            continue;
        callee->cfa = at + 8;
        set_caller(callee, pc, callee->cfa, TBD_FRAME_SCAN, out);
        return true;
    }
    return false;
}

/* ---- the walk ---- */

static bool step(const struct stack_walk *walk, struct tbd_frame *callee, struct tbd_frame *out)
{
    enum step found = step_cfi(walk, callee, out);

    if (found == STEP_OUTERMOST)
        return false;
    if (found == STEP_NO) {
        *out = (struct tbd_frame){ 0 };
        if (!step_entry(walk, callee, out) && !step_frame_pointer(walk, callee, out) &&
            !step_scan(walk, callee, out))
            return false;
    }
    out->sp = out->gpr[TBD_RSP];
    return out->pc != 0 &&
           (callee->is_signal_frame ? out->sp != callee->sp : out->sp > callee->sp); /* STACK-1 */
}

enum tbd_status tbd_stack_unwind(struct tbd_symbols *symbols, uint32_t window,
                                 const struct tbd_regs *regs, const struct tbd_stack_memory *memory,
                                 struct tbd_frame *out, size_t max, size_t *out_count)
{
    struct stack_walk walk = { symbols, window, memory };
    size_t count = 1;

    *out_count = 0;
    if (max == 0)
        return TBD_USAGE;
    out[0] = (struct tbd_frame){ .pc = regs->rip,
                                 .call_pc = regs->rip,
                                 .sp = regs->gpr[TBD_RSP],
                                 .known = ((1u << TBD_REG_COUNT) - 1) & ~memory->unknown,
                                 .how = TBD_FRAME_REGS };
    memcpy(out[0].gpr, regs->gpr, sizeof(out[0].gpr));
    while (count < max) {
        out[count] = (struct tbd_frame){ 0 };
        if (!step(&walk, &out[count - 1], &out[count]))
            break;
        TBD_INVARIANT("STACK-1",
                      out[count].sp > out[count - 1].sp ||
                          (out[count - 1].is_signal_frame && out[count].sp != out[count - 1].sp));
        count++;
    }
    *out_count = count;
    return TBD_OK;
}
