// SPDX-License-Identifier: MIT
/* condense_laps.c - see condense_laps.h
 *
 * The memory can be scribbled over by the program.  So where chunks go is kept here, and what is read from there only says which ids
 * are written. */
#include "hooks/stream/condense_laps.h"

#include "base/string.h"
#include "format/stream/condensed.h"

static uint8_t *memory;
static uint64_t capacity;
static uint32_t rings; /* 0: laps are forgotten */

static struct place {
    uint64_t next;                /* where the newest chunk ends */
    uint64_t newest, number, lap; /* as in the memory */
} places[TBD_CONDENSED_RINGS];

static struct tbd_condensed *condensed_of(uint32_t index)
{
    return (struct tbd_condensed *)(memory + index * (capacity + TBD_CONDENSED_MORE));
}

void tbd_condense_start(uint8_t *given, uint64_t bytes)
{
    memory = given;
    capacity = bytes;
    rings = given ? tbd_condensed_rings(bytes) : 0;
    memset(places, 0, sizeof(places));
}

bool tbd_condense_is_on(void)
{
    return rings != 0;
}

/* At most TBD_CONDENSED_IDS. */
static void add_chunk(uint32_t index, const uint32_t *ids, uint32_t count)
{
    struct tbd_condensed *condensed = condensed_of(index);
    struct tbd_condenser *tables =
        (struct tbd_condenser *)((uint8_t *)condensed + TBD_CONDENSER_AT);
    uint8_t *bytes = (uint8_t *)condensed + TBD_CHUNKS_AT;
    struct place *place = &places[index];
    uint64_t at = capacity - place->next < TBD_CHUNK_BYTES ? 0 : place->next;
    struct tbd_condensed_chunk chunk = { .number = place->number + 1,
                                         .previous = place->newest,
                                         .lap = place->lap,
                                         .count = count,
                                         .id_bits = tbd_id_bits(ids, count) };

    __atomic_store_n(&condensed->writing_to, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&condensed->writing_from, at, __ATOMIC_RELEASE);
    __atomic_store_n(&condensed->writing_to, at + TBD_CHUNK_BYTES, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    chunk.bytes =
        (uint32_t)(sizeof(chunk) +
                   tbd_condense(tables, ids, count, chunk.id_bits, bytes + at + sizeof(chunk)) +
                   7) &
        ~7u;
    memcpy(bytes + at, &chunk, sizeof(chunk));
    place->number++;
    place->newest = at + 1;
    place->next = at + chunk.bytes;
    __atomic_store_n(&condensed->newest, at + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&condensed->writing_to, 0, __ATOMIC_RELEASE);
}

void tbd_condense_lap_sigsafe(uint32_t index, const uint32_t *ring, uint64_t count)
{
    if (index >= rings)
        return;
    for (uint64_t i = 0; i < count; i += TBD_CONDENSED_IDS)
        add_chunk(index, ring + i,
                  count - i < TBD_CONDENSED_IDS ? (uint32_t)(count - i) : TBD_CONDENSED_IDS);
}

void tbd_condense_next_lap_sigsafe(uint32_t index)
{
    if (index < rings)
        __atomic_store_n(&condensed_of(index)->lap, ++places[index].lap, __ATOMIC_RELEASE);
}

void tbd_condense_reset(uint32_t index)
{
    if (index >= rings)
        return;
    places[index] = (struct place){ .lap = 1 };
    __atomic_store_n(&condensed_of(index)->newest, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&condensed_of(index)->lap, 1, __ATOMIC_RELEASE);
}
