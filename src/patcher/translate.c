// SPDX-License-Identifier: MIT
/* translate.c - lowering: the code for each instruction of the program
 *
 * The block: [exit when its code has changed] [tagged entry] [comparison of its code] entry store,
 * then for each instruction its hooks and itself, then the exit.  Operands are written relative to
 * the record's start; r14 moves once, after the last instruction that can fault.
 *
 * TRANSLATE-4  Hooks stand before the instruction and read its addresses from the registers before
 *     it. (not checked: test_patcher_random compares registers, flags and records with the
 *     processor's)
 * TRANSLATE-5  An indirect exit has the target in r11, and the program's registers where they are
 *     at every exit. (not checked: test_patcher_random compares registers, flags and records with
 *     the processor's)
 */
#include "patcher/translate.h"

#include "patcher/asked_places.h"
#include "patcher/templates.h"

#define RECORDED_AT_CALL                                                                           \
    ((uint16_t)(TBD_BIT(TBD_RDI) | TBD_BIT(TBD_RSI) | TBD_BIT(TBD_RDX) | TBD_BIT(TBD_RCX) |        \
                TBD_BIT(TBD_R8) | TBD_BIT(TBD_R9)))

static void set_phase(struct tbd_translation *t, enum tbd_phase phase)
{
    t->phase = phase;
    tbd_place_note(t);
}

static uint16_t hw_mask(const struct tbd_translation *t, uint16_t registers)
{
    uint16_t mask = registers & (0x3fff | t->place.own);

    for (unsigned left = registers & (uint16_t)~mask; left; left &= left - 1) {
        unsigned hw = tbd_place_hw(t, (unsigned)__builtin_ctz(left));

        if (hw != TBD_NO_REG)
            mask |= TBD_BIT(hw);
    }
    return mask;
}

/* `avoid` has all of these but rsp. */
static void need_all(struct tbd_translation *t, uint16_t registers, uint16_t avoid)
{
    for (unsigned left = registers & (uint16_t)~t->place.own; left; left &= left - 1)
        tbd_place_need(t, (unsigned)__builtin_ctz(left), avoid);
}

/* ---- addresses for hooks ---- */

static struct tbd_ea hw_ea(const struct tbd_translation *t, const struct tbd_ea *ea)
{
    struct tbd_ea hw = *ea;

    if (ea->base != TBD_NO_REG)
        hw.base = (uint8_t)tbd_place_hw(t, ea->base);
    if (ea->index != TBD_NO_REG)
        hw.index = (uint8_t)tbd_place_hw(t, ea->index);
    return hw;
}

static struct tbd_ea at_register(unsigned reg)
{
    return (struct tbd_ea){ .base = (uint8_t)reg, .index = TBD_NO_REG, .scale = 1 };
}

/* lea, also for an absolute address out of reach */
static void address_to(struct tbd_translation *t, unsigned dst, const struct tbd_ea *ea)
{
    bool absolute = ea->base == TBD_NO_REG && ea->index == TBD_NO_REG;

    if (absolute)
        tbd_emit_mov_imm(&t->e, dst, (uint64_t)ea->disp);
    else
        tbd_emit_lea(&t->e, dst, ea);
}

/* s += bytes * (signed bit number / bits), without flags */
static void add_bit_offset(struct tbd_translation *t, const struct tbd_access *a, unsigned s,
                           uint16_t avoid)
{
    unsigned offset = tbd_place_scratch(t, avoid | TBD_BIT(s));
    unsigned count = tbd_place_scratch(t, avoid | TBD_BIT(s) | TBD_BIT(offset));
    unsigned bit = tbd_place_hw(t, a->bit_reg);
    struct tbd_ea sum = { .base = (uint8_t)s, .index = (uint8_t)offset, .scale = (uint8_t)a->size };

    if (a->size == 8)
        tbd_emit_mov(&t->e, offset, bit);
    else
        tbd_emit_movsx(&t->e, offset, bit, a->size);
    tbd_emit_mov_imm(&t->e, count, (unsigned)__builtin_ctz(a->size) + 3u);
    tbd_emit_sarx(&t->e, offset, offset, count);
    tbd_emit_lea(&t->e, s, &sum);
}

/* `field`: in struct tbd_regs. */
static void add_base(struct tbd_translation *t, unsigned s, uint16_t avoid, size_t field)
{
    unsigned base = tbd_place_scratch(t, avoid | TBD_BIT(s));
    struct tbd_ea sum = { .base = (uint8_t)s, .index = (uint8_t)base, .scale = 1 };

    tbd_emit_load_gs(&t->e, base, TBD_THREAD_GS(regs) + (int32_t)field);
    tbd_emit_lea(&t->e, s, &sum);
}

static void add_segment_base(struct tbd_translation *t, const struct tbd_ea *ea, unsigned s,
                             uint16_t avoid)
{
    if (ea->fs)
        add_base(t, s, avoid, offsetof(struct tbd_regs, fs_base));
    if (ea->gs)
        add_base(t, s, avoid, offsetof(struct tbd_regs, gs_base));
}

static void add_al(struct tbd_translation *t, unsigned s, uint16_t avoid)
{
    unsigned al = tbd_place_scratch(t, avoid | TBD_BIT(s));
    struct tbd_ea sum = { .base = (uint8_t)s, .index = (uint8_t)al, .scale = 1 };

    tbd_emit_movzx_al(&t->e, al);
    tbd_emit_lea(&t->e, s, &sum);
}

static bool is_simple(const struct tbd_translation *t, const struct tbd_access *a)
{
    bool absolute = a->ea.base == TBD_NO_REG && a->ea.index == TBD_NO_REG;
    bool large = a->ea.disp > INT32_MAX - 8192 || a->ea.disp < INT32_MIN + 8192;

    if (a->ea.fs || a->ea.gs || a->ea.addr32 || (a->flags & (TBD_ACCESS_XLAT | TBD_ACCESS_BITS)))
        return false;
    return absolute ? tbd_emit_reaches(&t->e, (uint64_t)a->ea.disp) : !large;
}

/* The access' address for a hook; computed into a register if it is not plain. */
static struct tbd_ea hook_ea(struct tbd_translation *t, const struct tbd_access *a, uint16_t avoid)
{
    struct tbd_ea ea = hw_ea(t, &a->ea);
    unsigned s;

    if (is_simple(t, a))
        return ea;
    s = tbd_place_scratch(t, avoid);
    if (a->flags & TBD_ACCESS_XLAT)
        ea.index = TBD_NO_REG;
    address_to(t, s, &ea);
    if (a->flags & TBD_ACCESS_XLAT)
        add_al(t, s, avoid);
    if (a->flags & TBD_ACCESS_BITS)
        add_bit_offset(t, a, s, avoid);
    add_segment_base(t, &a->ea, s, avoid);
    return at_register(s);
}

/* ---- hooks of one instruction ---- */

static uint16_t ea_mask(const struct tbd_ea *ea)
{
    uint16_t mask = 0;

    if (ea->base != TBD_NO_REG)
        mask |= TBD_BIT(ea->base);
    if (ea->index != TBD_NO_REG)
        mask |= TBD_BIT(ea->index);
    return mask;
}

static const struct tbd_op *op_of_access(const struct tbd_translation *t, unsigned access,
                                         unsigned kind)
{
    const struct tbd_cut *cut = t->cut;

    for (unsigned n = cut->first_op[t->insn]; n < cut->first_op[t->insn + 1]; n++)
        if (cut->op[n].kind == kind && cut->op_more[n].access == access)
            return &cut->op[n];
    return NULL;
}

static void hook_address(struct tbd_translation *t, const struct tbd_hook_access *h,
                         const struct tbd_op *op)
{
    const struct tbd_cut_op *more;

    if (!op)
        return;
    more = &t->cut->op_more[op - t->cut->op];
    if (more->address_at != TBD_BASE_NONE)
        tbd_hook_address(&t->e, h, more->address_at, more->base_only);
}

static void hook_access(struct tbd_translation *t, unsigned access, uint16_t avoid)
{
    const struct tbd_access *a = &t->cut->insn[t->insn].access[access];
    const struct tbd_op *store = op_of_access(t, access, TBD_OP_STORE);
    const struct tbd_op *load = op_of_access(t, access, TBD_OP_LOAD);
    struct tbd_hook_access h = { .size = a->size, .touch = t->cut->touch[t->insn][access] };

    if (!store && !load && !h.touch.marks)
        return;
    h.ea = hook_ea(t, a, avoid);
    h.scratch = (uint8_t)tbd_place_scratch(t, avoid | ea_mask(&h.ea));
    tbd_hook_touch(&t->e, &h); /* first: it tells whether the memory may be accessed
                                * (hooks/memory/shared.h) */
    hook_address(t, &h, load);
    if (store)
        tbd_hook_store(&t->e, &h, store->data);
    hook_address(t, &h, store);
}

static void hook_accesses(struct tbd_translation *t, uint16_t avoid)
{
    for (unsigned a = 0; a < t->cut->insn[t->insn].access_count; a++)
        hook_access(t, a, avoid);
}

/* ---- plain instructions ---- */

/* Registers in place for the instruction; returns the hardware registers it depends on. */
static uint16_t prepare(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint16_t named = insn->reads | insn->writes;

    for (unsigned n = 0; n < 2; n++) /* before substitutes are chosen for this instruction */
        if (t->place.sub[n] != TBD_NO_REG && named & TBD_BIT(t->place.sub[n]))
            tbd_place_evict(t, t->place.sub[n]);
    need_all(t, insn->reads, named);
    for (unsigned r = TBD_R14; r <= TBD_R15; r++)
        if (insn->writes & ~insn->reads & TBD_BIT(r))
            tbd_place_need_target(t, r, named);
    return hw_mask(t, insn->reads) | (hw_mask(t, insn->writes & 0xc000));
}

static const struct tbd_access *gs_access(const struct tbd_insn *insn)
{
    const struct tbd_access *a = insn->access;

    while (!a->ea.gs)
        a++;
    return a;
}

/* The instruction itself adds bit offsets. */
static void gs_operand(struct tbd_translation *t, const struct tbd_access *a, unsigned s,
                       uint16_t avoid)
{
    struct tbd_ea ea = hw_ea(t, &a->ea);

    if (a->flags & TBD_ACCESS_XLAT)
        ea.index = TBD_NO_REG;
    address_to(t, s, &ea);
    if (a->flags & TBD_ACCESS_XLAT)
        add_al(t, s, avoid);
    add_segment_base(t, &ea, s, avoid);
}

/* Loads the operand's address into a register below r8 that the instruction does not name. */
static unsigned far_operand(struct tbd_translation *t, const struct tbd_insn *insn, uint16_t avoid)
{
    uint16_t named = insn->reads | insn->writes;
    unsigned s;

    if (insn->gs) {
        s = tbd_place_scratch(t, named | TBD_BIT(TBD_RBP) | 0xff00);
        gs_operand(t, gs_access(insn), s, avoid | named);
        return s;
    }
    if (!insn->rip_relative || insn->cuts_target || tbd_emit_reaches_rip(&t->e, insn->target))
        return TBD_NO_REG;
    s = tbd_place_scratch(t, named | TBD_BIT(TBD_RBP) | 0xff00);
    tbd_emit_mov_imm(&t->e, s, insn->target);
    return s;
}

/* Uses r14 or r15 as memory if it is in no register and all its remaining uses in the block, at
 * most three, can be memory operands. */
static bool stays_in_slot(const struct tbd_translation *t, uint8_t r)
{
    unsigned uses = 0;

    if (r == TBD_NO_REG || tbd_place_hw(t, r) != TBD_NO_REG)
        return false;
    for (uint32_t n = t->insn; n < t->cut->count; n++) {
        const struct tbd_insn *insn = &t->cut->insn[n];

        if (!((insn->reads | insn->writes) & TBD_BIT(r)))
            continue;
        if (insn->slot_form != r || insn->kind != TBD_INSN_PLAIN || ++uses > 3)
            return false;
    }
    return true;
}

static void lower_in_slot(struct tbd_translation *t, const struct tbd_insn *insn)
{
    struct tbd_insn rest = *insn;
    uint16_t avoid;

    rest.reads &= (uint16_t)~TBD_BIT(insn->slot_form);
    rest.writes &= (uint16_t)~TBD_BIT(insn->slot_form);
    set_phase(t, TBD_PHASE_HOOK);
    avoid = prepare(t, &rest);
    hook_accesses(t, avoid);
    set_phase(t, TBD_PHASE_INSN);
    tbd_reencode_slot(t, insn);
    tbd_place_written(t, rest.writes);
}

bool tbd_translate_traps_xrstor, tbd_translate_traps_wide;

static const uint8_t ud2[] = { 0x0f, 0x0b };

/* Translated code cannot run with the trap flag set: before a popf that would set it comes a fault (SIGILL), of
 * which the engine knows what to make.  The flags are about to be replaced. */
static void guard_popf(struct tbd_translation *t, const struct tbd_insn *insn)
{
    static const uint8_t guard[] = {
        0xf6, 0x44, 0x24, 0x01, 0x01, /* test $1, 1(%rsp) */
        0x74, 0x02,                   /* jz over the ud2 */
    };

    if (!tbd_decode_is_popf(insn->bytes, insn->length))
        return;
    tbd_emit_bytes(&t->e, guard, sizeof(guard));
    tbd_emit_bytes(&t->e, ud2, sizeof(ud2));
}

static void lower_plain(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint16_t avoid;
    unsigned scratch;

    if (stays_in_slot(t, insn->slot_form)) {
        lower_in_slot(t, insn);
        return;
    }
    set_phase(t, TBD_PHASE_HOOK);
    avoid = prepare(t, insn);
    hook_accesses(t, avoid);
    scratch = far_operand(t, insn, avoid);
    set_phase(t, TBD_PHASE_INSN);
    if (tbd_translate_traps_xrstor && tbd_decode_is_xrstor(insn->bytes, insn->length))
        tbd_emit_bytes(&t->e, ud2, sizeof(ud2));
    guard_popf(t, insn);
    tbd_reencode(t, insn, scratch);
    tbd_place_written(t, insn->writes);
}

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

/* nop [rax + rax + "tbdc"] in tbd_context() of libtbd.so (hooks/boot/loader.c), and "tbdb" in tbd_branch_context(). */
static void lower_nop(struct tbd_translation *t, const struct tbd_insn *insn)
{
    static const uint8_t asks[] = { 0x0f, 0x1f, 0x84, 0x00, 't', 'b', 'd' };

    if (!t->calling || insn->length != sizeof(asks) + 1 ||
        __builtin_memcmp(insn->bytes, asks, sizeof(asks)) != 0)
        return;
    set_phase(t, TBD_PHASE_INSN);
    if (insn->bytes[sizeof(asks)] == 'c')
        tbd_hook_calling_tell(&t->e);
    else if (insn->bytes[sizeof(asks)] == 'b' && t->branches_are_chosen)
        tbd_branch_code_tell(t);
    else
        return;
    tbd_place_written(t, TBD_BIT(TBD_RAX));
}

/* ---- leaving ---- */

static void end_record(struct tbd_translation *t)
{
    tbd_hook_block_end(&t->e, t->cut->record_before[t->cut->count]);
}

/* Everything except the jumps is done. */
static void begin_tail(struct tbd_translation *t)
{
    set_phase(t, TBD_PHASE_TAIL);
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
static void leave(struct tbd_translation *t, enum tbd_exit_kind kind)
{
    tbd_emit_store_gs_imm(&t->e, TBD_THREAD_GS(exit_arg), t->block);
    tbd_emit_jmp(&t->e, t->head[kind]);
}

static void finish_and_leave(struct tbd_translation *t, enum tbd_exit_kind kind)
{
    begin_tail(t);
    leave(t, kind);
}

static void finish_and_jump(struct tbd_translation *t, uint64_t target)
{
    begin_tail(t);
    jump_direct(t, target);
}

static void lower_jump(struct tbd_translation *t, const struct tbd_insn *insn)
{
    tbd_branch_code_jump(t, insn);
    finish_and_jump(t, insn->target);
}

/* The jump leads to what comes next. */
static void land(struct tbd_translation *t, uint8_t *rel32)
{
    uint32_t distance = (uint32_t)(t->e.at - (rel32 + 4));

    if (!t->e.overflow)
        __builtin_memcpy(rel32, &distance, sizeof(distance));
}

static void lower_branch(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint8_t *rel32;

    begin_tail(t);
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
static void lower_branch_rcx(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint8_t *disp8;

    begin_tail(t);
    tbd_emit_bytes(&t->e, insn->bytes, insn->length);
    disp8 = t->e.at - 1;
    jump_direct(t, insn->pc + insn->length);
    if (!t->e.overflow)
        *disp8 = (uint8_t)(t->e.at - disp8 - 1);
    jump_direct(t, insn->target);
}

/* If there is no such address, the engine must find the branch (TBD_EXIT_INDIRECT). */
static void say_left(struct tbd_translation *t)
{
    tbd_emit_store_gs_imm(&t->e, TBD_THREAD_GS(left), t->block);
}

/* r11 = target (target_to_r11): jump by the table of indirect targets. */
static void jump_by_table(struct tbd_translation *t)
{
    static const uint8_t movzx_r10_r11[] = { 0x45, 0x0f, 0xb7, 0xd3 };
    static const uint8_t jmp_gs_r10_8[] = { 0x65, 0x42, 0xff, 0x24, 0xd5 };

    set_phase(t, TBD_PHASE_TAIL);
    tbd_place_finish(t);
    end_record(t);
    tbd_foretell_code(t);
    say_left(t);
    tbd_emit_bytes(&t->e, movzx_r10_r11, sizeof(movzx_r10_r11));
    tbd_emit_bytes(&t->e, jmp_gs_r10_8, sizeof(jmp_gs_r10_8));
    tbd_emit_u32(&t->e, (uint32_t)TBD_THREAD_GS(ibl));
}

/* r11 = target: the engine finds the calling context, and jumps. */
static void leave_switched(struct tbd_translation *t)
{
    set_phase(t, TBD_PHASE_TAIL);
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
    ea = hw_ea(t, &a->ea);
    if (insn->gs) {
        gs_operand(t, gs_access(insn), TBD_R11, hw_mask(t, insn->reads));
        ea = at_register(TBD_R11);
    } else if (insn->rip_relative && !tbd_emit_reaches(&t->e, insn->target)) {
        tbd_emit_mov_imm(&t->e, TBD_R11, insn->target);
        ea = at_register(TBD_R11);
    }
    tbd_emit_load(&t->e, TBD_R11, &ea, 8);
}

/* The op of this kind in the instruction; NULL if it is not reported. */
static const struct tbd_op *op_of_kind(const struct tbd_translation *t, unsigned kind)
{
    return op_of_access(t, 0, kind);
}

/* The report comes first: its registers can then be substitutes. */
static void report_transfer(struct tbd_translation *t)
{
    const struct tbd_op *call = op_of_kind(t, TBD_OP_CALL);
    const struct tbd_op *ret = op_of_kind(t, TBD_OP_RET);
    uint16_t reported = TBD_BIT(TBD_RSP);

    if (call)
        reported |= RECORDED_AT_CALL;
    if (ret)
        reported |= TBD_BIT(TBD_RAX);
    need_all(t, reported, reported);
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
    need_all(t, insn->reads | TBD_BIT(TBD_RSP), insn->reads | TBD_BIT(TBD_R11));
    return hw_mask(t, insn->reads | TBD_BIT(TBD_RSP));
}

/* The engine executes it; registers of a call or return are reported here. */
static void lower_special(struct tbd_translation *t)
{
    bool reports = op_of_kind(t, TBD_OP_CALL) || op_of_kind(t, TBD_OP_RET);

    set_phase(t, TBD_PHASE_HOOK);
    if (reports)
        report_transfer(t);
    finish_and_leave(t, TBD_EXIT_SPECIAL);
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

static void lower_call(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint16_t avoid;

    set_phase(t, TBD_PHASE_HOOK);
    tbd_branch_code_call(t, insn->pc + insn->length);
    avoid = prepare_transfer(t, insn);
    hook_accesses(t, avoid);
    push_for_call(t, insn->pc + insn->length, avoid);
    finish_and_jump(t, insn->target);
}

/* Nothing is reported (foretell.c), and no register is read. */
static void lower_call_constant(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint64_t return_address = insn->pc + insn->length;

    set_phase(t, TBD_PHASE_HOOK);
    tbd_branch_code_call(t, return_address);
    push_for_call(t, return_address, 0);
    finish_and_jump(t, t->foretold);
}

static void lower_call_indirect(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint16_t avoid;

    if (t->is_constant) {
        lower_call_constant(t, insn);
        return;
    }
    set_phase(t, TBD_PHASE_HOOK);
    tbd_branch_code_call(t, insn->pc + insn->length);
    avoid = prepare_transfer(t, insn);
    hook_accesses(t, avoid);
    target_to_r11(t, insn);
    push_for_call(t, insn->pc + insn->length, TBD_BIT(TBD_R11));
    jump_by_table(t);
}

static void lower_jump_indirect(struct tbd_translation *t, const struct tbd_insn *insn)
{
    if (t->is_constant && !switches_stack(t)) {
        finish_and_jump(t, t->foretold);
        return;
    }
    set_phase(t, TBD_PHASE_HOOK);
    tbd_branch_code_put_down(t);
    hook_accesses(t, prepare_transfer(t, insn));
    target_to_r11(t, insn);
    if (switches_stack(t))
        leave_switched(t);
    else
        jump_by_table(t);
}

static void lower_return(struct tbd_translation *t, const struct tbd_insn *insn)
{
    unsigned kept;

    set_phase(t, TBD_PHASE_HOOK);
    tbd_branch_code_forget(t);
    hook_accesses(t, prepare_transfer(t, insn));
    tbd_place_spill(t, TBD_R11);
    kept = get_calling(t);
    set_phase(t, TBD_PHASE_INSN);
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

/* ---- the block ---- */

uint64_t tbd_translate_trap;

static void lower_trap(struct tbd_translation *t)
{
    set_phase(t, TBD_PHASE_HOOK);
    tbd_emit_bytes(&t->e, ud2, sizeof(ud2));
}

/* Notes the registers that a question asks for before the instruction. */
static void note_registers(struct tbd_translation *t)
{
    const struct tbd_op *note = op_of_kind(t, TBD_OP_NOTE);
    uint32_t at;

    if (!note)
        return;
    set_phase(t, TBD_PHASE_HOOK);
    at = note->data;
    for (unsigned r = 0; r < TBD_REG_COUNT; r++) {
        if (!(note->add >> r & 1))
            continue;
        tbd_place_need(t, r, 0);
        tbd_hook_note(&t->e, tbd_place_hw(t, r), at);
        at += 8;
    }
    for (unsigned n = 0; n < 16; n++) {
        if (!(note->add >> (16 + n) & 1))
            continue;
        tbd_hook_note_vector(&t->e, n, at);
        at += 16;
    }
    if ((note->add & (int64_t)TBD_NOTE_TOP) != 0)
        tbd_hook_note_top(&t->e, tbd_place_scratch(t, 0), at);
}

static void lower_insn(struct tbd_translation *t, const struct tbd_insn *insn)
{
    note_registers(t);
    tbd_branch_code_before(t, insn);
    if (insn->pc == tbd_translate_trap ||
        (tbd_translate_traps_wide && tbd_decode_is_wide(insn->bytes, insn->length)))
        lower_trap(t);
    switch (insn->kind) {
    case TBD_INSN_PLAIN: lower_plain(t, insn); break;
    case TBD_INSN_JUMP: lower_jump(t, insn); break;
    case TBD_INSN_BRANCH: lower_branch(t, insn); break;
    case TBD_INSN_BRANCH_RCX: lower_branch_rcx(t, insn); break;
    case TBD_INSN_CALL: lower_call(t, insn); break;
    case TBD_INSN_CALL_INDIRECT: lower_call_indirect(t, insn); break;
    case TBD_INSN_JUMP_INDIRECT: lower_jump_indirect(t, insn); break;
    case TBD_INSN_RETURN: lower_return(t, insn); break;
    case TBD_INSN_SYSCALL: finish_and_leave(t, TBD_EXIT_SYSCALL); break;
    case TBD_INSN_SPECIAL: lower_special(t); break;
    default: lower_nop(t, insn); break;
    }
}

/* ---- code that may change ---- */

/* How many of the `left` bytes are compared at once? */
static unsigned piece_size(uint32_t left)
{
    return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/* mov rcx, [code]; mov r11, -expected; lea rcx, [rcx + r11]; jrcxz over; jmp changed */
static void check_piece(struct tbd_translation *t, uint64_t address, unsigned size,
                        uint64_t changed)
{
    static const uint8_t jrcxz_over_jmp32[] = { 0xe3, 0x00 };
    struct tbd_ea sum = { .base = TBD_RCX, .index = TBD_R11, .scale = 1 };
    struct tbd_ea code = { .disp = (int64_t)address, .base = TBD_NO_REG, .index = TBD_NO_REG };
    uint64_t expected = 0;
    uint8_t *disp8;

    __builtin_memcpy(&expected, (const void *)(uintptr_t)address, size);
    if (!tbd_emit_reaches(&t->e, address)) {
        tbd_emit_mov_imm(&t->e, TBD_RCX, address);
        code = at_register(TBD_RCX);
    }
    tbd_emit_load(&t->e, TBD_RCX, &code, size);
    tbd_emit_mov_imm(&t->e, TBD_R11, 0 - expected);
    tbd_emit_lea(&t->e, TBD_RCX, &sum);
    tbd_emit_bytes(&t->e, jrcxz_over_jmp32, sizeof(jrcxz_over_jmp32));
    disp8 = t->e.at - 1;
    tbd_emit_jmp(&t->e, changed);
    if (!t->e.overflow)
        *disp8 = (uint8_t)(t->e.at - disp8 - 1);
}

/* An exit before the block is entered; rcx is in its slot.  Returns its address. */
static uint64_t emit_exit_before(struct tbd_translation *t, enum tbd_exit_kind kind)
{
    uint64_t address = tbd_emit_pc(&t->e);
    struct tbd_reg_places between = t->place;

    t->place.own &= (uint16_t)~TBD_BIT(TBD_RCX);
    t->place.slot |= TBD_BIT(TBD_RCX);
    tbd_place_note(t);
    tbd_place_need(t, TBD_RCX, 0);
    leave(t, kind);
    t->place = between;
    return address;
}

static void ask(struct tbd_translation *t, uint64_t asks)
{
    if (asks)
        tbd_translate_question(t, asks);
    else
        leave(t, TBD_EXIT_ASKED);
    t->answered = tbd_emit_pc(&t->e);
    tbd_place_note(t);
}

/* At each entry, before it is recorded: compares the program's code with what was translated. */
static void check_code(struct tbd_translation *t, uint64_t changed)
{
    uint64_t at = t->cut->def.start;
    uint64_t end = at + t->cut->check_bytes;

    tbd_place_spill(t, TBD_RCX);
    for (unsigned size; at < end; at += size) {
        size = piece_size((uint32_t)(end - at));
        check_piece(t, at, size, changed);
    }
    tbd_place_need(t, TBD_RCX, 0);
}

static void end_block(struct tbd_translation *t)
{
    const struct tbd_cut *cut = t->cut;

    t->insn = cut->count;
    if (t->stop)
        finish_and_leave(t, TBD_EXIT_STOP);
    else if (cut->def.end == TBD_END_FAULT)
        finish_and_leave(t, TBD_EXIT_FAULT);
    else if (cut->def.end == TBD_END_LIMIT)
        finish_and_jump(t, cut->def.start + cut->def.code_bytes);
}

void tbd_translate(struct tbd_translation *t)
{
    bool is_asked = tbd_asked_places_has(t->cut->def.start);
    bool records = t->records && tbd_translate_may_record(t->cut);
    uint64_t changed = 0, asks = 0, due = 0;

    t->exit_count = 0;
    t->insn = 0;
    t->phase = TBD_PHASE_ENTRY;
    tbd_place_init(t);
    if (t->cut->check_bytes)
        changed = emit_exit_before(t, TBD_EXIT_CHANGED);
    if (is_asked && tbd_asked_places_state())
        asks = emit_exit_before(t, TBD_EXIT_ASKED);
    if (records)
        due = emit_exit_before(t, TBD_EXIT_RECORD);
    t->tag = tbd_emit_pc(&t->e);
    tbd_place_note(t);
    if (t->tagged)
        tbd_translate_tag(t, t->cut->def.start);
    t->entry = tbd_emit_pc(&t->e);
    tbd_place_note(t);
    t->answered = 0;
    if (is_asked)
        ask(t, asks);
    if (records)
        tbd_translate_record(t, due);
    if (t->cut->check_bytes)
        check_code(t, changed);
    if (t->in_ring && t->hook_set & TBD_HOOK_BLOCKS)
        tbd_hook_ring_block(&t->e, t->id);
    else if (t->hook_set & TBD_HOOK_BLOCKS)
        tbd_hook_block(&t->e, t->id);
    tbd_branch_code_begin(t);
    for (t->insn = 0; t->insn < t->cut->count; t->insn++)
        lower_insn(t, &t->cut->insn[t->insn]);
    end_block(t);
}
