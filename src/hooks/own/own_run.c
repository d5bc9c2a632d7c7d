// SPDX-License-Identifier: MIT
/* own_run.c - see own.h: from a stop to the program's code, and back */
#include "hooks/own/own.h"

#include "base/hash.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/call_run.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/slot.h"
#include "hooks/instructions/special.h"
#include "hooks/memory/code_traps.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/written_pages.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/detach.h"
#include "hooks/threads/sigframe.h"
#include "hooks/threads/signals_private.h"
#include "hooks/threads/threads.h"
#include "hooks/threads/window_end.h"
#include "patcher/patcher.h"

#define SYSCALL_BYTES 2u
/* Cycles of the time-stamp counter in a window: some 10 ms, so that a replay of it fits in memory. */
#define WINDOW_CYCLES (1ull << 25)
#define WINDOW_NS     10000000u

_Noreturn void tbd_native_jump(const struct tbd_regs *regs, const uint64_t *mask);

enum stop_kind { STOP_NONE, STOP_CALL, STOP_SITE, STOP_FAULT, STOP_LATE };

static void (*settle)(struct tbd_thread *thread);
static enum stop_kind stop; /* what tbd_own_stopped() finds */
static uint64_t window_start;

static uint64_t cycles(void)
{
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* ---- blocks: one for each stopping instruction ---- */

#define PLACES 4096u

static struct {
    uint64_t pc;
    uint32_t id;
    uint32_t bytes;
} known[PLACES];

static uint32_t define(uint64_t pc, uint32_t bytes, enum tbd_end end)
{
    uint8_t code[TBD_INSN_MAX_BYTES] = { 0 };
    struct tbd_block_def def = { .start = pc, .code_bytes = bytes, .end = (uint8_t)end };

    def.insn_count = 1;
    tbd_copy_from_program(code, pc, bytes);
    tbd_code_traps_hide(code, pc, bytes);
    def.code_hash = tbd_hash64(code, bytes);
    return tbd_ring_define(&tbd_recording.ring, &def, NULL, code);
}

static void enter_block(struct tbd_thread *thread, uint32_t bytes, enum tbd_end end)
{
    uint64_t pc = thread->regs.rip;
    size_t place = (size_t)(pc ^ pc >> 12) % PLACES;

    if (known[place].pc != pc || known[place].bytes != bytes) {
        known[place].pc = pc;
        known[place].bytes = bytes;
        known[place].id = define(pc, bytes, end);
    }
    tbd_ring_enter(&tbd_recording.ring, thread, known[place].id);
}

/* ---- signals that wait for a stop ---- */

#define LATE_NS 100000000

static int32_t timer = -1; /* of the kernel; -1: no signal waits */

void tbd_own_queued_sigsafe(void)
{
    struct sigevent event = { .sigev_signo = SIGTRAP, .sigev_notify = SIGEV_THREAD_ID };
    int64_t after[4] = { 0, 0, 0, LATE_NS };

    if (timer >= 0)
        return;
    event.sigev_value.sival_ptr = (void *)TBD_LATE_VALUE;
    event._sigev_un._tid = (int)tbd_thread_now()->tid;
    if (tbd_sys_failed(tbd_sys3(__NR_timer_create, CLOCK_MONOTONIC, tbd_sys_pointer(&event),
                                tbd_sys_pointer(&timer))))
        timer = -1;
    else
        tbd_sys4(__NR_timer_settime, (uint64_t)(unsigned)timer, 0, tbd_sys_pointer(after), 0);
}

static void stop_timer(void)
{
    if (timer >= 0)
        tbd_sys3(__NR_timer_delete, (uint64_t)(unsigned)timer, 0, 0);
    timer = -1;
}

/* A computation is not cut: what follows its last stop is not recorded. */
static void leave_late(struct tbd_thread *thread)
{
    if (!__atomic_load_n(&tbd_signals_now()->pending, __ATOMIC_ACQUIRE))
        return;
    tbd_window_cut();
    tbd_detach(thread, "a signal came in a long computation, which native play cannot cut yet",
               TBD_END_WHOLE);
}

/* ---- stops ---- */

bool tbd_own_has_sigsafe(uint64_t rip)
{
    return (rip < TBD_ENGINE_BASE || rip >= TBD_ENGINE_END) && !tbd_patcher_owns(rip) &&
           !tbd_slot_owns(rip);
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
    siginfo_t given;

    memcpy(&given, info, sizeof(given));
    if (signo == SIGTRAP && code == SI_TIMER && (uint64_t)(uintptr_t)given.si_ptr == TBD_LATE_VALUE)
        return STOP_LATE;
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

bool tbd_own_stops_sigsafe(int signo, const uint8_t *info, struct tbd_ucontext *context,
                           uint64_t gs_base)
{
    struct tbd_thread *thread = tbd_thread_now();
    enum stop_kind kind =
        tbd_own_has_sigsafe(context->rip) ? kind_of(signo, info, context->rip) : STOP_NONE;

    if (kind == STOP_NONE)
        return false;
    tbd_ucontext_get(context, &thread->regs);
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

    enter_block(thread, bytes, TBD_END_SPECIAL);
    (void)tbd_special_perform(thread, special, bytes);
}

/* A fault of an instruction that runs in a slot comes here, too: its block was entered. */
static void raise_fault(struct tbd_thread *thread, bool is_entered)
{
    struct tbd_queued_signal *fault = &tbd_signals_now()->fault;

    tbd_ring_unprotect_sigsafe(&tbd_recording.ring);
    if (!fault->signo)
        return;
    if (!is_entered)
        enter_block(thread, 0, TBD_END_FAULT);
    fault->insn = 0;
    tbd_recording_interrupted(0);
    tbd_signals_raise(thread, fault);
}

/* What a call has mapped, or made accessible. */
static void look_after_call(struct tbd_thread *thread, const struct tbd_regs *before,
                            uint64_t brk_before)
{
    uint64_t result = thread->regs.gpr[TBD_RAX], number = before->gpr[TBD_RAX];
    uint64_t start = before->gpr[TBD_RDI], bytes = before->gpr[TBD_RSI];
    bool is_new = true;

    if (tbd_syscall_mode(number) != TBD_SYS_MAP || tbd_sys_failed((long)result))
        return;
    switch (number) {
    case __NR_mmap: start = result; break;
    case __NR_mremap:
        start = result;
        bytes = before->gpr[TBD_RDX];
        break;
    case __NR_brk:
        start = brk_before;
        bytes = result > brk_before ? result - brk_before : 0;
        break;
    case __NR_mprotect:
    case __NR_pkey_mprotect: is_new = false; break;
    case __NR_madvise: bytes = before->gpr[TBD_RDX] == MADV_DONTNEED ? bytes : 0; break;
    case __NR_munmap: tbd_code_traps_forget(start, start + bytes); return;
    default: start = bytes = 0;
    }
    if (bytes)
        tbd_own_look(start & ~(TBD_PAGE_SIZE - 1),
                     (start + bytes + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1), is_new);
}

/* A child may go on natively, in the same memory or in a copy, and knows nothing of traps. */
static bool makes_process(uint64_t number)
{
    return number == __NR_clone || number == __NR_clone3 || number == __NR_fork ||
           number == __NR_vfork;
}

/* What becomes code is not followed any more. */
static void collect_code(const struct tbd_regs *regs)
{
    uint64_t number = regs->gpr[TBD_RAX], start = regs->gpr[TBD_RDI], bytes = regs->gpr[TBD_RSI];

    if ((number == __NR_mprotect || number == __NR_pkey_mprotect) &&
        regs->gpr[TBD_RDX] & PROT_EXEC && bytes < TBD_USER_END && start < TBD_USER_END)
        tbd_written_collect(start, start + bytes);
}

static void perform_call(struct tbd_thread *thread)
{
    struct tbd_regs before = thread->regs;
    uint64_t brk_before = tbd_memory.brk_end & ~(TBD_PAGE_SIZE - 1);

    enter_block(thread, SYSCALL_BYTES, TBD_END_SYSCALL);
    collect_code(&before);
    if (makes_process(before.gpr[TBD_RAX]))
        tbd_code_traps_lift(true);
    tbd_syscall_perform(thread, SYSCALL_BYTES);
    if (makes_process(before.gpr[TBD_RAX]))
        tbd_code_traps_lift(false);
    look_after_call(thread, &before, brk_before);
}

static uint64_t used_ns(void)
{
    int64_t now[2] = { 0, 0 };

    tbd_sys3(__NR_clock_gettime, CLOCK_THREAD_CPUTIME_ID, tbd_sys_pointer(now), 0);
    return (uint64_t)now[0] * 1000000000ull + (uint64_t)now[1];
}

/* The counter of cycles is read at every stop, the time used only when it may have come: while others have the processor, the
 * window does not grow. */
static void end_window_in_time(struct tbd_thread *thread)
{
    static uint64_t used_before;
    uint64_t now = cycles(), used;

    if (now - window_start < WINDOW_CYCLES)
        return;
    window_start = now;
    used = used_ns();
    if (used - used_before < WINDOW_NS && used >= used_before)
        return;
    used_before = used;
    tbd_recording.window_due = tbd_ring_time(&tbd_recording.ring, thread);
}

void tbd_own_stopped(struct tbd_thread *thread)
{
    enum stop_kind kind = stop;

    stop = STOP_NONE;
    stop_timer();
    switch (kind) {
    case STOP_LATE: leave_late(thread); break;
    case STOP_CALL: perform_call(thread); break;
    case STOP_SITE: perform_site(thread); break;
    case STOP_FAULT: raise_fault(thread, false); break;
    case STOP_NONE: raise_fault(thread, true); break;
    }
    if (tbd_written_is_lost())
        tbd_leave_soon("the kernel no longer says which pages are written");
    end_window_in_time(thread);
    settle(thread);
    tbd_own_run(thread);
}

/* Without fsgsbase the program cannot change its gs base unseen, and hardly any sets it: the processor
 * keeps the engine's. */
void tbd_own_run(struct tbd_thread *thread)
{
    struct tbd_regs regs = thread->regs;

    if (tbd_processor.has_fsgsbase)
        tbd_set_gs_base(regs.gs_base);
    else if (regs.gs_base)
        tbd_detach(thread, "it uses the gs register, for which native play needs fsgsbase",
                   TBD_END_WHOLE);
    tbd_native_jump(&regs, NULL);
}

/* ---- beginning and end ---- */

static long dispatch(uint64_t mode)
{
    bool is_on = mode != PR_SYS_DISPATCH_OFF;

    return tbd_sys6(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, mode, is_on ? TBD_ENGINE_BASE : 0,
                    is_on ? TBD_DECODER_BASE - TBD_ENGINE_BASE : 0, 0, 0);
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

void tbd_own_begin(void (*settles)(struct tbd_thread *thread))
{
    settle = settles;
    window_start = cycles();
    memset(known, 0, sizeof(known));
    tbd_own_look(0, TBD_USER_END, true);
    tbd_code_traps_lift(false); /* a child's are the program's bytes since before the fork */
    (void)dispatch(PR_SYS_DISPATCH_ON);
}

bool tbd_own_begin_child(void)
{
    return tbd_written_begin();
}

static void end(void)
{
    (void)dispatch(PR_SYS_DISPATCH_OFF);
    tbd_code_traps_remove_all();
}

static void detach(struct tbd_thread *thread, const char *why, uint64_t offset)
{
    end();
    tbd_leaving_play.detach(thread, why, offset);
}

static void let_go(const char *why, uint64_t offset)
{
    end();
    tbd_leaving_play.let_go(why, offset);
}

const struct tbd_leaving tbd_leaving_own = { .detach = detach, .let_go = let_go };
