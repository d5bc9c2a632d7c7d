// SPDX-License-Identifier: MIT
/* lower_transfer.c - see lower.h: jumps, branches, calls and returns, with the calling context */
#include "patcher/lower.h"

#include "patcher/templates.h"

#define RECORDED_AT_CALL                                                                           \
    ((uint16_t)(TBD_BIT(TBD_RDI) | TBD_BIT(TBD_RSI) | TBD_BIT(TBD_RDX) | TBD_BIT(TBD_RCX) |        \
                TBD_BIT(TBD_R8) | TBD_BIT(TBD_R9)))

/* ---- calling context ---- */

static void set_due(struct tbd_translation *t, enum tbd_calling_due due, unsigned reg)
{
    t->due = due;
    t->due_reg = (uint8_t)reg;
    tbd_place_note(t);
}

static void choose_scratch(struct tbd_translation *t, uint16_t avoid, uint8_t *scratch,
                           unsigned count)
{
    for (unsigned n = 0; n < count; n++) {
        scratch[n] = (uint8_t)tbd_place_scratch(t, avoid);
        avoid |= TBD_BIT(scratch[n]);
    }
}

/* A call is about to push; `avoid`: registers that it needs.  Returns the one that has the value from here on, or TBD_NO_REG. */
static unsigned keep_calling(struct tbd_translation *t, uint16_t avoid)
{
    uint8_t scratch[2];

    if (!t->calling)
        return TBD_NO_REG;
    choose_scratch(t, avoid, scratch, 2);
    tbd_hook_calling_keep(&t->e, scratch);
    return scratch[1];
}

/* The return address has been pushed; `value`: from keep_calling(). */
static void enter_calling(struct tbd_translation *t, uint64_t return_address, unsigned value)
{
    static const uint8_t others[TBD_CALLING_SCHEMES] = {
        [TBD_CALLING_SUM] = 1, [TBD_CALLING_XOR] = 2
    };
    uint8_t scratch[TBD_CALLING_SCRATCH] = { (uint8_t)value };

    if (value == TBD_NO_REG)
        return;
    t->phase = TBD_PHASE_TAIL;
    set_due(t, TBD_CALLING_DUE_ENTER, 0);
    choose_scratch(t, TBD_BIT(TBD_R11) | TBD_BIT(value), scratch + 1, others[t->calling]);
    tbd_hook_calling_enter(&t->e, t->calling, t->call_number(return_address), scratch);
    set_due(t, TBD_CALLING_DUE_NOTHING, 0);
}

/* Into a register: the value that was kept for the return address at rsp. */
static unsigned get_calling(struct tbd_translation *t)
{
    unsigned s;

    if (!t->calling)
        return TBD_NO_REG;
    s = tbd_place_scratch(t, TBD_BIT(TBD_R11));
    tbd_hook_calling_get(&t->e, s);
    return s;
}

/* The transfer is done but for its jump. */
static void set_calling(struct tbd_translation *t, unsigned reg)
{
    if (reg == TBD_NO_REG)
        return;
    t->phase = TBD_PHASE_TAIL;
    set_due(t, TBD_CALLING_DUE_SET, reg);
    tbd_hook_calling_set(&t->e, reg);
    set_due(t, TBD_CALLING_DUE_NOTHING, 0);
}

/* Not push, pop, nor a constant more or less than rsp or the frame pointer: longjmp, exceptions, other switches of
 * stacks; and some that are none (a function that was resolved late is jumped to with rsp out of rbx). */
static bool is_stack_switch(const struct tbd_insn *insn)
{
    uint16_t reads = insn->reads & (uint16_t)~TBD_BIT(TBD_RSP);

    if (insn->kind != TBD_INSN_PLAIN || !(insn->writes & TBD_BIT(TBD_RSP)) || insn->stack_add)
        return false;
    if (insn->copy_dst == TBD_RSP)
        return insn->copy_src != TBD_RSP && insn->copy_src != TBD_RBP;
    return reads != TBD_BIT(TBD_RBP) && (reads || !(insn->reads & TBD_BIT(TBD_RSP)));
}

/* Does the block?  Then the engine finds the calling context at its end. */
static bool switches_stack(const struct tbd_translation *t)
{
    if (!t->calling)
        return false;
    for (uint32_t n = 0; n < t->cut->count; n++)
        if (is_stack_switch(&t->cut->insn[n]))
            return true;
    return false;
}

/* ---- leaving ---- */

static void end_record(struct tbd_translation *t)
{
    tbd_hook_block_end(&t->e, t->cut->record_before[t->cut->count]);
}

/* Everything except the jumps is done. */
static void begin_tail(struct tbd_translation *t)
{
    tbd_lower_phase(t, TBD_PHASE_TAIL);
    tbd_branch_code_put_down(t);
    tbd_place_finish(t);
    end_record(t);
    t->tail = tbd_emit_pc(&t->e);
}

static void exit_direct(struct tbd_translation *t, uint8_t *rel32, uint64_t target)
{
    t->exit[t->exit_count++] = (struct tbd_direct_exit){ .rel32 = rel32, .target = target };
}

static void jump_direct(struct tbd_translation *t, uint64_t target)
{
    exit_direct(t, tbd_emit_jmp(&t->e, tbd_emit_pc(&t->e)), target);
}

/* Leaves through the area's exit jump, with this block's index. */
void tbd_lower_leave(struct tbd_translation *t, enum tbd_exit_kind kind)
{
    tbd_emit_store_gs_imm(&t->e, TBD_THREAD_GS(exit_arg), t->block);
    tbd_emit_jmp(&t->e, t->head[kind]);
}

void tbd_lower_finish_and_leave(struct tbd_translation *t, enum tbd_exit_kind kind)
{
    begin_tail(t);
    tbd_lower_leave(t, kind);
}

void tbd_lower_finish_and_jump(struct tbd_translation *t, uint64_t target)
{
    begin_tail(t);
    jump_direct(t, target);
}

void tbd_lower_jump(struct tbd_translation *t, const struct tbd_insn *insn)
{
    tbd_branch_code_jump(t, insn);
    tbd_lower_finish_and_jump(t, insn->target);
}

/* The jump leads to what comes next. */
static void land(struct tbd_translation *t, uint8_t *rel32)
{
    uint32_t distance = (uint32_t)(t->e.at - (rel32 + 4));

    if (!t->e.overflow)
        __builtin_memcpy(rel32, &distance, sizeof(distance));
}

/* Before a conditional jump: a block can only give up the jump after it (CACHE-4) if a whole jump can lie before the displacement. */
static void pad_short_block(struct tbd_translation *t)
{
    uint64_t least = TBD_JUMP_BYTES - TBD_JCC_OPCODE_BYTES;
    uint64_t used = tbd_emit_pc(&t->e) - t->begin;

    if (used < least)
        tbd_emit_nop(&t->e, (unsigned)(least - used));
}

void tbd_lower_branch(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint8_t *rel32;

    begin_tail(t);
    pad_short_block(t);
    rel32 = tbd_emit_jcc(&t->e, insn->opcode & 15, tbd_emit_pc(&t->e));
    if (tbd_branch_code_counts(t, insn)) {
        jump_direct(t, insn->pc + insn->length);
        land(t, rel32);
        tbd_branch_code_take(t, insn);
        jump_direct(t, insn->target);
        return;
    }
    exit_direct(t, rel32, insn->target);
    jump_direct(t, insn->pc + insn->length);
}

/* jrcxz, loop: over a jump to the next instruction. */
void tbd_lower_branch_rcx(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint8_t *disp8;

    begin_tail(t);
    tbd_emit_bytes(&t->e, insn->bytes, insn->length);
    disp8 = t->e.at - 1;
    jump_direct(t, insn->pc + insn->length);
    tbd_emit_land8(&t->e, disp8);
    jump_direct(t, insn->target);
}

/* If there is no such address, the engine must find the branch (TBD_EXIT_NOWHERE): where entries are written, the last one tells it, too. */
static void say_left(struct tbd_translation *t)
{
    if (!t->says_left)
        return;
    tbd_emit_store_gs_imm(&t->e, TBD_THREAD_GS(left), t->block);
}

/* r11 = target (target_to_r11): jump by the table of indirect targets. */
static void jump_by_table(struct tbd_translation *t)
{
    static const uint8_t movzx_r10_r11[] = { 0x45, 0x0f, 0xb7, 0xd3 };
    static const uint8_t jmp_gs_r10_8[] = { 0x65, 0x42, 0xff, 0x24, 0xd5 };

    tbd_lower_phase(t, TBD_PHASE_TAIL);
    tbd_place_finish(t);
    end_record(t);
    tbd_translate_foretold(t);
    say_left(t);
    tbd_emit_bytes(&t->e, movzx_r10_r11, sizeof(movzx_r10_r11));
    tbd_emit_bytes(&t->e, jmp_gs_r10_8, sizeof(jmp_gs_r10_8));
    tbd_emit_u32(&t->e, (uint32_t)TBD_THREAD_GS(ibl));
}

/* r11 = target: the engine finds the calling context, and jumps. */
static void leave_switched(struct tbd_translation *t)
{
    tbd_lower_phase(t, TBD_PHASE_TAIL);
    tbd_place_finish(t);
    end_record(t);
    say_left(t);
    tbd_emit_store_gs(&t->e, TBD_R11, TBD_THREAD_GS(exit_arg));
    tbd_emit_jmp(&t->e, t->head[TBD_EXIT_SWITCH]);
}

/* Loads the target of an indirect jump or call into r11, which is no substitute (prepare_transfer);
 * if the operand names the program's r11, its value is still there. */
static void target_to_r11(struct tbd_translation *t, const struct tbd_insn *insn)
{
    const struct tbd_access *a = &insn->access[0];
    struct tbd_ea ea;

    tbd_place_spill(t, TBD_R11);
    if (insn->field[TBD_FIELD_RM] != TBD_NO_REG) {
        if (tbd_place_hw(t, insn->field[TBD_FIELD_RM]) != TBD_R11)
            tbd_emit_mov(&t->e, TBD_R11, tbd_place_hw(t, insn->field[TBD_FIELD_RM]));
        return;
    }
    ea = tbd_lower_ea(t, &a->ea);
    if (insn->gs) {
        tbd_lower_gs_operand(t, insn, TBD_R11, tbd_lower_mask(t, insn->reads));
        ea = tbd_lower_at(TBD_R11);
    } else if (insn->rip_relative && !tbd_emit_reaches(&t->e, insn->target)) {
        tbd_emit_mov_imm(&t->e, TBD_R11, insn->target);
        ea = tbd_lower_at(TBD_R11);
    }
    tbd_emit_load(&t->e, TBD_R11, &ea, 8);
}

/* The report comes first: its registers can then be substitutes. */
static void report_transfer(struct tbd_translation *t)
{
    const struct tbd_op *call = tbd_lower_op(t, 0, TBD_OP_CALL);
    const struct tbd_op *ret = tbd_lower_op(t, 0, TBD_OP_RET);
    uint16_t reported = TBD_BIT(TBD_RSP);

    if (call)
        reported |= RECORDED_AT_CALL;
    if (ret)
        reported |= TBD_BIT(TBD_RAX);
    tbd_lower_need(t, reported, reported);
    if (call)
        tbd_hook_call(&t->e, call->data);
    if (ret)
        tbd_hook_return(&t->e, ret->data);
}

/* r11, which will have the target of an indirect transfer, must not be a substitute. */
static uint16_t prepare_transfer(struct tbd_translation *t, const struct tbd_insn *insn)
{
    report_transfer(t);
    tbd_place_evict(t, TBD_R11);
    tbd_lower_need(t, insn->reads | TBD_BIT(TBD_RSP), insn->reads | TBD_BIT(TBD_R11));
    return tbd_lower_mask(t, insn->reads | TBD_BIT(TBD_RSP));
}

/* The engine executes it; registers of a call or return are reported here. */
void tbd_lower_special(struct tbd_translation *t)
{
    bool reports = tbd_lower_op(t, 0, TBD_OP_CALL) || tbd_lower_op(t, 0, TBD_OP_RET);

    tbd_lower_phase(t, TBD_PHASE_HOOK);
    if (reports)
        report_transfer(t);
    tbd_lower_finish_and_leave(t, TBD_EXIT_SPECIAL);
}

static void push_return_address(struct tbd_translation *t, uint64_t address, uint16_t avoid)
{
    unsigned s;

    if ((int64_t)address == (int32_t)address) {
        tbd_emit_push_imm(&t->e, (int32_t)address);
        return;
    }
    s = tbd_place_scratch(t, avoid);
    if (tbd_emit_reaches(&t->e, address))
        tbd_emit_lea(
            &t->e, s,
            &(struct tbd_ea){ .disp = (int64_t)address, .base = TBD_NO_REG, .index = TBD_NO_REG });
    else
        tbd_emit_mov_imm(&t->e, s, address);
    tbd_emit_push(&t->e, s);
}

/* With the calling context.  `avoid`: registers that stay as they are. */
static void push_for_call(struct tbd_translation *t, uint64_t return_address, uint16_t avoid)
{
    unsigned value = keep_calling(t, avoid);

    if (value != TBD_NO_REG)
        avoid |= TBD_BIT(value);
    push_return_address(t, return_address, avoid);
    enter_calling(t, return_address, value);
}

void tbd_lower_call(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint16_t avoid;

    tbd_lower_phase(t, TBD_PHASE_HOOK);
    tbd_branch_code_call(t, insn->pc + insn->length);
    avoid = prepare_transfer(t, insn);
    tbd_lower_hooks(t, avoid);
    push_for_call(t, insn->pc + insn->length, avoid);
    tbd_lower_finish_and_jump(t, insn->target);
}

/* Nothing is reported (foretell.c), and no register is read. */
static void lower_call_constant(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint64_t return_address = insn->pc + insn->length;

    tbd_lower_phase(t, TBD_PHASE_HOOK);
    tbd_branch_code_call(t, return_address);
    push_for_call(t, return_address, 0);
    tbd_lower_finish_and_jump(t, t->foretold);
}

void tbd_lower_call_indirect(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint16_t avoid;

    if (t->is_constant) {
        lower_call_constant(t, insn);
        return;
    }
    tbd_lower_phase(t, TBD_PHASE_HOOK);
    tbd_branch_code_call(t, insn->pc + insn->length);
    avoid = prepare_transfer(t, insn);
    tbd_lower_hooks(t, avoid);
    target_to_r11(t, insn);
    push_for_call(t, insn->pc + insn->length, TBD_BIT(TBD_R11));
    jump_by_table(t);
}

void tbd_lower_jump_indirect(struct tbd_translation *t, const struct tbd_insn *insn)
{
    if (t->is_constant && !switches_stack(t)) {
        tbd_lower_finish_and_jump(t, t->foretold);
        return;
    }
    tbd_lower_phase(t, TBD_PHASE_HOOK);
    tbd_branch_code_put_down(t);
    tbd_lower_hooks(t, prepare_transfer(t, insn));
    target_to_r11(t, insn);
    if (switches_stack(t))
        leave_switched(t);
    else
        jump_by_table(t);
}

void tbd_lower_return(struct tbd_translation *t, const struct tbd_insn *insn)
{
    unsigned kept;

    tbd_lower_phase(t, TBD_PHASE_HOOK);
    tbd_branch_code_forget(t);
    tbd_lower_hooks(t, prepare_transfer(t, insn));
    tbd_place_spill(t, TBD_R11);
    kept = get_calling(t);
    tbd_lower_phase(t, TBD_PHASE_INSN);
    tbd_emit_pop(&t->e, TBD_R11);
    if (insn->pop_bytes)
        tbd_emit_lea(
            &t->e, TBD_RSP,
            &(struct tbd_ea){
                .disp = insn->pop_bytes, .base = TBD_RSP, .index = TBD_NO_REG, .scale = 1 });
    set_calling(t, kept);
    if (switches_stack(t))
        leave_switched(t);
    else
        jump_by_table(t);
}
