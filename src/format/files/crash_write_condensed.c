// SPDX-License-Identifier: MIT
/* crash_write_condensed.c - laps of a ring that are over, into the file `crash` (format/stream/condensed.h)
 *
 * Chunks are found from the newest one back, each where the next says; the oldest that is left is the one before which bytes have been
 * written anew.  Then the newest of them are expanded, as many as a
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
    uint64_t *places;                   /* owned: where they begin */
    size_t count, capacity_of_chunks, capacity_of_places;
    size_t expanded; /* the first of them */
    uint64_t ids;    /* of these */
};

static const uint8_t *memory_of(const struct tbd_crash_making *m, uint32_t index)
{
    uint64_t each = m->condensed_bytes + TBD_CONDENSED_MORE;
    uint64_t tables = m->from.areas_offset + TBD_CRASH_TABLES * (m->from.area_bytes + 4096);

    if (!m->condensed_bytes || index >= tbd_condensed_rings(m->condensed_bytes) ||
        !tbd_crash_is_inside(m, tables, m->condensed_at) ||
        !tbd_crash_is_inside(m, tables + m->condensed_at,
                             each * tbd_condensed_rings(m->condensed_bytes)))
        return NULL;
    return m->stream + tables + m->condensed_at + index * each;
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

        left -= used;
        if (!tbd_expand(tables, laps->bytes + laps->places[i] + sizeof(*chunk),
                        chunk->bytes - sizeof(*chunk), chunk->id_bits, ids, chunk->count)) {
            m->head.entry_count = first;
            *first_good = i;
            continue;
        }
        for (uint32_t k = 0; fine && k < used; k++)
            fine = tbd_crash_add_entry(m, ids[k]);
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
    memcpy(m->older + m->head.older_bytes, laps->bytes + laps->places[i] + sizeof(*chunk), bytes);
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
    fine = find(&laps);
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
    return fine;
}

uint32_t tbd_crash_condensed_rings(const struct tbd_crash_making *m, uint32_t rings)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < rings; i++) {
        const struct tbd_condensed *head = (const struct tbd_condensed *)memory_of(m, i);

        count += head && head->newest;
    }
    return count;
}
