// SPDX-License-Identifier: MIT
/* waiting.c - system calls that may wait while other threads run, and calls with large buffers
 *
 * A caller that waits gives the turn lock away, and the kernel may write at any time.  The writes must
 * become visible only when the thread has the turn lock again, so the kernel writes to the thread's
 * scratch memory (exchange.h).
 *
 *     prepare    with the turn lock
 *     perform    without the turn lock
 *     complete   with it again; if the program was let go, results are copied only
 *
 * Context: APP; perform without the turn lock. */
#include "base/linux_abi.h"
#include "base/string.h"
#include "hooks/calls/call_families.h"
#include "hooks/calls/exchange.h"
#include "hooks/memory/userfault.h"
#include "hooks/stream/recording.h"
#include "hooks/table/sys_table.h"
#include "hooks/threads/native.h"
#include "hooks/threads/page_wait.h"
#include "hooks/threads/program_call.h"

/* ---- the call ---- */

void tbd_call_leave(const struct tbd_call *call, struct tbd_saved_context *saved)
{
    struct tbd_regs *regs = &saved->regs;

    if (call->result != TBD_CALL_INTERRUPTED) {
        regs->rip += call->insn_bytes;
        regs->gpr[TBD_RAX] = (uint64_t)call->result;
        regs->gpr[TBD_RCX] = regs->rip;
        regs->gpr[TBD_R11] = regs->rflags;
    }
    tbd_threads_leave(saved);
}

void tbd_call_stolen(struct tbd_call *call, struct tbd_saved_context *saved,
                     const struct tbd_regs *regs)
{
    saved->regs = *regs;
    tbd_effects_clear(call->effects); /* no other thread uses them any more */
    tbd_call_leave(call, saved);
}

/* Other threads have used the effects since.  False: the program was let go. */
static bool take_turn(struct tbd_call *call, struct tbd_saved_context *saved)
{
    if (!tbd_threads_take(call->thread, saved))
        return false;
    tbd_effects_clear(call->effects);
    return true;
}

/* Meanwhile another thread uses the engine's state: the data for the call is on this stack.  False:
 * the program was let go. */
static bool perform(struct tbd_call *call, const struct tbd_sys_call *sys,
                    struct tbd_saved_context *saved, const struct tbd_exchange *exchange)
{
    struct tbd_thread *thread = call->thread;
    uint64_t now = tbd_ring_time(&tbd_recording.ring, thread);

    if (tbd_threads.chaos.is_on)
        tbd_arrivals_leave(&saved->arrival, sys);
    tbd_threads_give(thread,
                     tbd_syscall_flags(sys->number) & TBD_SYS_YIELDS ? TBD_SWITCH_YIELD
                                                                     : TBD_SWITCH_BLOCKED,
                     now ? now - 1 : TBD_NO_BLOCK_TIME);
    call->result = tbd_call_perform_for(&saved->signals, sys);
    if (exchange)
        tbd_exchange_fill(exchange, call);
    if (tbd_threads.chaos.is_on)
        tbd_arrivals_back(&saved->arrival, call->result);
    return take_turn(call, saved);
}

/* Memory that the kernel reads, or that it writes whole, is copied and so must be present first. */
static size_t find_missing(const struct tbd_call *call, struct tbd_sys_range *out)
{
    const struct tbd_sys_row *row = tbd_sys_row(call->sys.number);
    struct tbd_sys_range may[TBD_SYS_MAX_RANGES];
    size_t count = tbd_syscall_may_write(&call->sys, may, TBD_SYS_MAX_RANGES);
    uint64_t missing;
    size_t found = 0;

    for (unsigned i = 0; row && i < 6; i++) {
        uint8_t effect = row->args[i].effect;

        for (size_t n = 0; n < count; n++)
            if ((effect == TBD_EFFECT_FIXED || effect == TBD_EFFECT_ARRAY ||
                 effect == TBD_EFFECT_FD_SET) &&
                may[n].address == call->sys.args[i] && found < 6 &&
                tbd_userfault_misses(&may[n], true, &missing))
                out[found++] = may[n];
    }
    return found;
}

static void fill_first(struct tbd_call *call)
{
    struct tbd_saved_context *saved = tbd_threads.holder;
    uint64_t now = tbd_ring_time(&tbd_recording.ring, call->thread);
    struct tbd_sys_range missing[6];
    size_t count =
        tbd_userfault_count && tbd_userfault_is_for_kernel() ? find_missing(call, missing) : 0;

    if (!count)
        return;
    tbd_threads_give(call->thread, TBD_SWITCH_BLOCKED, now ? now - 1 : TBD_NO_BLOCK_TIME);
    for (size_t i = 0; i < count; i++)
        tbd_page_fill(saved, missing[i].address, missing[i].bytes);
    if (take_turn(call, saved))
        return;
    call->result = TBD_CALL_INTERRUPTED; /* it is made natively */
    tbd_call_leave(call, saved);
}

void tbd_call_offer_turn(struct tbd_call *call)
{
    struct tbd_saved_context *saved = tbd_threads.holder;
    uint64_t now = tbd_ring_time(&tbd_recording.ring, call->thread);

    if (tbd_threads_call_begins(call->thread, now ? now - 1 : TBD_NO_BLOCK_TIME)) {
        tbd_effects_clear(call->effects); /* other threads have used them */
        return;
    }
    call->result = TBD_CALL_INTERRUPTED; /* it is made natively */
    tbd_call_leave(call, saved);
}

bool tbd_call_wait(struct tbd_call *call)
{
    struct tbd_exchange exchange;

    fill_first(call);
    if (!tbd_exchange_prepare(call, &exchange))
        return false;
    if (!perform(call, &exchange.sys, exchange.saved, &exchange)) {
        if (call->result != TBD_CALL_INTERRUPTED)
            tbd_exchange_complete_natively(&exchange, call);
        tbd_call_leave(call, exchange.saved);
    }
    if (call->result != TBD_CALL_INTERRUPTED)
        tbd_exchange_complete(&exchange, call);
    return true;
}

/* ---- large buffers ---- */

/* Saving fewer bytes takes no longer than exchanging buffers. */
#define LARGE_BYTES (16ull << 10)

/* Can the buffers be large, and the result say how much of them was used? */
static bool may_be_large(const struct tbd_sys_call *sys)
{
    const struct tbd_sys_row *row = tbd_sys_row(sys->number);
    bool may_be = false;

    for (unsigned i = 0; row && i < 6; i++) {
        const struct tbd_sys_arg *arg = &row->args[i];

        if (arg->effect == TBD_EFFECT_RESULT)
            may_be |= sys->args[arg->length] >= LARGE_BYTES / arg->unit;
        may_be |= arg->effect == TBD_EFFECT_IOVEC;
        may_be |= arg->effect == TBD_EFFECT_OTHER &&
                  (arg->unit == TBD_OTHER_recvmsg || arg->unit == TBD_OTHER_recvmmsg ||
                   arg->unit == TBD_OTHER_msgrcv);
    }
    return may_be;
}

static bool is_large(const struct tbd_sys_call *sys)
{
    struct tbd_sys_range may[TBD_SYS_MAX_RANGES];
    uint64_t bytes = 0;
    size_t count = may_be_large(sys) ? tbd_syscall_may_write(sys, may, TBD_SYS_MAX_RANGES) : 0;

    for (size_t i = 0; i < count; i++)
        bytes += may[i].bytes;
    return bytes >= LARGE_BYTES;
}

bool tbd_call_large(struct tbd_call *call)
{
    struct tbd_exchange exchange;

    if (!is_large(&call->sys) || !tbd_exchange_prepare(call, &exchange) ||
        !tbd_exchange_is_whole(&exchange))
        return false;
    call->result = tbd_call_perform(&exchange.sys);
    if (call->result != TBD_CALL_INTERRUPTED)
        tbd_exchange_complete(&exchange, call);
    return true;
}

void tbd_call_pause(struct tbd_call *call)
{
    tbd_call_pause_as(call, &call->sys);
}

void tbd_call_pause_as(struct tbd_call *call, const struct tbd_sys_call *sys)
{
    struct tbd_saved_context *saved = tbd_threads.holder;

    if (!perform(call, sys, saved, NULL)) {
        call->result = TBD_CALL_INTERRUPTED; /* the program's own call is made natively */
        tbd_call_leave(call, saved);
    }
}

void tbd_call_wait_as(struct tbd_call *call, const struct tbd_sys_call *sys)
{
    struct tbd_saved_context *saved = tbd_threads.holder;

    if (!perform(call, sys, saved, NULL))
        tbd_call_leave(call, saved);
}

void tbd_call_wait_plainly(struct tbd_call *call)
{
    tbd_call_wait_as(call, &call->sys);
}
