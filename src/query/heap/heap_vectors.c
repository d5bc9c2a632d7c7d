// SPDX-License-Identifier: MIT
/* heap_vectors.c - see heap_vectors.h */
#include "query/heap/heap_vectors.h"

#include <fnmatch.h>
#include <string.h>

#define VECTOR_MIN  16u
#define BLOCKS_LONG 1u /* block entries from one vector of a loop to the next, at most */

/* Functions that use what they read are not among them. */
static const char *const searching[] = { "str*",    "stp*",     "wcs*",    "wcp*",
                                         "memchr*", "memrchr*", "memcmp*", "memcmpeq*",
                                         "rawmem*", "wmemchr*", "wmemcmp*" };

static bool is_searching(struct tbd_heap_vectors *vectors, const struct tbd_event *event)
{
    uint32_t window = tbd_trace_window_of(vectors->session->trace, event->position.time);
    struct tbd_symbol symbol;
    const char *name;

    if (!tbd_symbols_at(vectors->session->symbols, window, event->pc, &symbol) ||
        symbol.name == NULL || fnmatch("libc[.-]*", symbol.module, 0) != 0)
        return false;
    name = symbol.name + strspn(symbol.name, "_");
    for (size_t i = 0; i < sizeof(searching) / sizeof(searching[0]); i++)
        if (fnmatch(searching[i], name, 0) == 0)
            return true;
    return false;
}

static bool is_vector(const struct tbd_event *event)
{
    return event->type == TBD_EVENT_LOAD && event->size >= VECTOR_MIN &&
           (event->flags & TBD_EVENT_BY_ENGINE) == 0;
}

static bool is_aligned(const struct tbd_event *event)
{
    return event->addr % event->size == 0;
}

static uint64_t distance(const struct tbd_event *a, const struct tbd_event *b)
{
    return a->addr > b->addr ? a->addr - b->addr : b->addr - a->addr;
}

/* Were both loaded together?  `a` was first. */
static bool are_together(struct tbd_heap_vectors *vectors, const struct tbd_event *a,
                         const struct tbd_event *b)
{
    uint64_t stretch = TBD_VECTORS_AHEAD * b->size;

    if (a->size != b->size || a->thread != b->thread ||
        b->position.time - a->position.time > BLOCKS_LONG)
        return false;
    if (is_aligned(a) && is_aligned(b) && a->addr / stretch == b->addr / stretch)
        return true;
    return distance(a, b) <= stretch && is_searching(vectors, b);
}

/* A live block is near those that wait for it. */
static void forgive(struct tbd_heap_vectors *vectors, const struct tbd_event *live)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < vectors->count; i++)
        if (!are_together(vectors, &vectors->waiting[i].event, live))
            vectors->waiting[kept++] = vectors->waiting[i];
    vectors->count = kept;
}

enum tbd_vector_answer tbd_heap_vectors_take(struct tbd_heap_vectors *vectors,
                                             const struct tbd_event *event, bool is_live,
                                             uint32_t block)
{
    if (!is_vector(event))
        return TBD_VECTOR_IS_NONE;
    if (is_live) {
        forgive(vectors, event);
        vectors->last = *event;
        return is_aligned(event) || (block != UINT32_MAX && is_searching(vectors, event))
                   ? TBD_VECTOR_IS_OVER
                   : TBD_VECTOR_IS_NONE;
    }
    if (vectors->last.size != 0 && are_together(vectors, &vectors->last, event))
        return TBD_VECTOR_IS_OVER;
    if (block == UINT32_MAX || vectors->count == TBD_VECTORS_WAITING)
        return TBD_VECTOR_IS_NONE;
    vectors->waiting[vectors->count++] =
        (struct tbd_waiting_vector){ .event = *event, .block = block };
    return TBD_VECTOR_WAITS;
}

void tbd_heap_vectors_settle(struct tbd_heap_vectors *vectors, const struct tbd_position *next,
                             void (*each)(void *context, const struct tbd_waiting_vector *vector),
                             void *context)
{
    uint32_t done = 0;

    while (done < vectors->count &&
           (next == NULL || next->time - vectors->waiting[done].event.position.time > BLOCKS_LONG))
        each(context, &vectors->waiting[done++]);
    vectors->count -= done;
    memmove(vectors->waiting, vectors->waiting + done,
            vectors->count * sizeof(vectors->waiting[0]));
}
