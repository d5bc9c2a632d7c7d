// SPDX-License-Identifier: MIT
/* build_lean.c - the block entries of a window whose records need not be coded
 *
 * What is left to do is counting: blocks, calls, and the words that were stored to.  A program goes the same ways again and
 * again, so entries are taken *paths* at a time: 1, or 8 to 32 blocks behind each other, which are recognized by
 * comparing them with the path that came next the last time.  Of each occurrence it is only noted where its records are.
 * When some have come, the *bases* in them are looked at, the values that addresses of stores are relative to.  Stores are
 * counted, word by word, where a base is another than the time before.  What a path consists of is counted
 * at the window's end.  A program that hardly ever goes the same way twice is better counted by rows (build_segment.c):
 * then that is done for some windows before it is tried again.
 *
 * Invariants
 * L1  Which paths there are changes nothing in what is counted, only how long it takes.  They are kept for the next window.
 * L2  The last block before a message is held back (tbd_build_hold()).
 * L3  Occurrences point into the operands, so they are looked at before operands are moved.
 * L4  Paths stay where they are until all are forgotten; their bases and stores may move.
 * L5  A path of one is never what comes next: it is looked for anew each time.  They come where fewer blocks are left
 *     before a message, and always match, so that the way from one to the next, once taken, would never be left again. */
#include "organizer/build_private.h"

#include "base/array.h"
#include "format/window.h"

#include <emmintrin.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LEAST 8u /* blocks, but for paths of one */
#define PATH_MOST 32u
#define PENDING 4u     /* occurrences before their bases are looked at */
#define PREFETCH 2048u /* bytes ahead */
#define SLAB_PATHS 256u
/* When there are more, all are forgotten: a program that goes other ways now. */
#define PATHS_MOST 65536u
#define LONG_PATHS_MOST 8192u
/* More than a third of all paths looked for takes longer than rows: bzip2, in part xz. */
#define MISSED_SHARE 3u
#define REST_WINDOWS 7u

struct lean_store {
    int64_t add;
    uint32_t bytes;
    uint32_t index; /* of the path's events */
};

/* One value in a path's records that addresses of stores are relative to. */
struct lean_base {
    uint64_t mask;  /* 0: there is no such value, addresses are constants */
    uint32_t offset;
    uint32_t first_store, store_count;
    uint32_t times; /* that `value` came, the last time at event `last` */
    uint64_t value;
    uint32_t last;
};

struct lean_path {
    const uint32_t *entries; /* blocks of the stream */
    uint32_t length;
    uint32_t operand_bytes;
    struct lean_path *next, *other; /* what came behind it the last time, and before that; never NULL */
    uint32_t events;
    uint32_t calls;          /* its last block's id, if that ends with a call */
    uint32_t pending;        /* occurrences of which stores are to be counted */
    uint32_t count;          /* in the window */
    uint32_t last_time;      /* of its first block */
    uint32_t first_base, base_count;
    uint32_t alone;          /* entries[0] of a path of one */
    struct lean_path *same_hash;
    uint32_t index[PENDING]; /* of the occurrence's first event */
    const uint8_t *records[PENDING];
};

struct tbd_lean {
    struct lean_path none; /* matches nothing: comes before the first one */
    struct lean_path **slabs;
    size_t slab_count, slab_room;
    size_t path_count, long_count;
    uint32_t (*long_entries)[PATH_MOST]; /* of paths of several blocks */
    struct lean_path *by_hash[LONG_PATHS_MOST];
    struct lean_path **alone; /* paths of one, by block of the stream */
    size_t alone_room;
    uint64_t *starts;         /* of blocks of the stream that were looked at; 0: not yet */
    size_t start_room;
    struct lean_path **met;   /* paths of the window */
    size_t met_count, met_room;
    struct lean_base *bases;
    size_t base_count, base_room;
    struct lean_store *stores;
    size_t store_count, store_room;
    bool has_pending;         /* perhaps */
    uint64_t taken, missed;   /* paths of the window, and how many of them had to be looked for */
    uint32_t rest;            /* windows that are built by rows */
    bool renames;             /* some entries are not the trace's ids */
};

void tbd_lean_free(struct tbd_lean *lean)
{
    if (!lean)
        return;
    for (size_t i = 0; i < lean->slab_count; i++)
        free(lean->slabs[i]);
    free(lean->slabs);
    free(lean->long_entries);
    free(lean->alone);
    free(lean->starts);
    free(lean->met);
    free(lean->bases);
    free(lean->stores);
    free(lean);
}

/* ---- stores ---- */

/* Those of the occurrences with the base's value that were only noted. */
static void count_noted(struct work *w, struct lean_base *base)
{
    const struct lean_store *stores = w->builder->lean->stores + base->first_store;

    for (uint32_t i = 0; base->times && i < base->store_count; i++)
        tbd_shadow_stores(&w->builder->shadow, base->value + (uint64_t)stores[i].add, stores[i].bytes, base->times,
                          base->last + stores[i].index);
    base->times = 0;
}

static void count_each(struct work *w, const struct lean_path *path, const struct lean_base *base, const uint64_t *values)
{
    const struct lean_store *store = w->builder->lean->stores + base->first_store;

    for (const struct lean_store *end = store + base->store_count; store < end; store++)
        for (uint32_t i = 0; i < path->pending; i++)
            tbd_shadow_store(&w->builder->shadow, values[i] + (uint64_t)store->add, store->bytes,
                             path->index[i] + store->index);
}

/* All at once, as it is the same value again and again or always another one. */
static void look_at_base(struct work *w, const struct lean_path *path, struct lean_base *base)
{
    uint64_t values[PENDING], first, differs = 0;

    memcpy(&first, path->records[0] + base->offset, sizeof(first));
    first &= base->mask;
    for (uint32_t i = 0; i < path->pending; i++) {
        memcpy(&values[i], path->records[i] + base->offset, sizeof(values[i]));
        values[i] &= base->mask;
        differs |= values[i] ^ first;
    }
    if (differs) {
        count_each(w, path, base, values);
        return;
    }
    if (first != base->value)
        count_noted(w, base);
    base->value = first;
    base->times += path->pending;
    base->last = path->index[path->pending - 1];
}

static void look_at_pending(struct work *w, struct lean_path *path)
{
    struct lean_base *bases = w->builder->lean->bases + path->first_base;

    for (uint32_t i = 0; i < path->base_count; i++)
        look_at_base(w, path, &bases[i]);
    path->pending = 0;
}

void tbd_lean_look(struct work *w)
{
    struct tbd_lean *lean = w->builder->lean;

    for (size_t i = 0; lean->has_pending && i < lean->met_count; i++)
        if (lean->met[i]->pending)
            look_at_pending(w, lean->met[i]);
    lean->has_pending = false;
}

/* ---- making paths ---- */

static bool add_store(struct tbd_lean *lean, const struct tbd_plan_store *store, uint32_t events)
{
    if (!tbd_array_grow(&lean->stores, lean->store_count, &lean->store_room, sizeof(*lean->stores)))
        return false;
    lean->stores[lean->store_count++] = (struct lean_store){ store->add, store->bytes, events + store->index };
    return true;
}

/* The stores of a block relative to the value at `base` in its record, which is at `offset` in the path's. */
static bool add_base(struct tbd_lean *lean, const struct tbd_plan *plan, uint32_t base, uint32_t offset, uint32_t events)
{
    struct lean_base *added;

    if (!tbd_array_grow(&lean->bases, lean->base_count, &lean->base_room, sizeof(*lean->bases)))
        return false;
    added = &lean->bases[lean->base_count++];
    *added = (struct lean_base){ .mask = base == TBD_BASE_NONE ? 0 : UINT64_MAX,
                                 .offset = base == TBD_BASE_NONE ? 0 : offset + base,
                                 .first_store = (uint32_t)lean->store_count };
    for (uint16_t i = 0; i < plan->store_count; i++)
        if (plan->stores[i].base == base && !add_store(lean, &plan->stores[i], events))
            return false;
    added->store_count = (uint32_t)lean->store_count - added->first_store;
    return true;
}

static bool is_first_of_base(const struct tbd_plan *plan, uint16_t store)
{
    for (uint16_t i = 0; i < store; i++)
        if (plan->stores[i].base == plan->stores[store].base)
            return false;
    return true;
}

/* What the path's blocks are, in all. */
static bool add_up(const struct work *w, struct lean_path *path)
{
    struct tbd_lean *lean = w->builder->lean;

    path->first_base = (uint32_t)lean->base_count;
    for (uint32_t k = 0; k < path->length; k++) {
        const struct tbd_plan *plan = &w->plans[path->entries[k]];

        for (uint16_t i = 0; i < plan->store_count; i++)
            if (is_first_of_base(plan, i) &&
                !add_base(lean, plan, plan->stores[i].base, path->operand_bytes, path->events))
                return false;
        path->operand_bytes += plan->operand_bytes;
        path->events += plan->op_count + 1u;
        path->calls = plan->calls ? plan->id : 0;
        lean->renames |= plan->id != path->entries[k];
    }
    path->base_count = (uint32_t)lean->base_count - path->first_base;
    return true;
}

/* NULL without memory. */
static struct lean_path *new_path(const struct work *w, const uint32_t *entries, uint32_t length)
{
    struct tbd_lean *lean = w->builder->lean;
    struct lean_path *path;

    if (lean->path_count == lean->slab_count * SLAB_PATHS) {
        if (!tbd_array_grow(&lean->slabs, lean->slab_count, &lean->slab_room, sizeof(*lean->slabs)))
            return NULL;
        lean->slabs[lean->slab_count] = malloc(SLAB_PATHS * sizeof(*path));
        if (!lean->slabs[lean->slab_count])
            return NULL;
        lean->slab_count++;
    }
    path = &lean->slabs[lean->path_count / SLAB_PATHS][lean->path_count % SLAB_PATHS];
    *path = (struct lean_path){ .length = length, .next = &lean->none, .other = &lean->none, .alone = entries[0], .entries = &path->alone };
    if (length > 1) {
        memcpy(lean->long_entries[lean->long_count], entries, length * sizeof(*entries));
        path->entries = lean->long_entries[lean->long_count];
    }
    if (!add_up(w, path))
        return NULL;
    lean->path_count++;
    return path;
}

static bool is_possible(const struct work *w, uint32_t entry)
{
    return entry && entry <= w->plan_count && w->plans[entry].id;
}

static uint64_t start_of(const struct work *w, uint32_t entry)
{
    uint64_t *start = &w->builder->lean->starts[entry];

    if (!*start) {
        const struct tbd_block *block = tbd_window_block(w->window, w->plans[entry].id);

        *start = block ? block->def.start : 0;
    }
    return *start;
}

/* A path ends where the program goes back, so that what is repeated is the same path. */
static uint32_t find_length(const struct work *w, const uint32_t *entries, size_t left)
{
    uint32_t most = left < PATH_MOST ? (uint32_t)left : PATH_MOST, n = 1;

    for (; n < most && is_possible(w, entries[n]); n++)
        if (n >= PATH_LEAST && start_of(w, entries[n]) <= start_of(w, entries[n - 1]))
            break;
    return n < PATH_LEAST ? 1 : n;
}

static bool is_same(const uint32_t *a, const uint32_t *b, uint32_t length)
{
    __m128i differs = _mm_setzero_si128();

    if (length == 1)
        return *a == *b;
    for (uint32_t n = 0;; n += 4) {
        uint32_t at = n + 4 > length ? length - 4 : n;

        differs = _mm_or_si128(differs, _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)(a + at)),
                                                      _mm_loadu_si128((const __m128i *)(const void *)(b + at))));
        if (n + 4 >= length)
            return _mm_movemask_epi8(_mm_cmpeq_epi8(differs, _mm_setzero_si128())) == 0xffff;
    }
}

static uint32_t hash_of(const uint32_t *entries, uint32_t length)
{
    uint64_t hash = length;

    for (uint32_t n = 0; n < length; n++)
        hash = (hash ^ entries[n]) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(hash >> 40) % LONG_PATHS_MOST;
}

static struct lean_path *find_alone(const struct work *w, uint32_t entry)
{
    struct lean_path **alone = &w->builder->lean->alone[entry];

    if (!*alone)
        *alone = new_path(w, &entry, 1);
    return *alone;
}

static struct lean_path *find_long(const struct work *w, const uint32_t *entries, uint32_t length)
{
    struct tbd_lean *lean = w->builder->lean;
    struct lean_path **head = &lean->by_hash[hash_of(entries, length)];
    struct lean_path *path = *head;

    while (path && (path->length != length || !is_same(path->entries, entries, length)))
        path = path->same_hash;
    if (path)
        return path;
    if (lean->long_count == LONG_PATHS_MOST)
        return find_alone(w, entries[0]);
    path = new_path(w, entries, length);
    if (path) {
        lean->long_count++;
        path->same_hash = *head;
        *head = path;
    }
    return path;
}

/* The path that begins here; NULL without memory. */
static struct lean_path *find_path(const struct work *w, const uint32_t *entries, size_t left)
{
    uint32_t length = find_length(w, entries, left);

    return length > 1 ? find_long(w, entries, length) : find_alone(w, entries[0]);
}

/* ---- taking them ---- */

static void enter_by_call(struct work *w, uint32_t entry, uint32_t time)
{
    struct block_count *count = &w->builder->counts[w->plans[entry].id];

    count->enters++;
    count->last_enter = time;
}

static bool take_path(struct work *w, struct lean_path *path)
{
    struct tbd_lean *lean = w->builder->lean;

    if (!path->count) {
        if (!tbd_array_grow(&lean->met, lean->met_count, &lean->met_room, sizeof(*lean->met)))
            return false;
        lean->met[lean->met_count++] = path;
    }
    if (w->called)
        enter_by_call(w, path->entries[0], w->time);
    w->called = path->calls;
    path->count++;
    lean->taken++;
    path->last_time = w->time;
    path->index[path->pending] = (uint32_t)w->index;
    path->records[path->pending] = w->operands + w->in;
    for (uint32_t at = 0; at < path->operand_bytes; at += 64) /* they are looked at later, and in another order */
        __builtin_prefetch(w->operands + w->in + PREFETCH + at);
    if (++path->pending == PENDING)
        look_at_pending(w, path);
    w->in += path->operand_bytes;
    w->index += path->events;
    w->time += path->length;
    return true;
}

static bool is_here(const struct lean_path *path, const uint32_t *entries, size_t left)
{
    return path->length <= left && is_same(path->entries, entries, path->length);
}

/* Blocks from `entries` on, up to an impossible one, or one whose record is outside the operands. */
static bool take_paths(struct work *w, const uint32_t *entries, size_t count, size_t *out_taken)
{
    struct lean_path *before = &w->builder->lean->none, *path;
    size_t n = 0;

    for (; n < count; n += path->length) {
        path = before->next;
        if (!is_here(path, entries + n, count - n)) {
            path = before->other;
            if (!is_here(path, entries + n, count - n)) {
                if (!is_possible(w, entries[n]))
                    break;
                path = find_path(w, entries + n, count - n);
                if (!path)
                    return false;
                w->builder->lean->missed += path->length > 1;
            }
            if (path->length > 1) { /* L5 */
                before->other = before->next;
                before->next = path;
            }
        }
        if (path->operand_bytes > w->operand_bytes - w->in) {
            path = find_alone(w, entries[n]);
            if (!path)
                return false;
            if (path->operand_bytes > w->operand_bytes - w->in)
                break;
        }
        if (!take_path(w, path))
            return false;
        before = path;
    }
    *out_taken = n;
    return true;
}

static bool count_block(struct work *w, uint32_t entry, uint32_t times, uint32_t last)
{
    struct tbd_builder *b = w->builder;
    uint32_t id = w->plans[entry].id;
    struct block_count *count = &b->counts[id];

    if (!count->count) {
        if (!tbd_array_grow(&b->ids, b->id_count, &b->id_room, sizeof(*b->ids)))
            return false;
        b->ids[b->id_count++] = id;
    }
    count->count += times;
    count->plan = entry;
    if (count->last < last)
        count->last = last;
    return true;
}

/* The last block before a message; its stores are counted later (L2). */
static bool take_held(struct work *w, uint32_t entry, bool *out_taken)
{
    const struct tbd_plan *plan = &w->plans[entry];
    struct tbd_lean *lean = w->builder->lean;

    *out_taken = is_possible(w, entry) && plan->operand_bytes <= w->operand_bytes - w->in;
    if (!*out_taken)
        return true;
    if (w->called)
        enter_by_call(w, entry, w->time);
    w->called = plan->calls ? plan->id : 0;
    tbd_build_hold(w, plan, (uint32_t)w->index, w->operands + w->in);
    lean->renames |= plan->id != entry;
    w->in += plan->operand_bytes;
    w->index += plan->op_count + 1u;
    w->time++;
    return count_block(w, entry, 1, w->time - 1);
}

/* Entries become ids of the trace, and move to where messages were. */
static void keep_entries(struct work *w, size_t i, size_t count)
{
    uint32_t *to = w->entries + w->kept_entries;

    if (w->builder->lean->renames) {
        for (size_t n = 0; n < count; n++)
            to[n] = w->plans[w->entries[i + n]].id;
    } else if (to != w->entries + i) {
        memmove(to, w->entries + i, count * sizeof(*to));
    }
    w->kept_entries += count;
}

/* Where the blocks from entry i on end: at the next message.  It is looked for sixteen entries at a time. */
static size_t run_end(const struct work *w, size_t i)
{
    for (; i + 16 <= w->entry_count; i += 16) {
        uint32_t any = 0;

        for (size_t n = 0; n < 16; n++)
            any |= w->entries[i + n];
        if (any & TBD_ENTRY_MESSAGE)
            break;
    }
    while (i < w->entry_count && !(w->entries[i] & TBD_ENTRY_MESSAGE))
        i++;
    return i;
}

bool tbd_lean_take_run(struct work *w, size_t *io_i)
{
    const uint32_t *entries = w->entries + *io_i;
    size_t count = run_end(w, *io_i) - *io_i, taken;
    bool is_held = false;

    tbd_build_release(w);
    w->builder->lean->has_pending = true;
    if (!take_paths(w, entries, count - 1, &taken) ||
        (taken == count - 1 && !take_held(w, entries[taken], &is_held)))
        return false;
    taken += is_held;
    if (!taken)
        return true;
    w->last_plan = &w->plans[entries[taken - 1]];
    w->last_index = (uint32_t)(w->index - w->last_plan->op_count - 1);
    keep_entries(w, *io_i, taken);
    *io_i += taken;
    return true;
}

/* ---- begin and end ---- */

static bool reserve_blocks(struct tbd_lean *lean, uint32_t plan_count)
{
    size_t alone = lean->alone_room, starts = lean->start_room;

    if (!tbd_array_reserve(&lean->alone, (size_t)plan_count + 1, &lean->alone_room, sizeof(struct lean_path *)))
        return false;
    memset(lean->alone + alone, 0, (lean->alone_room - alone) * sizeof(*lean->alone));
    if (!tbd_array_reserve(&lean->starts, (size_t)plan_count + 1, &lean->start_room, sizeof(*lean->starts)))
        return false;
    memset(lean->starts + starts, 0, (lean->start_room - starts) * sizeof(*lean->starts));
    return true;
}

bool tbd_lean_rests(struct tbd_builder *b)
{
    if (!b->lean || !b->lean->rest)
        return false;
    b->lean->rest--;
    return true;
}

bool tbd_lean_begin(struct tbd_builder *b, uint32_t plan_count)
{
    struct tbd_lean *lean = b->lean;

    if (!lean) {
        b->lean = lean = calloc(1, sizeof(*lean));
        if (!lean)
            return false;
        lean->none = (struct lean_path){ .length = UINT32_MAX, .next = &lean->none, .other = &lean->none };
    }
    lean->taken = lean->missed = 0;
    if (!lean->long_entries)
        lean->long_entries = malloc(LONG_PATHS_MOST * sizeof(*lean->long_entries));
    return lean->long_entries && reserve_blocks(lean, plan_count);
}

void tbd_lean_forget(struct tbd_lean *lean)
{
    if (!lean)
        return;
    lean->path_count = lean->long_count = lean->base_count = lean->store_count = lean->met_count = 0;
    lean->renames = false;
    lean->none.next = lean->none.other = &lean->none;
    memset(lean->by_hash, 0, sizeof(lean->by_hash));
    if (lean->alone)
        memset(lean->alone, 0, lean->alone_room * sizeof(*lean->alone));
    if (lean->starts)
        memset(lean->starts, 0, lean->start_room * sizeof(*lean->starts));
}

/* Counts what the path consists of, so often as it came. */
static bool finish_path(struct work *w, struct lean_path *path)
{
    struct lean_base *bases = w->builder->lean->bases + path->first_base;

    if (path->pending)
        look_at_pending(w, path);
    for (uint32_t i = 0; i < path->base_count; i++)
        count_noted(w, &bases[i]);
    for (uint32_t n = 0; n < path->length; n++) {
        struct block_count *count = &w->builder->counts[w->plans[path->entries[n]].id];
        uint32_t time = path->last_time + n;

        if (!count_block(w, path->entries[n], path->count, time))
            return false;
        if (!n || !w->plans[path->entries[n - 1]].calls)
            continue;
        count->enters += path->count;
        if (count->last_enter < time)
            count->last_enter = time;
    }
    path->count = 0;
    return true;
}

bool tbd_lean_finish(struct work *w)
{
    struct tbd_lean *lean = w->builder->lean;

    tbd_build_release(w);
    for (size_t i = 0; i < lean->met_count; i++)
        if (!finish_path(w, lean->met[i]))
            return false;
    lean->met_count = 0;
    if (lean->missed * MISSED_SHARE > lean->taken)
        lean->rest = REST_WINDOWS;
    if (lean->path_count > PATHS_MOST || lean->long_count == LONG_PATHS_MOST)
        tbd_lean_forget(lean);
    return true;
}
