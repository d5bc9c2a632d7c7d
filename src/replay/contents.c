// SPDX-License-Identifier: MIT
/* contents.c - finds the contents of a page that a replay process needs
 *
 * They come from the trace.  If only code of a page was used, and its file is missing, they are the
 * code bytes of the entered blocks. */
#include "replay/worker.h"

#include "base/binary_search.h"
#include "base/linux.h"
#include "format/pages/pages.h"

#include <stdlib.h>
#include <string.h>

static uint64_t page_of(uint64_t address)
{
    return address & ~(TBD_PAGE_SIZE - 1);
}

static const struct tbd_region *find_region(const struct tbd_region *regions, size_t count,
                                            uint64_t address)
{
    size_t found = TBD_COUNT_BEFORE(i, count, regions[i].end <= address);

    return found < count && regions[found].start <= address ? &regions[found] : NULL;
}

const struct tbd_region *tbd_worker_region(const struct tbd_worker *worker, uint64_t address)
{
    return find_region(worker->regions, worker->region_count, address);
}

/* ---- code bytes of the window's blocks ---- */

static int compare_start(const void *a, const void *b)
{
    uint64_t left = (*(const struct tbd_block *const *)a)->def.start;
    uint64_t right = (*(const struct tbd_block *const *)b)->def.start;

    return (left > right) - (left < right);
}

bool tbd_worker_code(struct tbd_worker *worker)
{
    const struct tbd_window *window = worker->window;

    if (worker->code)
        return true;
    worker->code = calloc(window->block_summary_count + 1, sizeof(const struct tbd_block *));
    if (!worker->code)
        return false;
    worker->code_count = 0;
    for (size_t i = 0; i < window->block_summary_count; i++) {
        const struct tbd_block *block =
            tbd_trace_block(worker->trace, window->block_summaries[i].id);

        if (block)
            worker->code[worker->code_count++] = block;
    }
    qsort(worker->code, worker->code_count, sizeof(*worker->code), compare_start);
    return true;
}

/* Copies the part of a block's code that lies in the page. */
static bool overlay(const struct tbd_block *block, uint64_t page, uint8_t *out)
{
    uint64_t from = block->def.start, to = from + block->def.code_bytes;

    if (to <= page || from >= page + TBD_PAGE_SIZE)
        return false;
    from = from < page ? page : from;
    to = to > page + TBD_PAGE_SIZE ? page + TBD_PAGE_SIZE : to;
    memcpy(out + (from - page), block->code + (from - block->def.start), to - from);
    return true;
}

static bool page_from_code(struct tbd_worker *worker, uint64_t page, uint8_t *out)
{
    bool found = false;
    size_t i;

    if (!tbd_worker_code(worker))
        return false;
    memset(out, 0, TBD_PAGE_SIZE);
    /* begins with the first block that may extend into the page */
    i = TBD_COUNT_BEFORE(k, worker->code_count, worker->code[k]->def.start + TBD_PAGE_SIZE <= page);
    for (; i < worker->code_count && worker->code[i]->def.start < page + TBD_PAGE_SIZE; i++)
        found |= overlay(worker->code[i], page, out);
    return found;
}

/* ---- one page ---- */

/* Does the trace have the page (or did it, until windows were merged or dropped meanwhile), but it
 * cannot be read? */
static bool is_lost(enum tbd_status status)
{
    return (status >= TBD_TRUNCATED && status <= TBD_CORRUPT) || status == TBD_BUSY ||
           (status >= TBD_NOMEM && status <= TBD_SYSTEM);
}

/* May a damaged page have contained data besides code?  Then data is lost.  A page of code that is
 * not writable loses nothing. */
static bool may_be_data(const struct tbd_worker *worker, uint64_t page)
{
    const struct tbd_region *region = tbd_worker_region(worker, page);

    return !region || (region->prot & (PROT_WRITE | PROT_EXEC)) != PROT_EXEC;
}

static enum tbd_status find_page(struct tbd_worker *worker, uint64_t page, uint64_t order,
                                 uint8_t *out)
{
    const struct tbd_window *window = worker->window;
    uint64_t made = order + tbd_worker_start(worker)->slice_order;

    if (order && made <= window->log_count)
        return tbd_trace_page_after(worker->trace, window->index, window->log[made - 1].time,
                                    (uint32_t)made, page, out);
    if (order)
        return TBD_NOTFOUND;
    return worker->slice ? tbd_window_page_at_start(worker->trace, worker->slice, page, out)
                         : tbd_trace_page_at_start(worker->trace, window->index, page, out);
}

enum tbd_page_answer tbd_worker_page(struct tbd_worker *worker, uint64_t address, uint64_t order,
                                     uint8_t *out, enum tbd_status *known)
{
    uint64_t page = page_of(address);
    enum tbd_status status;

    *known = TBD_NOTFOUND;
    if (order > worker->window->log_count)
        return TBD_PAGE_ABSENT;
    status = find_page(worker, page, order, out);
    if (status == TBD_OK ||
        (!(is_lost(status) && may_be_data(worker, page)) && page_from_code(worker, page, out))) {
        *known = status == TBD_OK ? TBD_OK : TBD_NOTFOUND;
        return TBD_PAGE_GIVEN;
    }
    if (is_lost(status))
        *known = status;
    return TBD_PAGE_ABSENT;
}

enum tbd_status tbd_worker_page_lost(struct tbd_worker *worker, enum tbd_status known,
                                     struct tbd_error *why)
{
    if (known == TBD_NOTFOUND)
        return TBD_OK;
    if (why)
        tbd_trace_page_why(worker->trace, why);
    if (why && why->status != known) /* `why` is about another page */
        return tbd_process_error(why, known, "contents of a page");
    return known;
}
