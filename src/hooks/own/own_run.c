// SPDX-License-Identifier: MIT
/* own_run.c - see own.h: from a stop to the program's code, and back */
#include "hooks/own/own.h"

#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/slot.h"
#include "hooks/instructions/special.h"
#include "hooks/memory/code_traps.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/written_pages.h"
#include "hooks/own/own_blocks.h"
#include "hooks/own/own_cut.h"
#include "hooks/own/own_jumps.h"
#include "hooks/own/own_window.h"
#include "hooks/stream/cycles.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/detach.h"
#include "hooks/threads/sigframe.h"
#include "hooks/threads/signals_private.h"
#include "hooks/threads/threads.h"
#include "hooks/threads/window_end.h"
#include "patcher/patcher.h"

#define SYSCALL_BYTES 2u
#define FLAG_TF       0x100ull
#define FLAG_RF       0x10000ull
#define TURN_CYCLES   (1ull << 22) /* about 1.5 ms, if another thread is ready */

_Noreturn void tbd_native_jump(const struct tbd_regs *regs, const uint64_t *mask);
_Noreturn void tbd_own_return(const struct tbd_regs *regs);
_Noreturn void tbd_own_jumped(struct tbd_regs *regs);

enum stop_kind { STOP_NONE, STOP_CALL, STOP_JUMP, STOP_SITE, STOP_FAULT, STOP_CUT, STOP_STEP };

static const struct tbd_own_ways *ways;
static enum stop_kind stop;        /* what tbd_own_stopped() finds */
static enum tbd_cut_step cut_step; /* STOP_CUT */

static uint64_t turn_start; /* and the turn of the thread `turn_of` */
static uint32_t turn_of;
static uint64_t fixed_ns; /* of windows; 0: as their costs say */

/* ---- stops ---- */

bool tbd_own_has_sigsafe(uint64_t rip)
{
    return !tbd_own_is_translated() && (rip < TBD_ENGINE_BASE || rip >= TBD_ENGINE_END) &&
           !tbd_patcher_owns(rip) && !tbd_slot_owns(rip) && !tbd_own_jumps_own_sigsafe(rip);
}

static int32_t code_of(const uint8_t *info)
{
    int32_t code;

    memcpy(&code, info + INFO_CODE_AT, sizeof(code));
    return code;
}

static enum stop_kind kind_of(int signo, const uint8_t *info, uint64_t rip)
{
    int32_t code = code_of(info);

    cut_step = tbd_cut_step_sigsafe(signo, info, rip);
    if (cut_step != TBD_CUT_NOT)
        return STOP_CUT;
    if (signo == SIGSYS)
        return code == SYS_USER_DISPATCH ? STOP_CALL : STOP_NONE;
    if (!(ALWAYS_OURS & BIT(signo)) || code <= 0)
        return STOP_NONE;
    return signo == SIGTRAP && code == SI_KERNEL && tbd_code_traps_has_sigsafe(rip - 1)
               ? STOP_SITE
               : STOP_FAULT;
}

static uint64_t fs_base(const struct tbd_thread *thread)
{
    uint64_t base = thread->regs.fs_base;

    if (tbd_processor.has_fsgsbase)
        __asm__ volatile("rdfsbase %0" : "=r"(base));
    return base;
}

static void take_fault(struct tbd_queued_signal *fault, int signo, const uint8_t *info,
                       const struct tbd_ucontext *context)
{
    *fault = (struct tbd_queued_signal){ .signo = (uint32_t)signo,
                                         .is_sync = true,
                                         .error = context->error,
                                         .trap = context->trap,
                                         .address = context->cr2 };
    memcpy(fault->info, info, TBD_SIGINFO_BYTES);
}

/* The program has its own trap flag set, and meets a jump in place of one of its instructions; or this one cannot load
 * what it should, and will fault again at its own place. */
static bool ends_jump(int signo, const uint8_t *info, uint64_t rip)
{
    int32_t code = code_of(info);
    bool is_step = signo == SIGTRAP && code == TRAP_TRACE;
    bool is_fault = (signo == SIGSEGV || signo == SIGBUS) && code > 0;

    return (is_step || is_fault) && tbd_own_jumps_own_sigsafe(rip);
}

bool tbd_own_stops_sigsafe(int signo, const uint8_t *info, struct tbd_ucontext *context,
                           uint64_t gs_base)
{
    struct tbd_thread *thread = tbd_thread_now();
    enum stop_kind kind =
        tbd_own_has_sigsafe(context->rip) ? kind_of(signo, info, context->rip) : STOP_NONE;

    if (ends_jump(signo, info, context->rip))
        kind = STOP_STEP;
    if (kind == STOP_NONE)
        return false;
    tbd_ucontext_get(context, &thread->regs);
    if (kind == STOP_STEP)
        thread->regs.rip = tbd_own_jumps_undo_sigsafe(context->rip);
    thread->regs.rip -= kind == STOP_CALL ? SYSCALL_BYTES : kind == STOP_SITE ? 1 : 0;
    thread->regs.fs_base = fs_base(thread);
    if (tbd_processor.has_fsgsbase)
        thread->regs.gs_base = gs_base;
    if (kind == STOP_FAULT)
        take_fault(&tbd_signals_now()->fault, signo, info, context);
    stop = kind;
    return true;
}

static void perform_site(struct tbd_thread *thread)
{
    uint32_t bytes;
    enum tbd_special special = tbd_own_site(thread->regs.rip, &bytes);

    tbd_own_enter_block(thread, bytes, TBD_END_SPECIAL);
    (void)tbd_special_perform(thread, special, bytes);
}

#define TRAP_PROTECTION 13u
#define TRAP_PAGE       14u
#define ERROR_FETCH     0x10u

/* Where no instruction can be fetched, a replay has nothing to run, which would set the flag; the signal's frame gets it. */
static void clear_resume_flag(struct tbd_thread *thread, const struct tbd_queued_signal *fault)
{
    if (fault->trap == TRAP_PAGE && fault->error & ERROR_FETCH)
        thread->regs.rflags &= ~FLAG_RF;
}

/* A fault of an instruction that runs in a slot comes here, too: its block was entered. */
static void raise_fault(struct tbd_thread *thread, bool is_entered)
{
    struct tbd_queued_signal *fault = &tbd_signals_now()->fault;

    tbd_ring_unprotect_sigsafe(&tbd_recording.ring);
    if (!fault->signo)
        return;
    if (!is_entered) {
        clear_resume_flag(thread, fault);
        if (fault->trap == TRAP_PROTECTION)
            tbd_own_push_of_fault(&thread->regs);
        tbd_own_enter_block(thread, 0, TBD_END_FAULT);
        if (fault->signo != SIGILL) /* sysenter on AMD's processors: a replay raises it, too */
            tbd_own_leave_old_calls(thread); /* this kernel does not know them */
    }
    fault->insn = 0;
    tbd_recording_interrupted(0);
    tbd_signals_raise(thread, fault);
}

static void perform_dispatched(struct tbd_thread *thread)
{
    uint64_t pc = thread->regs.rip;

    tbd_own_perform_call(thread, false);
    if (!tbd_own_is_translated())
        tbd_own_jumps_dispatched(pc);
}

/* ---- windows ---- */

/* What a window has logged is in the organizer's memory, twice while it is packed. */
#define LOG_MOST_BYTES (16u << 20)

static void end_window_in_time(struct tbd_thread *thread, uint64_t now)
{
    if (tbd_own_window_is_over_at_stop(now) || tbd_recording.ring.window_bytes >= LOG_MOST_BYTES)
        tbd_recording.window_due = tbd_ring_time(&tbd_recording.ring, thread);
}

static uint64_t page_ns; /* of a first write to a page; 0: not measured yet */

/* Most processes end before that of their first window. */
static void measure_pages(void)
{
    static bool is_measured;

    if (is_measured)
        return;
    is_measured = true;
    page_ns = tbd_written_measure_ns();
    tbd_own_window_set_page_ns(page_ns);
}

/* What the window's end has cost, if it ends here. */
static void settle(struct tbd_thread *thread)
{
    bool ends = !tbd_own_is_translated() &&
                tbd_ring_time(&tbd_recording.ring, thread) >= tbd_recording.window_due;
    uint64_t before = ends ? tbd_own_window_now_ns() : 0, cost;

    ways->settle(thread);
    if (!ends)
        return;
    cost = tbd_own_window_now_ns() - before;
    measure_pages();
    tbd_own_window_cost(cost, tbd_written_take_count());
    tbd_own_window_next();
}

/* A thread that only computes goes on to its cut. */
static void end_turn_in_time(struct tbd_thread *thread, uint64_t now)
{
    if (!tbd_threads_are_many())
        return;
    if (turn_of == thread->tid && now - turn_start < TURN_CYCLES)
        return;
    if (turn_of == thread->tid)
        tbd_threads.tick = tbd_ring_time(&tbd_recording.ring, thread);
    turn_of = thread->tid;
    turn_start = now;
}

/* The turn of a thread that was cut begins when it goes on. */
static void begin_turn(const struct tbd_thread *thread)
{
    if (turn_of == thread->tid || !tbd_threads_are_many())
        return;
    turn_of = thread->tid;
    turn_start = tbd_cycles_now();
}

/* The window ends here. */
static void perform_cut(struct tbd_thread *thread)
{
    struct tbd_msg_cut cut = { .rip = thread->regs.rip, .used_ns = tbd_own_window_used_ns() };
    struct tbd_part part = { &cut, sizeof(cut) };

    tbd_own_enter_block(thread, 0, TBD_END_FAULT);
    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_CUT, &part, 1);
    tbd_recording.window_due = tbd_ring_time(&tbd_recording.ring, thread);
}

/* Is another thread's turn worth the end of a window? */
static bool is_turn_wanted(void)
{
    return tbd_threads_are_many() && tbd_own_window_pays() && tbd_threads_are_ready();
}

static bool is_cut_wanted(enum tbd_cut_step step)
{
    return __atomic_load_n(&tbd_signals_now()->pending, __ATOMIC_ACQUIRE) || tbd_leaving_why() ||
           (step == TBD_CUT_TICK && tbd_own_window_is_over_at_tick()) || is_turn_wanted();
}

/* Nothing is recorded where the thread is not at a cut. */
static void take_cut_step(struct tbd_thread *thread)
{
    if (!tbd_cut_take(thread, cut_step, is_cut_wanted(cut_step)))
        tbd_own_run(thread);
    perform_cut(thread);
}

/* ---- */

static void take_stop(struct tbd_thread *thread, enum stop_kind kind)
{
    switch (kind) {
    case STOP_CALL: perform_dispatched(thread); break;
    case STOP_JUMP: tbd_own_perform_call(thread, true); break;
    case STOP_SITE: perform_site(thread); break;
    case STOP_FAULT: raise_fault(thread, false); break;
    case STOP_NONE: raise_fault(thread, true); break;
    case STOP_CUT:
    case STOP_STEP: break;
    }
}

static void look_whether_it_can_go_on(const struct tbd_thread *thread)
{
    if (tbd_written_is_lost())
        tbd_own_translate_soon("the kernel no longer says which pages are written");
    if (!tbd_processor.has_fsgsbase && thread->regs.gs_base)
        tbd_own_translate_soon("it uses the gs register, for which native play needs fsgsbase");
}

/* A system call has just looked when it was (wall_clock.h). */
static uint64_t cycles_after(enum stop_kind kind)
{
    return kind == STOP_JUMP && tbd_cycles_can_be_read() ? tbd_cycles_read_last()
                                                         : tbd_cycles_now();
}

/* Another thread may have ended native play while this one waited in its call. */
static void end_stop(struct tbd_thread *thread, enum stop_kind kind)
{
    uint64_t now;

    if (tbd_own_is_translated())
        return;
    now = cycles_after(kind);
    look_whether_it_can_go_on(thread);
    end_window_in_time(thread, now);
    end_turn_in_time(thread, now);
    if (tbd_own_translate_is_due())
        tbd_own_translate(thread);
}

void tbd_own_stopped(struct tbd_thread *thread)
{
    enum stop_kind kind = stop;

    stop = STOP_NONE;
    tbd_cut_leave_program();
    if (tbd_own_is_translated())
        ways->after_fault(thread);
    if (kind == STOP_CUT)
        take_cut_step(thread);
    tbd_cut_forget(thread);
    tbd_own_leave_steps(thread, kind == STOP_FAULT && tbd_signals_now()->fault.signo == SIGTRAP &&
                                    code_of(tbd_signals_now()->fault.info) == TRAP_TRACE);
    if (kind == STOP_STEP)
        tbd_own_run(thread); /* it has not stopped */
    take_stop(thread, kind);
    end_stop(thread, kind);
    settle(thread);
    tbd_own_run(thread);
}

/* own_x86_64.S: a system call, of which these registers are saved. */
void tbd_own_jumped(struct tbd_regs *regs)
{
    struct tbd_thread *thread;
    uint64_t gs_base = tbd_gs_base_take_sigsafe(tbd_processor.gs_base);

    thread = tbd_thread_now();
    if (tbd_processor.has_fsgsbase)
        regs->gs_base = gs_base;
    regs->fs_base = fs_base(thread);
    stop = STOP_JUMP;
    tbd_own_stopped(thread);
}

/* Has it the registers that a system call leaves, so that rcx can be used to go on? */
static bool is_after_call(const struct tbd_regs *regs)
{
    return regs->gpr[TBD_RCX] == regs->rip && !(regs->rflags & (FLAG_RF | FLAG_TF));
}

/* Without fsgsbase the program cannot change its gs base unseen, and hardly any sets it: the processor
 * keeps the engine's. */
void tbd_own_run(struct tbd_thread *thread)
{
    struct tbd_regs regs = thread->regs;

    if (tbd_own_is_translated())
        tbd_patcher_run(thread);
    begin_turn(thread);
    tbd_cut_enter_program();
    regs.rflags = tbd_cut_flags(regs.rflags);
    if (tbd_processor.has_fsgsbase)
        tbd_set_gs_base(regs.gs_base);
    else if (regs.gs_base)
        tbd_detach(thread, "it uses the gs register, for which native play needs fsgsbase",
                   TBD_END_WHOLE);
    if (is_after_call(&regs))
        tbd_own_return(&regs);
    tbd_native_jump(&regs, NULL);
}

/* ---- beginning and end ---- */

/* The kernel asks this byte at each call of a thread whose dispatch is on.  So native play ends for all threads at once, those that wait
 * in a call, too: a signal may have one of them run a handler of the program before it comes here again. */
static uint8_t selector;

static long dispatch(uint64_t mode)
{
    bool is_on = mode != PR_SYS_DISPATCH_OFF;

    return tbd_sys6(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, mode, is_on ? TBD_ENGINE_BASE : 0,
                    is_on ? TBD_DECODER_BASE - TBD_ENGINE_BASE : 0,
                    is_on ? tbd_sys_pointer(&selector) : 0, 0);
}

const char *tbd_own_check(void)
{
    if (tbd_sys_failed(dispatch(PR_SYS_DISPATCH_ON)))
        return "native play needs user dispatch of system calls (Linux 5.11)";
    (void)dispatch(PR_SYS_DISPATCH_OFF);
    if (!tbd_written_begin())
        return "native play needs pages followed by the kernel (userfaultfd, Linux 6.7)";
    return NULL;
}

static void begin(void)
{
    tbd_own_window_begin(fixed_ns, page_ns);
    tbd_written_leave_to(tbd_recording.ring.head->organizer_lock & FUTEX_TID_MASK);
    tbd_own_forget_blocks();
    tbd_cut_begin(tbd_own_window_tick_ns());
    selector = SYSCALL_DISPATCH_FILTER_BLOCK;
    (void)dispatch(PR_SYS_DISPATCH_ON);
}

/* It cannot even begin natively. */
static void begin_translated(void)
{
    tbd_own_translate(tbd_thread_now());
    tbd_recording.window_due = tbd_recording.window;
    tbd_window_send_translated(tbd_thread_now());
}

void tbd_own_begin(uint64_t cut_ns, const struct tbd_own_ways *given)
{
    ways = given;
    tbd_threads_ask_by(tbd_cut_ask);
    fixed_ns = cut_ns;
    tbd_special_logs_stores = true;
    tbd_recording.has_stops = true;
    tbd_code_traps_begin(&tbd_memory.regions);
    tbd_own_look(0, TBD_USER_END, true);
    if (!tbd_own_translate_is_due())
        tbd_own_jumps_begin();
    begin();
    if (tbd_own_translate_is_due())
        begin_translated();
}

bool tbd_own_prepare_child(void)
{
    return tbd_written_begin();
}

void tbd_own_begin_child(void)
{
    tbd_written_follow(0, TBD_USER_END, true);
    tbd_own_jumps_renew();
    begin();
}

void tbd_own_leave_child(void)
{
    tbd_recording.has_stops = false;
    tbd_written_end();
    tbd_code_traps_remove_all();
    tbd_own_jumps_end();
}

void tbd_own_begin_thread(struct tbd_thread *thread)
{
    if (!tbd_own_is_translated()) {
        tbd_cut_begin(tbd_own_window_tick_ns());
        (void)dispatch(PR_SYS_DISPATCH_ON);
    }
    tbd_signals_let_in();
    ways->settle(thread);
    tbd_own_run(thread);
}

void tbd_own_end(void)
{
    tbd_cut_end();
    __atomic_store_n(&selector, SYSCALL_DISPATCH_FILTER_ALLOW, __ATOMIC_RELEASE);
    (void)dispatch(PR_SYS_DISPATCH_OFF);
    tbd_code_traps_remove_all();
    tbd_own_jumps_end();
    tbd_written_collect(0, TBD_USER_END); /* for the last window */
    tbd_written_end();
}

bool tbd_own_dies(struct tbd_thread *thread)
{
    (void)thread;
    tbd_code_traps_remove_all();
    return false;
}

static void detach(struct tbd_thread *thread, const char *why, uint64_t offset)
{
    tbd_own_end();
    tbd_leaving_play.detach(thread, why, offset);
}

static void let_go(const char *why, uint64_t offset)
{
    tbd_own_end();
    tbd_leaving_play.let_go(why, offset);
}

const struct tbd_leaving tbd_leaving_own = { .detach = detach, .let_go = let_go };
