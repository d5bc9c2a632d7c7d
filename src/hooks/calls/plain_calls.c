// SPDX-License-Identifier: MIT
/* plain_calls.c - calls that the engine takes no part in: saves old bytes, makes the call, records
 * what it wrote
 *
 * The table says what a call writes; for calls that it does not describe, memory is compared before
 * and after.  Context: APP. */
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/calls/changed_files.h"
#include "hooks/calls/opened_descriptors.h"
#include "hooks/calls/own_memory.h"
#include "hooks/calls/userfault_calls.h"
#include "hooks/calls/waiting_mask.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/recording.h"
#include "hooks/table/sys_table.h"
#include "hooks/threads/threads.h"

/* Makes the call while holding the turn lock, though the call may wait (THREADS-6). */
static void perform_outside(struct tbd_call *call)
{
    struct tbd_saved_context *saved = tbd_threads.holder;
    struct tbd_regs regs;

    if (!tbd_threads_are_many()) {
        call->result = tbd_call_perform(&call->sys);
        return;
    }
    regs = call->thread->regs;
    tbd_call_step_out(call);
    call->result = tbd_call_perform(&call->sys);
    if (!tbd_threads_step_in(saved))
        tbd_call_stolen(call, saved, &regs);
}

/* ---- calls whose effects the table does not describe ---- */

#define SAID_BYTES 128u

/* Is it the first time that the number is marked in `said`? */
static bool is_first(uint8_t said[SAID_BYTES], uint64_t number)
{
    uint64_t bit = number % (SAID_BYTES * 8);
    bool first = !(said[bit / 8] >> (bit % 8) & 1);

    said[bit / 8] |= (uint8_t)(1u << (bit % 8));
    return first;
}

static void note_unknown(uint64_t number)
{
    static uint8_t said[SAID_BYTES];

    if (is_first(said, number))
        tbd_recording_note(
            0, "system call %lu is not described: its writes are found by comparison", number);
}

static void perform_unknown(struct tbd_call *call)
{
    note_unknown(call->sys.number);
    tbd_recording.unknown_calls++;
    tbd_effects_watch_all(call->effects);
    perform_outside(call);
    if (call->result == TBD_CALL_INTERRUPTED)
        return;
    tbd_effects_compare(call->effects);
    if (tbd_effects_is_cut(call->effects))
        tbd_recording_note(1, "system call %lu: some of its writes are missing", call->sys.number);
    call->flags |= TBD_SYSCALL_UNKNOWN;
}

/* ---- calls whose effects the table describes ---- */

/* The result says what was written only where nothing stopped the kernel: a call that fails may have
 * written part of its places, and a page that cannot be written ends a transfer somewhere before it. */
static bool tells_all(const struct tbd_call *call, const struct tbd_sys_range *may, size_t count)
{
    if (tbd_sys_failed(call->result))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!tbd_regions_allow(&tbd_memory.regions, may[i].address, may[i].address + may[i].bytes,
                               PROT_WRITE))
            return false;
    return !tbd_effects_is_short(call->effects);
}

void tbd_call_perform_here(struct tbd_call *call)
{
    static struct tbd_sys_range may[TBD_SYS_MAX_RANGES];
    static struct tbd_sys_range did[TBD_SYS_MAX_RANGES];
    size_t may_count = tbd_syscall_may_write(&call->sys, may, TBD_SYS_MAX_RANGES);
    size_t did_count;

    if (may_count == TBD_SYS_MAX_RANGES) { /* there may be more ranges than fit */
        perform_unknown(call);
        return;
    }
    tbd_effects_watch(call->effects, may, may_count);
    if (tbd_syscall_flags(call->sys.number) & TBD_SYS_BLOCKS)
        perform_outside(call);
    else
        call->result = tbd_call_perform(&call->sys);
    if (call->result == TBD_CALL_INTERRUPTED) {
        tbd_effects_undo(call->effects); /* waitid writes before it is restarted */
        return;
    }
    if (!tells_all(call, may, may_count)) {
        tbd_effects_compare(call->effects);
        return;
    }
    did_count =
        tbd_syscall_did_write(&call->sys, call->result, may, may_count, did, TBD_SYS_MAX_RANGES);
    tbd_effects_written(call->effects, did, did_count);
}

/* Gives way to other threads, or to somebody who fills pages that the kernel is about to use. */
static bool gives_way(const struct tbd_sys_call *sys)
{
    return (tbd_threads_are_many() && tbd_syscall_may_wait(sys)) || tbd_userfault_has_pointer(sys);
}

void tbd_call_described(struct tbd_call *call)
{
    tbd_call_offer_turn(call);
    tbd_call_note_temporary_mask(&call->sys);
    if (gives_way(&call->sys) ? !tbd_call_wait(call) : !tbd_call_large(call))
        tbd_call_perform_here(call);
    if (call->result != -EINTR)
        tbd_signals_now()->has_temporary = false;
    if (call->result != TBD_CALL_INTERRUPTED && tbd_effects_is_cut(call->effects))
        tbd_recording_note(1, "system call %lu: some old bytes are missing", call->sys.number);
}

static void note_asynchronous(uint64_t number)
{
    static uint8_t said[SAID_BYTES];

    if (is_first(said, number))
        tbd_recording_note(1, "system call %lu lets the kernel write memory later: not recorded",
                           number);
}

void tbd_call_plain(struct tbd_call *call)
{
    uint32_t flags = tbd_syscall_flags(call->sys.number);

    if (flags & TBD_SYS_WRITES && tbd_own_memory_write(call)) {
        tbd_call_finish(call);
        return;
    }
    if (flags & (TBD_SYS_WRITES | TBD_SYS_CHANGES | TBD_SYS_OPENS))
        tbd_changed_files_note(call);
    if (tbd_syscall_is_described(&call->sys))
        tbd_call_described(call);
    else
        perform_unknown(call);
    if (flags & TBD_SYS_OPENS)
        tbd_own_memory_note(call);
    if (flags & TBD_SYS_ASYNC)
        note_asynchronous(call->sys.number);
    tbd_call_finish(call);
    tbd_opened_send_inherited(call);
    if (flags & (TBD_SYS_OPENS | TBD_SYS_CONNECTS))
        tbd_opened_send(call);
}
