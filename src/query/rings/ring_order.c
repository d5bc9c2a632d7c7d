// SPDX-License-Identifier: MIT
/* ring_order.c - see ring_order.h
 *
 * RING_ORDER-1  Stretches are sorted by their beginnings.  One that ended before another one began is then before it. */
#include "query/rings/ring_order.h"

#include "base/array.h"
#include "base/assert.h"

#include <stdlib.h>

struct ordering {
    struct tbd_rings_stretch *list;
    size_t count, capacity;
};

/* When the entry before a value's was over, and when its own began; 0: not known. */
static void moments_of(const struct tbd_crash_file_value *value, uint64_t *out_ended,
                       uint64_t *out_began)
{
    bool is_call = value->kind == TBD_VALUE_CALL;

    *out_ended = is_call ? value->is.call.began : value->is.registers.stamp;
    *out_began = is_call ? value->is.call.ended : value->is.registers.stamp;
    if (value->kind == TBD_VALUE_BYTES)
        *out_ended = *out_began = 0;
}

static bool add(struct ordering *o, uint32_t thread, uint64_t first, uint64_t end, uint64_t began,
                uint64_t ended)
{
    if (first == end)
        return true;
    if (!tbd_array_grow(&o->list, o->count, &o->capacity, sizeof(*o->list)))
        return false;
    o->list[o->count++] = (struct tbd_rings_stretch){ .thread = thread,
                                                      .first = first,
                                                      .end = end,
                                                      .began_ns = began,
                                                      .ended_ns = ended ? ended : UINT64_MAX };
    return true;
}

/* Stamps that go back are of a damaged file, or of a clock that was set: they count for nothing. */
static bool add_thread(struct ordering *o, const struct tbd_crash_dump *dump, uint32_t thread,
                       uint32_t *next)
{
    uint64_t first = 0, began = 0, count = dump->threads[thread].count, ended, goes_on;

    for (; *next < dump->head->value_count && dump->values[*next].thread == thread; ++*next) {
        const struct tbd_crash_file_value *value = &dump->values[*next];

        moments_of(value, &ended, &goes_on);
        if (ended == 0 || ended < began || goes_on < ended)
            continue;
        if (!add(o, thread, first, value->entry, began, ended))
            return false;
        first = value->entry;
        began = goes_on;
    }
    ended = dump->threads[thread].ended_ns;
    return add(o, thread, first, count, began, ended < began ? 0 : ended);
}

static int by_beginning(const void *one, const void *other)
{
    const struct tbd_rings_stretch *a = one, *b = other;

    if (a->began_ns != b->began_ns)
        return a->began_ns < b->began_ns ? -1 : 1;
    if (a->ended_ns != b->ended_ns)
        return a->ended_ns < b->ended_ns ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

bool tbd_rings_overlap(const struct tbd_rings_stretch *one, const struct tbd_rings_stretch *other)
{
    return one->thread != other->thread && one->ended_ns >= other->began_ns &&
           other->ended_ns >= one->began_ns;
}

/* When the stretches so far of a group had ended: the last one, and the last one of another thread than that. */
struct ends {
    uint64_t last, other;
    uint32_t thread; /* of `last` */
};

static void take_end(struct ends *ends, const struct tbd_rings_stretch *stretch)
{
    uint64_t ended = stretch->ended_ns;

    if (stretch->thread == ends->thread) {
        ends->last = ended > ends->last ? ended : ends->last;
    } else if (ended >= ends->last) {
        *ends = (struct ends){ .last = ended, .other = ends->last, .thread = stretch->thread };
    } else if (ended > ends->other) {
        ends->other = ended;
    }
}

/* Did all of them run before it?  The stretches of one thread are in order, even if one begins at the moment at which another one ends. */
static bool is_after(const struct ends *ends, const struct tbd_rings_stretch *stretch)
{
    return stretch->thread == ends->thread
               ? ends->last <= stretch->began_ns && ends->other < stretch->began_ns
               : ends->last < stretch->began_ns;
}

/* Does a group end before stretch `at`?  Later ones may begin at the same moment. */
static bool ends_before(const struct ordering *o, const struct ends *ends, size_t at)
{
    for (size_t i = at; i < o->count && o->list[i].began_ns == o->list[at].began_ns; i++)
        if (!is_after(ends, &o->list[i]))
            return false;
    return true;
}

static size_t end_of_group(const struct ordering *o, size_t first)
{
    struct ends ends = { .last = o->list[first].ended_ns, .thread = o->list[first].thread };
    size_t end = first + 1;

    for (; end < o->count && !ends_before(o, &ends, end); end++) {
        TBD_INVARIANT("RING_ORDER-1", o->list[end].began_ns >= o->list[end - 1].began_ns);
        take_end(&ends, &o->list[end]);
    }
    return end;
}

/* The thread whose stretches alone these are; UINT32_MAX: there are several. */
static uint32_t thread_of(const struct ordering *o, size_t first, size_t end)
{
    for (size_t i = first + 1; i < end; i++)
        if (o->list[i].thread != o->list[first].thread)
            return UINT32_MAX;
    return o->list[first].thread;
}

/* What one thread ran between others' is one group, although more is known of it. */
static void find_groups(struct ordering *o)
{
    uint32_t thread = UINT32_MAX, before;
    uint64_t group = 0;
    size_t end;

    for (size_t first = 0; first < o->count; first = end) {
        end = end_of_group(o, first);
        before = thread;
        thread = thread_of(o, first, end);
        group += thread == UINT32_MAX || thread != before;
        for (size_t i = first; i < end; i++) {
            o->list[i].group = group;
            o->list[i].beside_first = first;
            o->list[i].beside_end = end;
        }
    }
}

enum tbd_status tbd_rings_order(const struct tbd_rings *ring, struct tbd_rings_stretch **out,
                                size_t *out_count)
{
    struct ordering o = { .list = NULL };
    uint32_t next = 0;

    *out = NULL;
    *out_count = 0;
    for (uint32_t i = 0; i < ring->dump.head->thread_count; i++)
        if (!add_thread(&o, &ring->dump, i, &next)) {
            free(o.list);
            return TBD_NOMEM;
        }
    if (o.count != 0)
        qsort(o.list, o.count, sizeof(*o.list), by_beginning);
    find_groups(&o);
    *out = o.list;
    *out_count = o.count;
    return TBD_OK;
}
