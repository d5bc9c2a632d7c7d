// SPDX-License-Identifier: MIT
/* page_history.c - which windows have contents of a page: made on first use */
#include "format/pages_private.h"

#include <stdlib.h>

static size_t slot_of(const struct page_history *h, uint64_t key)
{
    size_t slot = (size_t)((key * 0x9e3779b97f4a7c15ull) >> 20) & (h->slots - 1);

    while (h->keys[slot] && h->keys[slot] != key)
        slot = (slot + 1) & (h->slots - 1);
    return slot;
}

static bool history_grow(struct page_history *h)
{
    struct page_history bigger = *h;

    bigger.slots = h->slots ? h->slots * 2 : 4096;
    bigger.keys = calloc(bigger.slots, sizeof(*h->keys));
    bigger.last = calloc(bigger.slots, sizeof(*h->last));
    if (!bigger.keys || !bigger.last) {
        free(bigger.keys);
        free(bigger.last);
        return false;
    }
    for (size_t i = 0; i < h->slots; i++) {
        size_t slot;

        if (!h->keys[i])
            continue;
        slot = slot_of(&bigger, h->keys[i]);
        bigger.keys[slot] = h->keys[i];
        bigger.last[slot] = h->last[i];
    }
    free(h->keys);
    free(h->last);
    *h = bigger;
    return true;
}

static bool history_add(struct page_history *h, uint64_t page, uint32_t window, uint32_t kinds)
{
    size_t slot;

    if (h->used * 2 >= h->slots && !history_grow(h))
        return false;
    if (h->visit_count == h->visit_capacity) {
        size_t capacity = h->visit_capacity * 2 + 1024;
        struct page_visit *grown = realloc(h->visits, capacity * sizeof(*grown));

        if (!grown)
            return false;
        h->visits = grown;
        h->visit_capacity = capacity;
    }
    slot = slot_of(h, page + 1);
    if (!h->keys[slot]) {
        h->keys[slot] = page + 1;
        h->used++;
    }
    h->visits[h->visit_count] =
        (struct page_visit){ .window = window, .kinds = kinds, .before = h->last[slot] };
    h->last[slot] = (uint32_t)++h->visit_count;
    return true;
}

/* Visits of one page come to lie together, oldest first: `before` turns into places. */
static bool history_sort(struct page_history *h)
{
    struct page_visit *sorted = malloc((h->visit_count + 1) * sizeof(*sorted));
    uint32_t at = 0;

    if (!sorted)
        return false;
    for (size_t slot = 0; slot < h->slots; slot++) {
        uint32_t count = 0;

        if (!h->keys[slot])
            continue;
        for (uint32_t i = h->last[slot]; i; i = h->visits[i - 1].before)
            count++;
        at += count;
        for (uint32_t i = h->last[slot], to = at; i; i = h->visits[i - 1].before) {
            sorted[--to] = h->visits[i - 1];
            sorted[to].before = count;
        }
        h->last[slot] = at;
    }
    free(h->visits);
    h->visits = sorted;
    return true;
}

enum tbd_status tbd_page_history_make(struct tbd_trace *trace)
{
    struct page_history *h = &trace->history;

    if (h->made)
        return TBD_OK;
    for (uint32_t w = 0; w < trace->window_count; w++) {
        struct tbd_reader in = { trace->windows[w].pages,
                                 trace->windows[w].pages + trace->windows[w].pages_bytes, false };
        uint64_t page = 0;

        while (in.at < in.end) {
            uint64_t value = tbd_reader_varint(&in);

            page += value >> 2;
            if (in.failed || page >= TBD_USER_END / 4096)
                return TBD_CORRUPT;
            if (!history_add(h, page, w, value & 3))
                return TBD_NOMEM;
        }
    }
    if (!history_sort(h))
        return TBD_NOMEM;
    h->made = true;
    return TBD_OK;
}

/* The page's visits, oldest first, as [*out_begin, end); NULL if it has none. */
const struct page_visit *tbd_page_history_of(const struct page_history *h, uint64_t address,
                                             const struct page_visit **out_begin)
{
    size_t slot = h->slots ? slot_of(h, address / 4096 + 1) : 0;
    const struct page_visit *end;

    if (!h->slots || !h->keys[slot])
        return NULL;
    end = h->visits + h->last[slot];
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
