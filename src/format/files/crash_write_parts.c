// SPDX-License-Identifier: MIT
/* crash_write_parts.c - what parts of the program have kept, into the file `crash` (option `parts`)
 *
 * Rows in the memory are those of laps that are over, and of those that were being sorted out; entries of laps that are not over are sorted
 * out here, as the engine does at their end. */
#include "format/files/crash_write_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ROWS (TBD_CRASH_PART_BYTES / sizeof(struct tbd_crash_row))
#define MOST_LAPS (4u << 20) /* entries of laps that are looked at, of all threads together */

struct keeping {
    struct tbd_crash_making *m;
    const uint32_t *classes;
    const struct tbd_crash_row *rows;
    size_t capacity;                  /* of m->kept */
    uint32_t places[TBD_CRASH_PARTS]; /* of parts in the file; UINT32_MAX: not kept */
    uint32_t left[TBD_CRASH_PARTS];   /* of a part in the file: rows that it may still have */
};

/* Until they are sorted, time_us is the moment. */
static bool add(struct keeping *k, uint32_t part, uint64_t moment, uint32_t id, uint32_t tid)
{
    struct tbd_crash_making *m = k->m;

    if (!moment || !id || id > m->from.def_count || k->places[part] == UINT32_MAX)
        return true;
    if (!tbd_array_grow(&m->kept, m->head.kept_count, &k->capacity, sizeof(*m->kept)))
        return false;
    m->kept[m->head.kept_count++] = (struct tbd_crash_kept){
        .time_us = moment, .block = tbd_crash_place_of(m, id), .tid = tid, .part = k->places[part]
    };
    return true;
}

static bool add_part(struct keeping *k, uint32_t part)
{
    struct tbd_crash_part from = k->m->crash->parts[part];
    const struct tbd_crash_row *rows = k->rows + part * MOST_ROWS;
    struct tbd_crash_kept_part *to = &k->m->parts[k->m->head.part_count];

    k->places[part] = UINT32_MAX;
    if (!from.capacity || from.capacity > MOST_ROWS || !tbd_crash_is_kept(k->m, 1u << part))
        return true;
    k->left[k->m->head.part_count] = from.capacity;
    k->places[part] = k->m->head.part_count++;
    memcpy(to->name, from.name, sizeof(to->name) - 1);
    to->flags = from.count > from.capacity ? TBD_CRASH_HAS_OLDER : 0;
    for (uint64_t i = 0; i < from.count && i < from.capacity; i++)
        if (!add(k, part, rows[i].moment, rows[i].block, rows[i].tid))
            return false;
    return true;
}

static uint32_t class_of(const struct keeping *k, uint32_t id)
{
    return id - 1 < TBD_CRASH_IDS ? k->classes[id - 1] : 0;
}

/* The last `most` entries of a lap that is not over. */
static bool add_lap(struct keeping *k, uint32_t index, uint64_t most)
{
    const struct tbd_crash_making *m = k->m;
    const uint32_t *ring = tbd_crash_ring_of(m, index);
    struct tbd_crash_sorting sorting = m->crash->sorting[index];
    uint64_t begin = sorting.moment ? sorting.moment : m->now << TBD_CRASH_LAP_SHIFT;
    uint32_t module = sorting.moment ? sorting.module : m->crash->last_modules[index];
    uint32_t tid = m->crash->tids[index];
    uint64_t count = 0, first;

    while (count < m->ring_bytes / 4 && ring[count])
        count++;
    first = count > most ? count - most : 0;
    if (first)
        module = class_of(k, ring[first - 1]) >> 16;
    for (uint64_t i = first; i < count; i++) {
        uint32_t class = class_of(k, ring[i]);
        uint32_t part = class % TBD_CRASH_PARTS;
        uint64_t moment = begin | i;

        if (class >> 16 != module && !add(k, 0, moment, ring[i], tid))
            return false;
        module = class >> 16;
        if (part && !add(k, part, moment, ring[i], tid))
            return false;
    }
    return true;
}

static int by_moment(const void *one, const void *other)
{
    const struct tbd_crash_kept *a = one, *b = other;

    if (a->time_us != b->time_us)
        return a->time_us < b->time_us ? -1 : 1;
    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    return a->tid < b->tid ? -1 : a->tid > b->tid;
}

/* A lap that was being sorted out has entries among the rows, and again in the ring. */
static void drop_doubles(struct tbd_crash_making *m)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < m->head.kept_count; i++)
        if (!kept || by_moment(&m->kept[kept - 1], &m->kept[i]) != 0)
            m->kept[kept++] = m->kept[i];
    m->head.kept_count = kept;
}

/* Each part has the newest of its rows, as many as its ring holds. */
static void limit(struct keeping *k)
{
    struct tbd_crash_making *m = k->m;
    uint32_t kept = m->head.kept_count;

    for (uint32_t i = m->head.kept_count; i-- > 0;) {
        if (k->left[m->kept[i].part]) {
            k->left[m->kept[i].part]--;
            m->kept[--kept] = m->kept[i];
        } else {
            m->parts[m->kept[i].part].flags = TBD_CRASH_HAS_OLDER;
        }
    }
    m->head.kept_count -= kept;
    if (kept)
        memmove(m->kept, m->kept + kept, m->head.kept_count * sizeof(*m->kept));
}

static bool add_all(struct keeping *k)
{
    struct tbd_crash_making *m = k->m;
    uint32_t rings = tbd_crash_ring_count(m);

    for (uint32_t part = 0; part < TBD_CRASH_PARTS; part++)
        if (!add_part(k, part))
            return false;
    for (uint32_t i = 0; i < rings; i++)
        if (!add_lap(k, i, MOST_LAPS / rings))
            return false;
    if (m->head.kept_count)
        qsort(m->kept, m->head.kept_count, sizeof(*m->kept), by_moment);
    drop_doubles(m);
    limit(k);
    for (uint32_t i = 0; i < m->head.kept_count; i++)
        m->kept[i].time_us = m->crash->started_us + (m->kept[i].time_us >> TBD_CRASH_LAP_SHIFT) - 1;
    return true;
}

bool tbd_crash_add_kept(struct tbd_crash_making *m)
{
    uint64_t at = m->from.areas_offset + TBD_CRASH_TABLES * (m->from.area_bytes + 4096);
    struct keeping k = { .m = m };

    if (!(m->crash->tables & TBD_CRASH_KEPT) || !tbd_crash_is_inside(m, at, TBD_CRASH_ALL_BYTES))
        return true;
    k.classes = (const uint32_t *)(m->stream + at + TBD_CRASH_CLASSES_AT);
    k.rows = (const struct tbd_crash_row *)(m->stream + at + TBD_CRASH_ROWS_AT);
    return add_all(&k);
}
