// SPDX-License-Identifier: MIT
/* lap_worker.c - see lap_worker.h
 *
 * The thread has SCHED_IDLE: it runs where nobody else wants to, and if nowhere, the program condenses its laps itself.  So nobody
 * may wait for it; when the collector ends it is left as it is.
 * The memory is hostile: a lap may change while it is condensed. */
#include "organizer/lap_worker.h"

#include "base/clock.h"
#include "base/processors.h"
#include "format/files/crash_file.h"

#include <immintrin.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPIN_NS 100000u /* to wake a thread takes a program longer than a lap may */

static struct {
    uint8_t *stream;
    struct tbd_crash_condensed all;
    const struct tbd_crash *crash;
    struct tbd_lap_call *call;
    struct tbd_condenser *tables; /* owned, for good */
    uint8_t *bits;                /* likewise: TBD_CHUNK_BYTES */
    bool stops;
} own;

static bool stops(void)
{
    return __atomic_load_n(&own.stops, __ATOMIC_ACQUIRE);
}

static const uint32_t *ids_at(uint32_t ring, uint32_t place)
{
    return (const uint32_t *)(own.stream + (place ? own.all.at + ring * own.all.each +
                                                        tbd_lap_at(own.all.capacity, place)
                                                  : own.all.area_at + ring * own.all.area_each));
}

/* That lap, if it still waits; its bits count if nobody has taken it back. */
static bool condense(uint32_t ring, uint32_t place)
{
    uint8_t *memory = own.stream + own.all.at + ring * own.all.each;
    struct tbd_lap *lap = &((struct tbd_condensed *)memory)->laps[place];
    uint64_t state = __atomic_load_n(&lap->state, __ATOMIC_ACQUIRE);
    uint64_t taken = state - TBD_LAP_WAITS + TBD_LAP_TAKEN;
    uint32_t count = __atomic_load_n(&lap->count, __ATOMIC_RELAXED), id_bits;
    const uint32_t *ids = ids_at(ring, place);
    uint64_t bytes;

    if (state % TBD_LAP_STEPS != TBD_LAP_WAITS || count == 0 || count > TBD_LAP_BYTES / 4 ||
        !__atomic_compare_exchange_n(&lap->state, &state, taken, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return false;
    id_bits = tbd_id_bits(ids, count);
    bytes = tbd_condense(own.tables, ids, count, id_bits, own.bits);
    if (__atomic_load_n(&lap->state, __ATOMIC_ACQUIRE) != taken)
        return true;
    if (bytes > TBD_LAP_BITS_BYTES)
        bytes = 0;
    memcpy(memory + tbd_left_bits_at(own.all.capacity, place), own.bits, bytes);
    __atomic_store_n(&lap->bytes, (uint32_t)bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&lap->id_bits, id_bits, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(&lap->state, &taken, taken - TBD_LAP_TAKEN + TBD_LAP_DONE, false,
                                __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    return true;
}

/* The oldest that waits. */
static bool condense_one(uint32_t ring)
{
    const struct tbd_condensed *head =
        (const struct tbd_condensed *)(own.stream + own.all.at + ring * own.all.each);
    uint64_t lap = __atomic_load_n(&head->lap, __ATOMIC_ACQUIRE);
    uint64_t from = __atomic_load_n(&head->turned_from, __ATOMIC_ACQUIRE);

    for (uint32_t i = 1; from && i <= TBD_LAPS; i++)
        if (condense(ring, tbd_lap_place(from, lap + i)))
            return true;
    return false;
}

static bool condense_any(void)
{
    uint32_t rings = __atomic_load_n(&own.crash->thread_count, __ATOMIC_ACQUIRE);
    bool has_found = false;

    for (uint32_t i = 0; i < rings && i < own.all.rings && !stops(); i++)
        has_found |= condense_one(i);
    return has_found;
}

static void sleep_until_posted(uint32_t seen)
{
    __atomic_store_n(&own.call->sleeps, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&own.call->posted, __ATOMIC_SEQ_CST) == seen && !stops())
        syscall(SYS_futex, &own.call->posted, FUTEX_WAIT, seen, NULL, NULL, 0);
    __atomic_store_n(&own.call->sleeps, 0, __ATOMIC_SEQ_CST);
}

static void wait_for_more(uint32_t seen)
{
    uint64_t until = tbd_clock_ns() + SPIN_NS;

    while (__atomic_load_n(&own.call->posted, __ATOMIC_ACQUIRE) == seen && !stops()) {
        if (tbd_clock_ns() >= until) {
            sleep_until_posted(seen);
            return;
        }
        _mm_pause();
    }
}

static void *work(void *unused)
{
    struct sched_param none = { 0 };

    (void)unused;
    (void)sched_setscheduler(0, SCHED_IDLE, &none); /* this thread's alone */
    while (!stops()) {
        uint32_t seen = __atomic_load_n(&own.call->posted, __ATOMIC_SEQ_CST);

        if (!condense_any())
            wait_for_more(seen);
    }
    return NULL;
}

void tbd_lap_worker_begin(void *stream, size_t bytes)
{
    pthread_t thread;

    own.stream = stream;
    own.crash = tbd_crash_area(stream, bytes);
    if (!own.crash || !tbd_crash_condensed(stream, bytes, &own.all) || tbd_processors() < 2)
        return;
    own.tables = malloc(sizeof(*own.tables));
    own.bits = malloc(TBD_CHUNK_BYTES);
    if (!own.tables || !own.bits)
        return;
    own.call = (struct tbd_lap_call *)(uintptr_t)&own.crash->lap_call; /* the memory is writable */
    if (pthread_create(&thread, NULL, work, NULL) == 0) {
        pthread_detach(thread);
        __atomic_store_n(&own.call->is_heard, 1, __ATOMIC_RELEASE);
    } else {
        own.call = NULL;
    }
}

bool tbd_lap_worker_end(void)
{
    if (!own.call)
        return true;
    __atomic_store_n(&own.call->is_heard, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&own.stops, true, __ATOMIC_RELEASE);
    __atomic_fetch_add(&own.call->posted, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &own.call->posted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return false;
}
