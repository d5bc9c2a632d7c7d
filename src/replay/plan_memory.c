// SPDX-License-Identifier: MIT
/* plan_memory.c - the part of a plan with the contents of memory where the replay begins
 *
 * The window's TOC has everything that was touched (pages read, pages modified, blocks entered), so
 * the plan contains it all; the stub asks for further pages one by one.  Pages that the process has
 * already, and code that it has translated, are left out.  Invariant PLAN_BUILD-1 holds here. */
#include "replay/worker.h"

#include "base/assert.h"
#include "base/linux.h"
#include "format/files/numbers.h"

#include <stdlib.h>
#include <string.h>

/* ---- mappings ---- */

static bool is_usable(const struct tbd_region *region, uint64_t last_end)
{
    uint64_t mask = TBD_PAGE_SIZE - 1;

    if (region->flags & (TBD_REGION_PATCH | TBD_REGION_VVAR))
        return false;
    if ((region->start | region->end) & mask || region->start >= region->end)
        return false;
    return region->start >= last_end && region->end <= TBD_USER_END;
}

/* The engine was elsewhere in a recording by an older version. */
static bool is_at_engine(const struct tbd_region *region)
{
    return region->start < TBD_ENGINE_END && region->end > TBD_ENGINE_BASE;
}

static bool regions_ascend(const struct tbd_plan_region *regions, uint64_t count)
{
    uint64_t mask = TBD_PAGE_SIZE - 1, last_end = 0;

    for (uint64_t i = 0; i < count; last_end = regions[i++].end) {
        uint64_t start = regions[i].start, end = regions[i].end;

        if ((start | end) & mask || start < last_end || end <= start ||
            (start < TBD_ENGINE_END && end > TBD_ENGINE_BASE))
            return false;
    }
    return true;
}

static enum tbd_status add_regions(struct tbd_worker *worker, struct tbd_error *why)
{
    struct tbd_process *process = &worker->process;
    uint64_t bytes = worker->region_count * sizeof(struct tbd_plan_region) + 1;
    uint64_t offset = tbd_process_plan_alloc(process, bytes), count = 0, last_end = 0;
    struct tbd_plan_region *out = tbd_process_plan_at(process, offset);

    if (!offset)
        return tbd_worker_no_memory(why);
    for (size_t i = 0; i < worker->region_count; i++) {
        const struct tbd_region *region = &worker->regions[i];

        if (!is_usable(region, last_end))
            continue;
        if (is_at_engine(region))
            return tbd_process_error(why, TBD_NOREPLAY,
                                     "the program has memory where this version's engine is");
        out[count++] = (struct tbd_plan_region){ .start = region->start,
                                                 .end = region->end,
                                                 .prot = region->prot,
                                                 .flags = region->flags,
                                                 .map_flags = region->map_flags,
                                                 .is_file = region->inode != 0 };
        last_end = region->end;
    }
    process->plan->regions = (struct tbd_plan_section){ offset, count };
    TBD_INVARIANT("PLAN_BUILD-1", regions_ascend(out, count));
    return TBD_OK;
}

/* ---- pages ---- */

/* Adds the page unless it is the last one already, which is common since blocks are sorted. */
static size_t add_once(uint64_t *pages, size_t count, uint64_t page)
{
    if (!count || pages[count - 1] != page)
        pages[count++] = page;
    return count;
}

/* The addresses of all pages that the TOC says are touched; owned by the caller, NULL without
 * memory. */
static uint64_t *touched_pages(struct tbd_worker *worker, size_t *out_count)
{
    const struct tbd_window *window = worker->window;
    size_t count = 0;
    uint64_t *pages;

    if (!tbd_worker_code(worker))
        return NULL;
    pages = malloc((window->dirty_count + window->read_page_count + window->first_count +
                    2 * worker->code_count + 1) *
                   sizeof(*pages));
    if (!pages)
        return NULL;
    for (size_t i = 0; i < window->dirty_count; i++)
        pages[count++] = window->dirty[i].address;
    for (size_t i = 0; i < window->read_page_count; i++)
        pages[count++] = window->read_pages[i];
    for (size_t i = 0; i < window->first_count; i++)
        pages[count++] = window->first[i].address;
    for (size_t i = 0; i < worker->code_count; i++) {
        const struct tbd_block_def *def = &worker->code[i]->def;

        count = add_once(pages, count, def->start & ~(TBD_PAGE_SIZE - 1));
        count = add_once(pages, count, (def->start + def->code_bytes) & ~(TBD_PAGE_SIZE - 1));
    }
    *out_count = tbd_numbers_sort_unique(pages, count);
    return pages;
}

static bool is_zero(const uint8_t *page)
{
    return page[0] == 0 && !memcmp(page, page + 1, TBD_PAGE_SIZE - 1);
}

/* Does the process have the page, as the previous window left it?  A code page keeps its
 * translations. */
static bool is_there(const struct tbd_worker *worker, uint64_t address, bool is_code)
{
    const struct tbd_code_page *page;

    if (!is_code)
        return tbd_worker_holds(worker, address);
    page = tbd_worker_code_page(worker, address);
    return page && tbd_worker_holds_code(worker, page);
}

/* Adds one page to the plan.  Leaves out a page whose contents the trace does not know. */
static enum tbd_status add_page(struct tbd_worker *worker, uint64_t address, struct tbd_error *why)
{
    struct tbd_plan_head *plan = worker->process.plan;
    const struct tbd_region *region = tbd_worker_region(worker, address);
    struct tbd_plan_page *out = tbd_process_plan_at(&worker->process, plan->pages.offset);
    bool is_code = region && region->prot & PROT_EXEC;
    uint8_t contents[TBD_PAGE_SIZE];
    uint64_t offset = TBD_PLAN_ZERO_PAGE;
    enum tbd_status known;

    if (is_there(worker, address, is_code)) {
        out[plan->pages.count++] = (struct tbd_plan_page){ address, TBD_PLAN_SAME_PAGE };
        return tbd_worker_note_given(worker, address) ? TBD_OK : tbd_worker_no_memory(why);
    }
    if (tbd_worker_page(worker, address, 0, contents, &known) != TBD_PAGE_GIVEN)
        return tbd_worker_page_lost(worker, known, why);
    if (is_code && !tbd_worker_note_code(worker, address, contents, known == TBD_OK))
        return tbd_worker_no_memory(why);
    if (known == TBD_OK && !tbd_worker_note_given(worker, address))
        return tbd_worker_no_memory(why);
    if (!is_zero(contents)) {
        offset = tbd_process_plan_put(&worker->process, contents, TBD_PAGE_SIZE);
        if (!offset)
            return tbd_worker_no_memory(why);
    }
    out[plan->pages.count++] = (struct tbd_plan_page){ address, offset };
    return TBD_OK;
}

static enum tbd_status add_pages(struct tbd_worker *worker, struct tbd_error *why)
{
    struct tbd_plan_head *plan = worker->process.plan;
    enum tbd_status status = TBD_OK;
    size_t count = 0;
    uint64_t *pages = touched_pages(worker, &count);

    if (!pages)
        return tbd_worker_no_memory(why);
    plan->pages.count = 0;
    plan->pages.offset =
        tbd_process_plan_alloc(&worker->process, count * sizeof(struct tbd_plan_page) + 1);
    if (!plan->pages.offset)
        status = tbd_worker_no_memory(why);
    for (size_t i = 0; i < count && status == TBD_OK; i++)
        status = add_page(worker, pages[i], why);
    free(pages);
    return status;
}

/* ---- code that stays ---- */

static bool is_same_code(struct tbd_worker *worker, const struct tbd_code_page *page)
{
    const struct tbd_region *region = tbd_worker_region(worker, page->address);
    uint8_t contents[TBD_PAGE_SIZE];
    struct tbd_code_page now = *page;
    enum tbd_status known;

    if (!region || !(region->prot & PROT_EXEC) || page->changes || tbd_worker_code_changes(region))
        return false;
    if (tbd_worker_holds_code(worker, page))
        return true;
    if (tbd_worker_page(worker, page->address, 0, contents, &known) != TBD_PAGE_GIVEN ||
        !tbd_worker_note_code(worker, page->address, contents, known == TBD_OK))
        return false;
    return now.hash == page->hash;
}

/* Is it code that may change?  It gets its contents again, and its translations may stay. */
static bool still_changes(const struct tbd_worker *worker, const struct tbd_code_page *page)
{
    return tbd_worker_code_changes(tbd_worker_region(worker, page->address));
}

/* Fills kept[] (page_count entries) and returns their number; SIZE_MAX if any page changed. */
static size_t kept_pages(struct tbd_worker *worker, uint64_t *kept)
{
    size_t count = 0;

    for (size_t i = 0; i < worker->page_capacity; i++) {
        if (!worker->pages[i].address)
            continue;
        if (worker->pages[i].changes && still_changes(worker, &worker->pages[i]))
            continue;
        if (!is_same_code(worker, &worker->pages[i]))
            return SIZE_MAX;
        kept[count++] = worker->pages[i].address;
    }
    return tbd_numbers_sort_unique(kept, count);
}

static void flush(struct tbd_worker *worker)
{
    worker->process.plan->flags |= TBD_PLAN_FLUSH;
    worker->process.plan->keep.count = 0;
    worker->forget = false;
    tbd_worker_forget_code(worker);
}

static void put_ranges(struct tbd_plan_range *out, uint64_t *out_count, const uint64_t *pages,
                       size_t count)
{
    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (*out_count && out[*out_count - 1].end == pages[i])
            out[*out_count - 1].end += TBD_PAGE_SIZE;
        else
            out[(*out_count)++] = (struct tbd_plan_range){ pages[i], pages[i] + TBD_PAGE_SIZE };
    }
}

static enum tbd_status add_keep(struct tbd_worker *worker, struct tbd_error *why)
{
    struct tbd_process *process = &worker->process;
    uint64_t *kept = calloc(worker->page_count + 1, sizeof(*kept));
    size_t count = kept && !worker->forget ? kept_pages(worker, kept) : SIZE_MAX;

    process->plan->flags = 0;
    process->plan->keep = (struct tbd_plan_section){ 0, 0 };
    if (count == SIZE_MAX) {
        flush(worker);
    } else {
        process->plan->keep.offset =
            tbd_process_plan_alloc(process, count * sizeof(struct tbd_plan_range) + 1);
        if (process->plan->keep.offset)
            put_ranges(tbd_process_plan_at(process, process->plan->keep.offset),
                       &process->plan->keep.count, kept, count);
        else
            flush(worker);
    }
    free(kept);
    return kept ? TBD_OK : tbd_worker_no_memory(why);
}

enum tbd_status tbd_worker_build_memory(struct tbd_worker *worker, struct tbd_error *why)
{
    enum tbd_status status = add_regions(worker, why);

    if (status == TBD_OK)
        status = add_keep(worker, why);
    return status == TBD_OK ? add_pages(worker, why) : status;
}
