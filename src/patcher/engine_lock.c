// SPDX-License-Identifier: MIT
/* engine_lock.c - see engine_lock.h */
#include "patcher/engine_lock.h"

#include "base/assert.h"
#include "base/sys.h"

enum { FREE, TAKEN, WANTED };
enum { SPINS = 100 };

static struct {
    struct tbd_thread *owner; /* only the owner finds itself here */
    uint32_t word;            /* FREE, ... */
    uint32_t depth;           /* how often the owner has taken it */
    uint32_t draining;        /* somebody waits for all threads to leave translated code */
    uint32_t forgotten;       /* times that all code was forgotten */
    bool is_needed;
} engine;

static struct tbd_thread *owner_now(void)
{
    return __atomic_load_n(&engine.owner, __ATOMIC_RELAXED);
}

/* ---- the word ---- */

static bool try_take(uint32_t *seen)
{
    *seen = FREE;
    return __atomic_compare_exchange_n(&engine.word, seen, TAKEN, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* Owners have it for a few hundred instructions: waiting in the kernel costs more. */
static void take_word(void)
{
    uint32_t seen;

    for (unsigned n = 0; n < SPINS; n++) {
        if (try_take(&seen))
            return;
        __builtin_ia32_pause();
    }
    while (__atomic_exchange_n(&engine.word, WANTED, __ATOMIC_ACQUIRE) != FREE)
        tbd_sys4(__NR_futex, tbd_sys_pointer(&engine.word), FUTEX_WAIT_PRIVATE, WANTED, 0);
}

static void give_word(void)
{
    if (__atomic_exchange_n(&engine.word, FREE, __ATOMIC_RELEASE) == WANTED)
        tbd_sys3(__NR_futex, tbd_sys_pointer(&engine.word), FUTEX_WAKE_PRIVATE, 1);
}

/* ---- the lock ---- */

static void membarrier(int command)
{
    tbd_sys3(__NR_membarrier, (uint64_t)command, 0, 0);
}

void tbd_engine_lock_init(void)
{
    engine.is_needed = true;
    membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE);
}

/* A processor sees changed code without this, too, but is not obliged to before it serialises
 * (SDM 3A, 9.1.3).  A kernel that cannot do it leaves it at that. */
void tbd_engine_sync_code(void)
{
    if (engine.is_needed)
        membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
}

static void take(struct tbd_thread *thread)
{
    take_word();
    TBD_INVARIANT("ENGINE_LOCK-1", !engine.depth);
    engine.depth = 1;
    __atomic_store_n(&engine.owner, thread, __ATOMIC_RELAXED);
}

static void give(void)
{
    engine.depth = 0;
    __atomic_store_n(&engine.owner, NULL, __ATOMIC_RELAXED);
    give_word();
}

static bool take_again(struct tbd_thread *thread)
{
    if (owner_now() != thread)
        return false;
    engine.depth++;
    return true;
}

void tbd_engine_lock_sigsafe(struct tbd_thread *thread)
{
    if (engine.is_needed && !take_again(thread))
        take(thread);
}

void tbd_engine_lock(struct tbd_thread *thread)
{
    if (!engine.is_needed || take_again(thread))
        return;
    for (;;) {
        take(thread);
        if (!engine.draining)
            return;
        give();
        tbd_sys4(__NR_futex, tbd_sys_pointer(&engine.draining), FUTEX_WAIT_PRIVATE, 1, 0);
    }
}

void tbd_engine_unlock(struct tbd_thread *thread)
{
    if (!engine.is_needed)
        return;
    TBD_INVARIANT("ENGINE_LOCK-1", owner_now() == thread && engine.depth);
    if (--engine.depth == 0) {
        engine.depth = 1; /* until it is given */
        give();
    }
}

void tbd_engine_unlock_all(struct tbd_thread *thread)
{
    if (engine.is_needed && owner_now() == thread)
        give();
}

void tbd_engine_lock_after_fork(void)
{
    engine.draining = 0;
    if (engine.word != FREE)
        engine.word = TAKEN; /* nobody waits for it here */
    membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE);
}

/* ---- who is in translated code ---- */

void tbd_engine_enter_code(struct tbd_thread *thread)
{
    if (!engine.is_needed)
        return;
    TBD_INVARIANT("ENGINE_LOCK-2", owner_now() == thread && !engine.draining);
    __atomic_store_n(&thread->in_code, 1, __ATOMIC_RELAXED);
    tbd_engine_unlock_all(thread);
}

uint32_t tbd_engine_forgotten(void)
{
    return engine.forgotten;
}

/* `forgotten` cannot change before the store. */
uint32_t tbd_engine_leave_code(struct tbd_thread *thread)
{
    uint32_t forgotten = __atomic_load_n(&engine.forgotten, __ATOMIC_RELAXED);

    __atomic_store_n(&thread->in_code, 0, __ATOMIC_RELEASE);
    return forgotten;
}

static bool is_anybody_in_code(struct tbd_thread *const *threads, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++)
        if (__atomic_load_n(&threads[n]->in_code, __ATOMIC_ACQUIRE))
            return true;
    return false;
}

/* A signal handler in one of these threads may need the lock before it leaves. */
void tbd_engine_drain(struct tbd_thread *thread, struct tbd_thread *const *threads, uint32_t count)
{
    uint32_t depth = engine.depth;

    if (!engine.is_needed)
        return;
    engine.draining = 1;
    while (is_anybody_in_code(threads, count)) {
        give();
        tbd_sys3(__NR_sched_yield, 0, 0, 0);
        take(thread);
    }
    engine.depth = depth;
}

void tbd_engine_drain_end(void)
{
    if (!engine.is_needed)
        return;
    __atomic_store_n(&engine.forgotten, engine.forgotten + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&engine.draining, 0, __ATOMIC_RELEASE);
    tbd_sys3(__NR_futex, tbd_sys_pointer(&engine.draining), FUTEX_WAKE_PRIVATE, INT32_MAX);
}
