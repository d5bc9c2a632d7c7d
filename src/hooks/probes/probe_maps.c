// SPDX-License-Identifier: MIT
/* probe_maps.c - see probe_maps.h
 *
 * PROBE_MAPS-1  No address is computed from what is in shared memory, which the consumer can write to.
 *     (not checked: the place of an entry comes from a hash and the session's own numbers) */
#include "hooks/probes/probe_maps.h"

#include "base/hash.h"
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"

#define MAX_LOOKS 64u
#define MAX_WAITS 1000u

static void add(uint64_t *word, uint64_t value)
{
    __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

static void lower_to(uint64_t *word, int64_t value)
{
    uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);

    while (value < (int64_t)now && !__atomic_compare_exchange_n(word, &now, (uint64_t)value, true,
                                                                __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void raise_to(uint64_t *word, int64_t value)
{
    uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);

    while (value > (int64_t)now && !__atomic_compare_exchange_n(word, &now, (uint64_t)value, true,
                                                                __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static uint32_t power_of(int64_t value)
{
    if (value <= 0)
        return value ? 0 : 1;
    return 2 + (63 - (uint32_t)__builtin_clzll((uint64_t)value));
}

static uint32_t step_of(const struct tbd_probe_map *map, int64_t value)
{
    uint64_t above;

    if (value < map->low)
        return 0;
    above = ((uint64_t)value - (uint64_t)map->low) / map->width;
    return above < map->steps ? (uint32_t)above + 1 : map->steps + 1;
}

static void change(const struct tbd_probe_map *map, uint64_t *values, int64_t value)
{
    switch ((enum tbd_probe_map_kind)map->kind) {
    case TBD_PROBE_SUM: add(values, (uint64_t)value); break;
    case TBD_PROBE_STATS:
        lower_to(&values[2], value);
        raise_to(&values[3], value);
        add(&values[0], 1);
        add(&values[1], (uint64_t)value);
        break;
    case TBD_PROBE_AVG:
        add(&values[0], 1);
        add(&values[1], (uint64_t)value);
        break;
    case TBD_PROBE_MIN: lower_to(values, value); break;
    case TBD_PROBE_MAX: raise_to(values, value); break;
    case TBD_PROBE_HIST: add(&values[power_of(value)], 1); break;
    case TBD_PROBE_LHIST: add(&values[step_of(map, value)], 1); break;
    case TBD_PROBE_COUNT:
    case TBD_PROBE_KINDS:
    default: add(values, 1); break;
    }
}

/* What a value is before the first change. */
static void begin_values(const struct tbd_probe_map *map, uint64_t *values)
{
    if (map->kind == TBD_PROBE_MIN || map->kind == TBD_PROBE_MAX)
        values[0] = map->kind == TBD_PROBE_MIN ? INT64_MAX : (uint64_t)INT64_MIN;
    if (map->kind == TBD_PROBE_STATS) {
        values[2] = INT64_MAX;
        values[3] = (uint64_t)INT64_MIN;
    }
}

/* Another thread is writing the key: that takes some stores, unless it has lost its processor. */
static bool wait_for_key(const uint64_t *state)
{
    for (uint32_t i = 0; i < MAX_WAITS; i++) {
        if (__atomic_load_n(state, __ATOMIC_ACQUIRE) == TBD_PROBE_VALID)
            return true;
        if (i > 16)
            tbd_sys3(__NR_sched_yield, 0, 0, 0);
        else
            __builtin_ia32_pause();
    }
    return false;
}

/* The values of the entry, if it is the key's, or has just become so. */
static uint64_t *values_of(const struct tbd_probe_map *map, uint64_t *entry, const uint64_t *key)
{
    uint64_t state = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
    uint64_t *values = entry + 1 + map->key_bytes / 8;

    if (state == TBD_PROBE_FREE &&
        __atomic_compare_exchange_n(entry, &state, TBD_PROBE_CLAIMED, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        memcpy(entry + 1, key, map->key_bytes);
        begin_values(map, values);
        __atomic_store_n(entry, TBD_PROBE_VALID, __ATOMIC_RELEASE);
        return values;
    }
    if (state != TBD_PROBE_VALID && !wait_for_key(entry))
        return NULL;
    return memcmp(entry + 1, key, map->key_bytes) == 0 ? values : NULL;
}

void tbd_probe_put(struct tbd_probe_session *session, uint32_t map, uint32_t shard,
                   const uint64_t *key, int64_t value)
{
    const struct tbd_probe_map *m = &session->maps[map];
    uint64_t entry_bytes = tbd_probe_entry_bytes(m);
    uint8_t *first =
        (uint8_t *)session->shared + session->map_at[map] + shard * tbd_probe_shard_bytes(m);
    uint64_t at = tbd_hash64(key, m->key_bytes);

    for (uint32_t looks = 0; looks < MAX_LOOKS && looks < m->capacity; looks++, at++) {
        uint8_t *entry = first + (at & (m->capacity - 1)) * entry_bytes;
        uint64_t *values = values_of(m, (uint64_t *)(void *)entry, key);

        if (values) {
            change(m, values, value);
            return;
        }
    }
    add(&session->shared->map_full, 1);
}
