// SPDX-License-Identifier: MIT
/* pages.c - what a page, or any bytes, held at a moment (T20), without replay
 *
 * A page's contents at a moment follow from, in this order (docs/FORMAT.md, "Memory"):
 *   1. its last capture at the end of an earlier window, since its mapping began
 *   2. its first-use contents, from an earlier or a later window, while the mapping lasts
 *   3. the initial image, or zeroes for fresh anonymous memory, or the trace's copy of the mapped
 *      file
 * Bytes inside a window: the next later store's old value; else the page's capture in that window;
 * else the page was not modified in it, and the above applies.
 *
 * Invariants
 * M1  Captures from before a piece of a mapping was born, or from after it was unmapped, are never
 *     used. */
#include "format/summaries.h"
#include "format/trace_private.h"
#include "format/window.h"
#include "format/window_private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- which windows have contents of a page: made on first use ---- */

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

static enum tbd_status history_make(struct tbd_trace *trace)
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
static const struct page_visit *history_of(const struct page_history *h, uint64_t address,
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

static void close_toc(struct tbd_trace *trace, size_t window)
{
    if (!trace->tocs[window])
        return;
    tbd_toc_close(trace->tocs[window]);
    free(trace->tocs[window]);
    trace->tocs[window] = NULL;
    trace->toc_count--;
}

void tbd_trace_forget_toc(struct tbd_trace *trace, uint32_t window)
{
    pthread_mutex_lock(&trace->lock);
    if (window < trace->toc_slots)
        close_toc(trace, window);
    pthread_mutex_unlock(&trace->lock);
}

void tbd_pages_free(struct tbd_trace *trace)
{
    free(trace->history.keys);
    free(trace->history.last);
    free(trace->history.visits);
    for (size_t i = 0; i < trace->toc_slots; i++)
        close_toc(trace, i);
    free(trace->tocs);
    for (size_t i = 0; i < trace->copy_count; i++)
        munmap((void *)(uintptr_t)trace->copies[i].bytes, trace->copies[i].size);
    free(trace->copies);
    tbd_toc_close(&trace->image);
}

/* ---- TOCs that stay open for a while ---- */

/* Makes room for `window` in the list. */
static bool reserve_tocs(struct tbd_trace *trace, uint32_t window)
{
    size_t slots = window + window / 2 + 64;
    struct toc **grown;

    if (window < trace->toc_slots)
        return true;
    grown = realloc(trace->tocs, slots * sizeof(*grown));
    if (!grown)
        return false;
    memset(grown + trace->toc_slots, 0, (slots - trace->toc_slots) * sizeof(*grown));
    trace->tocs = grown;
    trace->toc_slots = slots;
    return true;
}

/* Too many are open: those that were not used for longest are closed, half of all. */
static void close_old_tocs(struct tbd_trace *trace)
{
    for (size_t i = 0; i < trace->toc_slots; i++)
        if (trace->tocs[i] && trace->toc_clock - trace->tocs[i]->used > TOC_CACHE / 2)
            close_toc(trace, i);
}

static struct toc *toc_of(struct tbd_trace *trace, uint32_t window)
{
    struct toc *toc;

    trace->toc_failure = TBD_NOMEM;
    if (!reserve_tocs(trace, window))
        return NULL;
    toc = trace->tocs[window];
    if (toc) {
        toc->used = trace->toc_clock;
        return toc;
    }
    if (trace->toc_count >= TOC_CACHE)
        close_old_tocs(trace);
    toc = malloc(sizeof(*toc));
    trace->toc_failure = toc ? tbd_toc_open(trace, window, toc, NULL) : TBD_NOMEM;
    if (trace->toc_failure) {
        free(toc);
        return NULL;
    }
    toc->used = ++trace->toc_clock;
    trace->tocs[window] = toc;
    trace->toc_count++;
    return toc;
}

enum tbd_status tbd_trace_find_word(struct tbd_trace *trace, uint32_t window, uint64_t word,
                                    struct tbd_word_summary *out)
{
    enum tbd_status status;
    const struct toc *toc;

    if (window >= trace->window_count)
        return TBD_NOWINDOW;
    pthread_mutex_lock(&trace->lock);
    toc = toc_of(trace, window);
    status = trace->toc_failure;
    if (toc && toc->words.payload) {
        status = tbd_words_find(&toc->words, toc->meta.window.window, word & ~7ull, out);
        out->previous = status ? 0 : tbd_place_of(trace, out->previous);
    } else if (toc) {
        *out = (struct tbd_word_summary){ .word = word & ~7ull, .count = 1 };
        status = tbd_word_bits_find(&toc->word_bits, word);
    }
    pthread_mutex_unlock(&trace->lock);
    return status;
}

enum tbd_status tbd_trace_find_block(struct tbd_trace *trace, uint32_t window, uint32_t id,
                                     struct tbd_block_summary *out)
{
    enum tbd_status status;
    const struct toc *toc;

    if (window >= trace->window_count)
        return TBD_NOWINDOW;
    pthread_mutex_lock(&trace->lock);
    toc = toc_of(trace, window);
    status = trace->toc_failure;
    if (toc && toc->block_summaries.payload) {
        status = tbd_block_summaries_find(&toc->block_summaries, toc->meta.window.window, id, out);
        out->previous = status ? 0 : tbd_place_of(trace, out->previous);
    } else if (toc) {
        *out = (struct tbd_block_summary){ .id = id, .count = 1 };
        status = tbd_block_bits_find(&toc->block_bits, id);
        out->enters = tbd_block_bits_find(&toc->called_bits, id) == TBD_OK;
    }
    pthread_mutex_unlock(&trace->lock);
    return status;
}

/* ---- one page at a moment, if its window does not modify it after that moment ---- */

struct page_query {
    uint64_t address;
    struct tbd_moment at;
    struct tbd_moment died; /* its mapping ends; window UINT32_MAX: never */
    const struct region_piece *piece;
};

static struct tbd_moment moment_of_page(uint32_t window, const struct tbd_disk_page *page)
{
    return (struct tbd_moment){ window, page->order, page->time };
}

static enum tbd_status page_before(struct tbd_trace *trace, uint32_t window, uint64_t address,
                                   uint8_t *out, struct tbd_page_base *how);

/* Contents of an entry of this window's table, whatever they are stored as. */
static enum tbd_status page_of_entry(struct tbd_trace *trace, const struct toc *toc,
                                     const struct tbd_disk_page *page, uint8_t *out)
{
    enum tbd_status status = tbd_toc_page(toc, page, out);
    uint8_t before[4096];

    if (status || !(page->flags & TBD_DISK_PAGE_DELTA))
        return status;
    status = page_before(trace, toc->window, page->address, before, NULL);
    if (status)
        return TBD_CORRUPT;
    tbd_page_xor(out, before);
    return TBD_OK;
}

static enum tbd_status from_earlier(struct tbd_trace *trace, const struct page_query *q,
                                    uint32_t window, uint8_t *out)
{
    struct toc *toc = toc_of(trace, window);
    const struct tbd_disk_page *pages;
    const struct tbd_disk_page *best = NULL;
    size_t count;

    if (!toc)
        return trace->toc_failure;
    pages = tbd_toc_find_page(toc, q->address, &count);
    for (size_t i = 0; i < count; i++) {
        struct tbd_moment then = moment_of_page(window, pages + i);

        if (pages[i].flags & TBD_DISK_PAGE_END)
            return page_of_entry(trace, toc, pages + i, out);
        /* GONE: sent before it became unreadable, say; its mapping is still the same. */
        if (pages[i].flags & (TBD_DISK_PAGE_FIRST | TBD_DISK_PAGE_GONE) &&
            tbd_moment_compare(&then, &q->piece->born) >= 0)
            best = pages + i;
    }
    return best ? tbd_toc_page(toc, best, out) : TBD_NOTFOUND;
}

static enum tbd_status from_first_use(struct tbd_trace *trace, const struct page_query *q,
                                      uint32_t window, uint8_t *out)
{
    struct toc *toc = toc_of(trace, window);
    const struct tbd_disk_page *pages;
    size_t count;

    if (!toc)
        return trace->toc_failure;
    pages = tbd_toc_find_page(toc, q->address, &count);
    for (size_t i = 0; i < count; i++) {
        struct tbd_moment then = moment_of_page(window, pages + i);

        if (pages[i].flags & TBD_DISK_PAGE_FIRST &&
            tbd_moment_compare(&then, &q->piece->born) >= 0 &&
            tbd_moment_compare(&then, &q->died) < 0)
            return tbd_toc_page(toc, pages + i, out);
    }
    return TBD_NOTFOUND;
}

/* First visit in or after `window`. */
static const struct page_visit *visit_from(const struct page_visit *begin,
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

/* The last entry of the page in a window's table: contents after which none are known in it. */
static const struct tbd_disk_page *last_entry(const struct toc *toc, uint64_t address)
{
    size_t count;
    const struct tbd_disk_page *pages = tbd_toc_find_page(toc, address, &count);
    const struct tbd_disk_page *last = count ? pages + count - 1 : NULL;

    for (size_t i = 0; i < count; i++)
        if (pages[i].flags & TBD_DISK_PAGE_END)
            last = pages + i;
    return last;
}

/* What the page held when the window began, if the window's own table says so. */
static const struct tbd_disk_page *entry_at_start(const struct toc *toc, uint64_t address)
{
    size_t count;
    const struct tbd_disk_page *pages = tbd_toc_find_page(toc, address, &count);

    for (size_t i = 0; i < count; i++)
        if (pages[i].flags & TBD_DISK_PAGE_FIRST && !pages[i].time && !pages[i].order)
            return pages + i;
    return NULL;
}

/* An image that cannot be read must not pass for one that lacks a page. */
static enum tbd_status open_image(struct tbd_trace *trace)
{
    if (!trace->image_tried) {
        trace->image_tried = true;
        trace->image_failure = tbd_image_open(trace, &trace->image, NULL);
        if (trace->image_failure == TBD_NOTRACE) /* windows were dropped meanwhile */
            trace->image_failure = TBD_BUSY;
    }
    return trace->image_failure;
}

static enum tbd_status page_in_image(struct tbd_trace *trace, uint64_t address, uint8_t *out)
{
    enum tbd_status status = open_image(trace);
    const struct tbd_disk_page *page;
    size_t count;

    if (status)
        return status;
    page = tbd_toc_find_page(&trace->image, address, &count);
    return count ? tbd_toc_page(&trace->image, page, out) : TBD_NOTFOUND;
}

/* One step back: the entry that what is wanted at the start of `window` is in, or NULL.  Windows
 * before `*io_visit` have not been looked at. */
static const struct tbd_disk_page *step_back(struct tbd_trace *trace, uint32_t window,
                                             uint64_t address, const struct page_visit *begin,
                                             const struct page_visit **io_visit,
                                             struct toc **out_toc)
{
    const struct tbd_disk_page *page = NULL;

    *out_toc = toc_of(trace, window);
    if (*out_toc)
        page = entry_at_start(*out_toc, address);
    while (!page && *out_toc && *io_visit > begin) {
        --*io_visit;
        *out_toc = toc_of(trace, (*io_visit)->window);
        if (*out_toc)
            page = last_entry(*out_toc, address);
    }
    return page;
}

/* Differences are put together on the way back, until contents are found that are whole. */
static enum tbd_status page_before(struct tbd_trace *trace, uint32_t window, uint64_t address,
                                   uint8_t *out, struct tbd_page_base *how)
{
    const struct page_visit *begin = NULL, *visit, *end;
    struct tbd_page_base found = { 0 };
    enum tbd_status status = history_make(trace);
    uint8_t part[4096];

    if (status)
        return status;
    end = history_of(&trace->history, address, &begin);
    visit = end ? visit_from(begin, end, window) : NULL;
    memset(out, 0, 4096);
    for (bool is_first = true;; is_first = false) {
        struct toc *toc = NULL;
        const struct tbd_disk_page *page =
            end ? step_back(trace, window, address, begin, &visit, &toc) : NULL;

        if (end && !toc)
            return trace->toc_failure;
        status = page ? tbd_toc_page(toc, page, part) : page_in_image(trace, address, part);
        if (status)
            return status;
        tbd_page_xor(out, part);
        if (is_first && page)
            found.from = page->flags & TBD_DISK_PAGE_END
                             ? (struct tbd_moment){ toc->window, UINT32_MAX, UINT64_MAX }
                             : moment_of_page(toc->window, page);
        if (is_first)
            found.from_image = !page;
        if (!page || !(page->flags & TBD_DISK_PAGE_DELTA))
            break;
        found.depth++;
        window = toc->window;
    }
    if (how)
        *how = found;
    return TBD_OK;
}

enum tbd_status tbd_trace_page_base(struct tbd_trace *trace, uint32_t index, uint64_t address,
                                    uint8_t *out, struct tbd_page_base *how)
{
    enum tbd_status status;

    pthread_mutex_lock(&trace->lock);
    status = page_before(trace, index, address, out, how);
    pthread_mutex_unlock(&trace->lock);
    return status;
}

bool tbd_trace_delta_base(struct tbd_trace *trace, uint32_t first, uint32_t last, uint64_t address,
                          uint32_t depth, uint8_t *out)
{
    struct tbd_moment end = { last, UINT32_MAX, UINT64_MAX };
    const struct region_piece *piece = NULL;
    struct tbd_page_base how;
    bool good;

    pthread_mutex_lock(&trace->lock);
    good = !tbd_regions_at_locked(trace, tbd_region_events_before(trace, &end));
    if (good)
        piece = tbd_region_find(&trace->regions, address);
    good = piece && (piece->initial || piece->born.window < first) &&
           !page_before(trace, first, address, out, &how) && how.depth < depth &&
           (how.from_image ? piece->initial
                           : tbd_moment_compare(&how.from, &piece->born) >= 0);
    pthread_mutex_unlock(&trace->lock);
    return good;
}

enum tbd_status tbd_trace_page_for_image(struct tbd_trace *trace, uint32_t first, uint64_t address,
                                         uint8_t *out)
{
    struct tbd_moment start = { .window = first };
    const struct region_piece *piece = NULL;
    struct tbd_page_base how;
    enum tbd_status status;

    pthread_mutex_lock(&trace->lock);
    status = tbd_regions_at_locked(trace, tbd_region_events_before(trace, &start));
    if (!status)
        piece = tbd_region_find(&trace->regions, address);
    if (!status)
        status = piece ? page_before(trace, first, address, out, &how) : TBD_NOTFOUND;
    if (!status && !how.from_image && how.from.window == first)
        status = TBD_NOTFOUND;
    if (!status && (how.from_image ? !piece->initial
                                   : tbd_moment_compare(&how.from, &piece->born) < 0))
        status = TBD_NOTFOUND;
    pthread_mutex_unlock(&trace->lock);
    return status;
}

enum tbd_status tbd_trace_known_pages(struct tbd_trace *trace, uint32_t first, uint64_t **out,
                                      size_t *out_count)
{
    enum tbd_status status = history_make(trace);
    const struct page_history *h = &trace->history;
    size_t count = 0;

    if (!status)
        status = open_image(trace);
    if (status)
        return status;
    *out = malloc((h->used + trace->image.page_count + 1) * sizeof(**out));
    if (!*out)
        return TBD_NOMEM;
    for (size_t i = 0; i < trace->image.page_count; i++)
        (*out)[count++] = trace->image.pages[i].address;
    for (size_t slot = 0; slot < h->slots; slot++) {
        const struct page_visit *end = h->visits + h->last[slot];

        if (h->keys[slot] && end[-(ptrdiff_t)end[-1].before].window < first)
            (*out)[count++] = (h->keys[slot] - 1) * 4096;
    }
    *out_count = count;
    return TBD_OK;
}

static enum tbd_status from_windows(struct tbd_trace *trace, const struct page_query *q,
                                    uint8_t *out)
{
    enum tbd_status status = history_make(trace);
    const struct page_visit *begin, *end, *here;
    enum tbd_status found;

    if (status)
        return status;
    end = history_of(&trace->history, q->address, &begin);
    if (!end)
        return TBD_NOTFOUND;
    here = visit_from(begin, end, q->at.window);
    for (const struct page_visit *visit = here; visit-- > begin;) {
        if (visit->window < q->piece->born.window)
            break;
        if (tbd_damage_between(trace, visit->window + 1, q->at.window))
            return TBD_NOTKEPT;
        found = from_earlier(trace, q, visit->window, out);
        if (found != TBD_NOTFOUND)
            return found;
    }
    for (; here < end && here->window <= q->died.window; here++) {
        if (here->kinds & TBD_PAGES_FIRST)
            return from_first_use(trace, q, here->window, out);
        if (here->window > q->at.window) /* modified when its contents were known already */
            break;
    }
    return TBD_NOTFOUND;
}

static enum tbd_status from_image(struct tbd_trace *trace, const struct page_query *q, uint8_t *out)
{
    return q->piece->initial ? page_in_image(trace, q->address, out) : TBD_NOTFOUND;
}

/* The trace's own copy of a file, mapped until the trace is closed.  NULL when it cannot be. */
static const struct mapped_copy *copy_of(struct tbd_trace *trace, const char *path)
{
    struct mapped_copy *grown, *copy;
    struct stat status;
    int fd;

    for (size_t i = 0; i < trace->copy_count; i++)
        if (!strcmp(trace->copies[i].path, path))
            return &trace->copies[i];
    grown = realloc(trace->copies, (trace->copy_count + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    trace->copies = grown;
    copy = &grown[trace->copy_count];
    *copy = (struct mapped_copy){ .path = path };
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &status) && status.st_size > 0) {
        copy->size = (size_t)status.st_size;
        copy->bytes = mmap(NULL, copy->size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (fd >= 0)
        close(fd);
    if (!copy->size || copy->bytes == MAP_FAILED)
        return NULL;
    trace->copy_count++;
    return copy;
}

static enum tbd_status from_file(struct tbd_trace *trace, const struct page_query *q, uint8_t *out)
{
    const struct tbd_region *region = &q->piece->region;
    uint64_t offset = region->file_offset + (q->address - region->start);
    const struct mapped_copy *copy = region->copy ? copy_of(trace, region->copy) : NULL;
    size_t there = 0;

    if (!copy)
        return TBD_NOTFOUND;
    if (offset < copy->size)
        there = copy->size - offset < 4096 ? copy->size - offset : 4096;
    if (there)
        memcpy(out, copy->bytes + offset, there);
    memset(out + there, 0, 4096 - there);
    return TBD_OK;
}

static bool is_zero_at_birth(const struct region_piece *piece)
{
    const struct tbd_region *region = &piece->region;

    if (region->flags & (TBD_REGION_VDSO | TBD_REGION_VVAR))
        return false;
    if (region->flags & TBD_REGION_ANON_ZERO)
        return true;
    if (region->flags & TBD_DISK_REGION_UNKNOWN)
        return false;
    return piece->initial && !region->inode && (region->map_flags & MAP_PRIVATE);
}

/* When is the page's mapping taken away after `at`? */
static struct tbd_moment moment_of_death(const struct tbd_trace *trace, uint64_t address,
                                         size_t events)
{
    for (size_t i = events; i < trace->region_event_count; i++) {
        const struct region_event *event = &trace->region_events[i];

        if (event->unmap && event->region.start <= address && address < event->region.end)
            return (struct tbd_moment){ event->when.window, event->when.order, event->when.time };
    }
    return (struct tbd_moment){ .window = UINT32_MAX };
}

static enum tbd_status unmodified_page(struct tbd_trace *trace, const struct page_query *q,
                                       uint8_t *out)
{
    enum tbd_status status = from_windows(trace, q, out);

    if (status == TBD_NOTFOUND && tbd_damage_between(trace, q->piece->born.window, q->at.window))
        status = TBD_NOTKEPT;
    if (status == TBD_NOTFOUND)
        status = from_image(trace, q, out);
    if (status == TBD_NOTFOUND && is_zero_at_birth(q->piece)) {
        memset(out, 0, 4096);
        status = TBD_OK;
    }
    if (status == TBD_NOTFOUND)
        status = from_file(trace, q, out);
    return status == TBD_NOTFOUND ? TBD_NOTKEPT : status;
}

static enum tbd_status ask(struct tbd_trace *trace, const struct tbd_moment *at, uint64_t address,
                           struct page_query *out)
{
    size_t events = tbd_region_events_before(trace, at);
    enum tbd_status status = tbd_regions_at_locked(trace, events);

    *out = (struct page_query){ .address = address, .at = *at };
    if (status)
        return status;
    out->piece = tbd_region_find(&trace->regions, address);
    out->died = moment_of_death(trace, address, events);
    return out->piece && !(out->piece->region.flags & TBD_REGION_PATCH) ? TBD_OK : TBD_UNMAPPED;
}

static enum tbd_status page_at(struct tbd_trace *trace, const struct tbd_moment *at,
                               uint64_t address, uint8_t *out)
{
    struct page_query q;
    enum tbd_status status;

    if (at->window >= trace->window_count)
        return TBD_NOWINDOW;
    address &= ~4095ull;
    pthread_mutex_lock(&trace->lock);
    status = ask(trace, at, address, &q);
    if (!status)
        status = unmodified_page(trace, &q, out);
    pthread_mutex_unlock(&trace->lock);
    return status;
}

enum tbd_status tbd_trace_page_at_start(struct tbd_trace *trace, uint32_t index, uint64_t address,
                                        uint8_t *out)
{
    struct tbd_moment at = { .window = index };

    return page_at(trace, &at, address, out);
}

enum tbd_status tbd_trace_page_after(struct tbd_trace *trace, uint32_t index, uint64_t time,
                                     uint32_t order, uint64_t address, uint8_t *out)
{
    struct tbd_moment at = { .window = index, .order = order, .time = time };

    return page_at(trace, &at, address, out);
}

/* ---- any bytes at a position ---- */

struct reading {
    uint64_t address;
    uint8_t *out;
    uint32_t bytes;   /* inside one page */
    uint32_t missing;
    uint8_t have[4096];
    uint64_t until;   /* relative time from which on stores belong to another mapping */
};

static void take_old(struct reading *r, uint64_t address, uint64_t bytes, const uint8_t *old_bytes)
{
    uint64_t low = address > r->address ? address : r->address;
    uint64_t end = r->address + r->bytes;
    uint64_t high = address + bytes < end ? address + bytes : end;

    for (uint64_t at = low; at < high; at++) {
        uint64_t i = at - r->address;

        if (r->have[i])
            continue;
        r->have[i] = 1;
        r->out[i] = old_bytes[at - address];
        r->missing--;
    }
}

static void take_message(struct reading *r, const struct tbd_message *message)
{
    struct tbd_write_cursor cursor;
    struct tbd_write_view write;
    struct tbd_message head;

    memcpy(&head, message, sizeof(head));
    tbd_writes_first(head.kind, (const uint8_t *)message + sizeof(head), head.bytes, &cursor);
    while (tbd_writes_next(&cursor, &write))
        if (write.old_bytes)
            take_old(r, write.address, write.bytes, write.old_bytes);
}

/* Highest event index at which a store touches [address, address + bytes), plus 1; 0 if none
 * does. */
static uint64_t last_touch(const struct tbd_window *window, uint64_t address, uint64_t bytes)
{
    uint64_t last = 0;
    size_t low = 0;
    size_t high = window->word_count;

    if (!window->words)
        return UINT64_MAX;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (window->words[middle].word < (address & ~7ull))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < window->word_count && window->words[low].word < address + bytes; low++)
        if (window->words[low].last + 1ull > last)
            last = window->words[low].last + 1ull;
    return window->has_loads && last ? UINT64_MAX : last;
}

/* Old bytes of stores at or after `pos`. */
static void take_later_stores(struct reading *r, const struct tbd_window *window,
                              struct tbd_position pos)
{
    uint64_t last = last_touch(window, r->address, r->bytes);
    struct tbd_cursor c;

    if (!last || !tbd_cursor_seek(window, pos.time, &c))
        return;
    for (; c.kind != TBD_AT_END && c.index < last && r->missing; tbd_cursor_next(&c)) {
        if (c.time - window->first_time >= r->until)
            return;
        if (c.kind == TBD_AT_MESSAGE)
            take_message(r, c.message);
        else if (c.kind == TBD_AT_OP && c.op->kind == TBD_OP_STORE &&
                 (c.time > pos.time || c.op->insn >= pos.offset))
            take_old(r, tbd_cursor_address(&c), c.op->size, c.record + c.op->data);
    }
}

static const struct tbd_page_contents *capture_after(const struct tbd_window *window,
                                                     const struct page_query *q)
{
    struct tbd_moment end = { .window = window->index, .time = UINT64_MAX };

    for (size_t i = 0; i < window->gone_count; i++) {
        const struct tbd_page_contents *page = &window->gone[i];
        struct tbd_moment then = { window->index, page->order, page->time };

        if (page->address == q->address && tbd_moment_compare(&then, &q->at) > 0 &&
            tbd_moment_compare(&then, &q->died) < 0)
            return page;
    }
    if (tbd_moment_compare(&end, &q->died) > 0)
        return NULL;
    for (size_t low = 0, high = window->dirty_count; low < high;) {
        size_t middle = low + (high - low) / 2;

        if (window->dirty[middle].address == q->address)
            return &window->dirty[middle];
        if (window->dirty[middle].address < q->address)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Does a store of this window touch bytes that no later store tells?  Then, without an end state
 * (the program was killed, and the window is not replayed), nobody knows what it left there. */
static bool is_lost(const struct tbd_window *window, const struct reading *r)
{
    if (window->complete)
        return false;
    for (uint32_t i = 0; i < r->bytes; i++)
        if (!r->have[i] && last_touch(window, r->address + i, 1))
            return true;
    return false;
}

static enum tbd_status take_rest(struct tbd_trace *trace, struct reading *r,
                                 const struct tbd_window *window, const struct page_query *q)
{
    const struct tbd_page_contents *capture = capture_after(window, q);
    enum tbd_status status = TBD_OK;
    uint8_t page[4096];

    if (!capture && is_lost(window, r))
        return TBD_NOTKEPT;
    if (capture) {
        memcpy(page, capture->bytes, sizeof(page));
    } else {
        pthread_mutex_lock(&trace->lock);
        status = unmodified_page(trace, q, page);
        pthread_mutex_unlock(&trace->lock);
    }
    for (uint32_t i = 0; i < r->bytes && !status; i++)
        if (!r->have[i])
            r->out[i] = page[(r->address & 4095) + i];
    return status;
}

static struct tbd_moment moment_of(const struct tbd_window *window, struct tbd_position pos)
{
    struct tbd_moment at = { .window = window->index, .time = pos.time - window->first_time };
    size_t low = 0;
    size_t high = window->log_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (window->log[middle].time <= at.time)
            low = middle + 1;
        else
            high = middle;
    }
    at.order = (uint32_t)low;
    return at;
}

static enum tbd_status read_in_page(struct tbd_trace *trace, const struct tbd_window *window,
                                    struct tbd_position pos, struct reading *r)
{
    struct tbd_moment at = moment_of(window, pos);
    struct region_piece piece;
    struct page_query q;
    enum tbd_status status;

    pthread_mutex_lock(&trace->lock);
    status = ask(trace, &at, r->address & ~4095ull, &q);
    if (!status) {
        piece = *q.piece;
        q.piece = &piece;
    }
    pthread_mutex_unlock(&trace->lock);
    if (status)
        return status;
    r->until = q.died.window == window->index ? q.died.time : UINT64_MAX;
    take_later_stores(r, window, pos);
    return r->missing ? take_rest(trace, r, window, &q) : TBD_OK;
}

/* ---- bytes that the window does not store to ---- */

/* The page's next contents in this window's table, after q->at. */
static enum tbd_status captured_later(struct tbd_trace *trace, const struct page_query *q,
                                      uint8_t *out)
{
    struct tbd_moment end = { q->at.window, UINT32_MAX, UINT64_MAX };
    struct toc *toc = toc_of(trace, q->at.window);
    const struct tbd_disk_page *pages;
    size_t count;

    if (!toc)
        return trace->toc_failure;
    pages = tbd_toc_find_page(toc, q->address, &count);
    for (size_t i = 0; i < count; i++) {
        struct tbd_moment then = moment_of_page(q->at.window, pages + i);

        if (pages[i].flags & TBD_DISK_PAGE_END)
            then = end;
        if (pages[i].flags & (TBD_DISK_PAGE_END | TBD_DISK_PAGE_GONE) &&
            tbd_moment_compare(&then, &q->at) > 0 && tbd_moment_compare(&then, &q->died) < 0)
            return page_of_entry(trace, toc, pages + i, out);
    }
    return TBD_NOTFOUND;
}

static enum tbd_status untouched_page(struct tbd_trace *trace, const struct tbd_moment *at,
                                      uint64_t address, uint8_t *out)
{
    struct page_query q;
    enum tbd_status status;

    pthread_mutex_lock(&trace->lock);
    status = ask(trace, at, address, &q);
    if (!status)
        status = captured_later(trace, &q, out);
    if (status == TBD_NOTFOUND)
        status = unmodified_page(trace, &q, out);
    pthread_mutex_unlock(&trace->lock);
    return status;
}

static enum tbd_status read_untouched(struct tbd_trace *trace, const struct tbd_window *window,
                                      struct tbd_position pos, uint64_t address, uint8_t *out,
                                      size_t bytes)
{
    struct tbd_moment at = moment_of(window, pos);
    enum tbd_status status = TBD_OK;
    uint8_t page[4096];

    if (!window->complete || !window->words || last_touch(window, address, bytes))
        return TBD_NOTKEPT;
    while (bytes && !status) {
        size_t part = 4096 - (address & 4095) < bytes ? 4096 - (address & 4095) : bytes;

        status = untouched_page(trace, &at, address & ~4095ull, page);
        if (!status)
            memcpy(out, page + (address & 4095), part);
        address += part;
        out += part;
        bytes -= part;
    }
    return status;
}

enum tbd_status tbd_trace_read_untouched(struct tbd_trace *trace, uint32_t index,
                                         struct tbd_position pos, uint64_t address, void *out,
                                         size_t bytes)
{
    struct tbd_window *window;
    enum tbd_status status;

    if (bytes > TBD_USER_END || address > TBD_USER_END - bytes)
        return TBD_UNMAPPED;
    status = tbd_window_load_summaries(trace, index, &window, NULL);
    if (!status && (pos.time < window->first_time || pos.time - window->first_time > window->blocks))
        status = TBD_NOTIME;
    if (!status)
        status = read_untouched(trace, window, pos, address, out, bytes);
    tbd_window_free(window);
    return status;
}

/* ---- any bytes ---- */

enum tbd_status tbd_trace_read(struct tbd_trace *trace, const struct tbd_window *window,
                               struct tbd_position pos, uint64_t address, void *out, size_t bytes)
{
    uint8_t *at = out;

    if (pos.time < window->first_time || pos.time - window->first_time > window->blocks)
        return TBD_NOTIME;
    if (bytes > TBD_USER_END || address > TBD_USER_END - bytes)
        return TBD_UNMAPPED;
    while (bytes) {
        struct reading r = { .address = address, .out = at };
        enum tbd_status status;

        r.bytes = (uint32_t)(4096 - (address & 4095));
        if (r.bytes > bytes)
            r.bytes = (uint32_t)bytes;
        r.missing = r.bytes;
        status = read_in_page(trace, window, pos, &r);
        if (status)
            return status;
        address += r.bytes;
        at += r.bytes;
        bytes -= r.bytes;
    }
    return TBD_OK;
}
