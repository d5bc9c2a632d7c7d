// SPDX-License-Identifier: MIT
/* crash_write_condensed.c - laps of a ring that are over, into the file `crash` (format/stream/condensed.h)
 *
 * Laps that wait for being condensed are condensed here.  Chunks are found from the newest one back, each where the next says; the oldest
 * that is left is the one before which bytes have been written anew.  Then the newest of them are expanded, as many as a
 * reader can do with at once; those before stay as they are. */
#include "format/files/crash_write_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define MOST_CHUNKS (1u << 20) /* of a ring */

/* What there is of one ring. */
struct laps {
    struct tbd_condensed head; /* a copy */
    const uint8_t *bytes;
    uint64_t capacity;
    struct tbd_condensed_chunk *chunks; /* owned: the newest first; copies, checked */
    uint64_t *places;                   /* owned: where they begin; of those in `waiting` 0 */
    size_t count, capacity_of_chunks, capacity_of_places;
    uint8_t *waiting; /* owned: the bits of the first `waiting_count`, TBD_CHUNK_BYTES each */
    size_t waiting_count;
    size_t expanded; /* the first of them */
    uint64_t ids;    /* of these */
};

bool tbd_crash_find_condensed(const struct tbd_crash_making *m, struct tbd_crash_condensed *out)
{
    uint64_t each = m->condensed_bytes + TBD_CONDENSED_MORE;
    uint64_t tables = m->from.areas_offset + TBD_CRASH_TABLES * (m->from.area_bytes + 4096);
    uint32_t rings = m->condensed_bytes ? tbd_condensed_rings(m->condensed_bytes) : 0;

    *out =
        (struct tbd_crash_condensed){ .at = tables + m->condensed_at,
                                      .each = each,
                                      .capacity = m->condensed_bytes,
                                      .area_at = m->from.areas_offset + m->from.area_bytes + 4096,
                                      .area_each = m->from.area_bytes + 4096,
                                      .rings = rings };
    return rings && tbd_crash_is_inside(m, tables, m->condensed_at) &&
           tbd_crash_is_inside(m, out->at, each * rings);
}

static const uint8_t *memory_of(const struct tbd_crash_making *m, uint32_t index)
{
    struct tbd_crash_condensed all;

    return tbd_crash_find_condensed(m, &all) && index < all.rings
               ? m->stream + all.at + index * all.each
               : NULL;
}

/* ---- the places of a ring ---- */

/* `memory` is the ring's. */
static const uint32_t *lap_at(const struct tbd_crash_making *m, const uint8_t *memory,
                              uint32_t index, uint64_t lap)
{
    const struct tbd_condensed *head = (const struct tbd_condensed *)memory;
    uint32_t place = tbd_lap_place(head->turned_from, lap);

    return place ? (const uint32_t *)(memory + tbd_lap_at(m->condensed_bytes, place))
                 : tbd_crash_area_of(m, index);
}

/* As a ring that has one place would be: the lap that is not over, and what it would not have written over of the last one. */
static bool put_together(struct tbd_crash_making *m, const uint8_t *memory, uint32_t index,
                         uint64_t lap)
{
    const uint32_t *ring = lap_at(m, memory, index, lap);
    const uint32_t *before = lap_at(m, memory, index, lap - 1);
    uint32_t *to = malloc(TBD_LAP_BYTES);
    size_t i = 0;

    m->turned[index] = to;
    if (!to)
        return false;
    do
        to[i] = ring[i];
    while (to[i++] && i < TBD_LAP_BYTES / sizeof(*to));
    memcpy(to + i, before + i, TBD_LAP_BYTES - i * sizeof(*to));
    return true;
}

bool tbd_crash_turn_rings(struct tbd_crash_making *m)
{
    uint32_t rings = tbd_crash_ring_count(m);

    if (m->ring_bytes != TBD_LAP_BYTES)
        return true;
    m->turned = calloc(rings + 1ull, sizeof(*m->turned));
    m->turned_count = m->turned ? rings : 0;
    for (uint32_t i = 0; i < m->turned_count; i++) {
        const uint8_t *memory = memory_of(m, i);
        const struct tbd_condensed *head = (const struct tbd_condensed *)memory;

        if (head && head->turned_from && head->lap > head->turned_from &&
            !put_together(m, memory, i, head->lap))
            return false;
    }
    return m->turned;
}

/* ---- finding them ---- */

/* CONDENSED-2: bytes that nothing has been written over since. */
static bool is_whole(const struct laps *laps, uint64_t at, uint64_t bytes)
{
    const struct tbd_condensed *head = &laps->head;

    return at + bytes <= head->writing_from || at >= head->writing_to;
}

static bool take_chunk(const struct laps *laps, uint64_t at, struct tbd_condensed_chunk *out)
{
    if (at % 8 || at > laps->capacity || laps->capacity - at < sizeof(*out))
        return false;
    memcpy(out, laps->bytes + at, sizeof(*out));
    return out->bytes >= sizeof(*out) && out->bytes <= laps->capacity - at && out->count &&
           out->count <= TBD_CONDENSED_IDS && out->id_bits && out->id_bits <= 32 &&
           is_whole(laps, at, out->bytes);
}

/* May this be the chunk before the one that was found last?  Older ones lie before it, down to the start; then after the newest one's end,
 * from the end down. */
static bool comes_before(const struct laps *laps, uint64_t at,
                         const struct tbd_condensed_chunk *chunk, bool *has_wrapped)
{
    const struct tbd_condensed_chunk *next, *newest = laps->chunks;
    uint64_t next_at;

    if (laps->count == 0)
        return true;
    next = &laps->chunks[laps->count - 1];
    next_at = laps->places[laps->count - 1];
    if (chunk->number + 1 != next->number || chunk->lap > next->lap)
        return false;
    if (at > next_at && *has_wrapped)
        return false;
    *has_wrapped = *has_wrapped || at > next_at;
    return *has_wrapped ? at >= laps->places[0] + newest->bytes : at + chunk->bytes <= next_at;
}

static bool add_chunk(struct laps *laps, uint64_t at, const struct tbd_condensed_chunk *chunk)
{
    if (!tbd_array_grow(&laps->chunks, laps->count, &laps->capacity_of_chunks, sizeof(*chunk)) ||
        !tbd_array_grow(&laps->places, laps->count, &laps->capacity_of_places, sizeof(at)))
        return false;
    laps->chunks[laps->count] = *chunk;
    laps->places[laps->count++] = at;
    return true;
}

static bool find(struct laps *laps)
{
    struct tbd_condensed_chunk chunk;
    uint64_t next = laps->head.newest;
    bool has_wrapped = false;

    while (next != 0 && take_chunk(laps, next - 1, &chunk) &&
           comes_before(laps, next - 1, &chunk, &has_wrapped) && laps->count < MOST_CHUNKS) {
        if (!add_chunk(laps, next - 1, &chunk))
            return false;
        next = chunk.previous;
    }
    return true;
}

/* ---- laps that wait ---- */

static uint32_t ids_in(const uint32_t *lap)
{
    uint32_t count = 0;

    while (count < TBD_LAP_BYTES / sizeof(*lap) && lap[count])
        count++;
    return count;
}

/* The newest chunk. */
static bool condense_waiting(struct laps *laps, const uint32_t *ids, uint64_t lap,
                             struct tbd_condenser *tables)
{
    uint8_t *to = laps->waiting + laps->waiting_count * TBD_CHUNK_BYTES;
    struct tbd_condensed_chunk chunk = { .lap = lap, .count = ids_in(ids) };

    if (!chunk.count)
        return true;
    chunk.number = laps->count ? laps->chunks[0].number + 1 : lap;
    chunk.id_bits = tbd_id_bits(ids, chunk.count);
    chunk.bytes =
        (uint32_t)(sizeof(chunk) + tbd_condense(tables, ids, chunk.count, chunk.id_bits, to));
    if (!add_chunk(laps, 0, &chunk))
        return false;
    memmove(laps->chunks + 1, laps->chunks, (laps->count - 1) * sizeof(chunk));
    memmove(laps->places + 1, laps->places, (laps->count - 1) * sizeof(*laps->places));
    laps->chunks[0] = chunk;
    laps->places[0] = 0;
    laps->waiting_count++;
    return true;
}

/* Those after the newest chunk (format/stream/handed_laps.h). */
static bool add_waiting(struct laps *laps, const struct tbd_crash_making *m, const uint8_t *memory,
                        uint32_t index)
{
    const struct tbd_condensed *head = &laps->head;
    uint64_t first = laps->count ? laps->chunks[0].lap + 1 : 1;
    struct tbd_condenser *tables;
    bool fine;

    if (!head->turned_from || m->ring_bytes != TBD_LAP_BYTES)
        return true;
    if (first < head->turned_from)
        first = head->turned_from;
    if (head->lap >= TBD_LAPS && first < head->lap - TBD_LAPS + 1)
        first = head->lap - TBD_LAPS + 1;
    if (first >= head->lap)
        return true;
    tables = malloc(sizeof(*tables));
    laps->waiting = malloc((TBD_LAPS - 1ull) * TBD_CHUNK_BYTES);
    fine = tables && laps->waiting;
    for (uint64_t lap = first; fine && lap < head->lap; lap++)
        fine = condense_waiting(laps, lap_at(m, memory, index, lap), lap, tables);
    free(tables);
    return fine;
}

static const uint8_t *bits_of(const struct laps *laps, size_t i)
{
    return i < laps->waiting_count
               ? laps->waiting + (laps->waiting_count - 1 - i) * TBD_CHUNK_BYTES
               : laps->bytes + laps->places[i] + sizeof(struct tbd_condensed_chunk);
}

/* As many as `most` ids allow. */
static void choose(struct laps *laps, uint64_t most)
{
    while (laps->expanded < laps->count && laps->ids + laps->chunks[laps->expanded].count <= most)
        laps->ids += laps->chunks[laps->expanded++].count;
}

/* ---- what the ring has of them ---- */

/* The entries of the lap before are in the ring, from the place after its 0 on. */
static uint64_t older_in(const uint32_t *ring, uint64_t length, uint64_t last)
{
    uint64_t count = 0;

    for (uint64_t i = last + 1; i < length; i++)
        count += ring[i] != 0;
    return count;
}

/* How many ids of the newest chunks the ring has as well. */
static uint64_t in_both(const struct laps *laps, const struct tbd_crash_making *m,
                        const struct tbd_crash_ring *from)
{
    const uint32_t *ring = tbd_crash_ring_of(m, from->index);
    uint64_t lap = laps->head.lap, of_this = 0, of_last = 0, older;

    if (laps->count && laps->chunks[0].lap == lap && ring[0] == 0)
        lap++; /* it was killed between the two */
    for (size_t i = 0; i < laps->expanded; i++) {
        of_this += laps->chunks[i].lap >= lap ? laps->chunks[i].count : 0;
        of_last += laps->chunks[i].lap + 1 == lap ? laps->chunks[i].count : 0;
    }
    older = older_in(ring, m->ring_bytes / 4, from->last);
    return of_this + (older < of_last ? older : of_last);
}

/* ---- expanding them ---- */

/* The chunk's first `used` ids are entries from `first` on, unless some are of no block that there is. */
static bool note_lap(struct tbd_crash_making *m, const struct tbd_condensed_chunk *chunk,
                     uint64_t first, uint64_t after, uint32_t used)
{
    if (m->ring_bytes != TBD_LAP_BYTES || after - first != used)
        return true; /* a longer lap has several chunks */
    if (!tbd_array_grow(&m->laps, m->lap_count, &m->lap_capacity, sizeof(*m->laps)))
        return false;
    m->laps[m->lap_count++] =
        (struct tbd_crash_lap){ .lap = chunk->lap, .first = first, .count = used };
    return true;
}

/* Oldest first.  A chunk that cannot be is left out with all before it: *first_good becomes the one after it. */
static bool expand(struct laps *laps, struct tbd_crash_making *m, uint64_t first, uint64_t both,
                   size_t *first_good)
{
    struct tbd_condenser *tables = malloc(sizeof(*tables));
    uint32_t *ids = malloc(TBD_CONDENSED_IDS * sizeof(*ids));
    bool fine = tables && ids;
    uint64_t left = laps->ids - both;

    for (size_t i = laps->expanded; fine && i-- > 0;) {
        const struct tbd_condensed_chunk *chunk = &laps->chunks[i];
        uint32_t used = chunk->count < left ? chunk->count : (uint32_t)left;
        uint64_t before = m->head.entry_count;

        left -= used;
        if (!tbd_expand(tables, bits_of(laps, i), chunk->bytes - sizeof(*chunk), chunk->id_bits,
                        ids, chunk->count)) {
            m->head.entry_count = first;
            m->lap_count = 0;
            *first_good = i;
            continue;
        }
        for (uint32_t k = 0; fine && k < used; k++)
            fine = tbd_crash_add_entry(m, ids[k]);
        fine = fine && note_lap(m, chunk, before - first, m->head.entry_count - first, used);
    }
    free(tables);
    free(ids);
    return fine;
}

/* ---- the others ---- */

static bool keep_chunk(struct tbd_crash_making *m, const struct laps *laps, size_t i)
{
    const struct tbd_condensed_chunk *chunk = &laps->chunks[i];
    uint32_t bytes = chunk->bytes - (uint32_t)sizeof(*chunk);

    if (!tbd_array_grow(&m->chunks, m->head.chunk_count, &m->chunk_capacity, sizeof(*m->chunks)) ||
        !tbd_array_reserve(&m->older, m->head.older_bytes + bytes, &m->older_capacity, 1))
        return false;
    m->chunks[m->head.chunk_count++] = (struct tbd_crash_chunk){ .offset = m->head.older_bytes,
                                                                 .bytes = bytes,
                                                                 .count = chunk->count,
                                                                 .thread = m->head.thread_count,
                                                                 .id_bits = chunk->id_bits };
    memcpy(m->older + m->head.older_bytes, bits_of(laps, i), bytes);
    m->head.older_bytes += bytes;
    m->threads[m->head.thread_count].older += chunk->count;
    return true;
}

static bool keep_older(struct tbd_crash_making *m, const struct laps *laps)
{
    bool fine = true;

    for (size_t i = laps->count; fine && i-- > laps->expanded;)
        fine = keep_chunk(m, laps, i);
    return fine;
}

bool tbd_crash_add_ids(struct tbd_crash_making *m)
{
    if (m->head.chunk_count == 0)
        return true;
    m->head.id_count = m->from.def_count;
    m->ids = malloc((m->head.id_count + 1ull) * sizeof(*m->ids));
    for (uint32_t id = 1; m->ids && id <= m->head.id_count; id++)
        m->ids[id - 1] = tbd_crash_place_of(m, id);
    return m->ids;
}

bool tbd_crash_add_condensed(struct tbd_crash_making *m, const struct tbd_crash_ring *ring,
                             bool *has_older)
{
    const uint8_t *memory = memory_of(m, ring->index);
    uint64_t first = m->head.entry_count;
    struct laps laps = { .capacity = m->condensed_bytes };
    bool fine;

    if (!memory)
        return true;
    memcpy(&laps.head, memory, sizeof(laps.head));
    laps.bytes = memory + TBD_CHUNKS_AT;
    m->lap_now = laps.head.lap;
    fine = find(&laps) && add_waiting(&laps, m, memory, ring->index);
    choose(&laps, m->condensed_ids);
    if (fine && laps.count) {
        size_t first_good = laps.count;

        fine = expand(&laps, m, first, in_both(&laps, m, ring), &first_good);
        laps.count = first_good;
        fine = fine && keep_older(m, &laps);
        *has_older = !laps.count || laps.chunks[laps.count - 1].number != 1;
    }
    free(laps.chunks);
    free(laps.places);
    free(laps.waiting);
    return fine;
}

uint32_t tbd_crash_condensed_rings(const struct tbd_crash_making *m, uint32_t rings)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < rings; i++) {
        const struct tbd_condensed *head = (const struct tbd_condensed *)memory_of(m, i);

        count += head && (head->newest || head->lap > 1);
    }
    return count;
}
