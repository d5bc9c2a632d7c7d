// SPDX-License-Identifier: MIT
/* futex_calls.c - futexes with priority inheritance, when there are several threads
 *
 * The kernel would write such a word while the caller waits and other threads run, at a time that
 * no record could give.  So the engine operates the futexes shared by threads of this process
 * itself, while holding the turn lock.  A lock that is taken is tried again after the other threads
 * had their turn, like a call that was not made (TBD_CALL_INTERRUPTED), and no thread ever waits in
 * the kernel.  Priority inheritance is lost, but with one thread running at a time there is nothing
 * to inherit.  The kernel handles words for which somebody waits in the kernel (another process).
 *
 * Context: APP. */
#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/memory/effects.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"

enum {
    RETRY_NS = 100000,
};

static void finish(struct tbd_call *call, int64_t result)
{
    call->result = result;
    tbd_call_finish(call);
}

static bool is_writable(uint64_t address)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, address);

    return region && (region->map.prot & PROT_WRITE);
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
    bool realtime = command == FUTEX_LOCK_PI || (call->sys.args[1] & FUTEX_CLOCK_REALTIME);
    int64_t until[2];
    int64_t now[2];

    if (!call->sys.args[3] || !tbd_copy_from_program(until, call->sys.args[3], sizeof(until)))
        return false;
    tbd_sys3(__NR_clock_gettime, realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC, tbd_sys_pointer(now),
             0);
    return now[0] > until[0] || (now[0] == until[0] && now[1] >= until[1]);
}

/* Other threads run meanwhile.  A signal ends the sleep, and is delivered before the next try. */
static void try_later(struct tbd_call *call)
{
    int64_t pause[2] = { 0, RETRY_NS };
    struct tbd_call sleep = *call;

    sleep.sys = (struct tbd_sys_call){ __NR_nanosleep, { tbd_sys_pointer(pause) } };
    tbd_call_pause(&sleep);
    finish(call, TBD_CALL_INTERRUPTED);
}

static bool is_alive(uint32_t tid)
{
    return tbd_sys3(__NR_kill, tid, 0, 0) != -ESRCH;
}

static void lock(struct tbd_call *call, uint32_t value, uint32_t command)
{
    uint32_t owner = value & FUTEX_TID_MASK;
    uint32_t mine = call->thread->tid | (value & FUTEX_OWNER_DIED);

    if (owner == call->thread->tid)
        finish(call, -EDEADLK);
    else if (!owner)
        finish(call, tbd_call_exchange_word(call, call->sys.args[0], value, mine)
                         ? 0
                         : TBD_CALL_INTERRUPTED);
    else if (!is_alive(owner))
        finish(call, -ESRCH);
    else if (command == FUTEX_TRYLOCK_PI)
        finish(call, -EAGAIN);
    else if (is_over(call, command))
        finish(call, -ETIMEDOUT);
    else
        try_later(call);
}

static void unlock(struct tbd_call *call, uint32_t value)
{
    if ((value & FUTEX_TID_MASK) != call->thread->tid)
        finish(call, -EPERM);
    else
        finish(call, tbd_call_exchange_word(call, call->sys.args[0], value, 0)
                         ? 0
                         : TBD_CALL_INTERRUPTED);
}

/* True: the call is done. */
static bool lock_or_unlock(struct tbd_call *call)
{
    uint32_t command = tbd_sys_futex_command(call->sys.args[1]);
    uint32_t value;

    if (command != FUTEX_LOCK_PI && command != FUTEX_LOCK_PI2 && command != FUTEX_TRYLOCK_PI &&
        command != FUTEX_UNLOCK_PI)
        return false;
    if ((call->sys.args[0] & 3) || !is_writable(call->sys.args[0]) ||
        !tbd_copy_from_program(&value, call->sys.args[0], sizeof(value))) {
        finish(call, call->sys.args[0] & 3 ? -EINVAL : -EFAULT);
        return true;
    }
    if (value & FUTEX_WAITERS)
        return false;
    if (command == FUTEX_UNLOCK_PI)
        unlock(call, value);
    else
        lock(call, value, command);
    return true;
}

void tbd_call_futex(struct tbd_call *call)
{
    if (!tbd_threads_are_many() || !lock_or_unlock(call))
        tbd_call_plain(call);
}
