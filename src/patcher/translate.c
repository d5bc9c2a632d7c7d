// SPDX-License-Identifier: MIT
/* translate.c - the code of a block: its entry, each instruction of the program, its exit
 *
 * The block: [exit when its code has changed] [tagged entry] [comparison of its code] entry store,
 * then for each instruction its hooks and itself, then the exit.  Operands are written relative to
 * the record's start; r14 moves once, after the last instruction that can fault. */
#include "patcher/translate.h"

#include "patcher/asked_loads.h"
#include "patcher/asked_places.h"
#include "patcher/lower.h"
#include "patcher/templates.h"

/* ---- plain instructions ---- */

/* Registers in place for the instruction; returns the hardware registers it depends on. */
static uint16_t prepare(struct tbd_translation *t, const struct tbd_insn *insn)
{
    uint16_t named = insn->reads | insn->writes;

    for (unsigned n = 0; n < 2; n++) /* before substitutes are chosen for this instruction */
        if (t->place.sub[n] != TBD_NO_REG && named & TBD_BIT(t->place.sub[n]))
            tbd_place_evict(t, t->place.sub[n]);
    tbd_lower_need(t, insn->reads, named);
    for (unsigned r = TBD_R14; r <= TBD_R15; r++)
        if (insn->writes & ~insn->reads & TBD_BIT(r))
            tbd_place_need_target(t, r, named);
    return tbd_lower_mask(t, insn->reads) | (tbd_lower_mask(t, insn->writes & 0xc000));
}

/* Loads the operand's address into a register below r8 that the instruction does not name. */
static unsigned far_operand(struct tbd_translation *t, const struct tbd_insn *insn, uint16_t avoid)
{
    uint16_t named = insn->reads | insn->writes;
    unsigned s;

    if (insn->gs) {
        s = tbd_place_scratch(t, named | TBD_BIT(TBD_RBP) | 0xff00);
        tbd_lower_gs_operand(t, insn, s, avoid | named);
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
    tbd_lower_phase(t, TBD_PHASE_HOOK);
    avoid = prepare(t, &rest);
    tbd_lower_hooks(t, avoid);
    tbd_lower_phase(t, TBD_PHASE_INSN);
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
    tbd_lower_phase(t, TBD_PHASE_HOOK);
    avoid = prepare(t, insn);
    tbd_lower_hooks(t, avoid);
    scratch = far_operand(t, insn, avoid);
    tbd_lower_phase(t, TBD_PHASE_INSN);
    if (tbd_translate_traps_xrstor && tbd_decode_is_xrstor(insn->bytes, insn->length))
        tbd_emit_bytes(&t->e, ud2, sizeof(ud2));
    guard_popf(t, insn);
    tbd_reencode(t, insn, scratch);
    tbd_place_written(t, insn->writes);
}

/* nop [rax + rax + "tbdc"] in tbd_context() of libtbd.so (hooks/boot/loader.c), and "tbdb" in tbd_branch_context(). */
static void lower_nop(struct tbd_translation *t, const struct tbd_insn *insn)
{
    static const uint8_t asks[] = { 0x0f, 0x1f, 0x84, 0x00, 't', 'b', 'd' };

    if (!t->calling || insn->length != sizeof(asks) + 1 ||
        __builtin_memcmp(insn->bytes, asks, sizeof(asks)) != 0)
        return;
    tbd_lower_phase(t, TBD_PHASE_INSN);
    if (insn->bytes[sizeof(asks)] == 'c')
        tbd_hook_calling_tell(&t->e);
    else if (insn->bytes[sizeof(asks)] == 'b' && t->branches_are_chosen)
        tbd_branch_code_tell(t);
    else
        return;
    tbd_place_written(t, TBD_BIT(TBD_RAX));
}

/* ---- the block ---- */

uint64_t tbd_translate_trap;

static void lower_trap(struct tbd_translation *t)
{
    tbd_lower_phase(t, TBD_PHASE_HOOK);
    tbd_emit_bytes(&t->e, ud2, sizeof(ud2));
}

/* Notes the registers that a question asks for before the instruction. */
static void note_registers(struct tbd_translation *t)
{
    const struct tbd_op *note = tbd_lower_op(t, 0, TBD_OP_NOTE);
    uint32_t at;

    if (!note)
        return;
    tbd_lower_phase(t, TBD_PHASE_HOOK);
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
    case TBD_INSN_JUMP: tbd_lower_jump(t, insn); break;
    case TBD_INSN_BRANCH: tbd_lower_branch(t, insn); break;
    case TBD_INSN_BRANCH_RCX: tbd_lower_branch_rcx(t, insn); break;
    case TBD_INSN_CALL: tbd_lower_call(t, insn); break;
    case TBD_INSN_CALL_INDIRECT: tbd_lower_call_indirect(t, insn); break;
    case TBD_INSN_JUMP_INDIRECT: tbd_lower_jump_indirect(t, insn); break;
    case TBD_INSN_RETURN: tbd_lower_return(t, insn); break;
    case TBD_INSN_SYSCALL: tbd_lower_finish_and_leave(t, TBD_EXIT_SYSCALL); break;
    case TBD_INSN_SPECIAL: tbd_lower_special(t); break;
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
        code = tbd_lower_at(TBD_RCX);
    }
    tbd_emit_load(&t->e, TBD_RCX, &code, size);
    tbd_emit_mov_imm(&t->e, TBD_R11, 0 - expected);
    tbd_emit_lea(&t->e, TBD_RCX, &sum);
    tbd_emit_bytes(&t->e, jrcxz_over_jmp32, sizeof(jrcxz_over_jmp32));
    disp8 = t->e.at - 1;
    tbd_emit_jmp(&t->e, changed);
    tbd_emit_land8(&t->e, disp8);
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
    tbd_lower_leave(t, kind);
    t->place = between;
    return address;
}

static void ask(struct tbd_translation *t, uint64_t asks)
{
    if (asks)
        tbd_translate_question(t, asks);
    else
        tbd_lower_leave(t, TBD_EXIT_ASKED);
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
        tbd_lower_finish_and_leave(t, TBD_EXIT_STOP);
    else if (cut->def.end == TBD_END_FAULT)
        tbd_lower_finish_and_leave(t, TBD_EXIT_FAULT);
    else if (cut->def.end == TBD_END_LIMIT)
        tbd_lower_finish_and_jump(t, cut->def.start + cut->def.code_bytes);
}

void tbd_translate(struct tbd_translation *t)
{
    bool is_asked = tbd_asked_places_has(t->cut->def.start);
    bool records = t->records && tbd_translate_may_record(t->cut);
    const struct tbd_access *load =
        t->in_ring && t->cut->count ? tbd_asked_loads_of(&t->cut->insn[0]) : NULL;
    uint64_t changed = 0, asks = 0, due = 0;

    t->exit_count = 0;
    t->begin = tbd_emit_pc(&t->e);
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
    else if (load)
        tbd_translate_asked_load(t, load);
    if (records)
        tbd_translate_record(t, due);
    if (t->cut->check_bytes)
        check_code(t, changed);
    if (t->in_ring)
        tbd_hook_ring_block(&t->e, t->id);
    else if (t->only_counts)
        tbd_hook_counted_block(&t->e);
    else if (t->hook_set & TBD_HOOK_BLOCKS)
        tbd_hook_block(&t->e, t->id);
    tbd_branch_code_begin(t);
    for (t->insn = 0; t->insn < t->cut->count; t->insn++)
        lower_insn(t, &t->cut->insn[t->insn]);
    end_block(t);
}
