// SPDX-License-Identifier: MIT
/* lean_path_table.c - paths of a program that chooses among a few paths all the time
 *
 * Eight blocks at a time are looked up in a table.  A path is identified by its blocks alone, and
 * its length is fixed, so a processor starts the next lookups before this one has ended: no branch
 * is mispredicted while paths are known.  Before a message fewer blocks may be left: their path is
 * looked up with zeros after them.  An occurrence notes only where its records are.  After some
 * occurrences, the *bases* in their records are read: the values that addresses of stores are
 * relative to.  Stores are counted, word by word, only where a base differs from the last one.  The
 * blocks of a path are counted at the window's end.
 *
 * Invariants
 * LEAN_PATH_TABLE-1  A path has only possible blocks, so that no other entries can equal a known
 *     path of eight. (not checked: it is about what is not done)
 * LEAN_PATH_TABLE-2  Occurrences point into the operands, so they are looked at before operands are
 *     moved. (not checked: it is about what is not done) */
#include "organizer/lean_private.h"

#include "base/array.h"

#include <emmintrin.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS     8u
#define PENDING    24u    /* occurrences before their bases are looked at */
#define STRETCH    32768u /* blocks that are taken before their cost is checked */
#define SLOTS_LOG2 14
#define SLOTS      (1u << SLOTS_LOG2)
#define PATHS_MOST                                                                                 \
    (SLOTS / 2) /* if there would be more, all are forgotten: the program takes other paths now */
#define PREFETCH       2048u /* bytes ahead; and bytes at a time: more than most paths have */
#define PREFETCH_BYTES 256u
/* A known path gains time 1 over the other methods, a new one loses MADE_COST.  When recent losses
 * exceed gains by this many new paths, another method is faster. */
#define MADE_COST 24
#define LOST_MOST (2048 * MADE_COST)

/* A base was `value` this many times, the last time at event `last`. */
struct base_run {
    uint64_t value;
    uint32_t times;
    uint32_t last;
};

/* One value in a path's records that addresses of stores are relative to. */
struct table_base {
    struct base_run now; /* not counted yet */
    uint32_t offset;     /* in the path's records */
    uint32_t first_store, store_count;
    bool changes; /* the value differed the last time */
};

/* An occurrence. */
struct path_note {
    uint32_t at;    /* operand offset of its records, from where notes begin */
    uint32_t index; /* of its first event */
};

/* Each occurrence needs this cache line, and one of notes. */
struct table_path {
    uint32_t entries[BLOCKS]; /* blocks of the stream, then zeros; entries[0] is 0 in a free slot */
    uint32_t operand_bytes;
    uint32_t events;
    uint32_t pending;    /* occurrences whose stores are not counted yet */
    uint32_t count;      /* in the window; and the last time: */
    uint32_t last_time;  /* of its first block */
    uint32_t last_index; /* of its first event */
    uint32_t first_id;   /* of the trace: its first block */
    uint16_t length;
    bool calls; /* its last block ends with a call */
    bool has_bases;
    struct path_note notes[PENDING];
};
_Static_assert(sizeof(struct table_path) == 256, "four cache lines");

/* The fields of a path that are needed less often. */
struct table_path_more {
    uint32_t first_base, base_count;
    uint32_t first_fixed, fixed_count; /* stores to addresses that are always the same */
};

struct tbd_path_table {
    void *slot_memory;
    struct table_path *slots;     /* SLOTS, in cache lines; found by their entries */
    struct table_path_more *more; /* of each slot */
    uint32_t *used;               /* slots that are not free */
    size_t count;
    struct table_base *bases;
    size_t base_count, base_capacity;
    struct tbd_lean_stores stores;
    struct base_run values[PENDING + 1];
    size_t notes_from; /* operand offset that notes are relative to */
    bool has_notes;    /* perhaps */
    int64_t lost;      /* time, in what a known path gains; gains of long ago are forgotten */
};

/* ---- stores ---- */

static void count_values(struct work *w, const struct table_base *base,
                         const struct base_run *values, size_t count)
{
    const struct tbd_lean_store *store = w->builder->lean->table->stores.all + base->first_store;

    for (const struct tbd_lean_store *end = store + base->store_count; store < end; store++)
        for (size_t i = 0; i < count; i++)
            tbd_shadow_stores(&w->builder->shadow, values[i].value + (uint64_t)store->add,
                              store->bytes, values[i].times, values[i].last + store->index);
}

static uint64_t value_at(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static bool is_always(uint64_t value, const uint8_t *records, const struct path_note *notes,
                      uint32_t count)
{
    uint64_t differs = 0;

    for (uint32_t i = 0; i < count; i++)
        differs |= value_at(records + notes[i].at) ^ value;
    return !differs;
}

/* Turns the noted occurrences into runs of equal values; counts the stores of all runs except the
 * last. */
static void look_at_base(struct work *w, struct table_base *base, const struct table_path *path)
{
    struct tbd_path_table *table = w->builder->lean->table;
    const uint8_t *records = w->operands + table->notes_from + base->offset;
    struct base_run now = base->now, *value = table->values;

    if (!now.times)
        now.value = value_at(records + path->notes[0].at);
    if (!base->changes && is_always(now.value, records, path->notes, path->pending)) {
        base->now = (struct base_run){ now.value, now.times + path->pending,
                                       path->notes[path->pending - 1].index };
        return;
    }
    for (uint32_t i = 0; i < path->pending; i++) {
        uint64_t next = value_at(records + path->notes[i].at);
        bool differs = next != now.value;

        *value = now;
        value += differs;
        now = (struct base_run){ next, (differs ? 0 : now.times) + 1, path->notes[i].index };
    }
    base->now = now;
    base->changes = value != table->values;
    count_values(w, base, table->values, (size_t)(value - table->values));
}

static void look_at_notes(struct work *w, struct table_path *path)
{
    struct tbd_path_table *table = w->builder->lean->table;
    const struct table_path_more *more = &table->more[path - table->slots];

    for (uint32_t i = 0; i < more->base_count; i++)
        look_at_base(w, &table->bases[more->first_base + i], path);
    path->pending = 0;
}

void tbd_path_table_look(struct work *w)
{
    struct tbd_path_table *table = w->builder->lean->table;

    for (size_t i = 0; table->has_notes && i < table->count; i++) {
        struct table_path *path = &table->slots[table->used[i]];

        if (path->pending)
            look_at_notes(w, path);
    }
    table->has_notes = false;
}

/* ---- making paths ---- */

/* Bases of a block whose record is at `offset` in the path's. */
static bool add_bases(struct tbd_path_table *table, const struct tbd_block_plan *plan,
                      uint32_t offset, uint32_t events)
{
    for (uint16_t i = 0; i < plan->store_count; i++) {
        uint32_t base = plan->stores[i].base;
        struct table_base *added;

        if (base == TBD_BASE_NONE || !tbd_lean_is_first_of_base(plan, i))
            continue;
        if (!tbd_array_grow(&table->bases, table->base_count, &table->base_capacity,
                            sizeof(*table->bases)))
            return false;
        added = &table->bases[table->base_count++];
        *added = (struct table_base){ .offset = offset + base,
                                      .first_store = (uint32_t)table->stores.count };
        if (!tbd_lean_add_stores(&table->stores, plan, base, events))
            return false;
        added->store_count = (uint32_t)table->stores.count - added->first_store;
    }
    return true;
}

static bool add_all_bases(struct work *w, const struct table_path *path,
                          struct table_path_more *more)
{
    struct tbd_path_table *table = w->builder->lean->table;
    uint32_t offset = 0, events = 0;

    more->first_base = (uint32_t)table->base_count;
    for (uint32_t n = 0; n < path->length; n++) {
        const struct tbd_block_plan *plan = &w->plans[path->entries[n]];

        if (!add_bases(table, plan, offset, events))
            return false;
        offset += plan->operand_bytes;
        events += plan->op_count + 1u;
    }
    more->base_count = (uint32_t)table->base_count - more->first_base;
    return true;
}

static bool add_fixed(struct work *w, const struct table_path *path, struct table_path_more *more)
{
    struct tbd_path_table *table = w->builder->lean->table;
    uint32_t events = 0;

    more->first_fixed = (uint32_t)table->stores.count;
    for (uint32_t n = 0; n < path->length; n++) {
        if (!tbd_lean_add_stores(&table->stores, &w->plans[path->entries[n]], TBD_BASE_NONE,
                                 events))
            return false;
        events += w->plans[path->entries[n]].op_count + 1u;
    }
    more->fixed_count = (uint32_t)table->stores.count - more->first_fixed;
    return true;
}

/* Adds up the events, operands and stores of the path's blocks. */
static bool fill(struct work *w, struct table_path *path, struct table_path_more *more)
{
    for (; path->length < BLOCKS && path->entries[path->length]; path->length++) {
        const struct tbd_block_plan *plan = &w->plans[path->entries[path->length]];

        path->operand_bytes += plan->operand_bytes;
        path->events += plan->op_count + 1u;
        path->calls = plan->calls != 0;
        w->builder->lean->renames |= plan->id != path->entries[path->length];
    }
    path->first_id = w->plans[path->entries[0]].id;
    if (!add_all_bases(w, path, more) || !add_fixed(w, path, more))
        return false;
    path->has_bases = more->base_count != 0;
    return true;
}

static uint64_t pair_at(const uint32_t *entries)
{
    uint64_t pair;

    memcpy(&pair, entries, sizeof(pair));
    return pair;
}

static uint32_t slot_of(const uint32_t *entries)
{
    uint64_t sum = pair_at(entries) * 0x9e3779b97f4a7c15ull;

    sum += pair_at(entries + 2) * 0xc2b2ae3d27d4eb4full;
    sum += pair_at(entries + 4) * 0xd6e8feb86659fd93ull;
    sum += pair_at(entries + 6) * 0xff51afd7ed558ccdull;
    return (uint32_t)(sum >> (64 - SLOTS_LOG2));
}

static __m128i differences(const uint32_t *a, const uint32_t *b)
{
    return _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)a),
                         _mm_loadu_si128((const __m128i *)(const void *)b));
}

static bool is_same(const struct table_path *path, const uint32_t *entries)
{
    __m128i differs = _mm_or_si128(differences(path->entries, entries),
                                   differences(path->entries + 4, entries + 4));

    return _mm_movemask_epi8(_mm_cmpeq_epi8(differs, _mm_setzero_si128())) == 0xffff;
}

/* A new path for the free slot; NULL without memory. */
static struct table_path *new_path(struct work *w, uint32_t slot, const uint32_t entries[BLOCKS])
{
    struct tbd_path_table *table = w->builder->lean->table;
    struct table_path *path = &table->slots[slot];

    *path = (struct table_path){ 0 };
    memcpy(path->entries, entries, sizeof(path->entries));
    table->used[table->count++] = slot;
    table->lost += MADE_COST;
    return fill(w, path, &table->more[slot]) ? path : NULL;
}

/* The path of these blocks, with zeros after them; NULL without memory. */
static struct table_path *find_path(struct work *w, const uint32_t entries[BLOCKS])
{
    struct tbd_path_table *table = w->builder->lean->table;
    uint32_t slot = slot_of(entries);

    while (table->slots[slot].entries[0] && !is_same(&table->slots[slot], entries))
        slot = (slot + 1) % SLOTS;
    if (table->slots[slot].entries[0])
        return &table->slots[slot];
    if (table->count < PATHS_MOST)
        return new_path(w, slot, entries);
    if (!tbd_path_table_finish(w))
        return NULL;
    tbd_path_table_forget(table);
    table->has_notes = true;
    return new_path(w, slot_of(entries), entries);
}

/* ---- taking them ---- */

/* How far blocks have been taken. */
struct path_place {
    size_t in;
    uint64_t index;
    uint32_t time;
    bool called; /* the block before ended with a call */
};

static struct path_place place_of(const struct work *w)
{
    return (struct path_place){ w->in, w->index, w->time, w->called != 0 };
}

/* Stores the place; `last` is the block before. */
static void go_to(struct work *w, const struct path_place *at, uint32_t last)
{
    w->in = at->in;
    w->index = at->index;
    w->time = at->time;
    w->called = at->called ? w->plans[last].id : 0;
}

static inline __attribute__((always_inline)) void take_path(struct work *w, struct table_path *path,
                                                            struct path_place *at)
{
    struct path_note *note = &path->notes[path->pending];
    /* 0: counts[0] is a scratch entry */
    struct block_count *entered = &w->builder->counts[at->called ? path->first_id : 0];

    entered->enters++;
    entered->last_enter = at->time;
    at->called = path->calls;
    note->at = (uint32_t)(at->in - w->builder->lean->table->notes_from);
    note->index = (uint32_t)at->index;
    path->count++;
    path->last_time = at->time;
    path->last_index = (uint32_t)at->index;
    at->in += path->operand_bytes;
    at->index += path->events;
    at->time += path->length;
    path->pending += path->has_bases;
    if (path->pending == PENDING)
        look_at_notes(w, path);
}

static void note_taken(struct tbd_path_table *table, int64_t paths)
{
    table->lost = table->lost > paths ? table->lost - paths : 0;
}

/* Takes known paths from `entries` on, each followed by another block. */
static size_t take_known(struct work *w, const uint32_t *entries, size_t left)
{
    struct table_path *slots = w->builder->lean->table->slots;
    struct path_place at = place_of(w);
    size_t n = 0;

    for (; n + BLOCKS < left; n += BLOCKS) {
        struct table_path *path = &slots[slot_of(entries + n)];

        if (!is_same(path, entries + n) || path->length < BLOCKS ||
            entries[n + BLOCKS] & TBD_ENTRY_MESSAGE ||
            path->operand_bytes > w->operand_bytes - at.in)
            break;
        /* the records are read later, and in another order */
        for (uint32_t ahead = 0; ahead < PREFETCH_BYTES; ahead += 64)
            __builtin_prefetch(w->operands + at.in + PREFETCH + ahead, 0, 2);
        take_path(w, path, &at);
    }
    if (n)
        go_to(w, &at, entries[n - 1]);
    note_taken(w->builder->lean->table, (int64_t)(n / BLOCKS));
    return n;
}

/* How many blocks are possible and have their records inside the operands: at most eight. */
static uint32_t find_length(const struct work *w, const uint32_t *entries, size_t left)
{
    size_t bytes_left = w->operand_bytes - w->in;
    uint32_t n = 0;

    for (; n < BLOCKS && n < left && tbd_lean_is_possible(w, entries[n]); n++) {
        if (w->plans[entries[n]].operand_bytes > bytes_left)
            break;
        bytes_left -= w->plans[entries[n]].operand_bytes;
    }
    return n;
}

static bool take_some(struct work *w, const uint32_t *entries, uint32_t length)
{
    uint32_t padded[BLOCKS] = { 0 };
    struct table_path *path;
    struct path_place at;

    memcpy(padded, entries, length * sizeof(*entries));
    path = find_path(w, padded);
    if (!path)
        return false;
    at = place_of(w);
    take_path(w, path, &at);
    go_to(w, &at, entries[length - 1]);
    note_taken(w->builder->lean->table, 1);
    return true;
}

/* Takes a path, known or not, or the last blocks before a message, an impossible block, or one
 * whose record is outside the operands: then *out_ends is set. */
static bool take_any(struct work *w, const uint32_t *entries, size_t left, size_t *io_taken,
                     bool *out_ends)
{
    uint32_t length = find_length(w, entries, left);
    bool is_last = length && (length == left || entries[length] & TBD_ENTRY_MESSAGE);

    *out_ends = is_last || length < BLOCKS;
    if (length > is_last && !take_some(w, entries, length - is_last))
        return false;
    *io_taken += length - is_last;
    return !is_last || tbd_lean_take_last(w, entries[length - 1], io_taken);
}

bool tbd_path_table_take(struct work *w, const uint32_t *entries, size_t left, size_t *out_taken)
{
    struct tbd_path_table *table = w->builder->lean->table;
    bool ends = false;
    size_t n = 0;

    if (w->in - table->notes_from > UINT32_MAX / 2)
        tbd_path_table_look(w);
    if (!table->has_notes)
        table->notes_from = w->in;
    table->has_notes = true;
    while (!ends && n < STRETCH) {
        size_t stretch = left - n < STRETCH ? left - n : STRETCH;

        n += take_known(w, entries + n, stretch);
        if (!take_any(w, entries + n, left - n, &n, &ends))
            return false;
    }
    *out_taken = n;
    return true;
}

/* ---- begin and end ---- */

bool tbd_path_table_begin(struct tbd_path_table **io_table)
{
    struct tbd_path_table *table = *io_table;

    if (!table)
        *io_table = table = calloc(1, sizeof(*table));
    if (!table)
        return false;
    table->lost = 0;
    if (!table->slot_memory)
        table->slot_memory = calloc(SLOTS + 1, sizeof(*table->slots));
    if (!table->more)
        table->more = calloc(SLOTS, sizeof(*table->more));
    if (!table->used)
        table->used = malloc(PATHS_MOST * sizeof(*table->used));
    table->slots = (void *)(((uintptr_t)table->slot_memory + 63) & ~(uintptr_t)63);
    return table->slot_memory && table->more && table->used;
}

bool tbd_path_table_fail(const struct tbd_path_table *table)
{
    return table->lost > LOST_MOST;
}

static void count_stores(struct work *w, const struct table_path *path,
                         const struct table_path_more *more)
{
    const struct tbd_path_table *table = w->builder->lean->table;
    const struct tbd_lean_store *fixed = table->stores.all + more->first_fixed;

    for (uint32_t i = 0; i < more->fixed_count; i++)
        tbd_shadow_stores(&w->builder->shadow, (uint64_t)fixed[i].add, fixed[i].bytes, path->count,
                          path->last_index + fixed[i].index);
    for (uint32_t i = 0; i < more->base_count; i++) {
        struct table_base *base = &table->bases[more->first_base + i];

        count_values(w, base, &base->now, base->now.times != 0);
        base->now.times = 0;
    }
}

bool tbd_path_table_finish(struct work *w)
{
    struct tbd_path_table *table = w->builder->lean->table;

    tbd_path_table_look(w);
    for (size_t i = 0; i < table->count; i++) {
        struct table_path *path = &table->slots[table->used[i]];

        if (!path->count)
            continue;
        if (!tbd_lean_count_blocks(w, path->entries, path->length, path->count, path->last_time))
            return false;
        count_stores(w, path, &table->more[table->used[i]]);
        path->count = 0;
    }
    return true;
}

void tbd_path_table_forget(struct tbd_path_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        table->slots[table->used[i]] = (struct table_path){ 0 };
    table->count = table->base_count = table->stores.count = 0;
    table->has_notes = false;
}

void tbd_path_table_free(struct tbd_path_table *table)
{
    if (!table)
        return;
    free(table->slot_memory);
    free(table->more);
    free(table->used);
    free(table->bases);
    free(table->stores.all);
    free(table);
}
