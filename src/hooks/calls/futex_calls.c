// SPDX-License-Identifier: MIT
/* futex_calls.c - futexes with priority inheritance, when there are several threads
 *
 * The kernel would write such a word while the caller waits and others run, which no record could
 * place in time.  So among threads of this process they are operated here, with the baton: a lock
 * that is taken is tried again after others had their turn, as a call that was not made
 * (TBD_CALL_INTERRUPTED), and nobody ever waits in the kernel.  What gets lost is the inheritance:
 * with one thread running at a time there is nothing to inherit.  A word with waiters in the kernel
 * (another process) is the kernel's business.
 *
 * Context: APP. */
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/memory/safe_copy.h"

enum {
    NR_NANOSLEEP = 35,
    NR_KILL = 62,
    NR_CLOCK_GETTIME = 228,
    FUTEX_LOCK_PI_ = 6,
    FUTEX_UNLOCK_PI_ = 7,
    FUTEX_TRYLOCK_PI_ = 8,
    FUTEX_LOCK_PI2_ = 13,
    FUTEX_COMMAND = 0x7f,
    FUTEX_CLOCK_REALTIME_ = 0x100,
    CLOCK_REALTIME_ = 0,
    CLOCK_MONOTONIC_ = 1,
    EPERM_ = -1,
    ESRCH_ = -3,
    EAGAIN_ = -11,
    EFAULT_ = -14,
    EINVAL_ = -22,
    EDEADLK_ = -35,
    ETIMEDOUT_ = -110,
    RETRY_NS = 100000,
    PROT_WRITE_ = 2,
};
#define FUTEX_WAITERS_    0x80000000u
#define FUTEX_OWNER_DIED_ 0x40000000u
#define FUTEX_TID_MASK_   0x3fffffffu

static void finish(struct tbd_call *call, int64_t result)
{
    call->result = result;
    tbd_call_finish(call);
}

static bool is_writable(uint64_t address)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_runtime.regions, address);

    return region && (region->map.prot & PROT_WRITE_);
}

bool tbd_call_exchange_word(struct tbd_call *call, uint64_t address, uint32_t was, uint32_t now)
{
    struct tbd_sys_range range = { address, sizeof(now) };

    if (!is_writable(address))
        return true;
    tbd_effects_watch(call->effects, &range, 1);
    if (!__atomic_compare_exchange_n((uint32_t *)address, &was, now, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED))
        return false;
    tbd_effects_written(call->effects, &range, 1);
    return true;
}

static bool is_over(const struct tbd_call *call, uint32_t command)
{
    bool realtime = command == FUTEX_LOCK_PI_ || (call->sys.args[1] & FUTEX_CLOCK_REALTIME_);
    int64_t until[2];
    int64_t now[2];

    if (!call->sys.args[3] || !tbd_copy_from_program(until, call->sys.args[3], sizeof(until)))
        return false;
    tbd_sys3(NR_CLOCK_GETTIME, realtime ? CLOCK_REALTIME_ : CLOCK_MONOTONIC_, tbd_sys_pointer(now),
             0);
    return now[0] > until[0] || (now[0] == until[0] && now[1] >= until[1]);
}

/* Others run meanwhile.  A signal ends the sleep, and is delivered instead of trying again. */
static void try_later(struct tbd_call *call)
{
    int64_t pause[2] = { 0, RETRY_NS };
    struct tbd_call sleep = *call;

    sleep.sys = (struct tbd_sys_call){ NR_NANOSLEEP, { tbd_sys_pointer(pause) } };
    tbd_call_pause(&sleep);
    finish(call, TBD_CALL_INTERRUPTED);
}

static bool is_alive(uint32_t tid)
{
    return tbd_sys3(NR_KILL, tid, 0, 0) != ESRCH_;
}

static void lock(struct tbd_call *call, uint32_t value, uint32_t command)
{
    uint32_t owner = value & FUTEX_TID_MASK_;
    uint32_t mine = call->thread->tid | (value & FUTEX_OWNER_DIED_);

    if (owner == call->thread->tid)
        finish(call, EDEADLK_);
    else if (!owner)
        finish(call, tbd_call_exchange_word(call, call->sys.args[0], value, mine)
                         ? 0
                         : TBD_CALL_INTERRUPTED);
    else if (!is_alive(owner))
        finish(call, ESRCH_);
    else if (command == FUTEX_TRYLOCK_PI_)
        finish(call, EAGAIN_);
    else if (is_over(call, command))
        finish(call, ETIMEDOUT_);
    else
        try_later(call);
}

static void unlock(struct tbd_call *call, uint32_t value)
{
    if ((value & FUTEX_TID_MASK_) != call->thread->tid)
        finish(call, EPERM_);
    else
        finish(call, tbd_call_exchange_word(call, call->sys.args[0], value, 0)
                         ? 0
                         : TBD_CALL_INTERRUPTED);
}

bool tbd_call_futex_pi(struct tbd_call *call)
{
    uint32_t command = call->sys.args[1] & FUTEX_COMMAND;
    uint32_t value;

    if (command != FUTEX_LOCK_PI_ && command != FUTEX_LOCK_PI2_ && command != FUTEX_TRYLOCK_PI_ &&
        command != FUTEX_UNLOCK_PI_)
        return false;
    if ((call->sys.args[0] & 3) || !is_writable(call->sys.args[0]) ||
        !tbd_copy_from_program(&value, call->sys.args[0], sizeof(value))) {
        finish(call, call->sys.args[0] & 3 ? EINVAL_ : EFAULT_);
        return true;
    }
    if (value & FUTEX_WAITERS_)
        return false;
    if (command == FUTEX_UNLOCK_PI_)
        unlock(call, value);
    else
        lock(call, value, command);
    return true;
}
