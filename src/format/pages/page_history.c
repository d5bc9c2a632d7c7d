// SPDX-License-Identifier: MIT
/* page_history.c - which windows have contents of a page: made on first use, of all pages, or
 * before that of some
 *
 * Who changes one place of a long trace asks about few pages, and goes: the whole would take longer
 * than all it does. */
#include "format/pages/pages_private.h"

#include "base/array.h"

#include <stdlib.h>

static bool history_add(struct page_history *h, uint64_t page, uint32_t window, uint32_t kinds)
{
    uint32_t *last;

    if (!tbd_array_grow(&h->visits, h->visit_count, &h->visit_capacity, sizeof(*h->visits)))
        return false;
    last = tbd_page_numbers_at(&h->last, page);
    if (!last)
        return false;
    h->visits[h->visit_count] =
        (struct page_visit){ .window = window, .kinds = kinds, .before = *last };
    *last = (uint32_t)++h->visit_count;
    return true;
}

/* Visits of one page come to lie together, oldest first: `before` turns into places. */
static bool history_sort(struct page_history *h)
{
    struct page_visit *sorted = malloc((h->visit_count + 1) * sizeof(*sorted));
    uint32_t at = 0;

    if (!sorted)
        return false;
    for (size_t slot = 0; slot < h->last.slots; slot++) {
        uint32_t count = 0;

        if (!h->last.keys[slot])
            continue;
        for (uint32_t i = h->last.numbers[slot]; i; i = h->visits[i - 1].before)
            count++;
        at += count;
        for (uint32_t i = h->last.numbers[slot], to = at; i; i = h->visits[i - 1].before) {
            sorted[--to] = h->visits[i - 1];
            sorted[to].before = count;
        }
        h->last.numbers[slot] = at;
    }
    free(h->visits);
    h->visits = sorted;
    return true;
}

/* Walks the pages of a window that the index names. */
struct page_walk {
    struct tbd_reader in;
    uint64_t page;
    uint32_t kinds;
};

static struct page_walk walk_pages(const struct tbd_trace *trace, uint32_t window)
{
    const uint8_t *pages = trace->windows[window].pages;

    return (struct page_walk){ { pages, pages + trace->windows[window].pages_bytes, false }, 0, 0 };
}

/* False: there are no more, or (`failed`) what follows is impossible. */
static bool walk_next(struct page_walk *walk)
{
    uint64_t value;

    if (walk->in.at >= walk->in.end)
        return false;
    value = tbd_reader_varint(&walk->in);
    walk->page += value >> 2;
    walk->kinds = value & 3;
    walk->in.failed |= walk->page >= TBD_USER_END / 4096;
    return !walk->in.failed;
}

/* `only` NULL: all pages. */
static enum tbd_status make(struct tbd_trace *trace, uint32_t windows,
                            const struct tbd_page_numbers *only)
{
    struct page_history *h = &trace->history;

    for (uint32_t w = 0; w < windows; w++) {
        struct page_walk walk = walk_pages(trace, w);

        while (walk_next(&walk))
            if ((!only || tbd_page_numbers_find(only, walk.page * 4096)) &&
                !history_add(h, walk.page, w, walk.kinds))
                return TBD_NOMEM;
        if (walk.in.failed)
            return TBD_CORRUPT;
    }
    if (!history_sort(h))
        return TBD_NOMEM;
    h->made = true;
    return TBD_OK;
}

enum tbd_status tbd_page_history_make(struct tbd_trace *trace)
{
    return trace->history.made ? TBD_OK : make(trace, (uint32_t)trace->window_count, NULL);
}

void tbd_page_history_free(struct page_history *h)
{
    tbd_page_numbers_free(&h->last);
    free(h->visits);
    *h = (struct page_history){ 0 };
}

enum tbd_status tbd_page_history_begin(struct tbd_trace *trace, uint32_t first, uint32_t count)
{
    struct tbd_page_numbers pages = { 0 };
    enum tbd_status status = TBD_OK;

    if (trace->history.made)
        return TBD_OK;
    for (uint32_t i = 0; i < count && !status; i++) {
        struct page_walk walk = walk_pages(trace, first + i);

        while (walk_next(&walk))
            if (!tbd_page_numbers_put(&pages, walk.page * 4096, i))
                status = TBD_NOMEM;
    }
    if (!status)
        status = make(trace, first + count, &pages);
    tbd_page_numbers_free(&pages);
    trace->history.is_partial = true;
    return status;
}

void tbd_page_history_end(struct tbd_trace *trace)
{
    if (trace->history.is_partial)
        tbd_page_history_free(&trace->history);
}

/* The page's visits, oldest first, as [*out_begin, end); NULL if it has none. */
const struct page_visit *tbd_page_history_of(const struct page_history *h, uint64_t address,
                                             const struct page_visit **out_begin)
{
    const uint32_t *last = tbd_page_numbers_find(&h->last, address / 4096);
    const struct page_visit *end;

    if (!last)
        return NULL;
    end = h->visits + *last;
    *out_begin = end - end[-1].before;
    return end;
}

/* First visit in or after `window`. */
const struct page_visit *tbd_page_visit_from(const struct page_visit *begin,
                                             const struct page_visit *end, uint32_t window)
{
    while (begin < end) {
        const struct page_visit *middle = begin + (end - begin) / 2;

        if (middle->window < window)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}
