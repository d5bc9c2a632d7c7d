// SPDX-License-Identifier: MIT
/* crash_write_private.h - what crash_write.c and crash_write_parts.c share: the memory of a program, and what the file gets of it
 *
 * The memory is hostile: what counts in it is copied and checked before it is used. */
#ifndef TBD_FORMAT_CRASH_WRITE_PRIVATE_H
#define TBD_FORMAT_CRASH_WRITE_PRIVATE_H

#include "format/files/crash_file.h"

/* A lap of the ring that is added, all of which is in the file. */
struct tbd_crash_lap {
    uint64_t lap;   /* as struct tbd_condensed counts them */
    uint64_t first; /* entry of the thread */
    uint32_t count;
};

struct tbd_crash_making {
    const uint8_t *stream;
    size_t stream_bytes;
    struct tbd_stream_head from; /* a copy, checked */
    const struct tbd_crash *crash;
    uint64_t ring_bytes; /* a copy, checked */
    uint32_t module_count;
    uint32_t *place; /* of block ids: index of the block + 1; 0: not used */
    struct tbd_crash_head head;
    struct tbd_crash_module *modules;
    struct tbd_crash_block *blocks;
    struct tbd_crash_thread *threads;
    uint32_t *entries;
    size_t entry_capacity;
    uint8_t *code;
    size_t code_capacity;
    struct tbd_crash_when *when; /* first_count, then last_count */
    uint32_t when_count;
    uint64_t now;         /* the end of laps that are not over */
    long double stamp_ns; /* in a unit of stamps; 0: they say nothing */
    struct tbd_crash_kept_part parts[TBD_CRASH_PARTS];
    struct tbd_crash_kept *kept;         /* owned */
    struct tbd_crash_file_value *values; /* owned */
    size_t value_capacity;
    uint64_t *entry_at;         /* owned: of the ring that is added (struct tbd_crash_ring) */
    struct tbd_crash_lap *laps; /* owned: the same, the oldest first */
    size_t lap_count, lap_capacity;
    uint64_t lap_now;   /* the lap that is not over, so counted; 0: not known */
    uint64_t values_at; /* copies, checked: as in struct tbd_crash */
    uint32_t value_slots, memory_slots;
    uint32_t keeps;                         /* as in struct tbd_crash */
    uint64_t condensed_at, condensed_bytes; /* copies, checked: as there */
    uint64_t condensed_ids;                 /* of each ring's chunks that are expanded */
    struct tbd_crash_chunk *chunks;         /* owned: that are not */
    size_t chunk_capacity;
    uint8_t *older; /* owned: their bits */
    size_t older_capacity;
    uint32_t *ids; /* owned: of their ids (struct tbd_crash_dump) */
    uint32_t **
        turned; /* owned: rings that lie in several places, put together; NULL: they lie in their area */
    uint32_t turned_count;
};

/* A ring whose entries are in the file. */
struct tbd_crash_ring {
    uint32_t index;
    uint64_t last; /* the place of the 0 after its newest entry */
    uint64_t *
        entry_at; /* of each place: the number of its entry in the file, or of the one that came after it */
};

static inline bool tbd_crash_is_inside(const struct tbd_crash_making *m, uint64_t offset,
                                       uint64_t bytes)
{
    return offset <= m->stream_bytes && bytes <= m->stream_bytes - offset;
}

static inline const uint32_t *tbd_crash_area_of(const struct tbd_crash_making *m, uint32_t index)
{
    return (const uint32_t *)(m->stream + m->from.areas_offset +
                              (1 + (uint64_t)index) * (m->from.area_bytes + 4096));
}

static inline const uint32_t *tbd_crash_ring_of(const struct tbd_crash_making *m, uint32_t index)
{
    return index < m->turned_count && m->turned[index] ? m->turned[index]
                                                       : tbd_crash_area_of(m, index);
}

/* A bit of `keeps`. */
static inline bool tbd_crash_is_kept(const struct tbd_crash_making *m, uint32_t bit)
{
    return !m->keeps || m->keeps & bit;
}

/* How many of them there may be. */
static inline uint32_t tbd_crash_ring_count(const struct tbd_crash_making *m)
{
    uint32_t rings = m->crash->thread_count;

    if (rings > TBD_CRASH_RINGS)
        rings = TBD_CRASH_RINGS;
    return rings > m->from.area_count - 2 ? m->from.area_count - 2 : rings;
}

/* What the file has for a stamp of the memory.  A smaller one never becomes the larger one. */
uint64_t tbd_crash_stamp(const struct tbd_crash_making *m, uint64_t stamp);
/* The index in the file of a block with this id, from 1 to def_count. */
uint32_t tbd_crash_place_of(struct tbd_crash_making *m, uint32_t id);
/* The next entry of the file, unless there is no such block. */
bool tbd_crash_add_entry(struct tbd_crash_making *m, uint32_t id);
/* crash_write_condensed.c: rings whose laps lie in several places become as those that lie in one.  False without memory. */
bool tbd_crash_turn_rings(struct tbd_crash_making *m);
/* The same: where all rings have their condensed laps; false: there are none. */
bool tbd_crash_find_condensed(const struct tbd_crash_making *m, struct tbd_crash_condensed *out);
/* The same: the entries before those of the ring, as thread number head.thread_count, and chunks before these; with them,
 * *has_older becomes whether there were more.  False without memory. */
bool tbd_crash_add_condensed(struct tbd_crash_making *m, const struct tbd_crash_ring *ring,
                             bool *has_older);
/* The same: what ids in chunks mean, after all of them. */
bool tbd_crash_add_ids(struct tbd_crash_making *m);
/* How many of the first `rings` have any. */
uint32_t tbd_crash_condensed_rings(const struct tbd_crash_making *m, uint32_t rings);
/* crash_write_values.c: as thread number head.thread_count.  False without memory. */
bool tbd_crash_add_values(struct tbd_crash_making *m, const struct tbd_crash_ring *ring);
/* crash_write_parts.c.  False without memory. */
bool tbd_crash_add_kept(struct tbd_crash_making *m);

#endif
