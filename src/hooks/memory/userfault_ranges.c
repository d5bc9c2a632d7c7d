// SPDX-License-Identifier: MIT
/* userfault_ranges.c - the ranges that others fill, and which of their pages are logged
 * (userfault_ranges.h)
 *
 * There are few ranges.  One bit for each page of the address space says whether it is logged; the
 * bits are reserved when the first range is registered. */
#include "hooks/memory/userfault_private.h"

#include "base/sys.h"
#include "hooks/memory/pagemap.h"
#include "hooks/memory/program_memory.h"
#include "hooks/stream/leaving.h"

enum {
    MAX_RANGES = 256,
};

static struct {
    struct tbd_userfault_range range[MAX_RANGES];
    /* a page for which waiting failed: the next access to it is made without waiting */
    uint64_t run_once;
    bool has_bits;
} userfault;

uint32_t tbd_userfault_count;

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- which pages are logged ---- */

static bool make_bits(void)
{
    if (!userfault.has_bits)
        userfault.has_bits =
            tbd_sys_mmap(TBD_USERFAULT_BASE, TBD_USERFAULT_BYTES, TBD_PROT_RW,
                         TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE, -1, 0) == (long)TBD_USERFAULT_BASE;
    tbd_sys_madvise(TBD_USERFAULT_BASE, TBD_USERFAULT_BYTES, MADV_DONTDUMP);
    return userfault.has_bits;
}

static uint8_t *byte_of(uint64_t page)
{
    return (uint8_t *)TBD_USERFAULT_BASE + (page >> TBD_PAGE_SHIFT >> 3);
}

static uint8_t bit_of(uint64_t page)
{
    return (uint8_t)(1u << (page >> TBD_PAGE_SHIFT & 7));
}

static bool is_logged(uint64_t page)
{
    return *byte_of(page) & bit_of(page);
}

void tbd_userfault_set_logged(uint64_t page)
{
    *byte_of(page) |= bit_of(page);
}

static bool are_all_logged(uint64_t start, uint64_t end)
{
    for (uint64_t page = start; page < end;) {
        bool is_whole = !(page >> TBD_PAGE_SHIFT & 7) && end - page >= 8 * TBD_PAGE_SIZE;

        if (is_whole ? *byte_of(page) != 0xff : !is_logged(page))
            return false;
        page += (is_whole ? 8 : 1) * TBD_PAGE_SIZE;
    }
    return true;
}

static void clear_logged(uint64_t start, uint64_t end)
{
    for (uint64_t page = start; page < end; page += TBD_PAGE_SIZE)
        *byte_of(page) &= (uint8_t)~bit_of(page);
}

/* ---- the kernel's page map ---- */

#define BIT_PRESENT         (3ull << 62)
#define BIT_WRITE_PROTECTED (1ull << 57)

static uint64_t state_of(uint64_t page)
{
    struct tbd_pagemap map;
    uint64_t state = 0;

    tbd_pagemap_open(&map);
    if (!tbd_pagemap_state(&map, page, &state))
        state = BIT_PRESENT; /* without the page map, every page counts as present */
    tbd_pagemap_close(&map);
    return state;
}

/* ---- ranges ---- */

const struct tbd_userfault_range *tbd_userfault_find(uint64_t address)
{
    for (uint32_t i = 0; i < tbd_userfault_count; i++)
        if (address >= userfault.range[i].start && address < userfault.range[i].end)
            return &userfault.range[i];
    return NULL;
}

static void add_range(uint64_t start, uint64_t end, const struct tbd_userfault_range *like)
{
    if (tbd_userfault_count == MAX_RANGES) {
        tbd_leave_soon("it handles the page faults of too many ranges (userfaultfd)");
        return;
    }
    userfault.range[tbd_userfault_count] = *like;
    userfault.range[tbd_userfault_count].start = start;
    userfault.range[tbd_userfault_count++].end = end;
}

void tbd_userfault_remove_range(uint64_t start, uint64_t end)
{
    uint32_t count = tbd_userfault_count;

    for (uint32_t i = 0; i < count;) {
        struct tbd_userfault_range old = userfault.range[i];

        if (old.end <= start || old.start >= end) {
            i++;
            continue;
        }
        userfault.range[i] = userfault.range[--count];
        userfault.range[count] = userfault.range[--tbd_userfault_count];
        if (old.start < start)
            add_range(old.start, start, &old);
        if (old.end > end)
            add_range(end, old.end, &old);
    }
}

/* Marks present pages as logged: the log knows their contents, like those of other memory. */
static void log_present(uint64_t start, uint64_t end)
{
    struct tbd_pagemap map;
    uint64_t state;

    tbd_pagemap_open(&map);
    for (uint64_t page = start; page < end; page += TBD_PAGE_SIZE)
        if (tbd_pagemap_state(&map, page, &state) && (state & BIT_PRESENT))
            tbd_userfault_set_logged(page);
    tbd_pagemap_close(&map);
}

bool tbd_userfault_set_range(const struct tbd_userfault_range *range)
{
    if (!make_bits()) {
        tbd_leave_soon("no memory for page faults that it handles itself (userfaultfd)");
        return false;
    }
    tbd_userfault_remove_range(range->start, range->end);
    clear_logged(range->start, range->end);
    log_present(range->start, range->end);
    add_range(range->start, range->end, range);
    return true;
}

bool tbd_userfault_drop_pages(uint64_t start, uint64_t end)
{
    bool any = false;

    for (uint32_t i = 0; i < tbd_userfault_count; i++) {
        uint64_t from = greater(start, userfault.range[i].start),
                 to = lesser(end, userfault.range[i].end);

        if (from >= to)
            continue;
        clear_logged(from, to);
        any = true;
    }
    return any;
}

void tbd_userfault_drop_ranges(void)
{
    if (userfault.has_bits)
        tbd_sys_madvise(TBD_USERFAULT_BASE, TBD_USERFAULT_BYTES, MADV_DONTNEED);
    tbd_userfault_count = 0;
}

void tbd_userfault_set_run_once(uint64_t page)
{
    userfault.run_once = page;
}

bool tbd_userfault_is_filled(uint64_t page)
{
    return tbd_userfault_find(page) && !is_logged(page) && (state_of(page) & BIT_PRESENT);
}

bool tbd_userfault_may_miss(uint64_t address)
{
    return tbd_userfault_find(address) && !is_logged(tbd_userfault_page_of(address));
}

/* ---- guards ---- */

#define PAGES_PER_CELLS (TBD_PAGE_SIZE / 2)
#define CELL_PAGES      (TBD_TOUCH_BYTES / TBD_PAGE_SIZE)

uint64_t tbd_userfault_cells_of(uint64_t page)
{
    return page / (PAGES_PER_CELLS * TBD_PAGE_SIZE) % CELL_PAGES;
}

/* Is a page of the range missing among the pages that these cells cover, or next to them?  Accesses
 * at close addresses share a mark (hooks/memory/shared_guards.c). */
static bool is_missing_in(const struct tbd_userfault_range *range, uint64_t cells)
{
    uint64_t first = cells * PAGES_PER_CELLS * TBD_PAGE_SIZE;
    uint64_t start = greater(range->start, first ? first - TBD_PAGE_SIZE : 0);
    uint64_t end = lesser(range->end, first + (PAGES_PER_CELLS + 1) * TBD_PAGE_SIZE);

    return start < end && ((range->modes & UFFDIO_REGISTER_MODE_WP) || !are_all_logged(start, end));
}

static bool needs_guard(const struct tbd_userfault_range *range, uint64_t index)
{
    uint64_t low = (range->start >> TBD_PAGE_SHIFT) - 1;
    uint64_t first = low / PAGES_PER_CELLS;
    uint64_t last = (range->end >> TBD_PAGE_SHIFT) / PAGES_PER_CELLS;
    uint64_t at = first + (index - first) % CELL_PAGES;

    for (; at <= last; at += CELL_PAGES)
        if (is_missing_in(range, at))
            return true;
    return false;
}

bool tbd_userfault_needs_guard(uint64_t index)
{
    for (uint32_t i = 0; i < tbd_userfault_count; i++)
        if (needs_guard(&userfault.range[i], index))
            return true;
    return false;
}

/* ---- missing pages ---- */

bool tbd_userfault_holds(uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < tbd_userfault_count; i++)
        if (userfault.range[i].start < end && start < userfault.range[i].end)
            return true;
    return false;
}

size_t tbd_userfault_readable(uint64_t address, size_t bytes)
{
    for (uint64_t page = tbd_userfault_page_of(address); page < address + bytes;
         page += TBD_PAGE_SIZE)
        if (tbd_userfault_find(page) && !is_logged(page) && !(state_of(page) & BIT_PRESENT))
            return page > address ? page - address : 0;
    return bytes;
}

/* Is the access allowed?  One that is not allowed faults without waiting. */
static bool is_allowed(uint64_t page, bool is_write)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, page);
    uint32_t prot = PROT_READ | (is_write ? PROT_WRITE : 0);

    return region && (region->map.prot & prot) == prot;
}

static bool would_wait(uint64_t page, bool is_write)
{
    const struct tbd_userfault_range *range = tbd_userfault_find(page);
    bool may_be_protected;
    uint64_t state;

    if (!range)
        return false;
    may_be_protected = is_write && (range->modes & UFFDIO_REGISTER_MODE_WP);
    if ((is_logged(page) && !may_be_protected) || page == userfault.run_once ||
        (range->features & UFFD_FEATURE_SIGBUS) || !is_allowed(page, is_write))
        return false;
    state = state_of(page);
    return !(state & BIT_PRESENT) || (may_be_protected && (state & BIT_WRITE_PROTECTED));
}

bool tbd_userfault_misses(const struct tbd_sys_range *range, bool is_write, uint64_t *address)
{
    uint64_t end = range->address + range->bytes;

    for (uint64_t page = tbd_userfault_page_of(range->address); tbd_userfault_count && page < end;
         page += TBD_PAGE_SIZE) {
        if (!would_wait(page, is_write))
            continue;
        *address = greater(page, range->address);
        return true;
    }
    return false;
}
