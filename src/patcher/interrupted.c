// SPDX-License-Identifier: MIT
/* interrupted.c - from the registers of a signal frame to the program's registers
 *
 * The block is translated once more into a buffer; the translator's state just before the
 * interrupted instruction says where each register is (TRANSLATE-1).  This is exact for every
 * instruction of the program and for the hooks before it; after a block's last instruction the
 * state is the one before the next block.  Contexts: SIG, APP; not re-entrant (one thread runs at a
 * time). */
#include "patcher/interrupted.h"

#include "patcher/cache.h"
#include "patcher/fixed.h"

static struct tbd_cut cut; /* too large for a signal stack */

static uint64_t register_value(const struct tbd_reg_places *place, const struct tbd_thread *thread,
                               const struct tbd_regs *cpu, unsigned r)
{
    if (place->own & TBD_BIT(r))
        return cpu->gpr[r];
    if ((place->slot & TBD_BIT(r)) || r < TBD_R14 || place->sub[r - TBD_R14] == TBD_NO_REG)
        return thread->regs.gpr[r];
    return cpu->gpr[place->sub[r - TBD_R14]];
}

static void fill_registers(struct tbd_regs *state, const struct tbd_reg_places *place,
                           const struct tbd_thread *thread, const struct tbd_regs *cpu)
{
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        state->gpr[r] = register_value(place, thread, cpu, r);
}

/* Where does the program go on, after the effects of the block's last instruction? */
static uint64_t next_pc(const struct tbd_insn *last, const struct tbd_watch *watch,
                        const struct tbd_regs *cpu)
{
    if (watch->leads_to)
        return watch->leads_to;
    switch (last->kind) {
    case TBD_INSN_JUMP:
    case TBD_INSN_CALL: return last->target;
    case TBD_INSN_CALL_INDIRECT:
    case TBD_INSN_JUMP_INDIRECT:
    case TBD_INSN_RETURN: return cpu->gpr[TBD_R11];
    case TBD_INSN_BRANCH:
    case TBD_INSN_BRANCH_RCX:
    case TBD_INSN_SYSCALL:
    case TBD_INSN_SPECIAL: return last->pc;
    default: return last->pc + last->length;
    }
}

bool tbd_is_canonical(const struct tbd_patcher_callbacks *callbacks, uint64_t address)
{
    return (int64_t)(address << 16) >> 16 == (int64_t)address ||
           ((int64_t)(address << 7) >> 7 == (int64_t)address && callbacks->has_long_addresses &&
            callbacks->has_long_addresses());
}

static bool is_indirect(const struct tbd_insn *last)
{
    return last->kind == TBD_INSN_CALL_INDIRECT || last->kind == TBD_INSN_JUMP_INDIRECT ||
           last->kind == TBD_INSN_RETURN;
}

/* Undoes an indirect branch.  What a call has pushed stays, below the stack. */
static void take_back(const struct tbd_insn *branch, struct tbd_regs *state)
{
    if (branch->kind == TBD_INSN_CALL_INDIRECT)
        state->gpr[TBD_RSP] += 8;
    if (branch->kind == TBD_INSN_RETURN)
        state->gpr[TBD_RSP] -= 8 + branch->pop_bytes;
}

/* After loop, rcx has changed; the jump not taken follows, then the one taken. */
static bool is_loop_done(const struct tbd_insn *last, const struct tbd_watch *watch)
{
    return last->kind == TBD_INSN_BRANCH_RCX && watch->pc > watch->tail;
}

static bool is_before_itself(const struct tbd_insn *last, const struct tbd_watch *watch)
{
    if (is_loop_done(last, watch))
        return false;
    return last->kind == TBD_INSN_BRANCH || last->kind == TBD_INSN_BRANCH_RCX ||
           last->kind == TBD_INSN_SYSCALL || last->kind == TBD_INSN_SPECIAL;
}

uint64_t tbd_ea_address(const struct tbd_ea *ea, const struct tbd_regs *regs)
{
    uint64_t address = (uint64_t)ea->disp;

    if (ea->base != TBD_NO_REG)
        address += regs->gpr[ea->base];
    if (ea->index != TBD_NO_REG)
        address += regs->gpr[ea->index] * ea->scale;
    if (ea->addr32)
        address = (uint32_t)address;
    return address + (ea->fs ? regs->fs_base : ea->gs ? regs->gs_base : 0);
}

static bool is_misaligned(const struct tbd_insn *insn, const struct tbd_regs *regs)
{
    for (unsigned n = 0; n < insn->access_count; n++)
        if (insn->access[n].flags & TBD_ACCESS_ALIGNED &&
            tbd_ea_address(&insn->access[n].ea, regs) & (insn->access[n].size - 1u))
            return true;
    return false;
}

static struct tbd_interruption inside(const struct tbd_watch *watch, uint32_t insn, uint32_t id,
                                      struct tbd_regs *state)
{
    state->rip = cut.insn[insn].pc;
    return (struct tbd_interruption){ .where = TBD_INT_INSIDE,
                                      .id = id,
                                      .insn = insn,
                                      .record_bytes = cut.record_before[insn],
                                      .in_hook = watch->phase == TBD_PHASE_HOOK,
                                      .misaligned = is_misaligned(&cut.insn[insn], state) };
}

static struct tbd_interruption describe(const struct tbd_patcher_callbacks *callbacks,
                                        const struct tbd_watch *watch,
                                        const struct tbd_block_code *block,
                                        const struct tbd_regs *cpu, struct tbd_regs *state)
{
    const struct tbd_insn *last = cut.count ? &cut.insn[cut.count - 1] : NULL;

    if (watch->phase == TBD_PHASE_ENTRY || !last) {
        state->rip = block->start;
        return (struct tbd_interruption){ .where = TBD_INT_BOUNDARY, .id = block->id };
    }
    if (watch->branch_due == TBD_BRANCH_DUE_JUMP) {
        state->rip = last->target;
        return (struct tbd_interruption){ .where = TBD_INT_BOUNDARY, .id = block->id };
    }
    if (watch->phase != TBD_PHASE_TAIL)
        return inside(watch, watch->insn, block->id, state);
    if (is_before_itself(last, watch))
        return inside(watch, cut.count - 1, block->id, state);
    state->rip = next_pc(last, watch, cpu);
    if (is_indirect(last) && !tbd_is_canonical(callbacks, state->rip)) {
        take_back(last, state);
        return inside(watch, cut.count - 1, block->id, state);
    }
    if (is_loop_done(last, watch))
        state->rip = watch->pc < watch->first_exit_end ? last->pc + last->length : last->target;
    return (struct tbd_interruption){ .where = TBD_INT_BOUNDARY, .id = block->id };
}

/* In the check for indirect branches: the program goes on at r11, which may be another block's start, as the table
 * of targets has one entry for many. */
static bool is_in_tag(const struct tbd_block_code *block, uint64_t pc)
{
    return block->tagged >= block->cache_start && pc >= block->tagged - TBD_TAG_MISMATCH_BYTES &&
           pc < block->entry;
}

/* In exit stubs and exit jumps, registers are where they are between blocks; the next block is the
 * site's target. */
static struct tbd_interruption between_blocks(const struct tbd_thread *thread, uint16_t at_home,
                                              const struct tbd_regs *cpu, struct tbd_regs *state)
{
    struct tbd_reg_places place = { .own = (uint16_t)~at_home,
                                    .slot = at_home,
                                    .sub = { TBD_NO_REG, TBD_NO_REG } };
    const struct tbd_block_code *tagged = tbd_cache_added_tag(cpu->rip);

    fill_registers(state, &place, thread, cpu);
    state->rip = tbd_cache_stub_target(cpu->rip);
    if (!state->rip && tagged)
        tbd_translate_leave_tag(tagged->start, tagged->tagged, cpu, state);
    return (struct tbd_interruption){ .where = state->rip ? TBD_INT_BOUNDARY : TBD_INT_NOT_CACHE,
                                      .calling_value = thread->calling_value };
}

/* What the calling context's value will be when the effects of the program's last instruction are complete. */
static uint64_t complete_calling(const struct tbd_patcher_callbacks *callbacks,
                                 const struct tbd_codegen_config *config,
                                 const struct tbd_thread *thread, const struct tbd_watch *watch,
                                 const struct tbd_regs *cpu)
{
    const struct tbd_insn *last = &cut.insn[cut.count ? cut.count - 1 : 0];
    uint64_t value = thread->calling_value;

    if (watch->due == TBD_CALLING_DUE_SET)
        return cpu->gpr[watch->due_reg];
    if (watch->due == TBD_CALLING_DUE_ENTER)
        return tbd_calling_enter((enum tbd_calling_scheme)config->calling, value,
                                 callbacks->call_number(last->pc + last->length));
    return value;
}

/* The block will be entered again, but its function is not called again. */
static uint64_t mark_of(const struct tbd_patcher_callbacks *callbacks,
                        const struct tbd_watch *watch, const struct tbd_block_code *block,
                        const struct tbd_regs *state)
{
    const struct tbd_branch_function *f;

    if (!watch->branch_begun || state->rip != block->start)
        return 0;
    f = callbacks->branches(block->start).function;
    return f && f->begins_again ? tbd_branch_mark(f) : 0;
}

static struct tbd_interruption find(const struct tbd_patcher_callbacks *callbacks,
                                    const struct tbd_codegen_config *config,
                                    const struct tbd_thread *thread, const struct tbd_regs *cpu,
                                    struct tbd_regs *state)
{
    const struct tbd_block_code *block = tbd_cache_block_at(cpu->rip);
    struct tbd_watch watch = { .pc = cpu->rip, .phase = TBD_PHASE_ENTRY };
    struct tbd_interruption found;

    *state = *cpu;
    state->fs_base = thread->regs.fs_base;
    state->gs_base = thread->regs.gs_base;
    state->thread = thread->regs.thread;
    if (!tbd_cache_area_of(cpu->rip))
        return (struct tbd_interruption){ .where = TBD_INT_NOT_CACHE };
    if (!block)
        return between_blocks(thread, tbd_at_home(config), cpu, state);
    if (!tbd_cache_dry_run(callbacks, config, block, &watch, &cut))
        return (struct tbd_interruption){ .where = TBD_INT_NOT_CACHE };
    fill_registers(state, &watch.place, thread, cpu);
    found = describe(callbacks, &watch, block, cpu, state);
    if (cpu->rip > watch.compare && cpu->rip <= watch.compare_end)
        state->gpr[TBD_RCX] = cpu->gpr[TBD_R10];
    if (is_in_tag(block, cpu->rip))
        tbd_translate_leave_tag(block->start, block->tagged, cpu, state);
    found.calling_value = complete_calling(callbacks, config, thread, &watch, cpu);
    found.branch_mark =
        found.where == TBD_INT_INSIDE ? mark_of(callbacks, &watch, block, state) : 0;
    found.has_branch_value = watch.branch_due == TBD_BRANCH_DUE_PUT_DOWN;
    return found;
}

struct tbd_interruption tbd_interrupt_find(const struct tbd_patcher_callbacks *callbacks,
                                           const struct tbd_codegen_config *config,
                                           const struct tbd_thread *thread,
                                           const struct tbd_regs *cpu, struct tbd_regs *state)
{
    struct tbd_interruption found = find(callbacks, config, thread, cpu, state);
    uint16_t at_home = tbd_at_home(config);

    found.entry_next = at_home & TBD_BIT(TBD_R15) ? cpu->gpr[TBD_R15] : thread->entry_next;
    found.operand_next = at_home & TBD_BIT(TBD_R14) ? cpu->gpr[TBD_R14] : thread->operand_next;
    return found;
}

struct tbd_interruption tbd_interrupt_branch(const struct tbd_patcher_callbacks *callbacks,
                                             const struct tbd_codegen_config *config,
                                             const struct tbd_thread *thread,
                                             const struct tbd_block_code *block, uint64_t target,
                                             struct tbd_regs *state)
{
    struct tbd_regs cpu = thread->regs;

    cpu.rip = block->cache_end - 1; /* in the jump by the table of targets */
    cpu.gpr[TBD_R11] = target;
    if (tbd_at_home(config) & TBD_BIT(TBD_R14))
        cpu.gpr[TBD_R14] = thread->operand_next;
    return tbd_interrupt_find(callbacks, config, thread, &cpu, state);
}
