// SPDX-License-Identifier: MIT
/* probe_records_read.c - see probe_records_read.h
 *
 * The order of records is that of their sequence numbers.  Those of one ring ascend, so each round shows the
 * smallest of the rings' next ones. */
#include "query/probe/probe_records_read.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RING_MASK (TBD_PROBE_RING_BYTES - 1)

static const uint8_t *ring_bytes(const struct tbd_probe_output *output, uint32_t ring)
{
    return (const uint8_t *)output->shared +
           tbd_probe_rings_at(output->script->maps, output->script->map_count) +
           (uint64_t)ring * TBD_PROBE_RING_BYTES;
}

static void skip_all(struct tbd_probe_ring *ring, uint64_t head)
{
    __atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
}

/* The ring's next record, whose length is possible; false: there is none now. */
static bool next_record(const struct tbd_probe_output *output, uint32_t index,
                        struct tbd_probe_record *out)
{
    struct tbd_probe_ring *ring = &output->shared->ring[index];
    const uint8_t *bytes = ring_bytes(output, index);

    for (;;) {
        uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
        uint64_t at = ring->tail & RING_MASK, left = TBD_PROBE_RING_BYTES - at;
        uint32_t start[2];

        if (head == ring->tail)
            return false;
        memcpy(start, bytes + at, sizeof(start));
        if (start[0] > left || start[0] % 8 || !start[0] || head - ring->tail < start[0] ||
            (start[1] && (start[0] < sizeof(*out) || start[0] > TBD_PROBE_RECORD_MAX))) {
            skip_all(ring, head); /* not written by the engine */
            return false;
        }
        if (start[1]) {
            memcpy(out, bytes + at, sizeof(*out));
            return true;
        }
        __atomic_store_n(&ring->tail, ring->tail + start[0], __ATOMIC_RELEASE);
    }
}

static void show_and_skip(struct tbd_probe_output *output, uint32_t index)
{
    struct tbd_probe_ring *ring = &output->shared->ring[index];
    uint8_t copy[TBD_PROBE_RECORD_MAX];
    struct tbd_probe_record record;

    memcpy(&record, ring_bytes(output, index) + (ring->tail & RING_MASK), sizeof(record));
    if (record.bytes < sizeof(record) || record.bytes > sizeof(copy))
        return; /* changed since it was checked */
    memcpy(copy, ring_bytes(output, index) + (ring->tail & RING_MASK), record.bytes);
    __atomic_store_n(&ring->tail, ring->tail + record.bytes, __ATOMIC_RELEASE);
    tbd_show_record(output, &record, copy + sizeof(record),
                    record.bytes - (uint32_t)sizeof(record));
}

static void wake_writers(struct tbd_probe_shared *shared)
{
    __atomic_fetch_add(&shared->space, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&shared->waiting, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &shared->space, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static bool take_one(struct tbd_probe_output *output)
{
    struct tbd_probe_record record, best = { .sequence = UINT64_MAX };
    uint32_t which = TBD_PROBE_RINGS;

    for (uint32_t i = 0; i < TBD_PROBE_RINGS; i++)
        if (next_record(output, i, &record) &&
            (which == TBD_PROBE_RINGS || record.sequence < best.sequence)) {
            best = record;
            which = i;
        }
    if (which == TBD_PROBE_RINGS)
        return false;
    show_and_skip(output, which);
    return true;
}

size_t tbd_records_take(struct tbd_probe_output *output)
{
    size_t count = 0;

    while (take_one(output))
        if (++count % 256 == 0)
            wake_writers(output->shared);
    if (count)
        wake_writers(output->shared);
    return count;
}

static bool has_records(const struct tbd_probe_shared *shared)
{
    if (__atomic_load_n(&shared->asked, __ATOMIC_ACQUIRE) != shared->looked)
        return true;
    for (uint32_t i = 0; i < TBD_PROBE_RINGS; i++)
        if (__atomic_load_n(&shared->ring[i].head, __ATOMIC_ACQUIRE) != shared->ring[i].tail)
            return true;
    return false;
}

void tbd_records_wait(struct tbd_probe_shared *shared, int ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000L };
    uint32_t news = __atomic_load_n(&shared->news, __ATOMIC_SEQ_CST);

    __atomic_store_n(&shared->sleeping, 1, __ATOMIC_SEQ_CST);
    if (!has_records(shared))
        syscall(SYS_futex, &shared->news, FUTEX_WAIT, news, &time, NULL, 0);
    __atomic_store_n(&shared->sleeping, 0, __ATOMIC_SEQ_CST);
}

void tbd_records_answer(struct tbd_probe_shared *shared, uint32_t asked)
{
    __atomic_store_n(&shared->looked, asked, __ATOMIC_RELEASE);
    syscall(SYS_futex, &shared->looked, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
