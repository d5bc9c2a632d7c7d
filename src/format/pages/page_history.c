// SPDX-License-Identifier: MIT
/* page_history.c - which windows have contents of a page: a table made on first use, of all pages
 * or of some
 *
 * A change of one window in a long trace asks about few pages: a table of all pages would take
 * longer than the change. */
#include "format/pages/page_base.h"

#include "base/array.h"
#include "format/files/page_list.h"
#include "format/pages/pages_private.h"
#include "format/trace/trace_index.h"

#include <stdlib.h>

static bool history_add(struct tbd_page_history *h, uint64_t page, uint32_t window, uint32_t kinds)
{
    uint32_t *last;

    if (!tbd_array_grow(&h->visits, h->visit_count, &h->visit_capacity, sizeof(*h->visits)))
        return false;
    last = tbd_page_numbers_at(&h->last, page);
    if (!last)
        return false;
    h->visits[h->visit_count] =
        (struct tbd_page_visit){ .window = window, .kinds = kinds, .before = *last };
    *last = (uint32_t)++h->visit_count;
    return true;
}

/* Sorts the visits by page, oldest first: `before` becomes an index of the sorted visits. */
static bool history_sort(struct tbd_page_history *h)
{
    struct tbd_page_visit *sorted = malloc((h->visit_count + 1) * sizeof(*sorted));
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

/* The pages of a window that the index names. */
static struct tbd_page_walk walk_pages(const struct tbd_trace *trace, uint32_t window)
{
    const struct tbd_index_window *of = &tbd_trace_index(trace)->windows[window];

    return tbd_page_list_walk(of->pages, of->pages_bytes);
}

/* `only` NULL: all pages. */
static enum tbd_status make(const struct tbd_trace *trace, uint32_t windows,
                            const struct tbd_page_numbers *only, struct tbd_page_history *h)
{
    for (uint32_t w = 0; w < windows; w++) {
        struct tbd_page_walk walk = walk_pages(trace, w);

        while (tbd_page_walk_next(&walk))
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

enum tbd_status tbd_page_history_locked(struct tbd_trace *trace,
                                        const struct tbd_page_history **out)
{
    struct tbd_trace_pages *pages = tbd_trace_pages_locked(trace);

    if (!pages)
        return TBD_NOMEM;
    *out = &pages->history;
    return pages->history.made ? TBD_OK
                               : make(trace, tbd_trace_window_count(trace), NULL, &pages->history);
}

void tbd_page_history_free(struct tbd_page_history *h)
{
    tbd_page_numbers_free(&h->last);
    free(h->visits);
    *h = (struct tbd_page_history){ 0 };
}

static enum tbd_status make_partial(const struct tbd_trace *trace, uint32_t first, uint32_t count,
                                    struct tbd_page_history *h)
{
    struct tbd_page_numbers pages = { 0 };
    enum tbd_status status = TBD_OK;

    for (uint32_t i = 0; i < count && !status; i++) {
        struct tbd_page_walk walk = walk_pages(trace, first + i);

        while (tbd_page_walk_next(&walk))
            if (!tbd_page_numbers_put(&pages, walk.page * 4096, i))
                status = TBD_NOMEM;
    }
    if (!status)
        status = make(trace, first + count, &pages, h);
    tbd_page_numbers_free(&pages);
    h->is_partial = true;
    return status;
}

enum tbd_status tbd_page_history_begin(struct tbd_trace *trace, uint32_t first, uint32_t count)
{
    struct tbd_trace_pages *pages;
    enum tbd_status status = TBD_NOMEM;

    tbd_trace_lock(trace);
    pages = tbd_trace_pages_locked(trace);
    if (pages)
        status = pages->history.made ? TBD_OK : make_partial(trace, first, count, &pages->history);
    tbd_trace_unlock(trace);
    return status;
}

void tbd_page_history_end(struct tbd_trace *trace)
{
    struct tbd_trace_pages *pages;

    tbd_trace_lock(trace);
    pages = tbd_trace_pages_locked(trace);
    if (pages && pages->history.is_partial)
        tbd_page_history_free(&pages->history);
    tbd_trace_unlock(trace);
}

/* The page's visits, oldest first, as [*out_begin, end); NULL if it has none. */
const struct tbd_page_visit *tbd_page_history_of(const struct tbd_page_history *h, uint64_t address,
                                                 const struct tbd_page_visit **out_begin)
{
    const uint32_t *last = tbd_page_numbers_find(&h->last, address / 4096);
    const struct tbd_page_visit *end;

    if (!last)
        return NULL;
    end = h->visits + *last;
    *out_begin = end - end[-1].before;
    return end;
}

/* First visit in or after `window`. */
const struct tbd_page_visit *tbd_page_visit_from(const struct tbd_page_visit *begin,
                                                 const struct tbd_page_visit *end, uint32_t window)
{
    while (begin < end) {
        const struct tbd_page_visit *middle = begin + (end - begin) / 2;

        if (middle->window < window)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}
