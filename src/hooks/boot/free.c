// SPDX-License-Identifier: MIT
/* free.c - see free.h */
#include "hooks/boot/free.h"

#include "base/linux.h"
#include "base/log.h"
#include "base/sys.h"
#include "hooks/boot/begin.h"
#include "hooks/boot/last_state.h"
#include "hooks/boot/play.h"
#include "hooks/boot/runtime.h"
#include "hooks/calls/free_calls.h"
#include "hooks/calls/lock_calls.h"
#include "hooks/instructions/branch_functions.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/calling_memory.h"
#include "hooks/memory/code_areas.h"
#include "hooks/memory/copied_memory.h"
#include "hooks/memory/program_memory.h"
#include "hooks/probes/late_places.h"
#include "hooks/probes/triggers.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/free_leave.h"
#include "hooks/threads/free_threads.h"
#include "patcher/engine_lock.h"

/* Without rings nobody asks for the definitions of blocks. */
static uint32_t define(const struct tbd_block_def *def, const struct tbd_op *ops,
                       const uint8_t *code)
{
    static uint32_t blocks;
    const struct tbd_mapped_region *region;
    uint32_t id;

    if (!tbd_crash_is_on())
        return ++blocks;
    id = tbd_ring_define(&tbd_recording.ring, def, ops, code);
    region = tbd_regions_find(&tbd_memory.regions, def->start);
    if (region)
        tbd_crash_note_module(id, def->start, &region->map, region->path);
    tbd_crash_note_first(id);
    return id;
}

/* With the lock. */
static void dump_or_wait(struct tbd_thread *thread)
{
    if (tbd_free_is_pausing())
        tbd_free_pause(thread);
    else
        tbd_last_state_if_asked(thread);
}

static bool is_alone(void)
{
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++)
        if (tbd_saved_context_at(i)->tid && tbd_saved_context_at(i) != tbd_context_now())
            return false;
    return true;
}

/* At the end of a lap.  Another thread's stores have no place among this one's instructions, so what it shares with others is not copied. */
static void copy_memory(struct tbd_thread *thread)
{
    if (is_alone())
        tbd_copy_memory_if_due(thread, tbd_context_now()->index);
}

static void boundary(struct tbd_thread *thread)
{
    __atomic_store_n(&tbd_signals_now()->called_in, 0, __ATOMIC_RELAXED);
    tbd_free_lock(thread);
    tbd_crash_cancel_values(thread, tbd_context_now()->index);
    dump_or_wait(thread);
    tbd_crash_goes_on_after_call(tbd_context_now()->index);
    tbd_play_settle(thread);
    tbd_crash_note_values(thread, tbd_context_now()->index, false);
    copy_memory(thread);
    tbd_free_unlock(thread);
}

/* Is there anything to settle? */
static bool is_due(const struct tbd_thread *thread)
{
    return __atomic_load_n(&thread->kick, __ATOMIC_RELAXED) || tbd_leaving_why() ||
           tbd_free_is_pausing() || tbd_last_state_is_asked() ||
           __atomic_load_n(&tbd_signals_now()->called_in, __ATOMIC_RELAXED) ||
           tbd_signals_come(tbd_signals_now());
}

static void on_syscall(struct tbd_thread *thread, uint32_t insn_bytes)
{
    const uint64_t *gpr = thread->regs.gpr;
    struct tbd_sys_call call = { gpr[TBD_RAX],
                                 { gpr[TBD_RDI], gpr[TBD_RSI], gpr[TBD_RDX], gpr[TBD_R10],
                                   gpr[TBD_R8], gpr[TBD_R9] } };
    uint64_t next = thread->regs.rip + insn_bytes;

    tbd_crash_begin_call(tbd_context_now()->index);
    tbd_free_syscall(thread, insn_bytes);
    if (thread->regs.rip == next)
        tbd_crash_note_call(thread, tbd_context_now()->index, &call);
    else /* a signal's handler has returned */
        tbd_crash_note_values(thread, tbd_context_now()->index, false);
    if (is_due(thread))
        boundary(thread);
    else
        tbd_crash_goes_on_after_call(tbd_context_now()->index);
}

static void on_special(struct tbd_thread *thread, enum tbd_special special, uint32_t insn_bytes)
{
    tbd_free_lock(thread);
    tbd_play_callbacks.special(thread, special, insn_bytes);
    tbd_crash_note_values(thread, tbd_context_now()->index, false);
    tbd_free_unlock(thread);
}

static void record(struct tbd_thread *thread)
{
    tbd_crash_note_values(thread, tbd_context_now()->index, true);
}

static void missed(struct tbd_thread *thread)
{
    tbd_crash_note_values(thread, tbd_context_now()->index, false);
}

static void bad_code(struct tbd_thread *thread)
{
    tbd_free_lock(thread);
    tbd_play_callbacks.bad_code(thread);
    tbd_free_unlock(thread);
}

static void bad_target(struct tbd_thread *thread, uint32_t record_bytes)
{
    tbd_free_lock(thread);
    tbd_play_callbacks.bad_target(thread, record_bytes);
}

static void switched(struct tbd_thread *thread, uint64_t target)
{
    tbd_free_lock(thread);
    tbd_calling_find(thread, target);
    tbd_free_unlock(thread);
}

/* ---- triggers ---- */

/* With the lock.  A thread that is making a dump comes first. */
static void dump_for(struct tbd_thread *thread, int32_t trigger)
{
    char why[TBD_TRIGGER_TEXT_BYTES + 32];
    uint32_t keeps;

    while (tbd_free_is_pausing())
        tbd_free_pause(thread);
    if (trigger < 0 || !tbd_triggers_use((uint32_t)trigger, why, sizeof(why), &keeps))
        return;
    tbd_crash_keeps(keeps);
    tbd_last_state_take(thread, why);
}

/* Another thread may have looked meanwhile. */
static void look_again(struct tbd_thread *thread, uint64_t pc)
{
    tbd_free_lock(thread);
    while (tbd_free_is_pausing())
        tbd_free_pause(thread);
    if (tbd_late_places_are_due(pc))
        tbd_last_state_look(thread);
    tbd_free_unlock(thread);
}

/* Conditions are found without the lock: the tables change while all threads are at boundaries. */
static void asked(struct tbd_thread *thread)
{
    uint64_t pc = thread->regs.rip, loaded = thread->asked_address, bytes = thread->asked_bytes;
    int32_t trigger;

    thread->asked_bytes = 0;
    if (is_due(thread))
        boundary(thread);
    if (thread->regs.rip == pc && tbd_late_places_are_due(pc)) {
        look_again(thread, pc);
        if (is_due(thread)) /* a signal came, or a thread dies */
            boundary(thread);
    }
    if (thread->regs.rip != pc)
        return;
    trigger = tbd_triggers_at(&thread->regs);
    if (trigger != TBD_TRIGGER_NONE) {
        tbd_free_lock(thread);
        dump_for(thread, trigger);
        tbd_free_unlock(thread);
    }
    tbd_triggers_record(thread, tbd_context_now()->index);
    if (bytes)
        tbd_triggers_record_load(thread, tbd_context_now()->index, loaded, bytes);
}

void tbd_free_delivers(struct tbd_thread *thread, uint32_t signo)
{
    dump_for(thread, tbd_triggers_for_signal(signo));
}

const struct tbd_patcher_callbacks tbd_free_callbacks = {
    .define = define,
    .executable = tbd_play_executable,
    .word = tbd_play_word,
    .reserve_area = tbd_code_areas_reserve,
    .syscall = on_syscall,
    .special = on_special,
    .boundary = boundary,
    .asked = asked,
    .record = record,
    .missed = missed,
    .bad_code = bad_code,
    .bad_target = bad_target,
    .has_long_addresses = tbd_processor_has_long_addresses,
    .call_number = tbd_calling_number_of,
    .branches = tbd_branch_functions_at,
    .switched = switched,
    .with_vector_state = tbd_processor_decode,
};

void tbd_free_start(void)
{
    tbd_free_init();
    tbd_code_areas.are_inherited = true;
}

/* ---- other ways in ---- */

/* The fault may have come while the thread had the lock: in a slot. */
void tbd_free_after_fault(struct tbd_thread *thread)
{
    tbd_engine_leave_code(thread);
    tbd_free_lock(thread);
    dump_or_wait(thread);
    tbd_play_after_fault(thread);
}

bool tbd_free_hides_child(uint8_t *info)
{
    (void)info;
    return false;
}

void tbd_free_begin_thread(struct tbd_thread *thread)
{
    tbd_signals_let_in();
    if (is_due(thread))
        boundary(thread);
    else
        tbd_crash_note_values(thread, tbd_context_now()->index, true);
    tbd_patcher_run(thread);
}

/* A new stream and collector, at the same addresses; the parent's blocks have other ids. */
static bool begin_rings(struct tbd_thread *thread)
{
    struct tbd_codegen_config config = tbd_begin_codegen();

    tbd_crash_forget();
    tbd_runtime.has_placed = true;
    if (!tbd_begin_stream() || !tbd_begin_recording())
        return false;
    /* as in the parent: nothing is due, or the thread's entries would go elsewhere from then on */
    tbd_ring_start(&tbd_recording.ring, thread, 0, tbd_recording.window_due);
    tbd_crash_give_ring(thread, tbd_context_now()->index, thread->tid);
    tbd_late_places_inherit();
    tbd_patcher_configure(&config);
    return true;
}

bool tbd_free_record_child(struct tbd_thread *thread)
{
    tbd_lock_forget();
    tbd_recording.pid = (uint32_t)tbd_sys_getpid();
    if (!tbd_runtime.options.children)
        return false;
    return !tbd_crash_is_on() || begin_rings(thread);
}
