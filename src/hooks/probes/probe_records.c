// SPDX-License-Identifier: MIT
/* probe_records.c - see probe_records.h
 *
 *   writer:    takes `owner` (acquire) -> writes bytes -> head (release) .......... pairs with (A)
 *              -> gives `owner` back (release)
 *   consumer:  head (acquire) (A) -> reads -> tail (release) ..................... pairs with (B)
 *   writer:    tail (acquire) (B), before it uses the bytes again
 *
 * PROBE_RECORDS-1  A record lies in its ring's bytes whatever the consumer writes to head and tail. */
#include "hooks/probes/probe_records.h"

#include "base/assert.h"
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"

#define WAIT_MS 100

static uint8_t *bytes_of(const struct tbd_probe_session *session, uint32_t ring)
{
    return (uint8_t *)session->shared + session->map_at[session->map_count] +
           (uint64_t)ring * TBD_PROBE_RING_BYTES;
}

static bool is_closed(const struct tbd_probe_session *session)
{
    return __atomic_load_n(&session->shared->closed, __ATOMIC_ACQUIRE);
}

/* A record does not go around the ring's end: a record with number 0 fills up what is left. */
static bool write_record(const struct tbd_probe_session *session, uint32_t index,
                         const struct tbd_probe_record *record)
{
    struct tbd_probe_ring *ring = &session->shared->ring[index];
    uint64_t head = ring->head & ~7ull;
    uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    uint64_t at = head & (TBD_PROBE_RING_BYTES - 1);
    uint64_t left = TBD_PROBE_RING_BYTES - at;
    uint64_t filler = left < record->bytes ? left : 0;
    uint8_t *bytes = bytes_of(session, index);

    if (head - tail > TBD_PROBE_RING_BYTES ||
        head + filler + record->bytes - tail > TBD_PROBE_RING_BYTES)
        return false;
    if (filler) {
        const uint32_t pad[2] = { (uint32_t)filler, 0 };

        memcpy(bytes + at, pad, sizeof(pad));
        at = 0;
    }
    TBD_INVARIANT("PROBE_RECORDS-1", at + record->bytes <= TBD_PROBE_RING_BYTES);
    memcpy(bytes + at, record, record->bytes);
    __atomic_store_n(&ring->head, head + filler + record->bytes, __ATOMIC_RELEASE);
    return true;
}

static bool try_ring(struct tbd_probe_session *session, uint32_t index, uint32_t tid,
                     struct tbd_probe_record *record)
{
    struct tbd_probe_ring *ring = &session->shared->ring[index];
    uint32_t nobody = 0;
    bool done;

    if (!__atomic_compare_exchange_n(&ring->owner, &nobody, tid, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false;
    record->sequence = __atomic_fetch_add(&session->shared->sequence, 1, __ATOMIC_RELAXED);
    done = write_record(session, index, record);
    __atomic_store_n(&ring->owner, 0, __ATOMIC_RELEASE);
    return done;
}

static void wake_consumer(struct tbd_probe_shared *shared)
{
    if (!__atomic_load_n(&shared->sleeping, __ATOMIC_SEQ_CST))
        return;
    __atomic_fetch_add(&shared->news, 1, __ATOMIC_SEQ_CST);
    tbd_sys_futex_wake(&shared->news);
}

static void wait_for_space(struct tbd_probe_shared *shared)
{
    uint32_t space = __atomic_load_n(&shared->space, __ATOMIC_SEQ_CST);

    __atomic_fetch_add(&shared->waiting, 1, __ATOMIC_SEQ_CST);
    wake_consumer(shared);
    tbd_sys_futex_wait(&shared->space, space, WAIT_MS);
    __atomic_fetch_sub(&shared->waiting, 1, __ATOMIC_SEQ_CST);
}

void tbd_probe_await(struct tbd_probe_session *session)
{
    struct tbd_probe_shared *shared = session->shared;
    uint32_t mine = __atomic_add_fetch(&shared->asked, 1, __ATOMIC_SEQ_CST);

    wake_consumer(shared);
    for (;;) {
        uint32_t looked = __atomic_load_n(&shared->looked, __ATOMIC_ACQUIRE);

        if ((int32_t)(looked - mine) >= 0 || is_closed(session) ||
            __atomic_load_n(&shared->wants_end, __ATOMIC_ACQUIRE))
            return;
        tbd_sys_futex_wait(&shared->looked, looked, WAIT_MS);
    }
}

void tbd_probe_send(struct tbd_probe_session *session, uint32_t tid,
                    struct tbd_probe_record *record)
{
    struct tbd_probe_shared *shared = session->shared;

    while (!is_closed(session)) {
        for (uint32_t i = 0; i < TBD_PROBE_RINGS; i++)
            if (try_ring(session, (tid + i) % TBD_PROBE_RINGS, tid, record)) {
                wake_consumer(shared);
                return;
            }
        if (session->flags & TBD_PROBE_DROP) {
            __atomic_fetch_add(&shared->lost, 1, __ATOMIC_RELAXED);
            return;
        }
        wait_for_space(shared);
    }
}
