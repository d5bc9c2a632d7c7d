// SPDX-License-Identifier: MIT
/* signals_catch.c - the engine's signal handler: whose signal is it?
 *
 * The handler checks in this order: a copy that may fault; a guard page of the stream; the
 * program's own fault, in translated code or in a slot; otherwise somebody sent the signal and it
 * is queued.  Any other case is an error of the engine.  Runs on the signal stack with everything
 * but SIGSEGV and SIGBUS blocked.  Context: SIG. */
#include "hooks/threads/signals_private.h"

#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/slot.h"
#include "hooks/memory/branches.h"
#include "hooks/memory/calling_memory.h"
#include "hooks/memory/shared.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/threads.h"
#include "patcher/patcher.h"

extern const char tbd_program_syscall_check[], tbd_program_syscall_done[];
extern const char tbd_program_syscall_interrupted[];
extern const char tbd_copy_faultable_begin[], tbd_copy_faultable_end[];
extern const char tbd_touch_begin[], tbd_touch_end[];
extern const char tbd_signal_entry[], tbd_fault_entry[], tbd_sigreturn_done[];
extern const char tbd_raise_done[];
extern uint32_t tbd_raise_expected;

/* From tbd_signal_entry (signals_x86_64.S). */
void tbd_signal_handle(int signo, uint8_t *info, struct tbd_ucontext *context);

static const struct tbd_signal_exits *exits;

void tbd_signals_set_exits(const struct tbd_signal_exits *given)
{
    exits = given;
}

const struct tbd_signal_exits *tbd_signals_exits(void)
{
    return exits;
}

static uint64_t at(const char *label)
{
    return (uint64_t)(uintptr_t)label;
}

static bool is_between(uint64_t pc, const char *from, const char *to)
{
    return pc >= at(from) && pc < at(to);
}

static int32_t code_of(const uint8_t *info)
{
    int32_t code;

    memcpy(&code, info + INFO_CODE_AT, sizeof(code));
    return code;
}

static void cpu_registers(const struct tbd_ucontext *context, struct tbd_regs *regs)
{
    *regs = tbd_thread_now()->regs; /* bases, thread */
    tbd_ucontext_get(context, regs);
}

static void continue_at(struct tbd_ucontext *context, const char *label)
{
    context->rip = at(label);
}

/* ---- faults ---- */

static void fill_queued(struct tbd_queued_signal *queued, int signo, const uint8_t *info,
                        const struct tbd_ucontext *context)
{
    queued->signo = (uint32_t)signo;
    queued->is_sync = false;
    queued->is_shared = false;
    queued->insn = TBD_SIGNAL_NOT_IN_BLOCK;
    queued->error = context->error;
    queued->trap = context->trap;
    queued->address = context->cr2;
    memcpy(queued->info, info, TBD_SIGINFO_BYTES);
}

/* SIGILL, SIGFPE and SIGTRAP carry the instruction's address: it is an address of translated code
 * here, and is replaced. */
static void correct_address(struct tbd_queued_signal *fault, uint64_t cache_pc, uint64_t app_pc)
{
    uint64_t address;

    memcpy(&address, fault->info + INFO_ADDRESS_AT, sizeof(address));
    if (address == cache_pc)
        memcpy(fault->info + INFO_ADDRESS_AT, &app_pc, sizeof(app_pc));
}

#define TRAP_PROTECTION 13u
#define TRAP_PAGE       14u

/* A store that faults has faulted already in the load of its old bytes, which is a read and needs
 * no alignment: the fault is changed into the store's own, a write or a general protection
 * fault. */
static void correct_kind(struct tbd_queued_signal *fault, bool misaligned)
{
    int32_t code = 128; /* SI_KERNEL */

    if (fault->trap == TRAP_PAGE)
        fault->error |= ERROR_WRITE;
    if (!misaligned)
        return;
    fault->trap = TRAP_PROTECTION;
    fault->error = 0;
    fault->address = 0;
    memcpy(fault->info + INFO_CODE_AT, &code, sizeof(code));
    memset(fault->info + INFO_ADDRESS_AT, 0, 8);
}

/* Leaves the handler into exits->after_fault(), on the engine's stack. */
static void leave_to_engine(struct tbd_ucontext *context, struct tbd_thread *thread)
{
    struct tbd_regs regs = { .rip = at(tbd_fault_entry), .rflags = 0x202 };

    regs.gpr[TBD_RDI] = (uint64_t)(uintptr_t)thread;
    regs.gpr[TBD_RSI] = (uint64_t)(uintptr_t)exits->after_fault;
    regs.gpr[TBD_RSP] = thread->engine_stack;
    tbd_ucontext_set(context, &regs);
}

/* A fault of the program in translated code: its exact registers. */
static bool take_cache_fault(struct tbd_queued_signal *fault, struct tbd_ucontext *context)
{
    struct tbd_thread *thread = tbd_thread_now();
    struct tbd_interruption where;
    struct tbd_regs cpu;
    struct tbd_regs state = thread->regs;

    cpu_registers(context, &cpu);
    where = tbd_patcher_interrupted(thread, &cpu, &state);
    if (where.where == TBD_INT_NOT_CACHE)
        return false;
    correct_address(fault, cpu.rip, state.rip);
    if (where.in_hook)
        correct_kind(fault, where.misaligned);
    thread->entry_next = where.entry_next;
    thread->operand_next = where.operand_next;
    thread->calling_value = where.calling_value;
    if (where.has_branch_value)
        tbd_branches_put_down_sigsafe(state.gpr[TBD_RSP], thread->branch_value);
    if (where.branch_mark)
        tbd_branches_put_down_sigsafe(state.gpr[TBD_RSP] - 8, where.branch_mark);
    if (where.where == TBD_INT_INSIDE && tbd_recording_has_blocks()) {
        tbd_ring_close_record_sigsafe(&tbd_recording.ring, thread, where.record_bytes);
        fault->insn = where.insn;
    }
    state.fs_base = thread->regs.fs_base;
    state.gs_base = thread->regs.gs_base;
    state.thread = thread->regs.thread;
    state.xsave_bytes = thread->regs.xsave_bytes;
    thread->regs = state;
    return true;
}

/* A fault in an instruction that runs in a slot (slot.c): the processor has its registers. */
static void take_slot_fault(struct tbd_queued_signal *fault, const struct tbd_ucontext *context)
{
    struct tbd_thread *thread = tbd_thread_now();
    uint64_t rip = thread->regs.rip;

    correct_address(fault, context->rip, rip);
    tbd_ucontext_get(context, &thread->regs);
    /* a trap comes after its instruction */
    thread->regs.rip = rip + tbd_slot_offset(context->rip);
    thread->regs.gpr[TBD_RCX] += thread->scratch[TBD_SLOT_REST];
    thread->scratch[TBD_SLOT_REST] = 0;
    fault->insn = tbd_slot_last_insn(thread);
}

_Noreturn static void engine_fault(int signo, const uint8_t *info, struct tbd_ucontext *context)
{
    uint64_t address;
    struct tbd_action none = { 0 };

    memcpy(&address, info + INFO_ADDRESS_AT, sizeof(address));
    tbd_say("internal error: signal %d in the engine at %p, address %p, program at %p", signo,
            (void *)context->rip, (void *)address, (void *)tbd_thread_now()->regs.rip);
    tbd_sys4(__NR_rt_sigaction, (uint64_t)signo, tbd_sys_pointer(&none), 0, 8);
    tbd_sys3(__NR_tgkill, tbd_recording.pid, tbd_thread_now()->tid, (uint64_t)signo);
    tbd_signals_set_kernel_mask(0);
    tbd_sys_exit_group(86);
}

static void program_fault(int signo, const uint8_t *info, struct tbd_ucontext *context)
{
    struct tbd_queued_signal *fault = &tbd_signals_now()->fault;

    fill_queued(fault, signo, info, context);
    fault->is_sync = true;
    if (tbd_slot_owns(context->rip))
        take_slot_fault(fault, context);
    else if (!take_cache_fault(fault, context))
        engine_fault(signo, info, context);
    leave_to_engine(context, tbd_thread_now());
}

/* ---- guard pages ---- */

/* The operand area is full: the unfinished record moves to the next chunk.  The record includes
 * everything that the current instruction has already stored, so all bytes up to the area's end are
 * copied. */
static void move_record(struct tbd_ucontext *context)
{
    uint64_t entry_next = context->gregs[TBD_FRAME_R15];
    uint64_t operand_next = context->gregs[TBD_FRAME_R14];
    uint64_t bytes = tbd_ring_records_end_sigsafe(&tbd_recording.ring) - operand_next;

    if (bytes > TBD_RECORD_MAX_BYTES)
        bytes = 0; /* impossible: the cursor would be past the area */
    tbd_ring_move_record_sigsafe(&tbd_recording.ring, &entry_next, &operand_next, (uint32_t)bytes);
    context->gregs[TBD_FRAME_R15] = entry_next;
    context->gregs[TBD_FRAME_R14] = operand_next;
}

/* An address that is none is a stack fault, which is a SIGBUS. */
static bool handle_calling(const uint8_t *info, struct tbd_ucontext *context)
{
    struct tbd_regs cpu;
    uint64_t address;

    memcpy(&address, info + INFO_ADDRESS_AT, sizeof(address));
    if (!tbd_patcher_owns(context->rip))
        return false;
    if (tbd_branches_fault_sigsafe(address))
        return true;
    cpu_registers(context, &cpu);
    if (!tbd_calling_fault_sigsafe(address, tbd_thread_now(), &cpu))
        return false;
    tbd_ucontext_set(context, &cpu);
    return true;
}

/* The thread's ring is full. */
static bool handle_lap(uint64_t address, struct tbd_ucontext *context)
{
    struct tbd_thread *thread = tbd_thread_now();

    switch (tbd_crash_wraps_sigsafe(thread, tbd_context_now()->index, address,
                                    &context->gregs[TBD_FRAME_R15])) {
    case TBD_WRAP_RECORDS: /* a boundary does */
        context->rip = tbd_patcher_boundary_exit(thread, context->rip);
        return true;
    case TBD_WRAP_DONE: return true;
    case TBD_WRAP_NONE: break;
    }
    return false;
}

static bool handle_guard(const uint8_t *info, struct tbd_ucontext *context)
{
    struct tbd_ring *ring = &tbd_recording.ring;
    bool in_cache = tbd_patcher_owns(context->rip);
    uint64_t address;

    memcpy(&address, info + INFO_ADDRESS_AT, sizeof(address));
    if (in_cache && handle_lap(address, context))
        return true;
    switch (tbd_ring_guard_sigsafe(ring, address)) {
    case TBD_GUARD_ENTRIES:
        if (in_cache)
            context->rip = tbd_patcher_boundary_exit(tbd_thread_now(), context->rip);
        else if (!ring->is_protected)
            return false;
        tbd_ring_unprotect_sigsafe(ring); /* the engine's own store: it settles soon */
        return true;
    case TBD_GUARD_OPERANDS:
        if (in_cache)
            move_record(context);
        return in_cache;
    case TBD_GUARD_NONE: break;
    }
    return false;
}

/* An instruction is about to access memory that others may write: its mark in the touch map has
 * faulted. */
static bool handle_shared(int signo, const uint8_t *info, struct tbd_ucontext *context)
{
    struct tbd_queued_signal *fault = &tbd_signals_now()->fault;
    uint64_t address;

    memcpy(&address, info + INFO_ADDRESS_AT, sizeof(address));
    if (!tbd_shared_owns_sigsafe(address) || !tbd_patcher_owns(context->rip))
        return false;
    fill_queued(fault, signo, info, context);
    if (!take_cache_fault(fault, context))
        return false;
    fault->signo = 0;
    fault->is_shared = true;
    tbd_thread_now()->regs.rflags &= ~FLAG_RF; /* set by a fault that the program does not have */
    leave_to_engine(context, tbd_thread_now());
    return true;
}

/* ---- asynchronous ---- */

/* The program's system call has not begun or has just ended: its caller settles before any
 * translated code runs, and so checks `pending`.  Most signals that a program waits for or sends to
 * itself come here. */
static bool settles_anyway(uint64_t rip)
{
    return rip >= at(tbd_program_syscall_check) && rip <= at(tbd_program_syscall_done);
}

static void kick(void)
{
    __atomic_store_n(&tbd_thread_now()->kick, 1, __ATOMIC_RELAXED);
    if (tbd_recording_kicks())
        tbd_ring_protect_sigsafe(&tbd_recording.ring);
}

/* The kick must be seen before the next block. */
static void hurry(struct tbd_ucontext *context)
{
    struct tbd_regs cpu;

    cpu_registers(context, &cpu);
    tbd_patcher_hurry(tbd_thread_now(), &cpu);
    context->rip = cpu.rip;
}

/* Without entry stores to stop at, any place between two instructions will do, as nothing is
 * recorded. */
static void come_to_boundary(struct tbd_ucontext *context)
{
    kick();
    if (tbd_recording_has_blocks() || !tbd_patcher_owns(context->rip))
        return;
    tbd_signals_now()->fault.signo = 0;
    tbd_signals_now()->fault.is_shared = false;
    if (take_cache_fault(&tbd_signals_now()->fault, context))
        leave_to_engine(context, tbd_thread_now());
    else
        hurry(context);
}

/* Another signal has come at the same time: its handler runs next, though it is the first in the
 * kernel's order.  So this one is held, and the thread settles in any case.  True: it is not to be
 * queued. */
static bool hold(struct tbd_saved_context *saved, uint32_t signo, uint8_t *info, uint64_t rip)
{
    bool is_later = rip == at(tbd_signal_entry);

    if (!tbd_signals_hold_sigsafe(&saved->signals, signo, info, is_later))
        return false;
    if (is_later && tbd_saved_context_is_holder_sigsafe(saved))
        kick();
    return true;
}

/* The call, or the wait for a page, that the signal has come in is not begun, or made again. */
static void interrupt(struct tbd_ucontext *context)
{
    if (is_between(context->rip, tbd_program_syscall_check, tbd_program_syscall_done))
        continue_at(context, tbd_program_syscall_interrupted);
    if (is_between(context->rip, tbd_touch_begin, tbd_touch_end))
        continue_at(context, tbd_copy_faultable_end); /* it waited for a page (userfault.h) */
}

/* What another thread's engine, another engine or `tbd` has sent; 0: nothing of these. */
static uint64_t value_of(int signo, const uint8_t *info)
{
    siginfo_t given;

    memcpy(&given, info, sizeof(given));
    return (signo == SIGTRAP && given.si_code == SI_QUEUE) ||
                   (signo == TBD_TIMER_SIGNAL && given.si_code == SI_TIMER)
               ? (uint64_t)(uintptr_t)given.si_ptr
               : 0;
}

/* The thread comes to a boundary, and knows what for. */
static void call_in(struct tbd_saved_context *saved, struct tbd_ucontext *context)
{
    saved->signals.has_dropped = true;
    if (tbd_threads.is_free) /* it may be on its way into a call in which it waits */
        __atomic_store_n(&saved->signals.called_in, 1, __ATOMIC_RELAXED);
    interrupt(context);
    if (tbd_saved_context_is_holder_sigsafe(saved))
        come_to_boundary(context);
}

/* Remembers what for; false: it does not have to come. */
static bool is_called_in(uint64_t value)
{
    switch (value) {
    case TBD_LET_GO_VALUE: tbd_leave_soon("a recorded program debugs it (ptrace)"); return true;
    case TBD_STOP_VALUE: tbd_leave_as_asked(); return true;
    case TBD_PAUSE_VALUE: return true;
    case TBD_CRASH_ASKED:
    case TBD_CRASH_SET:
        if (exits->asked)
            exits->asked(value);
        return true;
    default: return false;
    }
}

/* Signals that the program does not see. */
static bool take_own(int signo, const uint8_t *info, struct tbd_saved_context *saved,
                     struct tbd_ucontext *context)
{
    uint64_t value = value_of(signo, info);

    if (is_called_in(value))
        call_in(saved, context);
    else if (value == TBD_LATE_VALUE || value == TBD_TICK_VALUE)
        saved->signals.has_dropped = true; /* the program has stopped */
    else
        return false;
    return true;
}

bool tbd_signals_was_for_engine(struct tbd_signals *signals, int signo, const uint8_t *info)
{
    if (!is_called_in(value_of(signo, info)))
        return false;
    signals->has_dropped = true;
    return true;
}

bool tbd_signals_runs_own(uint64_t rip)
{
    return exits->has_own && exits->has_own(rip);
}

/* A thread that does not have its turn checks `pending` when it gets the turn lock. */
static void queue(int signo, uint8_t *info, struct tbd_ucontext *context)
{
    struct tbd_saved_context *saved = tbd_saved_context_of_sigsafe(&signo);
    struct tbd_signals *signals = &saved->signals;
    bool settles = settles_anyway(context->rip);

    if (signo == SIGCHLD && code_of(info) > 0 && exits->hides_child(info)) {
        signals->has_dropped = true;
        return;
    }
    if (take_own(signo, info, saved, context))
        return;
    if ((tbd_signals_needed() & BIT(signo)) && hold(saved, (uint32_t)signo, info, context->rip))
        return;
    if (tbd_signals_ignores((uint64_t)signo)) {
        signals->has_dropped = true;
        return;
    }
    fill_queued(&signals->queued, signo, info, context);
    __atomic_store_n(&signals->pending, 1, __ATOMIC_RELEASE);
    context->mask |= ~tbd_signals_needed();
    interrupt(context);
    if (settles || !tbd_saved_context_is_holder_sigsafe(saved))
        return;
    if (tbd_signals_runs_own(context->rip)) {
        exits->queued();
        return;
    }
    come_to_boundary(context);
}

/* Is it the engine's code, just after a system call? */
static bool is_after_syscall(uint64_t rip)
{
    static const uint8_t syscall[2] = { 0x0f, 0x05 };

    return rip >= TBD_ENGINE_BASE + sizeof(syscall) && rip < TBD_DECODER_BASE &&
           memcmp((const void *)(rip - sizeof(syscall)), syscall, sizeof(syscall)) == 0;
}

/* A thread may send itself a signal that looks like a fault; it comes as a system call ends, where
 * the engine has no faults. */
static bool is_from_processor(int signo, const uint8_t *info, uint64_t rip)
{
    return (ALWAYS_OURS & BIT(signo)) && code_of(info) > 0 && !is_after_syscall(rip);
}

static bool handle_step(struct tbd_ucontext *context)
{
    struct tbd_regs cpu;

    cpu_registers(context, &cpu);
    if (!tbd_patcher_step(tbd_thread_now(), &cpu, context->trap))
        return false;
    context->rflags = cpu.rflags;
    return true;
}

static void handle(int signo, uint8_t *info, struct tbd_ucontext *context, uint64_t gs_base)
{
    if (exits->stops && exits->stops(signo, info, context, gs_base)) {
        leave_to_engine(context, tbd_thread_now());
        return;
    }
    if (signo == SIGSEGV && context->rip == at(tbd_sigreturn_done) && code_of(info) == SI_KERNEL) {
        context->gregs[TBD_FRAME_RAX] = 1; /* the kernel has not accepted the frame */
        return;
    }
    if (!is_from_processor(signo, info, context->rip)) {
        queue(signo, info, context);
        return;
    }
    if (tbd_raise_expected) {
        continue_at(context, tbd_raise_done);
        return;
    }
    if (is_between(context->rip, tbd_copy_faultable_begin, tbd_copy_faultable_end)) {
        continue_at(context, tbd_copy_faultable_end);
        return;
    }
    if ((signo == SIGSEGV || signo == SIGBUS) && handle_calling(info, context))
        return;
    if (signo == SIGSEGV && (handle_guard(info, context) || handle_shared(signo, info, context)))
        return;
    if ((signo == SIGBUS || signo == SIGTRAP) && handle_step(context))
        return;
    program_fault(signo, info, context);
}

/* A SIGSEGV or SIGBUS that somebody sent may have come in this handler: it found no translated code that could come to a
 * boundary.  In free run that code, to which the handler returns now, stops at no entry store.  What comes from here on waits
 * until the handler has returned. */
static void settle_nested(struct tbd_ucontext *context)
{
    uint64_t mask;

    if (tbd_recording_has_blocks() || !tbd_patcher_owns(context->rip))
        return;
    mask = tbd_signals_block_all();
    if (!__atomic_load_n(&tbd_thread_now()->kick, __ATOMIC_RELAXED))
        return;
    tbd_signals_set_kernel_mask(mask);
    if (tbd_signals_now()->pending)
        context->mask |= ~tbd_signals_needed();
    come_to_boundary(context);
}

void tbd_signal_handle(int signo, uint8_t *info, struct tbd_ucontext *context)
{
    uint64_t rip = context->rip;
    struct tbd_saved_context *saved = tbd_saved_context_of_sigsafe(&rip);
    uint64_t engine = saved->gs_base;
    uint64_t gs_base = tbd_gs_base_take_sigsafe(engine);

    saved->can_resume = false;
    saved->signals.has_tiles = saved->signals.has_tiles || tbd_frame_has_tiles(context);

    handle(signo, info, context, gs_base);
    settle_nested(context);
    if (gs_base != engine && context->rip == rip)
        tbd_set_gs_base(gs_base);
}
