// SPDX-License-Identifier: MIT
/* dispatch.c - runs between two pieces of translated code
 *
 * fixed_x86_64.S calls tbd_patcher_dispatch() with the program's registers in thread->regs; it
 * handles the reason why translated code left, and returns where to go on.  Callbacks may flush, so
 * no block or site is used across one. */
#include "patcher/patcher.h"

#include "base/sys.h"
#include "patcher/asked_loads.h"
#include "patcher/asked_places.h"
#include "patcher/cache.h"
#include "patcher/engine_lock.h"
#include "patcher/fixed.h"
#include "patcher/interrupted.h"
#include "patcher/offsets.h"
#include "patcher/translate.h"

#include <string.h>

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
_Static_assert(TBD_GS_AT_HOME == TBD_THREAD_GS(at_home), "offsets.h");
_Static_assert(TBD_GS_KICK == TBD_THREAD_GS(kick), "offsets.h");
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

/* Why translated code was left. */
struct left {
    uint64_t pc;   /* where the program goes on if nothing is due; the last instruction, if it is */
    uint32_t kind; /* enum tbd_exit_kind */
    uint32_t number;    /* of the exit site or the block */
    uint32_t forgotten; /* the number is valid as long as tbd_engine_forgotten() returns this */
    uint8_t last_bytes;
    uint8_t special;
    uint32_t record_bytes; /* NOWHERE: callbacks->bad_target() */
};

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
    tbd_translate_init();
    callbacks->with_vector_state(init_decoder, NULL);
    if (config->is_free)
        tbd_engine_lock_init();
    return tbd_cache_init(config->is_free);
}

void tbd_patcher_populate(void)
{
    tbd_cache_populate();
}

void tbd_patcher_populate_thread(const struct tbd_thread *thread)
{
    tbd_sys_populate(tbd_sys_pointer(thread), tbd_sys_pointer(thread + 1));
}

/* Threads that run at the same time leave first: no exit leads on to another block any more. */
static void forget_all(struct tbd_thread *thread)
{
    if (run.callbacks->forgetting)
        run.callbacks->forgetting();
    tbd_cache_drain(thread);
    tbd_cache_flush_all();
    tbd_engine_drain_end();
}

static void forget_range(uint64_t start, uint64_t end)
{
    if (!tbd_cache_has_blocks(start, end))
        return;
    if (run.callbacks->forgetting)
        run.callbacks->forgetting();
    tbd_cache_flush_range(start, end);
    tbd_engine_sync_code();
}

void tbd_patcher_configure(const struct tbd_codegen_config *config)
{
    forget_all(NULL); /* as they were made */
    run.config = *config;
    tbd_cache_forget_ids();
}

void tbd_patcher_place_notes(const struct tbd_note_site *notes)
{
    run.config.notes = notes;
}

void tbd_patcher_run(struct tbd_thread *thread)
{
    tbd_engine_lock(thread);
    tbd_cache_add_thread(thread);
    tbd_engine_unlock_all(thread);
    thread->self = (uint64_t)(uintptr_t)thread;
    tbd_fixed_run(thread);
}

void tbd_patcher_after_fork(void)
{
    tbd_engine_lock_after_fork();
    tbd_cache_after_fork();
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
    tbd_engine_lock(thread);
    forget_range(start, end);
    tbd_engine_unlock(thread);
}

bool tbd_patcher_may_read(uint64_t start, uint64_t end)
{
    return tbd_cache_may_read(start, end);
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

void tbd_patcher_ask(struct tbd_thread *thread, uint64_t pc)
{
    uint64_t before[TBD_MAX_ASKED_PLACES];
    size_t count = tbd_asked_places_list(before);

    (void)thread;
    if (count == (pc != 0) && (!count || before[0] == pc))
        return;
    for (size_t i = 0; i < count; i++)
        forget_range(before[i], before[i] + 1);
    forget_range(pc, pc + 1);
    tbd_asked_places_set(&pc, pc != 0);
}

void tbd_patcher_record(struct tbd_thread *thread, bool records)
{
    tbd_engine_lock(thread);
    if (run.config.records != records)
        forget_all(thread);
    run.config.records = records;
    tbd_engine_unlock(thread);
}

void tbd_patcher_ask_loads(struct tbd_thread *thread, const struct tbd_asked_range *ranges,
                           size_t count)
{
    tbd_engine_lock(thread);
    if (count || tbd_asked_loads_are())
        forget_all(thread);
    tbd_asked_loads_set(ranges, count);
    tbd_engine_unlock(thread);
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
    forget_all(thread);
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

static uint64_t enter_direct(struct tbd_thread *thread, const struct left *left)
{
    struct tbd_block_code *block = tbd_cache_find(left->pc);

    if (run.stop_insns || left->forgotten != tbd_engine_forgotten())
        return enter(thread, left->pc);
    if (!block)
        return make(thread, (struct tbd_make){ .pc = left->pc, .after = left->number })->entry;
    if (run.config.link)
        tbd_cache_link(tbd_cache_site(left->number), block);
    return block->entry;
}

/* The block that jumped has led to where an import is bound: it will be made again.  Where entries tell that, it may have jumped earlier. */
static void foretell_next_time(const struct tbd_thread *thread, const struct left *left)
{
    struct tbd_block_code *block = tbd_cache_block((uint32_t)thread->left);

    if (left->forgotten == tbd_engine_forgotten() && block->foretells_later && block->live)
        tbd_cache_kill(block);
}

static uint64_t enter_indirect(struct tbd_thread *thread, uint64_t pc, const struct left *left)
{
    struct tbd_block_code *block = tbd_cache_find(pc);

    if (run.stop_insns)
        return enter(thread, pc);
    foretell_next_time(thread, left);
    if (!block)
        block = make(thread, (struct tbd_make){ .pc = pc, .after = TBD_NO_INDEX, .tagged = true });
    if (run.config.link && (block->tagged || tbd_cache_add_tag(block)))
        tbd_cache_set_target(thread, block);
    return block->entry;
}

/* ---- reasons to leave ---- */

static struct left describe_block_end(struct left left)
{
    const struct tbd_block_code *block = tbd_cache_block(left.number);

    left.pc = block->start;
    if (left.kind != TBD_EXIT_CHANGED && left.kind != TBD_EXIT_ASKED)
        left.pc += block->last_insn;
    left.last_bytes = block->last_bytes;
    left.special = block->special;
    return left;
}

static bool leads_nowhere(const struct tbd_thread *thread)
{
    return (thread->exit_kind == TBD_EXIT_INDIRECT || thread->exit_kind == TBD_EXIT_SWITCH) &&
           !tbd_is_canonical(run.callbacks, thread->exit_arg);
}

/* The block whose indirect branch was executed last.  Blocks that are made again have the same id, and the same branch. */
static const struct tbd_block_code *block_that_jumped(const struct tbd_thread *thread)
{
    uint32_t id;

    if (!tbd_codegen_entries_tell(&run.config))
        return tbd_cache_block((uint32_t)thread->left);
    memcpy(&id, (const void *)(uintptr_t)(thread->entry_next - sizeof(id)), sizeof(id));
    return tbd_cache_with_id(id);
}

/* The branch has not been executed. */
static struct left take_back_branch(struct tbd_thread *thread)
{
    struct tbd_interruption found;
    struct tbd_regs before;

    tbd_engine_lock_sigsafe(thread);
    found = tbd_interrupt_branch(run.callbacks, &run.config, thread, block_that_jumped(thread),
                                 thread->exit_arg, &before);
    tbd_engine_unlock(thread);
    memcpy(thread->regs.gpr, before.gpr, sizeof(before.gpr));
    return (struct left){ .kind = TBD_EXIT_NOWHERE,
                          .pc = before.rip,
                          .record_bytes = found.record_bytes };
}

static uint64_t start_of_block_at(struct tbd_thread *thread, uint64_t cache_pc)
{
    uint64_t start;

    tbd_engine_lock_sigsafe(thread);
    start = tbd_cache_block_at(cache_pc)->start;
    tbd_engine_unlock(thread);
    return start;
}

/* Afterwards nothing of this thread refers to the cache, so that its contents can be forgotten. */
static struct left leave(struct tbd_thread *thread)
{
    struct left left = { .kind = (uint32_t)thread->exit_kind,
                         .number = (uint32_t)thread->exit_arg };

    if (leads_nowhere(thread))
        left = take_back_branch(thread);
    switch (left.kind) {
    case TBD_EXIT_NOWHERE: break;
    case TBD_EXIT_START: left.pc = thread->regs.rip; break;
    case TBD_EXIT_DIRECT: left.pc = tbd_cache_site(left.number)->target; break;
    case TBD_EXIT_SWITCH:
    case TBD_EXIT_INDIRECT: left.pc = thread->exit_arg; break;
    case TBD_EXIT_BOUNDARY: left.pc = start_of_block_at(thread, thread->resume); break;
    default: left = describe_block_end(left); break;
    }
    left.forgotten = tbd_engine_leave_code(thread);
    thread->regs.rip = left.pc;
    if (left.kind == TBD_EXIT_SWITCH) {
        run.callbacks->switched(thread, left.pc);
        left.kind = TBD_EXIT_INDIRECT;
    }
    return left;
}

static void kill_left(struct tbd_thread *thread, const struct left *left)
{
    tbd_engine_lock(thread);
    if (left->forgotten == tbd_engine_forgotten())
        tbd_cache_kill(tbd_cache_block(left->number));
    tbd_engine_unlock(thread);
}

/* Does what is due before the program goes on at thread->regs.rip. */
static void perform(struct tbd_thread *thread, const struct left *left)
{
    switch (left->kind) {
    case TBD_EXIT_SYSCALL: run.callbacks->syscall(thread, left->last_bytes); break;
    case TBD_EXIT_SPECIAL:
        run.callbacks->special(thread, (enum tbd_special)left->special, left->last_bytes);
        break;
    case TBD_EXIT_FAULT:
        kill_left(thread, left); /* there may be code next time */
        run.callbacks->bad_code(thread);
        break;
    case TBD_EXIT_NOWHERE:
        if (run.config.calling)
            run.callbacks->switched(thread, left->pc);
        run.callbacks->bad_target(thread, left->record_bytes);
        break;
    case TBD_EXIT_CHANGED: /* nothing of the block has run; it is made again from the current bytes */
        kill_left(thread, left);
        break;
    case TBD_EXIT_STOP:
        thread->regs.rip += left->last_bytes;
        run.callbacks->boundary(thread);
        break;
    case TBD_EXIT_ASKED: run.callbacks->asked(thread); break;
    default: /* TBD_EXIT_BOUNDARY */ run.callbacks->boundary(thread); break;
    }
}

/* Blocks assume an rsp that is a multiple of 8 until it is seen not to be (patcher/touch.c).  New
 * code, where an odd rsp begins, always passes here. */
static bool is_new_oddity(const struct tbd_thread *thread)
{
    return thread->regs.gpr[TBD_RSP] % 8 && !run.config.odd_stack;
}

static uint64_t enter_with_odd_stack(struct tbd_thread *thread, uint64_t pc)
{
    forget_all(thread);
    run.config.odd_stack = true;
    return enter(thread, pc);
}

static bool goes_straight_on(const struct left *left)
{
    return left->kind == TBD_EXIT_START || left->kind == TBD_EXIT_DIRECT ||
           left->kind == TBD_EXIT_INDIRECT;
}

/* The entry of the block at thread->regs.rip.  `left`: how it is reached; NULL: not from the block
 * before it. */
static uint64_t find(struct tbd_thread *thread, const struct left *left)
{
    uint64_t pc = thread->regs.rip;

    if (is_new_oddity(thread))
        return enter_with_odd_stack(thread, pc);
    if (left && left->kind == TBD_EXIT_DIRECT)
        return enter_direct(thread, left);
    return left && left->kind == TBD_EXIT_INDIRECT ? enter_indirect(thread, pc, left)
                                                   : enter(thread, pc);
}

/* Unless the place is none any more. */
static uint64_t after_question(uint64_t entry, uint64_t pc)
{
    const struct tbd_block_code *block = tbd_cache_find(pc);

    return block && block->answered ? block->answered : entry;
}

/* The thread counts as being in translated code all the time, so the block stays. */
static uint64_t record(struct tbd_thread *thread)
{
    const struct tbd_block_code *block = tbd_cache_block((uint32_t)thread->exit_arg);

    thread->regs.rip = block->start;
    run.callbacks->record(thread);
    return block->answered;
}

/* A kick makes a boundary before the program goes on. */
static uint64_t dispatch(struct tbd_thread *thread)
{
    struct left left = leave(thread);
    bool straight = goes_straight_on(&left);
    uint64_t entry;

    if (!straight)
        perform(thread, &left);
    if (left.kind != TBD_EXIT_BOUNDARY && __atomic_load_n(&thread->kick, __ATOMIC_RELAXED)) {
        run.callbacks->boundary(thread);
        straight = false;
    }
    if (straight && run.callbacks->missed)
        run.callbacks->missed(thread);
    tbd_engine_lock(thread);
    run.exits[left.kind]++;
    entry = find(thread, straight ? &left : NULL);
    if (left.kind == TBD_EXIT_ASKED && thread->regs.rip == left.pc)
        entry = after_question(entry, left.pc);
    tbd_engine_enter_code(thread);
    return entry;
}

uint64_t tbd_patcher_dispatch(struct tbd_thread *thread)
{
    uint64_t entry = thread->exit_kind == TBD_EXIT_RECORD ? record(thread) : dispatch(thread);

    thread->at_home = tbd_at_home(&run.config);
    return entry;
}

/* ---- where translated code was interrupted ---- */

static uint64_t at(const char *label)
{
    return (uint64_t)(uintptr_t)label;
}

bool tbd_patcher_owns(uint64_t pc)
{
    return tbd_cache_area_of(pc) != NULL || (pc >= at(tbd_fixed_start) && pc < at(tbd_fixed_end));
}

#define FLAG_TF        0x100ull
#define FLAG_AC        0x40000ull
#define TRAP_DEBUG     1u
#define TRAP_ALIGNMENT 17u

bool tbd_patcher_step(struct tbd_thread *thread, struct tbd_regs *cpu, uint64_t trap)
{
    struct tbd_interruption where;
    struct tbd_regs state;

    if (trap == TRAP_DEBUG && thread->is_stepping) {
        thread->is_stepping = false;
        cpu->rflags = (cpu->rflags & ~FLAG_TF) | FLAG_AC;
        return true;
    }
    if (trap != TRAP_ALIGNMENT || !tbd_patcher_owns(cpu->rip))
        return false;
    where = tbd_patcher_interrupted(thread, cpu, &state);
    if (where.where == TBD_INT_INSIDE && !where.in_hook)
        return false; /* the program's own */
    thread->is_stepping = true;
    cpu->rflags = (cpu->rflags & ~FLAG_AC) | FLAG_TF;
    return true;
}

struct tbd_interruption tbd_patcher_interrupted(struct tbd_thread *thread,
                                                const struct tbd_regs *cpu, struct tbd_regs *state)
{
    struct tbd_interruption found;

    tbd_engine_lock_sigsafe(thread);
    found = tbd_interrupt_find(run.callbacks, &run.config, thread, cpu, state);
    tbd_engine_unlock(thread);
    return found;
}

void tbd_patcher_hurry(struct tbd_thread *thread, struct tbd_regs *cpu)
{
    uint64_t pc = cpu->rip;

    if (pc >= at(tbd_fixed_enter) && pc < at(tbd_fixed_end)) {
        cpu->rip = at(tbd_fixed_again);
    } else if (pc >= at(tbd_fixed_miss) && pc < at(tbd_fixed_boundary)) {
        if (pc == at(tbd_fixed_miss))
            thread->scratch[0] = cpu->gpr[TBD_RCX];
        cpu->rip = at(tbd_fixed_leave);
    }
}

uint64_t tbd_patcher_program_pc(struct tbd_thread *thread, uint64_t cache_pc)
{
    struct tbd_regs cpu = { .rip = cache_pc }, state;
    uint64_t pc = 0;

    tbd_engine_lock(thread);
    if (tbd_cache_block_at(cache_pc) &&
        tbd_patcher_interrupted(thread, &cpu, &state).where == TBD_INT_INSIDE)
        pc = state.rip;
    tbd_engine_unlock(thread);
    return pc;
}
