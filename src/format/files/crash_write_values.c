// SPDX-License-Identifier: MIT
/* crash_write_values.c - what was recorded beside a ring, into the file `crash` (format/stream/crash_values.h)
 *
 * A slot counts if its moment is one of the entries that the ring still has, or one of a lap before that has been condensed.  Slots come in the order in which they were written, so
 * their entries only rise. */
#include "format/files/crash_write_private.h"

#include "base/array.h"
#include "base/binary_search.h"

#include <string.h>

/* `count` slots from number `first` on; NULL: there are none. */
static const uint8_t *slots_at(const struct tbd_crash_making *m, uint64_t first, uint32_t count)
{
    uint64_t tables = m->from.areas_offset + TBD_CRASH_TABLES * (m->from.area_bytes + 4096);
    uint64_t bytes = (first + count) * TBD_VALUE_SLOT_BYTES;

    if (count == 0 || !tbd_crash_is_inside(m, tables, m->values_at) ||
        !tbd_crash_is_inside(m, tables + m->values_at, bytes))
        return NULL;
    return m->stream + tables + m->values_at + first * TBD_VALUE_SLOT_BYTES;
}

/* Rings that no thread had before, and that have always had the same length, count laps alike beside values and beside chunks. */
static bool has_all_laps(const struct tbd_crash_making *m, const struct tbd_crash_ring *ring)
{
    return m->lap_now != 0 && m->crash->laps[ring->index] == m->lap_now + TBD_CRASH_FIRST_LAP - 1;
}

/* The same in a lap that has been condensed: the oldest ones come first. */
static uint64_t condensed_entry_of(const struct tbd_crash_making *m,
                                   const struct tbd_crash_ring *ring, uint32_t lap, uint64_t place)
{
    uint64_t wanted = (uint64_t)lap - (TBD_CRASH_FIRST_LAP - 1);
    size_t at = TBD_COUNT_BEFORE(i, m->lap_count, m->laps[i].lap < wanted);

    if (lap < TBD_CRASH_FIRST_LAP || !has_all_laps(m, ring) || at >= m->lap_count ||
        m->laps[at].lap != wanted || place >= m->laps[at].count)
        return UINT64_MAX;
    return m->laps[at].first + place;
}

/* CRASH_VALUES-2.  Which entry of the ring comes next; UINT64_MAX: it is lost, or there is none. */
static uint64_t entry_of(const struct tbd_crash_making *m, const struct tbd_crash_ring *ring,
                         uint64_t moment)
{
    uint64_t place = (uint32_t)moment / sizeof(uint32_t);
    uint32_t lap = (uint32_t)(moment >> TBD_VALUE_LAP_SHIFT);
    uint32_t lap_now = m->crash->laps[ring->index];

    if (place + 1 >= m->ring_bytes / sizeof(uint32_t)) { /* its last place has a 0 */
        place = 0;
        lap++;
    }
    if (lap == lap_now && place <= ring->last)
        return ring->entry_at[place];
    if (lap + 1 == lap_now && place > ring->last)
        return ring->entry_at[place];
    return condensed_entry_of(m, ring, lap, place);
}

bool tbd_crash_is_value(const struct tbd_crash_file_value *value)
{
    uint64_t kept = 0;

    switch (value->kind) {
    case TBD_VALUE_REGISTERS: return value->is.registers.stack_bytes <= TBD_VALUE_STACK;
    case TBD_VALUE_BYTES: return value->is.more.count <= TBD_VALUE_MORE_BYTES;
    case TBD_VALUE_CALL: break;
    default: return false;
    }
    if (value->is.call.range_count > TBD_VALUE_RANGES)
        return false;
    for (uint32_t i = 0; i < value->is.call.range_count; i++) {
        const struct tbd_value_range *range = &value->is.call.ranges[i];

        kept += range->kept;
        if (range->kept > range->bytes || range->address > UINT64_MAX - range->bytes)
            return false;
    }
    return kept <= TBD_VALUE_CALL_BYTES;
}

/* Slots that are used in turn, and which of them is looked at. */
struct turn {
    const uint8_t *slots;
    uint32_t count, first, at;
    struct tbd_crash_value slot; /* this one; a copy: the program may be writing it */
    uint64_t entry;              /* that came next; UINT64_MAX: none, or the turn is over */
};

/* To the next one that counts. */
static void go_on(const struct tbd_crash_making *m, const struct tbd_crash_ring *ring,
                  struct turn *turn)
{
    for (turn->entry = UINT64_MAX; turn->entry == UINT64_MAX && turn->at < turn->count;
         turn->at++) {
        memcpy(&turn->slot,
               turn->slots +
                   (uint64_t)((turn->first + turn->at) % turn->count) * TBD_VALUE_SLOT_BYTES,
               sizeof(turn->slot));
        if (turn->slot.moment != 0)
            turn->entry = entry_of(m, ring, turn->slot.moment);
    }
}

static bool add(struct tbd_crash_making *m, const struct turn *turn, uint64_t *newest)
{
    const struct tbd_crash_value *slot = &turn->slot;
    struct tbd_crash_file_value value = { .thread = m->head.thread_count,
                                          .kind = (uint32_t)(slot->moment & TBD_VALUE_KIND_MASK),
                                          .entry = turn->entry };

    memcpy(&value.is, &slot->is, sizeof(value.is));
    if (value.kind == TBD_VALUE_REGISTERS) {
        value.is.registers.stamp = tbd_crash_stamp(m, value.is.registers.stamp);
    } else if (value.kind == TBD_VALUE_CALL) {
        value.is.call.began = tbd_crash_stamp(m, value.is.call.began);
        value.is.call.ended = tbd_crash_stamp(m, value.is.call.ended);
    }
    if (value.entry < *newest || !tbd_crash_is_value(&value))
        return true;
    if (!tbd_array_grow(&m->values, m->head.value_count, &m->value_capacity, sizeof(*m->values)))
        return false;
    *newest = value.entry;
    m->values[m->head.value_count++] = value;
    return true;
}

/* Copies of memory come after the other values of their moment. */
bool tbd_crash_add_values(struct tbd_crash_making *m, const struct tbd_crash_ring *ring)
{
    uint32_t index = ring->index, of_memory = index == 0 ? m->memory_slots : 0;
    uint64_t all = (uint64_t)m->value_slots * TBD_CRASH_RINGS, newest = 0;
    struct turn values = { .slots = slots_at(m, (uint64_t)index * m->value_slots, m->value_slots),
                           .count = m->value_slots,
                           .first = m->crash->value_next[index] };
    struct turn memory = { .slots = slots_at(m, all, of_memory),
                           .count = of_memory,
                           .first = m->crash->memory_next };

    if (values.slots == NULL)
        return true;
    if (memory.slots == NULL)
        memory.count = 0;
    go_on(m, ring, &values);
    go_on(m, ring, &memory);
    while (values.entry != UINT64_MAX || memory.entry != UINT64_MAX) {
        struct turn *next = values.entry <= memory.entry ? &values : &memory;

        if (!add(m, next, &newest))
            return false;
        go_on(m, ring, next);
    }
    return true;
}
