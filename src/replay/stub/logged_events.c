// SPDX-License-Identifier: MIT
/* logged_events.c - replays the inputs that are in the log: system calls, specials, signals
 *
 * Each must occur at the same time and with the same arguments as in play.  Then its writes and
 * results are applied, and the same message goes into the stream.  Anything else is a divergence.
 *
 * LOGGED_EVENTS-1  log_next is the first entry not yet replayed; entries are replayed in order.
 *     (not checked: another order is a divergence) */
#include "replay/stub/logged_events.h"

#include "base/linux.h"
#include "base/string.h"
#include "hooks/instructions/processor.h"

#include "hooks/calls/vsyscall.h"
#include "hooks/instructions/slot.h"
#include "hooks/memory/program_memory.h"
#include "hooks/stream/recording.h"
#include "hooks/table/syscalls.h"
#include "patcher/decode.h"
#include "replay/stub/cut_place.h"
#include "replay/stub/memory.h"

/* ---- the log ---- */

static const struct tbd_plan_log *log_entry(uint64_t index)
{
    const struct tbd_plan_head *plan = tbd_stub.plan;

    if (index >= plan->log.count)
        return NULL;
    return (const struct tbd_plan_log *)((const char *)plan + plan->log.offset) + index;
}

static const struct tbd_message *message_of(const struct tbd_plan_log *entry)
{
    return (const void *)((const char *)tbd_stub.plan + entry->message);
}

const struct tbd_message *tbd_log_message(uint64_t index)
{
    const struct tbd_plan_log *entry = log_entry(index);

    return entry ? message_of(entry) : NULL;
}

static const char *kind_name(uint32_t kind)
{
    switch (kind) {
    case TBD_MSG_SYSCALL: return "a system call";
    case TBD_MSG_SPECIAL: return "a special instruction";
    case TBD_MSG_SIGNAL: return "a signal";
    case TBD_MSG_INTERRUPTED: return "a fault";
    case TBD_MSG_THREAD: return "a turn of another thread";
    case TBD_MSG_CODE: return "a change of code by others";
    case TBD_MSG_MAPPED: return "a change of mappings";
    case TBD_MSG_RSEQ: return "a restartable sequence";
    case TBD_MSG_CUT: return "the cut of a computation";
    case TBD_MSG_SHARED: return "a set of instructions that access shared memory";
    default: return "something else";
    }
}

bool tbd_log_is_next(enum tbd_message_kind kind, uint64_t time)
{
    const struct tbd_plan_log *entry = log_entry(tbd_stub.log_next);

    return entry && entry->time == time && message_of(entry)->kind == (uint32_t)kind;
}

const struct tbd_message *tbd_log_peek(enum tbd_message_kind kind)
{
    return tbd_log_is_next(kind, tbd_stub_log_time()) ? tbd_log_message(tbd_stub.log_next) : NULL;
}

/* Returns the next message, which must be of this kind and due now; otherwise the replay
 * diverges. */
static const struct tbd_message *expect(enum tbd_message_kind kind, const char *found)
{
    const struct tbd_plan_log *entry = log_entry(tbd_stub.log_next);
    const struct tbd_message *message = tbd_log_peek(kind);

    if (message)
        return message;
    if (!entry)
        tbd_stub_diverge(TBD_PLAN_LAST_INSN, "%s, but play has nothing more in this window", found);
    if (message_of(entry)->kind == TBD_MSG_CUT)
        tbd_stub_diverge(TBD_PLAN_LAST_INSN, "%s at 0x%lx, where play has a cut at 0x%lx next: %s",
                         found, tbd_thread_now()->regs.rip, tbd_stub.plan->cut_regs.rip,
                         tbd_cut_place_missed());
    if (tbd_stub.plan->counts_stops)
        tbd_stub_diverge(TBD_PLAN_LAST_INSN, "%s at 0x%lx, stop %lu, where play has %s at stop %lu",
                         found, tbd_thread_now()->regs.rip, tbd_stub.stops,
                         kind_name(message_of(entry)->kind), entry->time);
    tbd_stub_diverge(TBD_PLAN_LAST_INSN, "%s at time %lu, where play has %s next, at time %lu",
                     found, tbd_stub.plan->first_time + tbd_stub_time() - 1,
                     kind_name(message_of(entry)->kind),
                     tbd_stub.plan->first_time + entry->time - 1);
}

void tbd_log_send(const struct tbd_message *message)
{
    struct tbd_part part = { message + 1, message->bytes };

    tbd_ring_send(&tbd_recording.ring, tbd_thread_now(), (enum tbd_message_kind)message->kind,
                  &part, 1);
    tbd_stub.log_next++;
}

/* The next thing that native play has stopped for. */
void tbd_log_stopped(void)
{
    tbd_stub.stops += tbd_stub.plan->counts_stops;
}

/* A fault: native play has stopped for the instruction already, if it is a special one. */
void tbd_log_faulted(void)
{
    if (!tbd_stub.is_in_special)
        tbd_log_stopped();
    tbd_stub.is_in_special = false;
}

void tbd_log_send_interrupted(const struct tbd_message *message, uint64_t instructions)
{
    if (!tbd_stub.plan->counts_stops) {
        tbd_log_send(message);
        return;
    }
    tbd_recording_interrupted(instructions);
    tbd_stub.log_next++;
}

/* ---- writes ---- */

static void check_old(const struct tbd_write *write, const uint8_t *old)
{
    uint8_t now[256];

    for (uint32_t done = 0; done < write->bytes;) {
        uint32_t left = write->bytes - done;
        uint32_t bytes = left < sizeof(now) ? left : (uint32_t)sizeof(now);

        if (!tbd_memory_read(write->address + done, now, bytes))
            tbd_stub_diverge(TBD_PLAN_LAST_INSN, "memory at 0x%lx, written by play, is not there",
                             write->address + done);
        for (uint32_t i = 0; i < bytes; i++)
            if (now[i] != old[done + i])
                tbd_stub_diverge(TBD_PLAN_LAST_INSN,
                                 "the byte at 0x%lx is 0x%x before it is overwritten, not 0x%x",
                                 write->address + done + i, now[i], old[done + i]);
        done += bytes;
    }
}

const uint8_t *tbd_log_apply_writes(const uint8_t *at, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct tbd_write write;

        memcpy(&write, at, sizeof(write));
        at += sizeof(write);
        if (!(write.flags & TBD_WRITE_NO_OLD)) {
            check_old(&write, at);
            at += write.bytes;
        }
        if (!tbd_memory_write(write.address, at, write.bytes))
            tbd_stub_diverge(TBD_PLAN_LAST_INSN, "memory at 0x%lx, written by play, is not there",
                             write.address);
        if (!tbd_stub.is_partial)
            tbd_pages_mark_written(&tbd_memory.pages, write.address, write.address + write.bytes);
        at += write.bytes;
    }
    return at;
}

/* Called after the engine has handled an event between two blocks.  Its message may have used the
 * last entry before something is due; then the guard page does not stop the next block. */
void tbd_stub_settle(struct tbd_thread *thread)
{
    bool may_end = tbd_stub.plan->counts_stops && tbd_stub.stops >= tbd_stub.plan->blocks;

    tbd_stub_between(thread);
    if (may_end || tbd_ring_time(&tbd_recording.ring, thread) >= tbd_recording.ring.due)
        tbd_stub_boundary(thread);
}

/* ---- cuts ---- */

/* At a window's start at least one block must be entered: the state may be that of the cut before, in which the
 * program spins. */
static bool is_cut_due(void)
{
    return tbd_log_is_next(TBD_MSG_CUT, tbd_stub.stops + 1) && tbd_stub_time();
}

void tbd_stub_asked(struct tbd_thread *thread)
{
    if (!is_cut_due() || !tbd_cut_place_is_here(thread))
        return;
    tbd_stub.stops++;
    tbd_stub.log_next++;
    tbd_stub_settle(thread);
}

/* ---- system calls ---- */

bool tbd_stub_is_where_play_stopped(void)
{
    return tbd_stub.log_next == tbd_stub.plan->log.count &&
           tbd_stub_log_time() == tbd_stub.plan->blocks;
}

static void check_call(const struct tbd_msg_syscall *call, const struct tbd_thread *thread)
{
    static const uint8_t argument_register[6] = {
        TBD_RDI, TBD_RSI, TBD_RDX, TBD_R10, TBD_R8, TBD_R9
    };
    uint64_t number = thread->regs.gpr[TBD_RAX];
    const char *name = tbd_syscall_name(number), *expected = tbd_syscall_name(call->number);

    if (number != call->number)
        tbd_stub_diverge(TBD_PLAN_LAST_INSN, "system call %lu (%s) where play had %lu (%s)", number,
                         name ? name : "?", call->number, expected ? expected : "?");
    for (unsigned i = 0; i < tbd_syscall_arg_count(number); i++) {
        uint64_t value = thread->regs.gpr[argument_register[i]];

        if (value != call->args[i])
            tbd_stub_diverge(TBD_PLAN_LAST_INSN, "argument %u of %s is 0x%lx, in play it was 0x%lx",
                             i, name ? name : "?", value, call->args[i]);
    }
}

static void set_result(struct tbd_thread *thread, uint64_t result, uint32_t insn_bytes)
{
    thread->regs.rip += insn_bytes;
    thread->regs.gpr[TBD_RAX] = result;
    thread->regs.gpr[TBD_RCX] = thread->regs.rip;
    thread->regs.gpr[TBD_R11] = thread->regs.rflags;
}

/* Applies and sends all messages of one call; one with many writes has several. */
static void apply_call(const struct tbd_message *message)
{
    struct tbd_msg_syscall call;

    for (;;) {
        memcpy(&call, message + 1, sizeof(call));
        tbd_log_apply_writes((const uint8_t *)(message + 1) + sizeof(call), call.write_count);
        tbd_log_send(message);
        if (!(call.flags & TBD_SYSCALL_MORE))
            return;
        message = expect(TBD_MSG_SYSCALL, "a system call continues");
    }
}

/* Refused by a filter of the program itself: it had no effect but its result. */
static bool is_refused(const struct tbd_msg_syscall *call)
{
    return call->flags & TBD_SYSCALL_REFUSED;
}

/* Does the call end the thread? */
static bool is_thread_end(const struct tbd_msg_syscall *call)
{
    return is_refused(call) ? call->flags & TBD_SYSCALL_NORETURN : call->number == __NR_exit;
}

/* Does the call end the program? exit_group does, and exit of the last thread. */
static bool is_end(const struct tbd_msg_syscall *call)
{
    return !is_refused(call) && (call->number == __NR_exit_group ||
                                 (call->number == __NR_exit && !tbd_log_peek(TBD_MSG_THREAD)));
}

static void change_maps(const struct tbd_message *message)
{
    struct tbd_msg_mapped mapped;

    memcpy(&mapped, message + 1, sizeof(mapped));
    if (!tbd_maps_apply(&mapped))
        tbd_stub_diverge(TBD_PLAN_LAST_INSN, "a change of mappings at 0x%lx cannot be done again",
                         mapped.start);
    tbd_log_send(message);
}

void tbd_stub_call(struct tbd_thread *thread, uint32_t insn_bytes)
{
    tbd_log_stopped();
    if (tbd_stub.plan->own_code) {
        thread->regs.gpr[TBD_RCX] = thread->regs.rip + insn_bytes;
        thread->regs.gpr[TBD_R11] = thread->regs.rflags;
    }
    tbd_stub_go_on_with_call(thread, insn_bytes);
}

void tbd_stub_go_on_with_call(struct tbd_thread *thread, uint32_t insn_bytes)
{
    const struct tbd_message *message;
    struct tbd_msg_syscall call;

    if (tbd_stub_is_where_play_stopped()) /* in a call that did not return */
        tbd_stub_finish();
    while ((message = tbd_log_peek(TBD_MSG_MAPPED))) /* by a child that shared the memory */
        change_maps(message);
    message = tbd_log_peek(TBD_MSG_INTERRUPTED);
    if (message) { /* a signal came before the call, which the program makes again later */
        tbd_log_send_interrupted(message, tbd_slot_last_insn(thread));
        return;
    }
    if (tbd_log_peek(TBD_MSG_THREAD)) /* the call waits, other threads run */
        return;
    tbd_stub.is_in_call = true; /* for a divergence */
    message = expect(TBD_MSG_SYSCALL, "a system call");
    memcpy(&call, message + 1, sizeof(call));
    check_call(&call, thread);
    tbd_stub.is_in_call = false;
    tbd_x87_settle();
    if (!is_refused(&call))
        tbd_maps_before(&call);
    if (!is_refused(&call) && !tbd_maps_change(&call, thread)) {
        if (tbd_memory_refused())
            tbd_stub_fail(tbd_stub.plan, TBD_OUTCOME_FAILED, "%s", tbd_memory_refused());
        tbd_stub_diverge(TBD_PLAN_LAST_INSN, "%s cannot be done again",
                         tbd_syscall_name(call.number) ? tbd_syscall_name(call.number) : "?");
    }
    apply_call(message);
    if (is_end(&call))
        tbd_stub_finish();
    if (is_thread_end(&call))
        return;
    set_result(thread, call.result, insn_bytes);
    if (call.number == __NR_rt_sigreturn && !is_refused(&call))
        tbd_signal_return(thread, call.result != 0);
}

void tbd_stub_syscall(struct tbd_thread *thread, uint32_t insn_bytes)
{
    tbd_stub_call(thread, insn_bytes);
    tbd_stub_settle(thread);
}

/* ---- specials ---- */

static void check_special(const struct tbd_msg_special *logged, enum tbd_special special)
{
    if (logged->special != (uint32_t)special)
        tbd_stub_diverge(TBD_PLAN_LAST_INSN,
                         "special instruction of kind %u where play had kind %u", (unsigned)special,
                         logged->special);
}

/* Sets the outputs from the log. */
static void supply(struct tbd_thread *thread, const struct tbd_message *message,
                   uint32_t insn_bytes)
{
    struct tbd_msg_special special;

    memcpy(&special, message + 1, sizeof(special));
    tbd_log_apply_writes((const uint8_t *)(message + 1) + sizeof(special), special.write_count);
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        if (special.gpr_mask >> r & 1)
            thread->regs.gpr[r] = special.gpr[r];
    thread->regs.rflags = special.rflags;
    if (special.special == TBD_SPECIAL_OTHER_STORE)
        tbd_x87_environment_stored(thread->regs.rip, insn_bytes);
    thread->regs.rip += insn_bytes;
    tbd_log_send(message);
}

/* Did the instruction fault because the program had the kernel forbid it (PR_SET_TSC,
 * ARCH_SET_CPUID)? */
static bool is_forbidden(const struct tbd_thread *thread, enum tbd_special special)
{
    return (special == TBD_SPECIAL_RDTSC || special == TBD_SPECIAL_RDTSCP ||
            special == TBD_SPECIAL_CPUID) &&
           tbd_log_peek(TBD_MSG_INTERRUPTED) && tbd_slot_get_fault(thread, TBD_SLOT_PROTECTION);
}

/* Has native play stopped for it (hooks/own/own_sites.c)? */
static bool is_stop(enum tbd_special special, uint64_t pc, uint32_t bytes)
{
    uint8_t code[TBD_INSN_MAX_BYTES];

    return tbd_specials_have(TBD_SPECIALS_NATIVE_STOPS, special) ||
           (tbd_stub.plan->counts_stops &&
            (special == TBD_SPECIAL_OTHER_STORE || special == TBD_SPECIAL_STATE) &&
            bytes <= sizeof(code) && tbd_memory_read(pc, code, bytes) &&
            (tbd_decode_stores_x87(code, bytes) || tbd_decode_reads_processor(code, bytes)));
}

/* Has play ended before the instruction, which is not logged: was the program killed, or let go?  An instruction that play need
 * not log has run before the end of its window, unless the program was let go in the last block. */
static bool is_end_before(enum tbd_special special)
{
    const struct tbd_plan_head *plan = tbd_stub.plan;

    if (!tbd_stub_is_where_play_stopped() || (plan->complete && plan->counts_stops))
        return false;
    return special != TBD_SPECIAL_SHARED || !plan->complete || plan->is_cut_short;
}

void tbd_stub_special(struct tbd_thread *thread, enum tbd_special special, uint32_t insn_bytes)
{
    const struct tbd_message *message;
    struct tbd_msg_special logged;
    bool stops = is_stop(special, thread->regs.rip, insn_bytes);

    tbd_stub.is_in_special = stops;
    if (stops) {
        tbd_log_stopped();
        if (tbd_stub.plan->counts_stops && !tbd_log_peek(TBD_MSG_INTERRUPTED) &&
            !tbd_stub_is_where_play_stopped())
            (void)expect(TBD_MSG_SPECIAL, "a special instruction");
    }
    message = stops || !tbd_stub.plan->counts_stops ? tbd_log_peek(TBD_MSG_SPECIAL) : NULL;

    if (message) {
        memcpy(&logged, message + 1, sizeof(logged));
        check_special(&logged, special);
    }
    if (!message && is_end_before(special))
        tbd_stub_finish();
    if (!message && is_forbidden(thread, special))
        tbd_slot_run(thread, tbd_slot_get_fault(thread, TBD_SLOT_PROTECTION));
    if (message && !(logged.flags & TBD_SPECIAL_F_REPLAYED)) {
        supply(thread, message, insn_bytes);
    } else {
        tbd_stub_need_registers(thread);
        tbd_special_reexecute(thread, special, insn_bytes);
    }
    tbd_stub.is_in_special = false;
    tbd_stub_settle(thread);
}

void tbd_stub_detached(const char *why)
{
    tbd_log_stopped();
    if (tbd_stub_is_where_play_stopped())
        tbd_stub_finish();
    tbd_stub_diverge(TBD_PLAN_LAST_INSN, "play went on where %s", why);
}

static bool run_vsyscall(struct tbd_thread *thread)
{
    uint64_t number, caller;

    if (!tbd_vsyscall_number(thread->regs.rip, &number) || tbd_log_peek(TBD_MSG_INTERRUPTED) ||
        !tbd_memory_read(thread->regs.gpr[TBD_RSP], &caller, sizeof(caller)))
        return false;
    tbd_vsyscall_run(thread, number, caller, tbd_stub_call);
    return true;
}

/* An instruction that raises a signal runs in a slot, as in play, because rip and rflags depend on
 * the signal (a trap comes after its instruction, a fault sets RF). */
void tbd_stub_bad_code(struct tbd_thread *thread)
{
    bool unused, lacks_bytes = true;
    struct tbd_app_pc pc = { thread->regs.rip };
    uint64_t bytes = tbd_stub_callbacks.executable(pc, TBD_INSN_MAX_BYTES, &unused);
    const struct tbd_slot *slot =
        bytes ? tbd_slot_get_raising(thread, (uint32_t)bytes, &lacks_bytes) : NULL;

    if (run_vsyscall(thread)) {
        tbd_stub_settle(thread);
        return;
    }
    if (slot)
        tbd_slot_run(thread, slot); /* the signal handler leaves it */
    if (!lacks_bytes)
        tbd_stub_detached("an instruction is not known");
    tbd_stub_faulted(0, 0, thread->regs.rip);
}

void tbd_stub_bad_target(struct tbd_thread *thread, uint32_t record_bytes)
{
    tbd_ring_shorten_record(&tbd_recording.ring, thread, record_bytes);
    tbd_slot_run(thread, tbd_slot_get_fault(thread, TBD_SLOT_PROTECTION));
}

/* ---- signals, turns ---- */

static bool is_between(uint32_t kind)
{
    return kind == TBD_MSG_SIGNAL || kind == TBD_MSG_THREAD || kind == TBD_MSG_SHARED ||
           kind == TBD_MSG_CODE || kind == TBD_MSG_MAPPED || kind == TBD_MSG_RSEQ;
}

uint64_t tbd_stub_between_time(void)
{
    const struct tbd_plan_log *entry;

    if (tbd_stub.plan->counts_stops)
        return UINT64_MAX; /* all are due just after a stop */
    if (tbd_stub.between < tbd_stub.log_next)
        tbd_stub.between = tbd_stub.log_next;
    while ((entry = log_entry(tbd_stub.between)) && !is_between(message_of(entry)->kind))
        tbd_stub.between++;
    return entry ? entry->time : UINT64_MAX;
}

static void deliver(struct tbd_thread *thread, const struct tbd_message *message)
{
    struct tbd_msg_signal signal;
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];
    const uint8_t *at;

    memcpy(&signal, message + 1, sizeof(signal));
    at = tbd_log_apply_writes((const uint8_t *)(message + 1) + sizeof(signal), signal.write_count);
    memcpy(&thread->regs, at, sizeof(thread->regs));
    if (tbd_vector_fits(&tbd_processor.vector, thread->regs.xsave_bytes)) {
        memcpy(image, at + sizeof(thread->regs), thread->regs.xsave_bytes);
        tbd_vector_load(&tbd_processor.vector, image);
    }
    tbd_log_send(message);
}

/* Applies a change of code by others.  Translated code compares the bytes itself.  The next block
 * reads them, so they are marked as read, as in play. */
static void change_code(const struct tbd_message *message)
{
    struct tbd_msg_code code;

    memcpy(&code, message + 1, sizeof(code));
    tbd_log_apply_writes((const uint8_t *)(message + 1) + sizeof(code), code.write_count);
    tbd_log_send(message);
}

static void leave_section(struct tbd_thread *thread, const struct tbd_message *message)
{
    struct tbd_msg_rseq rseq;

    memcpy(&rseq, message + 1, sizeof(rseq));
    if (!(rseq.flags & TBD_RSEQ_ABORTED) && thread->regs.rip != rseq.rip)
        tbd_stub_diverge(TBD_PLAN_LAST_INSN, "thread %u goes on at 0x%lx, in play at 0x%lx",
                         thread->tid, thread->regs.rip, rseq.rip);
    tbd_log_apply_writes((const uint8_t *)(message + 1) + sizeof(rseq), rseq.write_count);
    thread->regs.rip = rseq.rip;
    tbd_log_send(message);
}

void tbd_stub_between(struct tbd_thread *thread)
{
    const struct tbd_message *message;

    for (;;) {
        if ((message = tbd_log_peek(TBD_MSG_SIGNAL)))
            deliver(thread, message);
        else if ((message = tbd_log_peek(TBD_MSG_CODE)))
            change_code(message);
        else if ((message = tbd_log_peek(TBD_MSG_RSEQ)))
            leave_section(thread, message);
        else if ((message = tbd_log_peek(TBD_MSG_THREAD)))
            tbd_stub_turn(thread, message);
        else if ((message = tbd_log_peek(TBD_MSG_MAPPED)))
            change_maps(message);
        else if (!tbd_stub_shared(thread))
            return;
    }
}
