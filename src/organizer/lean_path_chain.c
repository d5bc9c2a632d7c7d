// SPDX-License-Identifier: MIT
/* lean_path_chain.c - paths of a program that takes the same paths again and again
 *
 * A path is a sequence of 1, or 8 to 32 blocks.  It is recognized by comparing the entries with the
 * path that came next the last time.  An occurrence notes only where its records are.  After some
 * occurrences, the *bases* in their records are read: the values that addresses of stores are
 * relative to.  Stores are counted, word by word, only where a base differs from the last one.  The
 * blocks of a path are counted at the window's end.
 *
 * Invariants
 * LEAN_PATH_CHAIN-1  Occurrences point into the operands, so they are looked at before operands are
 *     moved. (not checked: it is about what is not done)
 * LEAN_PATH_CHAIN-2  Paths stay where they are until all are forgotten; their bases and stores may
 *     move. (not checked: a reader under asan would tell)
 * LEAN_PATH_CHAIN-3  A path of one block never is the expected next path: it is looked up each
 *     time.  Such paths come where fewer than 8 blocks are left before a message, and always match;
 *     a chain of them, once followed, would never be left again. */
#include "organizer/lean_private.h"

#include "base/assert.h"
#include "base/array.h"
#include "format/window/window_make.h"

#include <emmintrin.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LEAST 8u /* blocks, except for paths of one */
#define PATH_MOST  32u
#define PENDING    4u    /* occurrences before their bases are looked at */
#define PREFETCH   2048u /* bytes ahead */
/* Blocks that are taken before their cost is checked. */
#define STRETCH    32768u
#define SLAB_PATHS 256u
/* If there are more, all are forgotten: the program takes other paths now. */
#define PATHS_MOST      65536u
#define LONG_PATHS_MOST 8192u
/* After this many paths: if larger shares than these had to be looked up, or made, the table is
 * faster: gzip, bzip2, xz, ray. */
#define TRIAL        4096u
#define MISSED_SHARE 6u
#define MADE_SHARE   4u

/* One value in a path's records that addresses of stores are relative to. */
struct lean_base {
    uint64_t mask; /* 0: there is no such value, addresses are constants */
    uint32_t offset;
    uint32_t first_store, store_count;
    uint32_t times; /* occurrences of `value`, the last at event `last` */
    uint64_t value;
    uint32_t last;
};

struct lean_path {
    const uint32_t *entries; /* blocks of the stream */
    uint32_t length;
    uint32_t operand_bytes;
    /* the paths that followed it the last two times; never NULL */
    struct lean_path *next, *other;
    uint32_t events;
    uint32_t calls;     /* its last block's id, if that ends with a call */
    uint32_t pending;   /* occurrences whose stores are not counted yet */
    uint32_t count;     /* in the window */
    uint32_t last_time; /* of its first block */
    uint32_t first_base, base_count;
    uint32_t alone; /* entries[0] of a path of one */
    struct lean_path *same_hash;
    uint32_t index[PENDING]; /* of the occurrence's first event */
    const uint8_t *records[PENDING];
};

struct tbd_path_chain {
    struct lean_path none; /* matches nothing: stands before the first path */
    /* the one that was taken last, if the next block follows it; else `none` */
    struct lean_path *before;
    struct lean_path **slabs;
    size_t slab_count, slab_capacity;
    size_t path_count, long_count;
    uint32_t (*long_entries)[PATH_MOST]; /* of paths of several blocks */
    struct lean_path *by_hash[LONG_PATHS_MOST];
    struct lean_path **alone; /* paths of one, by block of the stream */
    size_t alone_capacity;
    uint64_t *starts; /* of blocks of the stream that were looked at; 0: not yet */
    size_t start_capacity;
    struct lean_path **met; /* paths of the window */
    size_t met_count, met_capacity;
    struct lean_base *bases;
    size_t base_count, base_capacity;
    struct tbd_lean_stores stores;
    bool has_pending; /* perhaps */
    uint64_t taken;   /* paths of the window, and how many of them: */
    uint64_t missed;  /* known, but had to be looked for */
    uint64_t made;
};

void tbd_path_chain_free(struct tbd_path_chain *chain)
{
    if (!chain)
        return;
    for (size_t i = 0; i < chain->slab_count; i++)
        free(chain->slabs[i]);
    free(chain->slabs);
    free(chain->long_entries);
    free(chain->alone);
    free(chain->starts);
    free(chain->met);
    free(chain->bases);
    free(chain->stores.all);
    free(chain);
}

/* ---- stores ---- */

/* Counts the stores of the occurrences with the base's value, which were only noted. */
static void count_noted(struct work *w, struct lean_base *base)
{
    const struct tbd_lean_store *stores = w->builder->lean->chain->stores.all + base->first_store;

    for (uint32_t i = 0; base->times && i < base->store_count; i++)
        tbd_shadow_stores(&w->builder->shadow, base->value + (uint64_t)stores[i].add,
                          stores[i].bytes, base->times, base->last + stores[i].index);
    base->times = 0;
}

static void count_each(struct work *w, const struct lean_path *path, const struct lean_base *base,
                       const uint64_t *values)
{
    const struct tbd_lean_store *store = w->builder->lean->chain->stores.all + base->first_store;

    for (const struct tbd_lean_store *end = store + base->store_count; store < end; store++)
        for (uint32_t i = 0; i < path->pending; i++)
            tbd_shadow_store(&w->builder->shadow, values[i] + (uint64_t)store->add, store->bytes,
                             path->index[i] + store->index);
}

/* Reads all pending occurrences at once, as a base mostly has the same value always, or a new one
 * each time. */
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
    struct lean_base *bases = w->builder->lean->chain->bases + path->first_base;

    for (uint32_t i = 0; i < path->base_count; i++)
        look_at_base(w, path, &bases[i]);
    path->pending = 0;
}

void tbd_path_chain_look(struct work *w)
{
    struct tbd_path_chain *chain = w->builder->lean->chain;

    for (size_t i = 0; chain->has_pending && i < chain->met_count; i++)
        if (chain->met[i]->pending)
            look_at_pending(w, chain->met[i]);
    chain->has_pending = false;
}

/* ---- making paths ---- */

/* The stores of a block relative to the value at `base` in its record, which is at `offset` in the path's. */
static bool add_base(struct tbd_path_chain *chain, const struct tbd_block_plan *plan, uint32_t base,
                     uint32_t offset, uint32_t events)
{
    struct lean_base *added;

    if (!tbd_array_grow(&chain->bases, chain->base_count, &chain->base_capacity,
                        sizeof(*chain->bases)))
        return false;
    added = &chain->bases[chain->base_count++];
    *added = (struct lean_base){ .mask = base == TBD_BASE_NONE ? 0 : UINT64_MAX,
                                 .offset = base == TBD_BASE_NONE ? 0 : offset + base,
                                 .first_store = (uint32_t)chain->stores.count };
    if (!tbd_lean_add_stores(&chain->stores, plan, base, events))
        return false;
    added->store_count = (uint32_t)chain->stores.count - added->first_store;
    return true;
}

/* Adds up the events, operands and stores of the path's blocks. */
static bool add_up(const struct work *w, struct lean_path *path)
{
    struct tbd_path_chain *chain = w->builder->lean->chain;

    path->first_base = (uint32_t)chain->base_count;
    for (uint32_t k = 0; k < path->length; k++) {
        const struct tbd_block_plan *plan = &w->plans[path->entries[k]];

        for (uint16_t i = 0; i < plan->store_count; i++)
            if (tbd_lean_is_first_of_base(plan, i) &&
                !add_base(chain, plan, plan->stores[i].base, path->operand_bytes, path->events))
                return false;
        path->operand_bytes += plan->operand_bytes;
        path->events += plan->op_count + 1u;
        path->calls = plan->calls ? plan->id : 0;
        w->builder->lean->renames |= plan->id != path->entries[k];
    }
    path->base_count = (uint32_t)chain->base_count - path->first_base;
    return true;
}

/* NULL without memory. */
static struct lean_path *new_path(const struct work *w, const uint32_t *entries, uint32_t length)
{
    struct tbd_path_chain *chain = w->builder->lean->chain;
    struct lean_path *path;

    if (chain->path_count == chain->slab_count * SLAB_PATHS) {
        if (!tbd_array_grow(&chain->slabs, chain->slab_count, &chain->slab_capacity,
                            sizeof(*chain->slabs)))
            return NULL;
        chain->slabs[chain->slab_count] = malloc(SLAB_PATHS * sizeof(*path));
        if (!chain->slabs[chain->slab_count])
            return NULL;
        chain->slab_count++;
    }
    path = &chain->slabs[chain->path_count / SLAB_PATHS][chain->path_count % SLAB_PATHS];
    *path = (struct lean_path){ .length = length,
                                .next = &chain->none,
                                .other = &chain->none,
                                .alone = entries[0],
                                .entries = &path->alone };
    if (length > 1) {
        memcpy(chain->long_entries[chain->long_count], entries, length * sizeof(*entries));
        path->entries = chain->long_entries[chain->long_count];
    }
    if (!add_up(w, path))
        return NULL;
    chain->path_count++;
    return path;
}

static uint64_t start_of(const struct work *w, uint32_t entry)
{
    uint64_t *start = &w->builder->lean->chain->starts[entry];

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

    for (; n < most && tbd_lean_is_possible(w, entries[n]); n++)
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

        differs = _mm_or_si128(
            differs, _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)(a + at)),
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
    struct lean_path **alone = &w->builder->lean->chain->alone[entry];

    if (!*alone)
        *alone = new_path(w, &entry, 1);
    return *alone;
}

static struct lean_path *find_long(const struct work *w, const uint32_t *entries, uint32_t length)
{
    struct tbd_path_chain *chain = w->builder->lean->chain;
    struct lean_path **head = &chain->by_hash[hash_of(entries, length)];
    struct lean_path *path = *head;

    while (path && (path->length != length || !is_same(path->entries, entries, length)))
        path = path->same_hash;
    chain->missed += path != NULL;
    if (path)
        return path;
    if (chain->long_count == LONG_PATHS_MOST)
        return find_alone(w, entries[0]);
    path = new_path(w, entries, length);
    if (path) {
        chain->made++;
        chain->long_count++;
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

static bool take_path(struct work *w, struct lean_path *path)
{
    struct tbd_path_chain *chain = w->builder->lean->chain;

    if (!path->count) {
        if (!tbd_array_grow(&chain->met, chain->met_count, &chain->met_capacity,
                            sizeof(*chain->met)))
            return false;
        chain->met[chain->met_count++] = path;
    }
    tbd_lean_enter(w, path->entries[0]);
    w->called = path->calls;
    path->count++;
    chain->taken++;
    path->last_time = w->time;
    path->index[path->pending] = (uint32_t)w->index;
    path->records[path->pending] = w->operands + w->in;
    /* the records are read later, and in another order */
    for (uint32_t at = 0; at < path->operand_bytes; at += 64)
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

/* Takes blocks from `entries` on, up to an impossible one, one whose record is outside the
 * operands, or the end of a stretch. */
static bool take_paths(struct work *w, const uint32_t *entries, size_t count, size_t *out_taken)
{
    struct lean_path *before = w->builder->lean->chain->before, *path;
    size_t n = 0;

    for (; n < count && n < STRETCH; n += path->length) {
        path = before->next;
        if (!is_here(path, entries + n, count - n)) {
            path = before->other;
            if (!is_here(path, entries + n, count - n)) {
                if (!tbd_lean_is_possible(w, entries[n]))
                    break;
                path = find_path(w, entries + n, count - n);
                if (!path)
                    return false;
            }
            if (path->length > 1) { /* LEAN_PATH_CHAIN-3 */
                before->other = before->next;
                before->next = path;
            }
            TBD_INVARIANT("LEAN_PATH_CHAIN-3", before->next->length != 1);
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
    w->builder->lean->chain->before = before;
    return true;
}

/* How many blocks come before the next message, at most a stretch.  Sixteen entries are checked at
 * a time. */
static size_t run_end(const uint32_t *entries, size_t left)
{
    size_t most = left < STRETCH + PATH_MOST + 2 ? left : STRETCH + PATH_MOST + 2, i = 0;

    for (; i + 16 <= most; i += 16) {
        uint32_t any = 0;

        for (size_t n = 0; n < 16; n++)
            any |= entries[i + n];
        if (any & TBD_ENTRY_MESSAGE)
            break;
    }
    while (i < most && !(entries[i] & TBD_ENTRY_MESSAGE))
        i++;
    return i;
}

bool tbd_path_chain_take(struct work *w, const uint32_t *entries, size_t left, size_t *out_taken)
{
    struct tbd_path_chain *chain = w->builder->lean->chain;
    size_t count = run_end(entries, left);

    chain->has_pending = true;
    if (!take_paths(w, entries, count - 1, out_taken))
        return false;
    if (*out_taken < count - 1)
        return true;
    chain->before = &chain->none;
    return tbd_lean_take_last(w, entries[count - 1], out_taken);
}

/* ---- begin and end ---- */

bool tbd_path_chain_reach(struct tbd_path_chain *chain, uint32_t plan_count)
{
    size_t alone = chain->alone_capacity, starts = chain->start_capacity;

    if (!tbd_array_reserve(&chain->alone, (size_t)plan_count + 1, &chain->alone_capacity,
                           sizeof(struct lean_path *)))
        return false;
    memset(chain->alone + alone, 0, (chain->alone_capacity - alone) * sizeof(*chain->alone));
    if (!tbd_array_reserve(&chain->starts, (size_t)plan_count + 1, &chain->start_capacity,
                           sizeof(*chain->starts)))
        return false;
    memset(chain->starts + starts, 0, (chain->start_capacity - starts) * sizeof(*chain->starts));
    return true;
}

bool tbd_path_chain_begin(struct tbd_path_chain **io_chain, uint32_t plan_count)
{
    struct tbd_path_chain *chain = *io_chain;

    if (!chain) {
        *io_chain = chain = calloc(1, sizeof(*chain));
        if (!chain)
            return false;
        chain->none =
            (struct lean_path){ .length = UINT32_MAX, .next = &chain->none, .other = &chain->none };
    }
    chain->taken = chain->missed = chain->made = 0;
    chain->before = &chain->none;
    if (!chain->long_entries)
        chain->long_entries = malloc(LONG_PATHS_MOST * sizeof(*chain->long_entries));
    return chain->long_entries && tbd_path_chain_reach(chain, plan_count);
}

bool tbd_path_chain_fail(const struct tbd_path_chain *chain)
{
    return chain->taken >= TRIAL &&
           (chain->missed * MISSED_SHARE > chain->taken || chain->made * MADE_SHARE > chain->taken);
}

void tbd_path_chain_forget(struct tbd_path_chain *chain)
{
    if (!chain)
        return;
    chain->path_count = chain->long_count = chain->base_count = chain->stores.count =
        chain->met_count = 0;
    chain->none.next = chain->none.other = chain->before = &chain->none;
    memset(chain->by_hash, 0, sizeof(chain->by_hash));
    if (chain->alone)
        memset(chain->alone, 0, chain->alone_capacity * sizeof(*chain->alone));
    if (chain->starts)
        memset(chain->starts, 0, chain->start_capacity * sizeof(*chain->starts));
}

/* Counts the path's blocks, once for each occurrence. */
static bool finish_path(struct work *w, struct lean_path *path)
{
    struct lean_base *bases = w->builder->lean->chain->bases + path->first_base;

    if (path->pending)
        look_at_pending(w, path);
    for (uint32_t i = 0; i < path->base_count; i++)
        count_noted(w, &bases[i]);
    if (!tbd_lean_count_blocks(w, path->entries, path->length, path->count, path->last_time))
        return false;
    path->count = 0;
    return true;
}

bool tbd_path_chain_finish(struct work *w)
{
    struct tbd_path_chain *chain = w->builder->lean->chain;

    for (size_t i = 0; i < chain->met_count; i++)
        if (!finish_path(w, chain->met[i]))
            return false;
    chain->met_count = 0;
    if (chain->path_count > PATHS_MOST || chain->long_count == LONG_PATHS_MOST)
        tbd_path_chain_forget(chain);
    return true;
}
