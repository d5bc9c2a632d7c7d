// SPDX-License-Identifier: MIT
/* dispatch.c - runs between two pieces of translated code
 *
 * fixed_x86_64.S calls tbd_patcher_dispatch() with the program's registers in thread->regs; it
 * handles the reason why translated code left, and returns where to go on.  Callbacks may flush, so
 * no block or site is used across one. */
#include "patcher/patcher.h"

#include "patcher/cache.h"
#include "patcher/fixed.h"
#include "patcher/interrupted.h"
#include "patcher/offsets.h"

_Static_assert(TBD_GS_GPR == TBD_THREAD_GS(regs), "offsets.h");
_Static_assert(TBD_GS_RFLAGS == TBD_THREAD_GS(regs) + (int)offsetof(struct tbd_regs, rflags),
               "offsets.h");
_Static_assert(TBD_GS_SECOND == TBD_THREAD_GS(second), "offsets.h");
_Static_assert(TBD_GS_SCRATCH == TBD_THREAD_GS(scratch), "offsets.h");
_Static_assert(TBD_SECOND_SHIFT == 8 && TBD_SECOND_BITS == 14, "fixed_x86_64.S");
_Static_assert(TBD_GS_EXIT_KIND == TBD_THREAD_GS(exit_kind), "offsets.h");
_Static_assert(TBD_GS_EXIT_ARG == TBD_THREAD_GS(exit_arg), "offsets.h");
_Static_assert(TBD_GS_ENTRY_NEXT == TBD_THREAD_GS(entry_next), "offsets.h");
_Static_assert(TBD_GS_OPERAND_NEXT == TBD_THREAD_GS(operand_next), "offsets.h");
_Static_assert(TBD_GS_ENGINE_STACK == TBD_THREAD_GS(engine_stack), "offsets.h");
_Static_assert(TBD_GS_RESUME == TBD_THREAD_GS(resume), "offsets.h");
_Static_assert(TBD_GS_SELF == TBD_THREAD_GS(self), "offsets.h");
_Static_assert(TBD_EXIT_INDIRECT == 2 && TBD_EXIT_BOUNDARY == 7 && TBD_EXIT_START == 0,
               "fixed_x86_64.S");

static struct {
    const struct tbd_patcher_callbacks *callbacks;
    struct tbd_codegen_config config;
    uint64_t stop_pc;               /* tbd_patcher_stop_inside */
    uint32_t stop_insns;            /* 0 = not armed */
    uint64_t exits[TBD_EXIT_KINDS]; /* how often translated code left, by reason */
    uint64_t flushes;
} run;

static void init_decoder(void *unused)
{
    (void)unused;
    tbd_decode_init();
}

void tbd_patcher_set_decoder(const struct tbd_decoder_api *api)
{
    tbd_decode_set_api(api);
}

bool tbd_patcher_init(const struct tbd_patcher_callbacks *callbacks,
                      const struct tbd_codegen_config *config)
{
    run.callbacks = callbacks;
    run.config = *config;
    callbacks->with_vector_state(init_decoder, NULL);
    return tbd_cache_init();
}

static void forget_all(void)
{
    if (run.callbacks->forgetting)
        run.callbacks->forgetting();
    tbd_cache_flush_all();
}

static void forget_range(uint64_t start, uint64_t end)
{
    if (!tbd_cache_has_blocks(start, end))
        return;
    if (run.callbacks->forgetting)
        run.callbacks->forgetting();
    tbd_cache_flush_range(start, end);
}

void tbd_patcher_configure(const struct tbd_codegen_config *config)
{
    forget_all(); /* as they were made */
    run.config = *config;
    tbd_cache_forget_ids();
}

void tbd_patcher_place_notes(const struct tbd_note_site *notes)
{
    run.config.notes = notes;
}

void tbd_patcher_run(struct tbd_thread *thread)
{
    tbd_cache_add_thread(thread);
    thread->self = (uint64_t)(uintptr_t)thread;
    tbd_fixed_run(thread);
}

struct tbd_patcher_stats tbd_patcher_stats(void)
{
    struct tbd_patcher_stats stats = { .direct = run.exits[TBD_EXIT_DIRECT],
                                       .indirect = run.exits[TBD_EXIT_INDIRECT],
                                       .boundaries = run.exits[TBD_EXIT_BOUNDARY],
                                       .flushes = run.flushes };

    for (unsigned kind = TBD_EXIT_SYSCALL; kind <= TBD_EXIT_STOP; kind++)
        stats.ends += run.exits[kind];
    tbd_cache_count(&stats.blocks, &stats.areas);
    return stats;
}

void tbd_patcher_flush_range(struct tbd_thread *thread, uint64_t start, uint64_t end)
{
    (void)thread;
    forget_range(start, end);
}

uint64_t tbd_patcher_boundary_exit(struct tbd_thread *thread, uint64_t cache_pc)
{
    thread->resume = cache_pc;
    return (uint64_t)(uintptr_t)tbd_fixed_boundary;
}

void tbd_patcher_trap(struct tbd_thread *thread, uint64_t pc)
{
    uint64_t before = tbd_translate_trap;

    (void)thread;
    if (pc == before)
        return;
    forget_range(before, before + 1);
    forget_range(pc, pc + 1);
    tbd_translate_trap = pc;
}

void tbd_patcher_vectors_differ(bool lacks_wide)
{
    tbd_translate_traps_xrstor = true;
    tbd_translate_traps_wide = lacks_wide;
}

void tbd_patcher_stop_inside(struct tbd_thread *thread, struct tbd_app_pc pc, uint32_t insns)
{
    (void)thread;
    run.stop_pc = pc.v;
    run.stop_insns = insns;
}

/* ---- finding the next block ---- */

/* A full cache is emptied.  If the block does not fit even then, the program must go on without us:
 * TBD_SPECIAL_OTHER with no bytes, which does not return. */
static struct tbd_block_code *make(struct tbd_thread *thread, struct tbd_make wanted)
{
    struct tbd_block_code *block = tbd_cache_make(run.callbacks, &run.config, &wanted);

    if (block)
        return block;
    run.flushes++;
    forget_all();
    wanted.after = TBD_NO_INDEX;
    block = tbd_cache_make(run.callbacks, &run.config, &wanted);
    if (!block) {
        thread->regs.rip = wanted.pc;
        run.callbacks->special(thread, TBD_SPECIAL_OTHER, 0);
    }
    return block;
}

static uint64_t enter_stop_block(struct tbd_thread *thread)
{
    struct tbd_make wanted = { .pc = run.stop_pc,
                               .after = TBD_NO_INDEX,
                               .stop_insns = run.stop_insns };

    run.stop_insns = 0;
    return make(thread, wanted)->entry;
}

static uint64_t enter(struct tbd_thread *thread, uint64_t pc)
{
    struct tbd_block_code *block;

    if (run.stop_insns && run.stop_pc == pc)
        return enter_stop_block(thread);
    block = tbd_cache_find(pc);
    if (!block)
        block = make(thread, (struct tbd_make){ .pc = pc, .after = TBD_NO_INDEX });
    return block->entry;
}

static uint64_t enter_direct(struct tbd_thread *thread, uint32_t site_index)
{
    uint64_t pc = tbd_cache_site(site_index)->target;
    struct tbd_block_code *block = tbd_cache_find(pc);

    if (run.stop_insns)
        return enter(thread, pc);
    if (!block)
        return make(thread, (struct tbd_make){ .pc = pc, .after = site_index })->entry;
    if (run.config.link)
        tbd_cache_link(tbd_cache_site(site_index), block);
    return block->entry;
}

static uint64_t enter_indirect(struct tbd_thread *thread, uint64_t pc)
{
    struct tbd_block_code *block = tbd_cache_find(pc);

    if (run.stop_insns)
        return enter(thread, pc);
    if (!block)
        block = make(thread, (struct tbd_make){ .pc = pc, .after = TBD_NO_INDEX, .tagged = true });
    if (run.config.link && (block->tagged || tbd_cache_add_tag(block)))
        tbd_cache_set_target(thread, block);
    return block->entry;
}

/* ---- reasons to leave ---- */

static void at_last_insn(struct tbd_thread *thread, const struct tbd_block_code *block)
{
    thread->regs.rip = block->start + block->last_insn;
}

static void perform_block_end(struct tbd_thread *thread, uint32_t kind)
{
    const struct tbd_block_code *block = tbd_cache_block((uint32_t)thread->exit_arg);

    at_last_insn(thread, block);
    switch (kind) {
    case TBD_EXIT_SYSCALL: run.callbacks->syscall(thread, block->last_bytes); break;
    case TBD_EXIT_SPECIAL:
        run.callbacks->special(thread, (enum tbd_special)block->special, block->last_bytes);
        break;
    case TBD_EXIT_FAULT:
        tbd_cache_kill(tbd_cache_block((uint32_t)thread->exit_arg)); /* there may be code next
                                                                        time */
        run.callbacks->bad_code(thread);
        break;
    default: /* TBD_EXIT_STOP */
        thread->regs.rip += block->last_bytes;
        run.callbacks->boundary(thread);
        break;
    }
}

/* Nothing of the block has run; it is made again from the current bytes. */
static void code_changed(struct tbd_thread *thread)
{
    struct tbd_block_code *block = tbd_cache_block((uint32_t)thread->exit_arg);

    thread->regs.rip = block->start;
    tbd_cache_kill(block);
}

static void boundary(struct tbd_thread *thread)
{
    const struct tbd_block_code *block = tbd_cache_block_at(thread->resume);

    thread->regs.rip = block->start;
    run.callbacks->boundary(thread);
}

/* Blocks assume an rsp that is a multiple of 8 until it is seen not to be (patcher/touch.c).  New
 * code, where an odd rsp begins, always passes here. */
static bool is_new_oddity(const struct tbd_thread *thread)
{
    return thread->regs.gpr[TBD_RSP] % 8 && !run.config.odd_stack;
}

static uint64_t enter_with_odd_stack(struct tbd_thread *thread, uint64_t pc)
{
    forget_all();
    run.config.odd_stack = true;
    return enter(thread, pc);
}

/* Where the program goes on when nothing else is due: a kick makes a boundary first. */
static uint64_t go_on(struct tbd_thread *thread, uint32_t kind)
{
    uint64_t pc = thread->regs.rip;

    if (kind == TBD_EXIT_DIRECT)
        pc = tbd_cache_site((uint32_t)thread->exit_arg)->target;
    else if (kind == TBD_EXIT_INDIRECT)
        pc = thread->exit_arg;
    if (__atomic_load_n(&thread->kick, __ATOMIC_RELAXED)) {
        thread->regs.rip = pc;
        run.callbacks->boundary(thread);
        return enter(thread, thread->regs.rip);
    }
    if (is_new_oddity(thread))
        return enter_with_odd_stack(thread, pc);
    if (kind == TBD_EXIT_DIRECT)
        return enter_direct(thread, (uint32_t)thread->exit_arg);
    return kind == TBD_EXIT_INDIRECT ? enter_indirect(thread, pc) : enter(thread, pc);
}

uint64_t tbd_patcher_dispatch(struct tbd_thread *thread)
{
    uint32_t kind = (uint32_t)thread->exit_kind;

    run.exits[kind]++;
    if (kind == TBD_EXIT_BOUNDARY) {
        boundary(thread);
        return enter(thread, thread->regs.rip);
    }
    if (kind == TBD_EXIT_CHANGED)
        code_changed(thread);
    else if (kind != TBD_EXIT_START && kind != TBD_EXIT_DIRECT && kind != TBD_EXIT_INDIRECT)
        perform_block_end(thread, kind);
    return go_on(thread, kind);
}

/* ---- where translated code was interrupted ---- */

bool tbd_patcher_owns(uint64_t pc)
{
    return tbd_cache_area_of(pc) != NULL ||
           (pc >= (uint64_t)(uintptr_t)tbd_fixed_start && pc < (uint64_t)(uintptr_t)tbd_fixed_end);
}

#define FLAG_TF        0x100ull
#define FLAG_AC        0x40000ull
#define TRAP_DEBUG     1u
#define TRAP_ALIGNMENT 17u

bool tbd_patcher_step(struct tbd_thread *thread, struct tbd_regs *cpu, uint64_t trap)
{
    struct tbd_interruption where;
    static bool is_stepping; /* one thread runs at a time, and nothing comes between */
    struct tbd_regs state;

    if (trap == TRAP_DEBUG && is_stepping) {
        is_stepping = false;
        cpu->rflags = (cpu->rflags & ~FLAG_TF) | FLAG_AC;
        return true;
    }
    if (trap != TRAP_ALIGNMENT || !tbd_patcher_owns(cpu->rip))
        return false;
    where = tbd_patcher_interrupted(thread, cpu, &state);
    if (where.where == TBD_INT_INSIDE && !where.in_hook)
        return false; /* the program's own */
    is_stepping = true;
    cpu->rflags = (cpu->rflags & ~FLAG_AC) | FLAG_TF;
    return true;
}

struct tbd_interruption tbd_patcher_interrupted(struct tbd_thread *thread,
                                                const struct tbd_regs *cpu, struct tbd_regs *state)
{
    return tbd_interrupt_find(run.callbacks, &run.config, thread, cpu, state);
}

uint64_t tbd_patcher_program_pc(struct tbd_thread *thread, uint64_t cache_pc)
{
    struct tbd_regs cpu = { .rip = cache_pc }, state;

    if (!tbd_cache_block_at(cache_pc))
        return 0;
    return tbd_patcher_interrupted(thread, &cpu, &state).where == TBD_INT_INSIDE ? state.rip : 0;
}
