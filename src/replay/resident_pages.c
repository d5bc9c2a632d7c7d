// SPDX-License-Identifier: MIT
/* resident_pages.c - what a replay process has of a window from the one before
 *
 * At the end of a window the process holds what the program's memory held then, once that was
 * compared with play.  So pages that both windows touch need not be loaded, unpacked and copied for
 * the next one: at its start they are right as they are, if it follows directly; else those that no
 * window in between has modified.  That is half of the driver's work for a window of sqlite3 or
 * python.
 *
 * RESIDENT_PAGES-1  `before` has only pages whose contents the trace had, as a whole; not those of
 *     which only code was known. Code pages are not in need of it: they stay in the process as long
 *     as they are known (code_pages.c), and were right at the start of every window since. (not
 *     checked: replays in any order do: contents would differ)
 * RESIDENT_PAGES-2  Not memory that others write, and not a page with contents of its own for the
 *     window's start: what the process had there may have been no more than what nobody had looked
 *     at. (not checked: replays in any order do: contents would differ) */
#include "replay/worker.h"

#include "base/array.h"
#include "base/binary_search.h"
#include "format/pages/pages.h"
#include "format/window/window_make.h"

#include <sys/mman.h>

void tbd_worker_clear_given(struct tbd_worker *worker)
{
    worker->given_count = 0;
}

bool tbd_worker_note_given(struct tbd_worker *worker, uint64_t address)
{
    if (!tbd_array_grow(&worker->given, worker->given_count, &worker->given_capacity,
                        sizeof(*worker->given)))
        return false;
    worker->given[worker->given_count++] = address;
    return true;
}

static bool was_given(const struct tbd_worker *worker, uint64_t address)
{
    size_t at = TBD_COUNT_BEFORE(i, worker->before_count, worker->before[i] < address);

    return at < worker->before_count && worker->before[at] == address;
}

static bool is_private(const struct tbd_region *region)
{
    return region && region->map_flags & MAP_PRIVATE && !(region->flags & TBD_REGION_SHARED);
}

/* Not modified between the end of the window before and the start of this one. */
static bool stays(const struct tbd_worker *worker, uint64_t address)
{
    uint32_t now = worker->window->index, ended = worker->ended;

    if (!worker->is_at_end || worker->slice || !is_private(tbd_worker_region(worker, address)) ||
        tbd_window_first(worker->window, address))
        return false;
    if (now > ended)
        return now == ended + 1 || tbd_trace_page_stays(worker->trace, ended + 1, now - 1, address);
    return tbd_trace_page_stays(worker->trace, now, ended, address);
}

bool tbd_worker_holds(const struct tbd_worker *worker, uint64_t address)
{
    return worker->is_at_end && was_given(worker, address) && stays(worker, address);
}

bool tbd_worker_holds_code(const struct tbd_worker *worker, const struct tbd_code_page *page)
{
    return page->is_whole && !page->changes && stays(worker, page->address);
}

void tbd_worker_at_end(struct tbd_worker *worker)
{
    uint64_t *pages = worker->before;
    size_t capacity = worker->before_capacity;

    worker->before = worker->given;
    worker->before_count = worker->given_count;
    worker->before_capacity = worker->given_capacity;
    worker->given = pages;
    worker->given_capacity = capacity;
    worker->given_count = 0;
    worker->ended = worker->window->index;
    worker->is_at_end = worker->window->complete;
}
