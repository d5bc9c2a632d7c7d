// SPDX-License-Identifier: MIT
/* play.c - see play.h
 *
 * PLAY-1  Translated code is entered only after tbd_play_settle(), the only place that delivers a pending
 *     signal, ends a window, or lets the program go. (not checked: every callback ends with it)
 *
 * Context: APP. */
#include "hooks/boot/play.h"

#include "base/assert.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "hooks/calls/call_run.h"
#include "hooks/calls/vsyscall.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/shared_quick.h"
#include "hooks/instructions/shared_set.h"
#include "hooks/instructions/slot.h"
#include "hooks/instructions/special.h"
#include "hooks/memory/code_areas.h"
#include "hooks/memory/effects.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/page_wait.h"
#include "hooks/threads/threads.h"
#include "hooks/threads/window_end.h"
#include "patcher/decode.h"

/* `looks`: whether the thread's restartable sequences show another processor. */
static void settle(struct tbd_thread *thread, bool looks)
{
    struct tbd_ring *ring = &tbd_recording.ring;

    for (;;) {
        __atomic_store_n(&thread->kick, 0, __ATOMIC_RELAXED);
        tbd_ring_unprotect_sigsafe(ring);
        if (ring->discard && tbd_recording.is_on)
            tbd_detach(thread, tbd_recording_gone_why(), TBD_END_WHOLE);
        if (ring->full)
            tbd_detach(thread, "too many different blocks", TBD_END_WHOLE);
        TBD_INVARIANT("THREAD-1", thread->mark == TBD_THREAD_MARK);
        if (tbd_assert_failure())
            tbd_detach(thread, tbd_assert_failure(), TBD_END_WHOLE);
        if (tbd_leaving_why())
            tbd_detach(thread, tbd_leaving_why(), TBD_END_WHOLE);
        tbd_window_handle_due(thread);
        if (tbd_rseq_settle(thread, looks))
            continue;
        if (!__atomic_load_n(&tbd_signals_now()->pending, __ATOMIC_ACQUIRE) &&
            !tbd_signals_take_held())
            break;
        if (tbd_threads_signal_waits(thread))
            break;
        tbd_signals_deliver(thread);
    }
}

void tbd_play_settle(struct tbd_thread *thread)
{
    tbd_context_now()->signal_due = 0; /* only between blocks a signal may wait */
    settle(thread, true);
}

/* ---- blocks ---- */

static uint32_t define(const struct tbd_block_def *def, const struct tbd_op *ops,
                       const uint8_t *code)
{
    return tbd_ring_define(&tbd_recording.ring, def, ops, code);
}

/* Code in writable memory may change without a system call; so may code in shared memory, which can
 * be mapped a second time. */
uint64_t tbd_play_executable(struct tbd_app_pc pc, uint64_t want, bool *out_changes)
{
    uint64_t at = pc.v;

    *out_changes = false;
    while (at < pc.v + want) {
        const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, at);

        if (!region || !(region->map.prot & PROT_EXEC))
            break;
        *out_changes |= region->map.prot & PROT_WRITE || region->map.map_flags & MAP_SHARED;
        at = region->map.end;
    }
    return at - pc.v < want ? at - pc.v : want;
}

bool tbd_play_word(uint64_t address, uint64_t *out, bool *out_constant)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, address);

    if (!region || !(region->map.prot & PROT_READ) || region->map.end - address < sizeof(*out))
        return false;
    memcpy(out, (const void *)(uintptr_t)address, sizeof(*out));
    *out_constant = !(region->map.prot & PROT_WRITE) && !(region->map.map_flags & MAP_SHARED);
    return true;
}

static void send_code(uint64_t start, uint32_t bytes, struct tbd_effects *effects)
{
    struct tbd_msg_code message = { .bytes = bytes, .start = start };
    uint32_t flags = 0; /* the bytes of a block fit into one message */
    struct tbd_effect_head head = { .kind = TBD_MSG_CODE,
                                    .data = &message,
                                    .bytes = sizeof(message),
                                    .write_count = &message.write_count,
                                    .flags = &flags };

    tbd_effects_send(effects, &tbd_recording.ring, tbd_thread_now(), &tbd_memory.pages, &head, NULL,
                     0);
}

/* Code that others may write: the log must have its bytes before a block made from them is
 * entered. */
static void looked(struct tbd_app_pc start, uint32_t bytes)
{
    uint8_t now[TBD_BLOCK_MAX_INSNS * TBD_INSN_MAX_BYTES];
    struct tbd_effects *effects;
    uint32_t others = 0;

    if (!tbd_recording.is_on || !tbd_shared_holds(start.v, start.v + bytes) || bytes > sizeof(now))
        return;
    effects = tbd_effects_get();
    tbd_effects_clear(effects);
    tbd_pages_mark_read(&tbd_memory.pages, start.v, start.v + bytes);
    if (!tbd_shared_load(effects, now, start.v, bytes, &others) || !others)
        return;
    send_code(start.v, bytes, effects);
    tbd_recording_keep_kick(tbd_thread_now());
}

/* ---- what a block ends with ---- */

static void boundary(struct tbd_thread *thread)
{
    struct tbd_ring *ring = &tbd_recording.ring;

    tbd_ring_unprotect_sigsafe(ring);
    tbd_ring_go_on(ring, thread);
    tbd_threads_delay_signal(thread);
    settle(thread, true);
}

/* Native play has these registers already before the call, from the processor: all windows of its trace must. */
static void set_call_registers(struct tbd_regs *regs, uint32_t insn_bytes)
{
    regs->gpr[TBD_RCX] = regs->rip + insn_bytes;
    regs->gpr[TBD_R11] = regs->rflags;
}

static void on_syscall(struct tbd_thread *thread, uint32_t insn_bytes)
{
    if (tbd_recording.ring.head->flags & TBD_STREAM_OWN_CODE)
        set_call_registers(&thread->regs, insn_bytes);
    tbd_syscall_perform(thread, insn_bytes);
    tbd_threads_call_ended(thread);
    tbd_play_settle(thread);
}

static void on_special(struct tbd_thread *thread, enum tbd_special special, uint32_t insn_bytes)
{
    if (special != TBD_SPECIAL_SHARED || !tbd_shared_quick(thread, insn_bytes)) {
        struct tbd_page_wait wait = tbd_special_perform(thread, special, insn_bytes);

        if (wait.is_needed)
            tbd_page_wait(thread, &wait);
    }
    tbd_context_now()->signal_due = 0;
    /* plain accesses come as often as others that translated code makes without a look */
    settle(thread, special != TBD_SPECIAL_SHARED && special != TBD_SPECIAL_APART);
}

/* The byte at `address` cannot be fetched; the instruction at regs.rip begins there or before.
 * Raises the processor's fault. */
static void raise_fetch_fault(struct tbd_thread *thread, uint64_t address)
{
    bool mapped = tbd_regions_find(&tbd_memory.regions, address);
    struct tbd_queued_signal fault = { .signo = 11,
                                       .is_sync = true,
                                       .error = 0x14,
                                       .trap = 14,
                                       .insn = tbd_slot_last_insn(thread),
                                       .address = address };
    int32_t code = mapped ? SEGV_ACCERR : SEGV_MAPERR;

    fault.error |= mapped ? 1 : 0;
    memcpy(fault.info, &fault.signo, 4);
    memcpy(fault.info + 8, &code, 4);
    memcpy(fault.info + 16, &address, 8);
    tbd_recording_interrupted(fault.insn);
    tbd_signals_raise(thread, &fault);
}

/* An instruction that raises a signal runs in a slot.  Any other is unknown to the decoder: the
 * program is let go, and the processor executes it. */
static void bad_code(struct tbd_thread *thread)
{
    bool unused, lacks_bytes = true;
    uint64_t pc = thread->regs.rip;
    uint64_t fetchable =
        tbd_play_executable((struct tbd_app_pc){ pc }, TBD_INSN_MAX_BYTES, &unused);
    const struct tbd_slot *slot =
        fetchable ? tbd_slot_get_raising(thread, (uint32_t)fetchable, &lacks_bytes) : NULL;

    if (tbd_vsyscall_perform(thread)) {
        tbd_play_settle(thread);
        return;
    }
    if (slot)
        tbd_slot_run(thread, slot); /* leaves through the signal handler */
    if (!lacks_bytes)
        tbd_detach(thread, "it runs an instruction that is not known", tbd_slot_last_insn(thread));
    raise_fetch_fault(thread, pc + fetchable);
    tbd_play_settle(thread);
}

/* The processor raises the same for hlt: a general protection fault without an error code. */
static void bad_target(struct tbd_thread *thread, uint32_t record_bytes)
{
    if (tbd_recording_has_blocks())
        tbd_ring_shorten_record(&tbd_recording.ring, thread, record_bytes);
    tbd_slot_run(thread, tbd_slot_get_fault(thread, TBD_SLOT_PROTECTION));
}

const struct tbd_patcher_callbacks tbd_play_callbacks = {
    .define = define,
    .executable = tbd_play_executable,
    .word = tbd_play_word,
    .looked = looked,
    .reserve_area = tbd_code_areas_reserve,
    .syscall = on_syscall,
    .special = on_special,
    .boundary = boundary,
    .bad_code = bad_code,
    .bad_target = bad_target,
    .has_long_addresses = tbd_processor_has_long_addresses,
    .forgetting = tbd_x87_settle,
    .with_vector_state = tbd_processor_decode,
};

/* ---- other ways in ---- */

/* Translated code faults before a popf that would set the trap flag (patcher/translate.c). */
static bool sets_trap_flag(const struct tbd_regs *regs, const struct tbd_queued_signal *fault)
{
    uint8_t code[TBD_INSN_MAX_BYTES] = { 0 };
    size_t bytes = sizeof(code);
    uint16_t flags = 0;

    if (fault->signo != SIGILL)
        return false;
    while (bytes && !tbd_copy_from_program(code, regs->rip, bytes))
        bytes--;
    return tbd_decode_is_popf(code, bytes) &&
           tbd_copy_from_program(&flags, regs->gpr[TBD_RSP], sizeof(flags)) &&
           flags & TBD_RFLAGS_TRAP;
}

void tbd_play_after_fault(struct tbd_thread *thread)
{
    struct tbd_queued_signal *fault = &tbd_signals_now()->fault;

    tbd_ring_unprotect_sigsafe(&tbd_recording.ring);
    if (fault->is_shared) {
        tbd_shared_found(thread, fault->insn);
    } else if (fault->signo) {
        if (fault->insn != TBD_SIGNAL_NOT_IN_BLOCK)
            tbd_recording_interrupted(fault->insn);
        if (sets_trap_flag(&thread->regs, fault)) {
            fault->signo = 0; /* nobody sees it */
            tbd_detach(thread, TBD_STEPS_ITSELF, TBD_END_WHOLE);
        }
        tbd_signals_raise(thread, fault);
    }
    tbd_play_settle(thread);
    tbd_patcher_run(thread);
}

void tbd_play_begin_thread(struct tbd_thread *thread)
{
    tbd_signals_let_in();
    tbd_play_settle(thread);
    tbd_patcher_run(thread);
}
