// SPDX-License-Identifier: MIT
/* pages.c - contents of a page at a moment, without replay
 *
 * A page's contents at a moment follow from, in this order (docs/FORMAT.md, "Memory"):
 *   1. its last capture at the end of an earlier window, since its mapping began
 *   2. its first-use contents, from an earlier or a later window, while the mapping lasts
 *   3. the initial image, or zeroes for fresh anonymous memory, or the trace's copy of the mapped
 *      file
 *   4. what it held where it was before mremap moved it (page_moved.c)
 * Bytes inside a window (page_bytes.c): the next later store's old value; else the page's capture
 * in that window; else the page was not modified in it, and the above applies.
 *
 * Invariants
 * PAGES-1  Captures from before a piece of a mapping began, or from after it was unmapped, are
 *     never used. (not checked: test_organizer_memory compares with a simulated memory) */
#include "format/pages/pages.h"

#include "base/open_file.h"
#include "format/pages/pages_private.h"
#include "format/trace/damage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum tbd_status tbd_page_entries_locked(struct tbd_trace *trace, uint32_t window, uint64_t address,
                                        struct tbd_page_entries *out)
{
    enum tbd_status status = tbd_open_toc_locked(trace, window, &out->toc);

    if (status)
        return status;
    out->list = tbd_toc_find_page(out->toc, address, &out->count);
    return TBD_OK;
}

/* ---- one page at a moment, if its window does not modify it after that moment ---- */

static enum tbd_status from_earlier(struct tbd_trace *trace, const struct tbd_page_query *q,
                                    uint32_t window, uint8_t *out)
{
    const struct tbd_disk_page *best = NULL;
    struct tbd_page_entries entries;
    enum tbd_status status = tbd_page_entries_locked(trace, window, q->address, &entries);

    if (status)
        return status;
    for (size_t i = 0; i < entries.count; i++) {
        const struct tbd_disk_page *page = &entries.list[i];
        struct tbd_moment then = tbd_moment_of_page(window, page);

        if (page->flags & TBD_DISK_PAGE_END)
            return tbd_page_of_entry_locked(trace, entries.toc, page, out);
        /* GONE: e.g. sent before mprotect made it unreadable; its mapping is still the same. */
        if (page->flags & (TBD_DISK_PAGE_FIRST | TBD_DISK_PAGE_GONE) &&
            tbd_moment_compare(&then, &q->piece->born) >= 0)
            best = page;
    }
    return best ? tbd_toc_page(entries.toc, best, out) : TBD_NOTFOUND;
}

static enum tbd_status from_first_use(struct tbd_trace *trace, const struct tbd_page_query *q,
                                      uint32_t window, uint8_t *out)
{
    struct tbd_page_entries entries;
    enum tbd_status status = tbd_page_entries_locked(trace, window, q->address, &entries);

    if (status)
        return status;
    for (size_t i = 0; i < entries.count; i++) {
        const struct tbd_disk_page *page = &entries.list[i];
        struct tbd_moment then = tbd_moment_of_page(window, page);

        if (page->flags & TBD_DISK_PAGE_FIRST && tbd_moment_compare(&then, &q->piece->born) >= 0 &&
            tbd_moment_compare(&then, &q->died) < 0)
            return tbd_toc_page(entries.toc, page, out);
    }
    return TBD_NOTFOUND;
}

static enum tbd_status from_windows(struct tbd_trace *trace, const struct tbd_page_query *q,
                                    uint8_t *out)
{
    const struct tbd_page_visit *begin, *end, *here;
    const struct tbd_page_history *history;
    enum tbd_status status = tbd_page_history_locked(trace, &history);
    enum tbd_status found;

    if (status)
        return status;
    end = tbd_page_history_of(history, q->address, &begin);
    if (!end)
        return TBD_NOTFOUND;
    here = tbd_page_visit_from(begin, end, q->at.window);
    for (const struct tbd_page_visit *visit = here; visit-- > begin;) {
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
        if (here->window > q->at.window) /* modified when its contents were already known */
            break;
    }
    return TBD_NOTFOUND;
}

static enum tbd_status from_image(struct tbd_trace *trace, const struct tbd_page_query *q,
                                  uint8_t *out)
{
    return q->piece->initial ? tbd_page_in_image_locked(trace, q->address, out) : TBD_NOTFOUND;
}

/* A file below modules/. */
struct tbd_mapped_copy {
    const char *name;     /* borrowed from the trace's module */
    struct tbd_file file; /* closed: it cannot be read */
};

static void release(void *part)
{
    struct tbd_trace_pages *pages = part;

    tbd_page_history_free(&pages->history);
    tbd_page_moves_free(pages);
    free(pages->kept);
    for (size_t i = 0; i < pages->copy_count; i++)
        tbd_file_close(&pages->copies[i].file);
    free(pages->copies);
}

static void forget_window(void *part, uint32_t window)
{
    struct tbd_trace_pages *pages = part;

    tbd_page_moves_forget(pages, window);
    tbd_page_kept_forget(pages, window);
}

struct tbd_trace_pages *tbd_trace_pages_locked(struct tbd_trace *trace)
{
    static const struct tbd_trace_part_class class = {
        .kind = TBD_TRACE_PART_PAGES,
        .bytes = sizeof(struct tbd_trace_pages),
        .release = release,
        .forget_window = forget_window,
    };

    return tbd_trace_part_locked(trace, &class);
}

/* The trace's own copy of a file, mapped until the trace is closed.  NULL when it cannot be. */
static const struct tbd_file *copy_of(struct tbd_trace *trace, const char *name)
{
    struct tbd_trace_pages *pages = tbd_trace_pages_locked(trace);
    struct tbd_mapped_copy *grown, *copy;
    int fd;

    if (!pages)
        return NULL;
    for (size_t i = 0; i < pages->copy_count; i++)
        if (!strcmp(pages->copies[i].name, name))
            return &pages->copies[i].file;
    grown = realloc(pages->copies, (pages->copy_count + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    pages->copies = grown;
    copy = &grown[pages->copy_count++];
    *copy = (struct tbd_mapped_copy){ .name = name };
    fd = tbd_open_below(tbd_trace_dir(trace).fd, name, O_RDONLY);
    if (fd >= 0) {
        (void)!tbd_file_take(fd, name, &copy->file, NULL);
        close(fd);
    }
    return &copy->file;
}

static enum tbd_status from_file(struct tbd_trace *trace, const struct tbd_page_query *q,
                                 uint8_t *out)
{
    const struct tbd_region *region = &q->piece->region;
    uint64_t offset = region->file_offset + (q->address - region->start);
    const struct tbd_file *copy = region->copy ? copy_of(trace, region->copy) : NULL;
    size_t there = 0;

    if (!copy || !copy->bytes || region->flags & TBD_REGION_PARTIAL)
        return TBD_NOTFOUND;
    if (offset < copy->size)
        there = copy->size - offset < 4096 ? copy->size - offset : 4096;
    if (there)
        memcpy(out, copy->bytes + offset, there);
    memset(out + there, 0, 4096 - there);
    return TBD_OK;
}

static bool is_zero_at_birth(const struct tbd_mapping_piece *piece)
{
    const struct tbd_region *region = &piece->region;

    if (region->flags & (TBD_REGION_VDSO | TBD_REGION_VVAR))
        return false;
    if (region->flags & TBD_REGION_ANON_ZERO)
        return true;
    if (region->flags & (TBD_DISK_REGION_UNKNOWN | TBD_REGION_PARTIAL))
        return false;
    return piece->initial && !region->inode && (region->map_flags & MAP_PRIVATE);
}

/* What the trace has of it at this address. */
static enum tbd_status in_place(struct tbd_trace *trace, const struct tbd_page_query *q,
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
    return status == TBD_NOTFOUND ? from_file(trace, q, out) : status;
}

enum tbd_status tbd_page_unmodified_locked(struct tbd_trace *trace, const struct tbd_page_query *q,
                                           uint8_t *out)
{
    struct tbd_page_query here = *q;
    enum tbd_status status = in_place(trace, &here, out);
    bool is_known = false;

    while (status == TBD_NOTFOUND && !is_known) {
        status = tbd_page_moved_locked(trace, &here, out, &is_known);
        if (status)
            break;
        if (!is_known)
            status = in_place(trace, &here, out);
    }
    return status == TBD_NOTFOUND ? TBD_NOTKEPT : status;
}

enum tbd_status tbd_page_ask_locked(struct tbd_trace *trace, const struct tbd_moment *at,
                                    uint64_t address, struct tbd_page_query *out)
{
    enum tbd_status status;

    *out = (struct tbd_page_query){ .address = address, .at = *at };
    status = tbd_mapping_at_locked(trace, at, address, &out->piece);
    if (status)
        return status;
    out->died = tbd_mapping_death(trace, at, address);
    return out->piece && !(out->piece->region.flags & TBD_REGION_PATCH) ? TBD_OK : TBD_UNMAPPED;
}

static enum tbd_status page_at(struct tbd_trace *trace, const struct tbd_moment *at,
                               uint64_t address, uint8_t *out)
{
    struct tbd_page_query q;
    enum tbd_status status;

    if (at->window >= tbd_trace_window_count(trace))
        return TBD_NOWINDOW;
    address &= ~4095ull;
    tbd_trace_lock(trace);
    status = tbd_page_ask_locked(trace, at, address, &q);
    if (!status)
        status = tbd_page_unmodified_locked(trace, &q, out);
    tbd_trace_unlock(trace);
    return status;
}

void tbd_trace_page_why(struct tbd_trace *trace, struct tbd_error *out)
{
    tbd_trace_lock(trace);
    *out = *tbd_page_why_locked(trace);
    tbd_trace_unlock(trace);
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

bool tbd_trace_page_stays(struct tbd_trace *trace, uint32_t first, uint32_t last, uint64_t address)
{
    const struct tbd_page_history *history;
    const struct tbd_page_visit *begin, *end;
    bool stays;

    if (last < first)
        return true;
    tbd_trace_lock(trace);
    stays = last < tbd_trace_window_count(trace) && !tbd_damage_between(trace, first, last + 1) &&
            tbd_trace_mapping_changes(trace, first) == tbd_trace_mapping_changes(trace, last + 1) &&
            tbd_page_history_locked(trace, &history) == TBD_OK;
    end = stays ? tbd_page_history_of(history, address & ~4095ull, &begin) : NULL;
    if (end) {
        begin = tbd_page_visit_from(begin, end, first);
        stays = begin == end || begin->window > last;
    }
    tbd_trace_unlock(trace);
    return stays;
}
