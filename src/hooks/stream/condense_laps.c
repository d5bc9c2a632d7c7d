// SPDX-License-Identifier: MIT
/* condense_laps.c - see condense_laps.h
 *
 * The memory can be scribbled over by the program.  So where chunks go is kept here, and what is read from there only says which ids
 * are written. */
#include "hooks/stream/condense_laps.h"

#include "base/layout.h"
#include "base/linux.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "format/stream/condensed.h"

static uint8_t *memory;
static uint64_t capacity;
static uint32_t rings; /* 0: laps are forgotten */
static struct tbd_lap_call *call;

static struct place {
    uint64_t next;                /* where the newest chunk ends */
    uint64_t newest, number, lap; /* as in the memory */
    uint64_t turned_from;         /* likewise */
    uint64_t area;
    uint64_t kept;             /* the newest lap that is in a chunk, if laps wait */
    uint64_t turns[TBD_LAPS];  /* the state of each place, but for its step */
    uint32_t counts[TBD_LAPS]; /* ids of each */
    uint64_t own; /* the lap of the bits that the thread has condensed before its turn; 0: none */
    uint32_t own_bytes, own_id_bits;
    bool has_guards;
} places[TBD_CONDENSED_RINGS];

static struct tbd_condensed *condensed_of(uint32_t index)
{
    return (struct tbd_condensed *)(memory + index * (capacity + TBD_CONDENSED_MORE));
}

void tbd_condense_start(uint8_t *given, uint64_t bytes, struct tbd_lap_call *given_call)
{
    memory = given;
    capacity = bytes;
    rings = given ? tbd_condensed_rings(bytes) : 0;
    call = given_call;
    memset(places, 0, sizeof(places));
}

bool tbd_condense_is_on(void)
{
    return rings != 0;
}

/* ---- chunks ---- */

static struct tbd_condenser *tables_of(uint32_t index)
{
    return (struct tbd_condenser *)((uint8_t *)condensed_of(index) + TBD_CONDENSER_AT);
}

/* Where its bits go; end_chunk() must follow. */
static uint8_t *begin_chunk(uint32_t index)
{
    struct tbd_condensed *condensed = condensed_of(index);
    struct place *place = &places[index];

    if (capacity - place->next < TBD_CHUNK_BYTES)
        place->next = 0;
    __atomic_store_n(&condensed->writing_to, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&condensed->writing_from, place->next, __ATOMIC_RELEASE);
    __atomic_store_n(&condensed->writing_to, place->next + TBD_CHUNK_BYTES, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return (uint8_t *)condensed + TBD_CHUNKS_AT + place->next + sizeof(struct tbd_condensed_chunk);
}

/* The chunk has `count` ids of this lap; `bits` bytes have been written. */
static void end_chunk(uint32_t index, uint64_t lap, uint32_t count, uint32_t id_bits, uint64_t bits)
{
    struct tbd_condensed *condensed = condensed_of(index);
    struct place *place = &places[index];
    struct tbd_condensed_chunk chunk = { .number = ++place->number,
                                         .previous = place->newest,
                                         .lap = lap,
                                         .count = count,
                                         .bytes = (uint32_t)(sizeof(chunk) + bits + 7) & ~7u,
                                         .id_bits = id_bits };

    memcpy((uint8_t *)condensed + TBD_CHUNKS_AT + place->next, &chunk, sizeof(chunk));
    place->newest = place->next + 1;
    place->next += chunk.bytes;
    __atomic_store_n(&condensed->newest, place->newest, __ATOMIC_RELEASE);
    __atomic_store_n(&condensed->writing_to, 0, __ATOMIC_RELEASE);
}

/* At most TBD_CONDENSED_IDS. */
static void add_chunk(uint32_t index, uint64_t lap, const uint32_t *ids, uint32_t count)
{
    uint32_t id_bits = tbd_id_bits(ids, count);
    uint8_t *to = begin_chunk(index);

    end_chunk(index, lap, count, id_bits, tbd_condense(tables_of(index), ids, count, id_bits, to));
}

static void add_chunks(uint32_t index, const uint32_t *ring, uint64_t count)
{
    for (uint64_t i = 0; i < count; i += TBD_CONDENSED_IDS)
        add_chunk(index, places[index].lap, ring + i,
                  count - i < TBD_CONDENSED_IDS ? (uint32_t)(count - i) : TBD_CONDENSED_IDS);
}

/* ---- laps that wait ---- */

static uint32_t place_of(uint32_t index, uint64_t lap)
{
    return tbd_lap_place(places[index].turned_from, lap);
}

static const uint32_t *ids_of(uint32_t index, uint64_t lap)
{
    uint32_t place = place_of(index, lap);

    return place ? (const uint32_t *)((uint8_t *)condensed_of(index) + tbd_lap_at(capacity, place))
                 : (const uint32_t *)places[index].area;
}

static uint8_t *own_bits(uint32_t index)
{
    return (uint8_t *)condensed_of(index) + TBD_CHUNKS_AT + capacity + TBD_OWN_BITS_AT;
}

/* Nobody else condenses the lap that waits in this place. */
static bool take(uint32_t index, uint32_t place)
{
    uint64_t waits = places[index].turns[place] | TBD_LAP_WAITS;

    return __atomic_compare_exchange_n(&condensed_of(index)->laps[place].state, &waits,
                                       places[index].turns[place] | TBD_LAP_OURS, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void take_back(uint32_t index, uint32_t place)
{
    __atomic_store_n(&condensed_of(index)->laps[place].state,
                     places[index].turns[place] | TBD_LAP_OURS, __ATOMIC_RELEASE);
}

static void copy_chunk(uint32_t index, uint64_t lap, const uint8_t *bits, uint32_t bytes,
                       uint32_t id_bits)
{
    uint8_t *to = begin_chunk(index);

    memcpy(to, bits, bytes);
    end_chunk(index, lap, places[index].counts[place_of(index, lap)], id_bits, bytes);
}

/* What the collector has left of this lap; false: nothing that can be. */
static bool copy_left(uint32_t index, uint64_t lap)
{
    uint32_t place = place_of(index, lap);
    const struct tbd_lap *is = &condensed_of(index)->laps[place];
    uint32_t bytes;

    if (__atomic_load_n(&is->state, __ATOMIC_ACQUIRE) !=
        (places[index].turns[place] | TBD_LAP_DONE))
        return false;
    bytes = __atomic_load_n(&is->bytes, __ATOMIC_RELAXED);
    if (bytes == 0 || bytes > TBD_LAP_BITS_BYTES)
        return false;
    copy_chunk(index, lap, (uint8_t *)condensed_of(index) + tbd_left_bits_at(capacity, place),
               bytes, __atomic_load_n(&is->id_bits, __ATOMIC_RELAXED));
    take_back(index, place);
    return true;
}

/* The oldest lap that waits becomes a chunk, if its bits are there. */
static bool keep_oldest(uint32_t index)
{
    struct place *place = &places[index];
    uint64_t oldest = place->kept + 1;

    if (place->own == oldest) {
        copy_chunk(index, oldest, own_bits(index), place->own_bytes, place->own_id_bits);
        place->own = 0;
    } else if (!copy_left(index, oldest)) {
        return false;
    }
    place->kept = oldest;
    return true;
}

static void condense_oldest(uint32_t index)
{
    uint64_t oldest = places[index].kept + 1;
    uint32_t place = place_of(index, oldest);

    take_back(index, place);
    add_chunk(index, oldest, ids_of(index, oldest), places[index].counts[place]);
    places[index].kept = oldest;
}

/* The collector is at the oldest lap: so a later one, while it goes on with that. */
static bool condense_later(uint32_t index)
{
    struct place *place = &places[index];

    if (place->own)
        return false;
    for (uint64_t lap = place->kept + 2; lap <= place->lap; lap++) {
        uint32_t at = place_of(index, lap);

        if (!take(index, at))
            continue;
        place->own = lap;
        place->own_id_bits = tbd_id_bits(ids_of(index, lap), place->counts[at]);
        place->own_bytes =
            (uint32_t)tbd_condense(tables_of(index), ids_of(index, lap), place->counts[at],
                                   place->own_id_bits, own_bits(index));
        return true;
    }
    return false;
}

/* All laps up to this one are in chunks. */
static void keep_until(uint32_t index, uint64_t lap)
{
    while (places[index].kept < lap)
        if (!keep_oldest(index) &&
            (take(index, place_of(index, places[index].kept + 1)) || !condense_later(index)))
            condense_oldest(index);
}

static void wake(void)
{
    __atomic_fetch_add(&call->posted, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&call->sleeps, __ATOMIC_SEQ_CST))
        tbd_sys_futex_wake(&call->posted);
}

static void hand_over(uint32_t index, uint32_t count)
{
    struct place *place = &places[index];
    uint32_t at = place_of(index, place->lap);
    struct tbd_lap *lap = &condensed_of(index)->laps[at];

    place->counts[at] = count;
    place->turns[at] += TBD_LAP_STEPS;
    __atomic_store_n(&lap->count, count, __ATOMIC_RELAXED);
    __atomic_store_n(&lap->state, place->turns[at] | TBD_LAP_WAITS, __ATOMIC_RELEASE);
    wake();
    if (place->lap + 1 >= place->turned_from + TBD_LAPS)
        keep_until(index, place->lap + 1 - TBD_LAPS);
    while (place->kept < place->lap && keep_oldest(index))
        ;
}

/* ---- turns ---- */

static void set_turned_from(uint32_t index, uint64_t lap)
{
    places[index].turned_from = lap;
    __atomic_store_n(&condensed_of(index)->turned_from, lap, __ATOMIC_RELEASE);
}

/* Before the ring leaves its area for the first time. */
static bool has_guards(uint32_t index)
{
    struct place *place = &places[index];

    for (uint32_t i = 1; i < TBD_LAPS && !place->has_guards; i++)
        if (tbd_sys_failed(tbd_sys_mprotect((uint64_t)condensed_of(index) +
                                                tbd_lap_at(capacity, i) + TBD_LAP_BYTES,
                                            TBD_PAGE_SIZE, PROT_NONE)))
            return false;
    place->has_guards = true;
    return true;
}

uint64_t tbd_condense_ring_sigsafe(uint32_t index, uint64_t area)
{
    return index < rings && places[index].turned_from ? (uint64_t)ids_of(index, places[index].lap)
                                                      : area;
}

uint64_t tbd_condense_next_ring_sigsafe(uint32_t index, uint64_t area)
{
    return index < rings && places[index].turned_from
               ? (uint64_t)ids_of(index, places[index].lap + 1)
               : area;
}

void tbd_condense_lap_sigsafe(uint32_t index, const uint32_t *ring, uint64_t count)
{
    if (index >= rings || !count)
        return;
    if (places[index].turned_from && !has_guards(index))
        set_turned_from(index, 0);
    if (places[index].turned_from)
        hand_over(index, (uint32_t)count);
    else
        add_chunks(index, ring, count);
}

void tbd_condense_next_lap_sigsafe(uint32_t index)
{
    if (index < rings)
        __atomic_store_n(&condensed_of(index)->lap, ++places[index].lap, __ATOMIC_RELEASE);
}

void tbd_condense_turn(uint32_t index, uint64_t area, uint64_t bytes)
{
    if (index >= rings || bytes != TBD_LAP_BYTES ||
        !__atomic_load_n(&call->is_heard, __ATOMIC_ACQUIRE))
        return;
    places[index].area = area;
    places[index].kept = places[index].lap - 1;
    set_turned_from(index, places[index].lap);
}

void tbd_condense_stay(uint32_t index, uint64_t area)
{
    struct place *place = &places[index];
    const uint32_t *ring, *before;
    uint32_t *to = (uint32_t *)area;
    uint64_t last = 0;

    if (index >= rings || !place->turned_from)
        return;
    ring = ids_of(index, place->lap);
    before = place->lap > place->turned_from ? ids_of(index, place->lap - 1) : to;
    keep_until(index, place->lap - 1);
    while (last + 1 < TBD_LAP_BYTES / sizeof(*ring) && ring[last])
        last++;
    if (ring != to)
        memmove(to, ring, (last + 1) * sizeof(*ring));
    if (before != to)
        memcpy(to + last + 1, before + last + 1, TBD_LAP_BYTES - (last + 1) * sizeof(*ring));
    set_turned_from(index, 0);
}

void tbd_condense_reset(uint32_t index, uint64_t area, uint64_t bytes)
{
    struct place *place = &places[index];

    if (index >= rings)
        return;
    set_turned_from(index, 0);
    for (uint32_t i = 0; i < TBD_LAPS; i++)
        take_back(index, i);
    place->next = place->newest = place->number = place->own = 0;
    place->lap = 1;
    __atomic_store_n(&condensed_of(index)->newest, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&condensed_of(index)->lap, 1, __ATOMIC_RELEASE);
    tbd_condense_turn(index, area, bytes);
}
