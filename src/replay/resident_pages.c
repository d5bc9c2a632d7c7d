// SPDX-License-Identifier: MIT
/* resident_pages.c - pages of a window that the replay process still has from the previous one
 *
 * At the end of a window the process has the program's memory, and this was compared with play.  So
 * pages that both windows touch need not be loaded, unpacked and copied again: all of them if the
 * next window follows directly, otherwise those that no window in between has modified.  That saves
 * half of the driver's work for a window of sqlite3 or python.
 *
 * RESIDENT_PAGES-1  `before` has only pages whose whole contents were in the trace, not those of
 *     which only code was known.  Code pages do not need it: they stay in the process as long as
 *     code_pages.c has them, and were right at the start of every window since.  (not checked:
 *     replays in any order do: contents would differ)
 * RESIDENT_PAGES-2  Memory that others write is not kept, nor is a page for which the trace has
 *     separate contents at the window's start: the process' contents may be out of date where the
 *     program had not read them.  (not checked: replays in any order do: contents would differ) */
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

/* Is the page unmodified between the end of the previous window and the start of this one? */
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
