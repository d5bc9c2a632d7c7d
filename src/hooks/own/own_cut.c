// SPDX-License-Identifier: MIT
/* own_cut.c - see own_cut.h
 *
 * The ticks are of the thread's time in user mode, which the kernel counts at its own ticks: so they come in
 * the program's code, or the engine's, and interrupt no system call.  The first thread's timers have the highest
 * numbers, where the kernel lets them be chosen (Linux 6.15): the program's own begin at 0, as natively.
 *
 * OWN_CUT-1  The trap at the control transfer is there only between TBD_CUT_TICK or TBD_CUT_LATE and the next stop or step.
 *     (not checked: both call remove_trap()) */
#include "hooks/own/own_cut.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/code_traps.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/own/own.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/signals_private.h"
#include "patcher/decode.h"

/* The kernel counts the time of threads in steps of up to 4 ms. */
#define LEAST_USER_NS 4000000u
#define LATE_NS       300000
#define FLAG_TF       0x100ull
#define MOST_BYTES    65536u /* of code without a control transfer */
#define USER_TIME     1u     /* CPUCLOCK_VIRT, of clock numbers of threads */
#define CLOCK_THREAD  4u     /* CPUCLOCK_PERTHREAD_MASK */
#define NO_TIMER      (-1)

enum cut_state { STATE_IDLE, STATE_TO_TRANSFER, STATE_STEPPING };

static enum cut_state state;
static uint64_t trap; /* the control transfer; STATE_TO_TRANSFER: an int3 is there */

/* Another thread asks for the turn only while this one runs the program's code, and has asked before this one has left
 * it: what it sends never comes when the kernel has such signals wait, or the program has its handlers back. */
enum where { IN_ENGINE, IN_PROGRAM, IS_ASKED };

struct cut_timers {
    int32_t ticks, late; /* of the kernel */
    uint32_t where;      /* enum where, atomic */
    bool is_late_set, is_paused;
};
static struct cut_timers timers[TBD_MAX_THREADS]; /* by saved context */

static uint64_t tick; /* nanoseconds */

static struct cut_timers *own(void)
{
    return &timers[tbd_context_now()->index];
}

/* ---- timers ---- */

static int32_t create(uint32_t clock, uint64_t value, int32_t number)
{
    struct sigevent event = { .sigev_signo = TBD_TIMER_SIGNAL, .sigev_notify = SIGEV_THREAD_ID };
    int32_t made = number;

    event.sigev_value.sival_ptr = (void *)value;
    event._sigev_un._tid = (int)tbd_thread_now()->tid;
    if (tbd_sys_failed(
            tbd_sys3(__NR_timer_create, clock, tbd_sys_pointer(&event), tbd_sys_pointer(&made))))
        return NO_TIMER;
    return made;
}

static void set(int32_t timer, int64_t first, int64_t then)
{
    int64_t times[4] = { 0, then, 0, first };

    if (timer != NO_TIMER)
        tbd_sys4(__NR_timer_settime, (uint64_t)(unsigned)timer, 0, tbd_sys_pointer(times), 0);
}

static void delete_timer(int32_t *timer)
{
    if (*timer != NO_TIMER)
        tbd_sys3(__NR_timer_delete, (uint64_t)(unsigned)*timer, 0, 0);
    *timer = NO_TIMER;
}

static void choose_numbers(uint64_t mode)
{
    tbd_sys6(__NR_prctl, PR_TIMER_CREATE_RESTORE_IDS, mode, 0, 0, 0, 0);
}

void tbd_cut_begin(uint64_t tick_ns)
{
    uint32_t clock = tick_ns < LEAST_USER_NS
                         ? CLOCK_MONOTONIC
                         : ~tbd_thread_now()->tid << 3 | CLOCK_THREAD | USER_TIME;
    bool is_first = own() == timers;

    tick = tick_ns;
    if (is_first)
        choose_numbers(PR_TIMER_CREATE_RESTORE_IDS_ON);
    *own() = (struct cut_timers){ .late = create(CLOCK_MONOTONIC, TBD_LATE_VALUE, INT32_MAX - 1),
                                  .ticks = create(clock, TBD_TICK_VALUE, INT32_MAX) };
    if (is_first)
        choose_numbers(PR_TIMER_CREATE_RESTORE_IDS_OFF);
    set(own()->ticks, (int64_t)tick_ns, (int64_t)tick_ns);
}

void tbd_cut_soon_sigsafe(void)
{
    if (!own()->is_late_set)
        set(own()->late, LATE_NS, 0);
    own()->is_late_set = true;
}

static void stop_late(struct cut_timers *of)
{
    if (of->is_late_set)
        set(of->late, 0, 0);
    of->is_late_set = false;
}

void tbd_cut_pause(const struct tbd_signals *signals, bool pauses)
{
    struct cut_timers *of = &timers[tbd_saved_context_of_sigsafe(signals)->index];
    int64_t next = pauses ? 0 : (int64_t)tick;

    if (of->is_paused == pauses)
        return;
    of->is_paused = pauses;
    stop_late(of); /* a call is a stop */
    set(of->ticks, next, next);
}

/* ---- the turn is asked for ---- */

static bool change(uint32_t *where, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(where, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void tbd_cut_ask(const struct tbd_saved_context *holder)
{
    uint32_t *where = &timers[holder->index].where;
    siginfo_t info = { .si_signo = TBD_TIMER_SIGNAL, .si_code = SI_TIMER };

    if (!change(where, IN_PROGRAM, IS_ASKED))
        return;
    info.si_ptr = (void *)TBD_LATE_VALUE;
    tbd_sys4(__NR_rt_tgsigqueueinfo, tbd_recording.pid, holder->tid, TBD_TIMER_SIGNAL,
             tbd_sys_pointer(&info));
    __atomic_store_n(where, IN_PROGRAM, __ATOMIC_RELEASE);
}

void tbd_cut_enter_program(void)
{
    __atomic_store_n(&own()->where, IN_PROGRAM, __ATOMIC_RELEASE);
}

void tbd_cut_leave_program(void)
{
    uint32_t *where = &own()->where;

    while (__atomic_load_n(where, __ATOMIC_ACQUIRE) != IN_ENGINE &&
           !change(where, IN_PROGRAM, IN_ENGINE))
        tbd_sys3(__NR_sched_yield, 0, 0, 0);
}

/* ---- the next control transfer ---- */

struct transfer {
    uint64_t from;
    uint64_t at; /* 0: the program stops before, or there is none */
};

static bool transfers(uint8_t kind)
{
    switch (kind) {
    case TBD_INSN_JUMP:
    case TBD_INSN_BRANCH:
    case TBD_INSN_BRANCH_RCX:
    case TBD_INSN_CALL:
    case TBD_INSN_CALL_INDIRECT:
    case TBD_INSN_JUMP_INDIRECT:
    case TBD_INSN_RETURN: return true;
    default: return false;
    }
}

static bool stops(const struct tbd_insn *insn)
{
    return insn->kind == TBD_INSN_SYSCALL || insn->kind == TBD_INSN_BAD || tbd_own_must_stop(insn);
}

static void find_transfer(void *context)
{
    struct transfer *transfer = context;
    struct tbd_insn insn;

    for (uint64_t at = transfer->from; at - transfer->from < MOST_BYTES; at += insn.length) {
        uint8_t bytes[TBD_INSN_MAX_BYTES];
        size_t have = tbd_copy_prefix_from_program(bytes, at, sizeof(bytes));

        tbd_code_traps_hide(bytes, at, have);
        if (!tbd_decode(&insn, at, bytes, have) || stops(&insn))
            return;
        if (transfers(insn.kind)) {
            transfer->at = at;
            return;
        }
    }
}

static const struct tbd_msg_region *code_at(uint64_t address)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, address);

    return region && region->map.prot & PROT_EXEC ? &region->map : NULL;
}

static bool set_trap(uint64_t address)
{
    const struct tbd_msg_region *map = code_at(address);

    return map && map->inode && !(map->prot & PROT_WRITE) && !(map->map_flags & MAP_SHARED) &&
           tbd_code_traps_set(address);
}

static void remove_trap(void)
{
    if (state == STATE_TO_TRANSFER)
        tbd_code_traps_remove(trap);
    state = STATE_IDLE;
}

static void start(const struct tbd_thread *thread)
{
    struct transfer transfer = { .from = thread->regs.rip };

    if (thread->regs.rflags & FLAG_TF)
        return;
    tbd_processor_decode(find_transfer, &transfer);
    trap = transfer.at;
    if (trap && trap == thread->regs.rip)
        state = STATE_STEPPING;
    else if (trap && set_trap(trap))
        state = STATE_TO_TRANSFER;
}

/* ---- steps ---- */

static uint64_t timer_value(int signo, const uint8_t *info)
{
    siginfo_t given;

    memcpy(&given, info, sizeof(given));
    return signo == TBD_TIMER_SIGNAL && given.si_code == SI_TIMER
               ? (uint64_t)(uintptr_t)given.si_ptr
               : 0;
}

enum tbd_cut_step tbd_cut_step_sigsafe(int signo, const uint8_t *info, uint64_t rip)
{
    int32_t code;

    switch (timer_value(signo, info)) {
    case TBD_TICK_VALUE: return TBD_CUT_TICK;
    case TBD_LATE_VALUE: return TBD_CUT_LATE;
    default: break;
    }
    if (signo != SIGTRAP)
        return TBD_CUT_NOT;
    memcpy(&code, info + INFO_CODE_AT, sizeof(code));
    if (state == STATE_TO_TRANSFER && code == SI_KERNEL && rip - 1 == trap)
        return TBD_CUT_TRANSFER;
    return state == STATE_STEPPING && code == TRAP_TRACE ? TBD_CUT_REACHED : TBD_CUT_NOT;
}

bool tbd_cut_take(struct tbd_thread *thread, enum tbd_cut_step step, bool wants_cut)
{
    thread->regs.rflags =
        state == STATE_STEPPING ? thread->regs.rflags & ~FLAG_TF : thread->regs.rflags;
    switch (step) {
    case TBD_CUT_TICK:
    case TBD_CUT_LATE:
        own()->is_late_set = own()->is_late_set && step != TBD_CUT_LATE;
        if (wants_cut && state == STATE_IDLE)
            start(thread);
        if (step == TBD_CUT_LATE && wants_cut)
            tbd_cut_soon_sigsafe(); /* should this time find no place */
        return false;
    case TBD_CUT_TRANSFER:
        thread->regs.rip = trap;
        remove_trap();
        state = STATE_STEPPING;
        return false;
    case TBD_CUT_REACHED: state = STATE_IDLE; return code_at(thread->regs.rip) != NULL;
    case TBD_CUT_NOT: break;
    }
    return false;
}

void tbd_cut_forget(struct tbd_thread *thread)
{
    if (state == STATE_STEPPING)
        thread->regs.rflags &= ~FLAG_TF;
    remove_trap();
    stop_late(own());
}

uint64_t tbd_cut_flags(uint64_t rflags)
{
    return state == STATE_STEPPING ? rflags | FLAG_TF : rflags;
}

static void delete_timers(struct cut_timers *of)
{
    delete_timer(&of->ticks);
    delete_timer(&of->late);
}

void tbd_cut_end_thread(void)
{
    delete_timers(own());
}

void tbd_cut_end(void)
{
    remove_trap();
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++)
        if (tbd_saved_context_at(i)->tid)
            delete_timers(&timers[i]);
}
