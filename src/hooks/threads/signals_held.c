// SPDX-License-Identifier: MIT
/* signals_held.c - SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGTRAP, in native play SIGSYS too, that somebody sent while the
 * program has them blocked
 *
 * The kernel must not block these while the program's code runs, so it cannot keep them pending.
 * The engine holds them instead, one of each for the thread and one of each for the process, and
 * delivers them when the mask lets them in.
 *
 *     handler --> held --> take_held (APP, mask lets it in) --> queued --> delivered
 *                 ^  |
 *                 |  v lend: around a call that waits or looks at pending signals
 *              the kernel, which has them blocked meanwhile
 *
 * SIGNALS_HELD-1  Whoever has the lock has every signal blocked: no handler waits for the lock on
 *     the thread that has it.
 *
 * A signal for the process that comes to a thread that blocks it goes to one that does not: that
 * thread is sent a nudge and takes the signal from `process`.  If all block it, those that wait for
 * it in a call (sigtimedwait, signalfd) are sent a nudge, which the call brings; then the first of
 * them takes it.  Contexts: APP, SIG. */
#include "hooks/threads/signals_private.h"

#include "base/assert.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/threads.h"

#include <asm/stat.h>
#include <linux/stat.h> /* S_IFMT */

static struct tbd_held_signals process;
static uint64_t nudged; /* another thread is about to take these of `process` */
static uint32_t lock_word;
static bool were_held;

/* ---- the lock ---- */

static uint64_t swap_mask(uint64_t how, uint64_t mask)
{
    uint64_t old = 0;

    tbd_sys4(__NR_rt_sigprocmask, how, tbd_sys_pointer(&mask), tbd_sys_pointer(&old), 8);
    return old;
}

/* Returns the mask to give back. */
static uint64_t lock(void)
{
    uint64_t old = swap_mask(SIG_SETMASK, ~0ull);

    while (__atomic_exchange_n(&lock_word, 1, __ATOMIC_ACQUIRE))
        tbd_sys3(__NR_sched_yield, 0, 0, 0);
    return old;
}

static void unlock(uint64_t old)
{
    TBD_INVARIANT("SIGNALS_HELD-1", __atomic_load_n(&lock_word, __ATOMIC_RELAXED) == 1);
    __atomic_store_n(&lock_word, 0, __ATOMIC_RELEASE);
    swap_mask(SIG_SETMASK, old);
}

/* ---- what is held ---- */

static unsigned place_of(uint32_t signo)
{
    unsigned place = 0;

    for (uint64_t lower = (ALWAYS_OURS | BIT(SIGSYS)) & (BIT(signo) - 1); lower; lower &= lower - 1)
        place++;
    return place;
}

static uint32_t lowest(uint64_t set)
{
    return (uint32_t)__builtin_ctzll(set) + 1;
}

/* A second one of the same number is lost, as in the kernel. */
static void put_locked(struct tbd_held_signals *held, uint32_t signo, const uint8_t *info)
{
    if (held->set & BIT(signo))
        return;
    memcpy(held->info[place_of(signo)], info, TBD_SIGINFO_BYTES);
    __atomic_store_n(&held->set, held->set | BIT(signo), __ATOMIC_RELAXED);
}

static void remove_locked(struct tbd_held_signals *held, uint32_t signo)
{
    __atomic_store_n(&held->set, held->set & ~BIT(signo), __ATOMIC_RELAXED);
}

static bool take_locked(struct tbd_held_signals *held, uint32_t signo, uint8_t *info)
{
    if (!(held->set & BIT(signo)))
        return false;
    memcpy(info, held->info[place_of(signo)], TBD_SIGINFO_BYTES);
    remove_locked(held, signo);
    return true;
}

static uint64_t waiting(const struct tbd_signals *signals)
{
    return __atomic_load_n(&signals->held.set, __ATOMIC_RELAXED) |
           __atomic_load_n(&process.set, __ATOMIC_RELAXED);
}

/* ---- a signal comes ---- */

static int32_t code_of(const uint8_t *info)
{
    int32_t code;

    memcpy(&code, info + INFO_CODE_AT, sizeof(code));
    return code;
}

/* To another thread, which then looks at `process`.  The kernel lets a thread send itself alone
 * what looks like a signal of kill. */
static bool nudge(uint32_t tid, uint32_t signo)
{
    siginfo_t info = { .si_signo = (int)signo, .si_code = SI_QUEUE };

    info.si_ptr = &process;
    return !tbd_sys_failed(
        tbd_sys4(__NR_rt_tgsigqueueinfo, tbd_recording.pid, tid, signo, tbd_sys_pointer(&info)));
}

static bool is_engines_timer(int code, uint64_t value)
{
    return code == SI_TIMER && (value == TBD_TICK_VALUE || value == TBD_LATE_VALUE);
}

/* A nudge, or a tick of native play (own_cut.h): nothing that the program may see. */
static bool is_engines(int code, uint64_t value)
{
    return (code == SI_QUEUE && value == tbd_sys_pointer(&process)) ||
           is_engines_timer(code, value);
}

static bool is_nudge(const uint8_t *info)
{
    siginfo_t siginfo;

    memcpy(&siginfo, info, sizeof(siginfo));
    return is_engines(siginfo.si_code, tbd_sys_pointer(siginfo.si_ptr));
}

static bool is_tick(const uint8_t *info)
{
    siginfo_t siginfo;

    memcpy(&siginfo, info, sizeof(siginfo));
    return is_engines_timer(siginfo.si_code, tbd_sys_pointer(siginfo.si_ptr));
}

static uint64_t blocked(const struct tbd_signals *signals)
{
    return signals->has_temporary ? signals->temporary_mask : signals->mask;
}

static bool blocks(const struct tbd_signals *signals, uint32_t signo)
{
    return blocked(signals) & BIT(signo);
}

/* The kernel blocks it in these threads. */
static void ask_waiting_locked(const struct tbd_signals *signals, uint32_t signo)
{
    /* Either it is seen here that they wait, or they see what is in `process`. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++) {
        struct tbd_saved_context *saved = tbd_saved_context_at(i);
        struct tbd_signals *other = &saved->signals;
        uint32_t tid = __atomic_load_n(&saved->tid, __ATOMIC_RELAXED);
        uint64_t waits_for = __atomic_load_n(&other->waits_for, __ATOMIC_RELAXED);

        if (tid && other != signals && waits_for & ~other->asked & ~other->lent & BIT(signo) &&
            nudge(tid, signo))
            other->asked |= BIT(signo);
    }
}

static void nudge_another_locked(const struct tbd_signals *signals, uint32_t signo)
{
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++) {
        const struct tbd_saved_context *saved = tbd_saved_context_at(i);
        uint32_t tid = __atomic_load_n(&saved->tid, __ATOMIC_RELAXED);

        if (!tid || &saved->signals == signals || blocks(&saved->signals, signo) ||
            !nudge(tid, signo))
            continue;
        nudged |= BIT(signo);
        return;
    }
    ask_waiting_locked(signals, signo);
}

/* At the limit of signals that wait (RLIMIT_SIGPENDING) the kernel keeps the number alone. */
static bool is_bare(const uint8_t *info)
{
    siginfo_t siginfo;

    memcpy(&siginfo, info, sizeof(siginfo));
    return siginfo.si_code == SI_USER && !siginfo.si_pid;
}

/* pthread_sigqueue() by another thread cannot be told from sigqueue(), but the kernel prefers the
 * main thread for the latter. */
static bool is_for_thread(const struct tbd_signals *signals, uint32_t signo, const uint8_t *info)
{
    bool is_main = tbd_saved_context_of_sigsafe(signals)->tid == tbd_recording.pid;
    int32_t code = code_of(info);

    if (signals->lent & BIT(signo))
        return signals->lent_own & BIT(signo);
    return code == SI_TKILL || code > 0 ||
           ((code == SI_QUEUE || is_bare(info)) && (signals->directs || !is_main));
}

bool tbd_signals_were_held(void)
{
    return were_held;
}

bool tbd_signals_hold_sigsafe(struct tbd_signals *signals, uint32_t signo, uint8_t *info,
                              bool is_later)
{
    bool keeps = is_later || signals->pending || blocks(signals, signo);
    bool is_own = is_for_thread(signals, signo, info);
    uint64_t old = lock();

    signals->lent &= ~BIT(signo);
    if (is_nudge(info)) { /* the signal itself is in `process`, unless another thread has it */
        nudged &= ~BIT(signo);
        signals->asked &= ~BIT(signo);
        keeps = keeps || !take_locked(&process, signo, info);
        is_own = false;
    } else if (keeps) {
        put_locked(is_own ? &signals->held : &process, signo, info);
    }
    if (keeps && !is_own && (process.set & ~nudged & BIT(signo)))
        nudge_another_locked(signals, signo);
    unlock(old);
    if (keeps)
        were_held = signals->has_dropped = true; /* if it is not let in after the call */
    return keeps;
}

/* ---- a held signal goes on ---- */

uint64_t tbd_signals_kernel_mask(uint64_t mask)
{
    uint64_t needed = tbd_signals_needed();

    return waiting(tbd_signals_now()) & ~mask ? ~needed : mask & ~needed;
}

/* The kernel's order: the thread's own first, then by number. */
static uint32_t choose_locked(struct tbd_signals *signals, uint8_t *info)
{
    uint64_t own = signals->held.set & ~blocked(signals);
    uint64_t common = process.set & ~blocked(signals);
    uint32_t signo = own ? lowest(own) : common ? lowest(common) : 0;

    if (signo)
        take_locked(own ? &signals->held : &process, signo, info);
    return signo;
}

bool tbd_signals_come(const struct tbd_signals *signals)
{
    return __atomic_load_n(&signals->pending, __ATOMIC_ACQUIRE) ||
           (waiting(signals) & ~blocked(signals));
}

bool tbd_signals_take_held(void)
{
    struct tbd_signals *signals = tbd_signals_now();
    uint64_t old;

    if (!(waiting(signals) & ~blocked(signals))) {
        signals->has_temporary = false; /* no handler has run in the call that ended */
        return false;
    }
    old = lock();
    if (!signals->pending) {
        struct tbd_queued_signal *queued = &signals->queued;
        uint8_t info[TBD_SIGINFO_BYTES];
        uint32_t signo = choose_locked(signals, info);

        if (signo) {
            *queued = (struct tbd_queued_signal){ .signo = signo, .insn = TBD_SIGNAL_NOT_IN_BLOCK };
            memcpy(queued->info, info, sizeof(info));
            __atomic_store_n(&signals->pending, 1, __ATOMIC_RELEASE);
            old |= ~tbd_signals_needed(); /* SIGNALS-1 */
        }
    }
    unlock(old);
    return signals->pending;
}

bool tbd_signals_hold_segv(void)
{
    struct tbd_signals *signals = tbd_signals_now();
    siginfo_t info = { .si_signo = SIGSEGV, .si_code = SI_KERNEL };
    uint8_t bytes[TBD_SIGINFO_BYTES];
    uint64_t old;

    if (tbd_actions[SIGSEGV].handler <= 1 || blocks(signals, SIGSEGV))
        return false;
    memcpy(bytes, &info, sizeof(bytes));
    old = lock();
    put_locked(&signals->held, SIGSEGV, bytes);
    unlock(old);
    return true;
}

void tbd_signals_drop_held(uint32_t signo)
{
    uint64_t old = lock();

    remove_locked(&process, signo);
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++)
        remove_locked(&tbd_saved_context_at(i)->signals.held, signo);
    unlock(old);
}

void tbd_signals_forget_held(void)
{
    struct tbd_signals *signals = tbd_signals_now();

    process.set = nudged = 0;
    lock_word = 0;
    signals->held.set = 0;
    signals->lent = signals->asked = signals->waits_for = 0;
}

/* ---- the kernel has them for a moment ---- */

static void send_locked(uint32_t signo, const uint8_t *info)
{
    tbd_sys4(__NR_rt_tgsigqueueinfo, tbd_recording.pid, (uint64_t)tbd_sys_gettid(), signo,
             tbd_sys_pointer(info));
}

static void lend_locked(struct tbd_signals *signals, uint64_t set)
{
    uint8_t info[TBD_SIGINFO_BYTES];

    for (; set; set &= set - 1) {
        uint32_t signo = lowest(set);
        bool is_own;

        if (signals->asked & BIT(signo))
            continue; /* the kernel has one of each */
        is_own = take_locked(&signals->held, signo, info);
        if (!is_own && ((nudged & BIT(signo)) || !take_locked(&process, signo, info)))
            continue;
        signals->lent |= BIT(signo);
        signals->lent_own = (signals->lent_own & ~BIT(signo)) | (is_own ? BIT(signo) : 0);
        send_locked(signo, info);
    }
}

/* Signals of that number that have come since it was blocked: the ticks among them are nobody's, the others are held, as
 * if they had come before. */
static void take_early(struct tbd_signals *signals)
{
    const uint64_t set = BIT(TBD_TIMER_SIGNAL), none[2] = { 0, 0 };
    uint8_t info[TBD_SIGINFO_BYTES];

    while (tbd_sys4(__NR_rt_sigtimedwait, tbd_sys_pointer(&set), tbd_sys_pointer(info),
                    tbd_sys_pointer(none), sizeof(set)) == TBD_TIMER_SIGNAL)
        if (!is_tick(info))
            tbd_signals_hold_sigsafe(signals, TBD_TIMER_SIGNAL, info, true);
}

static void pause_ticks(struct tbd_signals *signals, bool pauses)
{
    const struct tbd_signal_exits *exits = tbd_signals_exits();

    if (!exits->pauses)
        return;
    exits->pauses(signals, pauses);
    if (pauses)
        take_early(signals);
}

static uint64_t ignored(void)
{
    uint64_t set = 0;

    for (uint64_t left = tbd_signals_needed(); left; left &= left - 1)
        if (tbd_actions[lowest(left)].handler == 1)
            set |= BIT(lowest(left));
    return set;
}

/* Other threads call one in by a SIGTRAP in free run (free_leave.c): it has to get through to a call that waits for no such signal.  One of the
 * program's own then interrupts the call, which is made again. */
static uint64_t let_through(uint64_t wanted)
{
    return tbd_threads.is_free ? BIT(SIGTRAP) & ~wanted : 0;
}

/* Those of the process are left for a thread whose call can bring them. */
static uint64_t lendable(const struct tbd_signals *signals)
{
    return signals->mask & (__atomic_load_n(&signals->held.set, __ATOMIC_RELAXED) |
                            (__atomic_load_n(&process.set, __ATOMIC_RELAXED) & signals->waits_for));
}

bool tbd_signals_lend(struct tbd_signals *signals, uint64_t wanted)
{
    uint64_t kept = tbd_signals_needed() & (signals->mask | ignored()) & ~let_through(wanted);

    if (!kept)
        return false;
    swap_mask(SIG_BLOCK, kept); /* what comes from here on waits in the kernel */
    if (kept & BIT(TBD_TIMER_SIGNAL))
        pause_ticks(signals, true);
    __atomic_store_n(&signals->waits_for, wanted & kept, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* ask_waiting_locked() */
    if (lendable(signals) & kept) {
        uint64_t old = lock();

        lend_locked(signals, lendable(signals) & kept);
        unlock(old);
    }
    return true;
}

/* When the program was let go meanwhile the handlers are its own, and it goes on natively. */
void tbd_signals_lend_end(struct tbd_signals *signals)
{
    if (__atomic_load_n(&tbd_threads.is_leaving, __ATOMIC_ACQUIRE))
        return;
    __atomic_store_n(&signals->waits_for, 0, __ATOMIC_RELAXED);
    swap_mask(SIG_UNBLOCK, tbd_signals_needed());
    pause_ticks(signals, false);
    signals->lent = 0;
}

static void replace_nudge(struct tbd_signals *signals, uint32_t signo)
{
    uint64_t old = lock();

    signals->asked &= ~BIT(signo);
    lend_locked(signals, lendable(signals) & BIT(signo));
    unlock(old);
}

bool tbd_signals_was_nudge(struct tbd_signals *signals, uint32_t signo, const uint8_t *info)
{
    if (!is_nudge(info))
        return false;
    replace_nudge(signals, signo);
    return true;
}

static bool was_for_engine(struct tbd_signals *signals, const struct signalfd_siginfo *one)
{
    siginfo_t info = { .si_signo = (int)one->ssi_signo, .si_code = one->ssi_code };
    uint8_t bytes[TBD_SIGINFO_BYTES] = { 0 };

    info.si_ptr = (void *)one->ssi_ptr;
    memcpy(bytes, &info, sizeof(info) < sizeof(bytes) ? sizeof(info) : sizeof(bytes));
    return tbd_signals_was_for_engine(signals, (int)one->ssi_signo, bytes);
}

/* May one of these be the engine's?  All of its signals are queued, or are a timer's. */
static bool may_be_engines(uint64_t buffer, int64_t bytes)
{
    struct signalfd_siginfo one;

    for (int64_t at = 0; at < bytes; at += (int64_t)sizeof(one))
        if (tbd_copy_from_program(&one, buffer + (uint64_t)at, sizeof(one)) &&
            (one.ssi_code == SI_QUEUE || one.ssi_code == SI_TIMER))
            return true;
    return false;
}

/* signalfd(2), like eventfd(2) and others that give other lengths, has an inode without a type. */
static bool is_signalfd(uint64_t descriptor)
{
    struct stat status;

    return tbd_sys3(__NR_fstat, descriptor, tbd_sys_pointer(&status), 0) == 0 &&
           (status.st_mode & S_IFMT) == 0;
}

int64_t tbd_signals_without_nudges(struct tbd_signals *signals, uint64_t descriptor,
                                   uint64_t buffer, int64_t bytes)
{
    struct signalfd_siginfo one;
    bool is_called_in = false;
    int64_t kept = 0;

    if (bytes % (int64_t)sizeof(one) || !may_be_engines(buffer, bytes) || !is_signalfd(descriptor))
        return bytes;
    for (int64_t at = 0; at + (int64_t)sizeof(one) <= bytes; at += (int64_t)sizeof(one)) {
        if (!tbd_copy_from_program(&one, buffer + (uint64_t)at, sizeof(one)))
            return bytes;
        if (is_engines(one.ssi_code, one.ssi_ptr)) {
            replace_nudge(signals, one.ssi_signo);
            continue;
        }
        if (was_for_engine(signals, &one)) {
            is_called_in = true;
            continue;
        }
        if (kept != at)
            tbd_copy_to_program(buffer + (uint64_t)kept, &one, sizeof(one));
        kept += (int64_t)sizeof(one);
    }
    return kept || !is_called_in ? kept : -EINTR;
}

void tbd_signals_give_back_held(struct tbd_signals *signals)
{
    uint64_t old = lock();

    lend_locked(signals, waiting(signals));
    unlock(old | tbd_signals_needed());
}
