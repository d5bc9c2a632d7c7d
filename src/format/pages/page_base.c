// SPDX-License-Identifier: MIT
/* page_base.c - a page's latest contents from before a window: the bases of differences */
#include "format/pages/page_base.h"

#include "format/files/page_difference.h"
#include "format/pages/pages_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The page's last entry in a window's table. */
static const struct tbd_disk_page *last_entry(const struct tbd_toc *toc, uint64_t address)
{
    size_t count;
    const struct tbd_disk_page *pages = tbd_toc_find_page(toc, address, &count);
    const struct tbd_disk_page *last = count ? pages + count - 1 : NULL;

    for (size_t i = 0; i < count; i++)
        if (pages[i].flags & TBD_DISK_PAGE_END)
            last = pages + i;
    return last;
}

/* The page's contents when the window began, if the window's own table has them. */
static const struct tbd_disk_page *entry_at_start(const struct tbd_toc *toc, uint64_t address)
{
    size_t count;
    const struct tbd_disk_page *pages = tbd_toc_find_page(toc, address, &count);

    for (size_t i = 0; i < count; i++)
        if (pages[i].flags & TBD_DISK_PAGE_FIRST && !pages[i].time && !pages[i].order)
            return pages + i;
    return NULL;
}

enum tbd_status tbd_page_in_image_locked(struct tbd_trace *trace, uint64_t address, uint8_t *out)
{
    struct tbd_toc *image;
    enum tbd_status status = tbd_open_image_locked(trace, &image);
    const struct tbd_disk_page *page;
    size_t count;

    if (status)
        return status;
    page = tbd_toc_find_page(image, address, &count);
    return count ? tbd_toc_page(image, page, out) : TBD_NOTFOUND;
}

/* A page's visits; those from `visit` on have been processed.  NULL, NULL: it has none. */
struct earlier_visits {
    const struct tbd_page_visit *begin, *visit;
};

/* One step back: the entry with the page's contents at the start of `window`, and its table; or
 * NULL. */
static enum tbd_status step_back(struct tbd_trace *trace, uint32_t window, uint64_t address,
                                 struct earlier_visits *earlier, struct tbd_toc **out_toc,
                                 const struct tbd_disk_page **out)
{
    enum tbd_status status = TBD_OK;

    *out = NULL;
    if (!earlier->visit)
        return TBD_OK;
    status = tbd_open_toc_locked(trace, window, out_toc);
    if (!status)
        *out = entry_at_start(*out_toc, address);
    while (!status && !*out && earlier->visit > earlier->begin) {
        --earlier->visit;
        status = tbd_open_toc_locked(trace, earlier->visit->window, out_toc);
        if (!status)
            *out = last_entry(*out_toc, address);
    }
    return status;
}

/* The contents of an entry if they are known without other entries; *out_depth: 0, or the number of
 * differences they were made from.  False: only a difference is stored. */
static enum tbd_status take_entry(struct tbd_trace *trace, struct tbd_toc *toc,
                                  const struct tbd_disk_page *page, uint8_t *out,
                                  uint32_t *out_depth, bool *out_is_whole)
{
    const uint8_t *kept = page->flags & TBD_DISK_PAGE_END
                              ? tbd_page_kept_locked(tbd_trace_pages_locked(trace), toc->window,
                                                     page->address, out_depth)
                              : NULL;

    *out_is_whole = kept || !(page->flags & TBD_DISK_PAGE_DELTA);
    if (!kept) {
        *out_depth = !*out_is_whole;
        return tbd_toc_page(toc, page, out);
    }
    memcpy(out, kept, 4096);
    return TBD_OK;
}

/* Goes back and combines differences until whole contents are found. */
enum tbd_status tbd_page_before_locked(struct tbd_trace *trace, uint32_t window, uint64_t address,
                                       uint8_t *out, struct tbd_page_base *how)
{
    const struct tbd_page_history *history;
    const struct tbd_page_visit *end;
    struct earlier_visits earlier = { NULL, NULL };
    struct tbd_page_base found = { 0 };
    enum tbd_status status = tbd_page_history_locked(trace, &history);
    uint8_t part[4096];

    if (status)
        return status;
    end = tbd_page_history_of(history, address, &earlier.begin);
    if (end)
        earlier.visit = tbd_page_visit_from(earlier.begin, end, window);
    memset(out, 0, 4096);
    for (bool is_first = true, is_whole = false; !is_whole; is_first = false) {
        const struct tbd_disk_page *page;
        struct tbd_toc *toc = NULL;
        uint32_t depth = 0;

        status = step_back(trace, window, address, &earlier, &toc, &page);
        if (status)
            return status;
        is_whole = !page;
        status = page ? take_entry(trace, toc, page, part, &depth, &is_whole)
                      : tbd_page_in_image_locked(trace, address, part);
        if (status)
            return status;
        tbd_page_xor(out, part);
        if (is_first && page)
            found.from = page->flags & TBD_DISK_PAGE_END
                             ? (struct tbd_moment){ toc->window, UINT32_MAX, UINT64_MAX }
                             : tbd_moment_of_page(toc->window, page);
        if (is_first)
            found.from_image = !page;
        found.depth += depth;
        if (page)
            window = toc->window;
    }
    if (how)
        *how = found;
    return TBD_OK;
}

/* Contents of an entry of this window's table, however they are stored. */
enum tbd_status tbd_page_of_entry_locked(struct tbd_trace *trace, struct tbd_toc *toc,
                                         const struct tbd_disk_page *page, uint8_t *out)
{
    uint8_t before[4096];
    uint32_t depth;
    bool is_whole;
    enum tbd_status status = take_entry(trace, toc, page, out, &depth, &is_whole);

    if (status || is_whole)
        return status;
    status = tbd_page_before_locked(trace, toc->window, page->address, before, NULL);
    if (status == TBD_NOTFOUND || status == TBD_NOTKEPT)
        return tbd_error_set(tbd_page_why_locked(trace), TBD_CORRUPT, toc->file.path, page->offset,
                             "what page 0x%" PRIx64 " held before is not there", page->address);
    if (status) /* BUSY: windows were merged or dropped meanwhile */
        return status;
    tbd_page_xor(out, before);
    return TBD_OK;
}

/* Does the table itself have the page's contents when its window began?  `page` is one of its
 * entries. */
static bool is_known_at_start(const struct tbd_toc *toc, const struct tbd_disk_page *page)
{
    const struct tbd_disk_page *begin = page, *end = page + 1;

    while (begin > toc->pages && begin[-1].address == page->address)
        begin--;
    while (end < toc->pages + toc->page_count && end->address == page->address)
        end++;
    for (; begin < end; begin++)
        if (begin->flags & TBD_DISK_PAGE_FIRST && !begin->time && !begin->order)
            return true;
    return false;
}

/* Turns `bytes`, a difference, into the contents; *out_depth: the number of differences they were
 * made from. */
static enum tbd_status undo_difference(struct tbd_trace *trace, const struct tbd_toc *toc,
                                       const struct tbd_disk_page *page, uint8_t *bytes,
                                       uint32_t *out_depth)
{
    const uint8_t *kept = toc->window
                              ? tbd_page_kept_locked(tbd_trace_pages_locked(trace), toc->window - 1,
                                                     page->address, out_depth)
                              : NULL;
    struct tbd_page_base how = { 0 };
    enum tbd_status status = TBD_OK;
    uint8_t before[4096];

    if (kept && is_known_at_start(toc, page))
        kept = NULL;
    if (!kept) {
        status = tbd_page_before_locked(trace, toc->window, page->address, before, &how);
        *out_depth = how.depth;
    }
    if (!status)
        tbd_page_xor(bytes, kept ? kept : before);
    ++*out_depth;
    return status;
}

enum tbd_status tbd_trace_page_at_end(struct tbd_trace *trace, const struct tbd_toc *toc,
                                      const struct tbd_disk_page *page, uint8_t *bytes)
{
    enum tbd_status status = TBD_OK;
    uint32_t depth = 0;

    tbd_trace_lock(trace);
    if (page->flags & TBD_DISK_PAGE_DELTA)
        status = undo_difference(trace, toc, page, bytes, &depth);
    if (!status)
        tbd_page_keep_locked(tbd_trace_pages_locked(trace), toc->window, page->address, depth,
                             bytes);
    tbd_trace_unlock(trace);
    return status;
}

bool tbd_trace_delta_base(struct tbd_trace *trace, uint32_t first, uint32_t last, uint64_t address,
                          uint32_t depth, uint8_t *out)
{
    struct tbd_moment end = { last, UINT32_MAX, UINT64_MAX };
    const struct tbd_mapping_piece *piece = NULL;
    struct tbd_page_base how;
    bool good;

    tbd_trace_lock(trace);
    good = !tbd_mapping_at_locked(trace, &end, address, &piece) && piece &&
           (piece->initial || piece->born.window < first) &&
           !tbd_page_before_locked(trace, first, address, out, &how) && how.depth < depth &&
           (how.from_image ? piece->initial : tbd_moment_compare(&how.from, &piece->born) >= 0);
    tbd_trace_unlock(trace);
    return good;
}

enum tbd_status tbd_trace_page_for_image(struct tbd_trace *trace, uint32_t first, uint64_t address,
                                         uint8_t *out)
{
    struct tbd_moment start = { .window = first };
    const struct tbd_mapping_piece *piece = NULL;
    struct tbd_page_base how;
    enum tbd_status status;

    tbd_trace_lock(trace);
    status = tbd_mapping_at_locked(trace, &start, address, &piece);
    if (!status)
        status = piece ? tbd_page_before_locked(trace, first, address, out, &how) : TBD_NOTFOUND;
    if (!status && !how.from_image && how.from.window == first)
        status = TBD_NOTFOUND;
    if (!status &&
        (how.from_image ? !piece->initial : tbd_moment_compare(&how.from, &piece->born) < 0))
        status = TBD_NOTFOUND;
    tbd_trace_unlock(trace);
    return status;
}

static enum tbd_status known_pages_locked(struct tbd_trace *trace, uint32_t first, uint64_t **out,
                                          size_t *out_count)
{
    const struct tbd_page_history *h;
    enum tbd_status status = tbd_page_history_locked(trace, &h);
    struct tbd_toc *image;
    size_t count = 0;

    if (!status)
        status = tbd_open_image_locked(trace, &image);
    if (status)
        return status;
    *out = malloc((h->last.used + image->page_count + 1) * sizeof(**out));
    if (!*out)
        return TBD_NOMEM;
    for (size_t i = 0; i < image->page_count; i++)
        (*out)[count++] = image->pages[i].address;
    for (size_t slot = 0; slot < h->last.slots; slot++) {
        const struct tbd_page_visit *end = h->visits + h->last.numbers[slot];

        if (h->last.keys[slot] && end[-(ptrdiff_t)end[-1].before].window < first)
            (*out)[count++] = (h->last.keys[slot] - 1) * 4096;
    }
    *out_count = count;
    return TBD_OK;
}

enum tbd_status tbd_trace_known_pages(struct tbd_trace *trace, uint32_t first, uint64_t **out,
                                      size_t *out_count)
{
    enum tbd_status status;

    tbd_trace_lock(trace);
    status = known_pages_locked(trace, first, out, out_count);
    tbd_trace_unlock(trace);
    return status;
}
