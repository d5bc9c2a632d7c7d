// SPDX-License-Identifier: MIT
/* condensed.h - laps of rings in a tenth of a byte or less for each block (option `condensed`)
 *
 * Block ids repeat themselves: what came after the last few of them is mostly what came after them before.  So a chunk is copies of what it
 * had already, each followed by one id that went another way.  Where to copy from nobody has to say: writer and reader keep the same two
 * tables, which are empty at a chunk's beginning, of the places where copies began: by a hash of the last eight ids, and, if that has none, of
 * the last two.  The bits of a chunk, the lowest of a byte first, are these until it has all its ids:
 *
 *     how many ids are copied, plus 1, as n bits 0 before a 1, then the n bits below its highest one
 *     unless these were all: 1 if the next id is the one that last followed the id before it after a copy; 0, and the id in id_bits bits
 *
 * A chunk is read without any other.
 *
 * The memory of a ring (format/stream/crash.h) is struct tbd_condensed, the writer's tables, and a ring of bytes that has chunks
 * one after the other, none across its end; after that come laps that wait (handed_laps.h).
 *
 * CONDENSED-1  A chunk whose lap is smaller than `lap` is one of a lap that is there as a whole. (not checked: test_condensed.py)
 * CONDENSED-2  What is written next changes nothing but bytes between writing_from and writing_to, and what the newest chunk
 *     leads to outside of them and of itself is as it was written. (not checked: test_crash_condensed.c) */
#ifndef TBD_FORMAT_CONDENSED_H
#define TBD_FORMAT_CONDENSED_H

#include "base/string.h"
#include "format/stream/handed_laps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_CONDENSED_RINGS 256u         /* threads that have them at most */
#define TBD_CONDENSED_IDS   (64u << 10)  /* of a chunk at most */
#define TBD_CHUNK_BYTES     (288u << 10) /* that it takes at most */
#define TBD_CONDENSED_MOST  (256u << 20) /* bytes of a ring */
#define TBD_CONDENSED_LEAST (1u << 20)
#define TBD_CONDENSED_ALL                                                                          \
    (4ull                                                                                          \
     << 30) /* bytes of all rings: address space, and what a kernel that does not overcommit counts */

struct tbd_condensed {
    uint64_t newest;                   /*  0: 1 + where the newest chunk begins; 0: there is none */
    uint64_t writing_from, writing_to; /* 8: bytes that may be neither the old nor the new ones */
    uint64_t lap;                      /* 24: the ring's, from 1 */
    uint64_t turned_from;              /* 32: as handed_laps.h says */
    struct tbd_lap laps[TBD_LAPS];     /* 40: of each place */
};

struct tbd_condensed_chunk {
    uint64_t number;   /*  0: from 1 */
    uint64_t previous; /*  8: as `newest` */
    uint64_t lap;      /* 16 */
    uint32_t count;    /* 24: ids */
    uint32_t bytes;    /* 28: with this head; a multiple of 8 */
    uint32_t id_bits;  /* 32 */
    uint32_t reserved; /* 36 */
};
_Static_assert(sizeof(struct tbd_condensed_chunk) == 40, "tbd_condensed_chunk is 40 bytes");

#define TBD_AFTER_EIGHT_BITS 12u /* so that they stay in a cache beside the lap */
#define TBD_AFTER_TWO_BITS   11u
#define TBD_AFTER_ONE_BITS   12u

struct tbd_condenser {
    uint16_t after_eight[1u << TBD_AFTER_EIGHT_BITS]; /* places; 0: none */
    uint16_t after_two[1u << TBD_AFTER_TWO_BITS];
    uint32_t after_one[1u << TBD_AFTER_ONE_BITS]; /* ids */
};
_Static_assert(TBD_CONDENSED_IDS - 1 <= UINT16_MAX, "a place has 16 bits");

#define TBD_CONDENSER_AT 4096u /* in the memory of a ring */
#define TBD_CHUNKS_AT    (TBD_CONDENSER_AT + sizeof(struct tbd_condenser))
/* After the ring of bytes: places of laps from the second on, what the thread condenses before its turn, what the collector does of
 * each place (handed_laps.h). */
#define TBD_OWN_BITS_AT  ((TBD_LAPS - 1) * TBD_LAP_STRIDE)
#define TBD_LEFT_BITS_AT (TBD_OWN_BITS_AT + TBD_CHUNK_BYTES)
#define TBD_CONDENSED_MORE                                                                         \
    (TBD_CHUNKS_AT + TBD_LEFT_BITS_AT +                                                            \
     TBD_LAPS * TBD_LAP_BITS_BYTES) /* beside the ring of bytes */
_Static_assert(TBD_CHUNKS_AT % 4096 == 0, "places of laps begin with a page");
_Static_assert(TBD_LAP_BYTES / 4 <= TBD_CONDENSED_IDS, "a lap is one chunk");

/* From the beginning of a ring's memory; place 1 or higher. */
static inline uint64_t tbd_lap_at(uint64_t capacity, uint32_t place)
{
    return TBD_CHUNKS_AT + capacity + (uint64_t)(place - 1) * TBD_LAP_STRIDE;
}

static inline uint64_t tbd_left_bits_at(uint64_t capacity, uint32_t place)
{
    return TBD_CHUNKS_AT + capacity + TBD_LEFT_BITS_AT + (uint64_t)place * TBD_LAP_BITS_BYTES;
}

/* How many threads have `bytes` each, TBD_CONDENSED_LEAST to TBD_CONDENSED_MOST. */
static inline uint32_t tbd_condensed_rings(uint64_t bytes)
{
    uint64_t rings = TBD_CONDENSED_ALL / bytes;

    return rings < TBD_CONDENSED_RINGS ? (uint32_t)rings : TBD_CONDENSED_RINGS;
}

#define TBD_CONDENSED_CONTEXT 8u /* ids before the first place that is copied from */

static inline uint64_t tbd_two_ids(const uint32_t *ids)
{
    uint64_t two;

    memcpy(&two, ids, sizeof(two));
    return two;
}

/* The hash of the eight ids before `end`. */
static inline uint32_t tbd_hash_eight(const uint32_t *end)
{
    uint64_t sum =
        tbd_two_ids(end - 2) * 0x9e3779b97f4a7c15u + tbd_two_ids(end - 4) * 0xc2b2ae3d27d4eb4fu +
        tbd_two_ids(end - 6) * 0x165667b19e3779f9u + tbd_two_ids(end - 8) * 0xd6e8feb86659fd93u;

    return (uint32_t)(sum >> (64 - TBD_AFTER_EIGHT_BITS));
}

static inline uint32_t tbd_hash_two(const uint32_t *end)
{
    return (uint32_t)(tbd_two_ids(end - 2) * 0x9e3779b97f4a7c15u >> (64 - TBD_AFTER_TWO_BITS));
}

static inline uint32_t tbd_hash_one(uint32_t id)
{
    return id * 0x9e3779b1u >> (32 - TBD_AFTER_ONE_BITS);
}

/* Where to copy from to `at`, a place before it; 0: from nowhere.  The tables learn that a copy began there. */
static inline uint32_t tbd_copied_from(struct tbd_condenser *tables, const uint32_t *ids,
                                       uint32_t at)
{
    uint16_t *eight, *two;
    uint32_t place;

    if (at < TBD_CONDENSED_CONTEXT)
        return 0;
    eight = &tables->after_eight[tbd_hash_eight(ids + at)];
    two = &tables->after_two[tbd_hash_two(ids + at)];
    place = __atomic_load_n(eight, __ATOMIC_RELAXED);
    if (!place)
        place = __atomic_load_n(two, __ATOMIC_RELAXED);
    *eight = *two = (uint16_t)at;
    return place < at ? place : 0; /* somebody else may write there */
}

/* ---- writing ---- */

struct tbd_bits_out {
    uint64_t bits;
    uint32_t count; /* below 8 */
    uint8_t *at;    /* eight bytes from here on are written */
};

/* At most 56 bits. */
static inline void tbd_put_bits(struct tbd_bits_out *out, uint64_t bits, uint32_t count)
{
    out->bits |= bits << out->count;
    out->count += count;
    memcpy(out->at, &out->bits, sizeof(out->bits));
    out->at += out->count / 8;
    out->bits >>= out->count & ~7u;
    out->count &= 7;
}

static inline void tbd_put_run(struct tbd_bits_out *out, uint32_t run)
{
    uint32_t below = 31u - (uint32_t)__builtin_clz(run + 1);
    uint64_t rest = (run + 1) ^ (1ull << below);

    tbd_put_bits(out, 1ull << below | rest << (below + 1), 2 * below + 1);
}

static inline uint32_t tbd_id_bits(const uint32_t *ids, uint32_t count)
{
    uint64_t all = 1, two;

    for (uint32_t i = 0; i + 1 < count; i += 2) {
        memcpy(&two, &ids[i], sizeof(two));
        all |= two;
    }
    all |= all >> 32 | ids[count - 1];
    return 32u - (uint32_t)__builtin_clz((uint32_t)all);
}

/* How many ids from `place` on are those from `at` on. */
static inline uint32_t tbd_same_ids(const uint32_t *ids, uint32_t place, uint32_t at,
                                    uint32_t count)
{
    uint32_t same = 0, most = count - at;

    for (; same + 2 <= most; same += 2) {
        uint64_t differs = tbd_two_ids(ids + place + same) ^ tbd_two_ids(ids + at + same);

        if (differs)
            return same + !(uint32_t)differs;
    }
    return same < most && ids[place + same] == ids[at + same] ? most : same;
}

/* At least one and at most TBD_CONDENSED_IDS, none of them 0; returns how many bytes are written, at most TBD_CHUNK_BYTES with a chunk's
 * head, whatever somebody else writes there meanwhile. */
static inline uint64_t tbd_condense(struct tbd_condenser *tables, const uint32_t *ids,
                                    uint32_t count, uint32_t id_bits, uint8_t *to)
{
    struct tbd_bits_out out = { .at = to };
    uint32_t at = 0;

    memset(tables, 0, sizeof(*tables));
    while (at < count) {
        uint32_t place = tbd_copied_from(tables, ids, at), id, *one;
        uint32_t same = place ? tbd_same_ids(ids, place, at, count) : 0;
        bool is_known;

        tbd_put_run(&out, same);
        at += same;
        if (at == count)
            break;
        id = ids[at];
        one = &tables->after_one[tbd_hash_one(at ? ids[at - 1] : 0)];
        is_known = *one == id; /* no branch: processors foresee it badly */
        tbd_put_bits(&out, is_known ? 1 : (uint64_t)id << 1, is_known ? 1 : 1 + id_bits);
        *one = id;
        at++;
    }
    tbd_put_bits(&out, 0, 7);
    return (uint64_t)(out.at - to);
}

/* ---- reading ---- */

struct tbd_bits_in {
    const uint8_t *at, *end; /* bits after the end are 0 */
    uint64_t bits;
    uint32_t count;
};

/* There are 32 bits at least, then. */
static inline void tbd_fill_bits(struct tbd_bits_in *in)
{
    while (in->count <= 56) {
        in->bits |= (uint64_t)(in->at < in->end ? *in->at++ : 0) << in->count;
        in->count += 8;
    }
}

/* At most 32. */
static inline uint32_t tbd_get_bits(struct tbd_bits_in *in, uint32_t count)
{
    uint32_t bits;

    tbd_fill_bits(in);
    bits = (uint32_t)(in->bits & ((1ull << count) - 1));
    in->bits >>= count;
    in->count -= count;
    return bits;
}

/* UINT32_MAX: it is no run of a chunk. */
static inline uint32_t tbd_get_run(struct tbd_bits_in *in)
{
    uint32_t below;

    tbd_fill_bits(in);
    below = in->bits ? (uint32_t)__builtin_ctzll(in->bits) : 32;
    if (below > 16)
        return UINT32_MAX;
    tbd_get_bits(in, below + 1);
    return ((1u << below) | tbd_get_bits(in, below)) - 1;
}

/* `count` ids, none of them 0.  False: they cannot be; what is in `ids` then means nothing. */
static inline bool tbd_expand(struct tbd_condenser *tables, const uint8_t *from, uint64_t bytes,
                              uint32_t id_bits, uint32_t *ids, uint32_t count)
{
    struct tbd_bits_in in = { .at = from, .end = from + bytes };
    uint32_t at = 0;

    memset(tables, 0, sizeof(*tables));
    while (at < count) {
        uint32_t place = tbd_copied_from(tables, ids, at), same = tbd_get_run(&in), *one;

        if (same > count - at || (same && !place))
            return false;
        for (; same > 0; same--)
            ids[at++] = ids[place++];
        if (at == count)
            return true;
        one = &tables->after_one[tbd_hash_one(at ? ids[at - 1] : 0)];
        if (!tbd_get_bits(&in, 1))
            *one = tbd_get_bits(&in, id_bits);
        if (!*one)
            return false;
        ids[at++] = *one;
    }
    return true;
}

#endif
