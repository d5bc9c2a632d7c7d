// SPDX-License-Identifier: MIT
/* pagemap.c - see pagemap.h
 *
 * 64 bits a page (Documentation/admin-guide/mm/pagemap.rst): 63 present, 62 swapped, 61 file page
 * or shared anonymous memory, 56 mapped by this process only (not known for a swapped page).  Frame
 * numbers are hidden from unprivileged readers, flags are not. */
#include "hooks/memory/pagemap.h"

#include "base/fmt.h"
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/sys.h"
#include "base/sys_limit.h"

#define BATCH         512u
#define BIT_PRESENT   (3ull << 62)
#define BIT_SWAPPED   (1ull << 62)
#define BIT_FILE      (1ull << 61)
#define BIT_EXCLUSIVE (1ull << 56)

static int open_own(void)
{
    return (int)tbd_sys_open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC, 0);
}

void tbd_pagemap_open(struct tbd_pagemap *map)
{
    map->fd = tbd_sys_limit_open(open_own);
}

void tbd_pagemap_open_of(struct tbd_pagemap *map, int32_t pid)
{
    char path[40];

    tbd_fmt(path, sizeof(path), "/proc/%d/pagemap", pid);
    map->fd = (int)tbd_sys_open(path, O_RDONLY | O_CLOEXEC, 0);
}

void tbd_pagemap_close(struct tbd_pagemap *map)
{
    if (map->fd >= 0)
        tbd_sys_close(map->fd);
}

static bool read_batch(const struct tbd_pagemap *map, uint64_t page, size_t count, uint64_t *out)
{
    return map->fd >= 0 && tbd_sys_pread(map->fd, out, count * 8, page * 8) == (long)(count * 8);
}

bool tbd_pagemap_state(const struct tbd_pagemap *map, uint64_t address, uint64_t *out)
{
    return read_batch(map, address >> TBD_PAGE_SHIFT, 1, out);
}

static bool is_wanted(uint64_t entry, enum tbd_page_kind kind)
{
    if (!(entry & BIT_PRESENT) || (entry & BIT_FILE))
        return false;
    return kind == TBD_PAGES_PRIVATE || (entry & (BIT_EXCLUSIVE | BIT_SWAPPED));
}

/* The first pages in [start, end) of these PAGE_IS_* kinds.  The kernel's error, or how many ranges there are. */
static long scan(const struct tbd_pagemap *map, uint64_t start, uint64_t end, uint64_t kinds,
                 struct page_region *out)
{
    struct pm_scan_arg scan = {
        .size = sizeof(scan),
        .start = start,
        .end = end,
        .vec = tbd_sys_pointer(out),
        .vec_len = 1,
        .category_anyof_mask = kinds,
        .return_mask = kinds,
    };

    return tbd_sys3(__NR_ioctl, (uint64_t)map->fd, PAGEMAP_SCAN, tbd_sys_pointer(&scan));
}

bool tbd_pagemap_next(const struct tbd_pagemap *map, uint64_t start, uint64_t end,
                      struct tbd_range *out)
{
    struct page_region found = { 0 };
    long count = scan(map, start, end, PAGE_IS_PRESENT | PAGE_IS_SWAPPED, &found);

    *out = tbd_sys_failed(count) ? (struct tbd_range){ start, end }
                                 : (struct tbd_range){ found.start, found.end };
    return count != 0;
}

static void visit_run(const struct tbd_pagemap *map, enum tbd_page_kind kind, uint64_t start,
                      uint64_t end, tbd_page_visitor visit, void *context)
{
    uint64_t page = start >> TBD_PAGE_SHIFT;
    uint64_t last = end >> TBD_PAGE_SHIFT;
    uint64_t entries[BATCH];

    while (page < last) {
        size_t count = last - page < BATCH ? (size_t)(last - page) : BATCH;
        bool known = read_batch(map, page, count, entries);

        for (size_t i = 0; i < count; i++)
            if (!known || is_wanted(entries[i], kind))
                visit(context, (page + i) << TBD_PAGE_SHIFT);
        page += count;
    }
}

/* A program uses little of so large a range. */
#define LARGE_RANGE (1ull << 30)

/* The next part of [start, end) that is worth to be read. */
static bool next_run(const struct tbd_pagemap *map, uint64_t start, uint64_t end,
                     struct tbd_range *out)
{
    *out = (struct tbd_range){ start, end };
    return end - start < LARGE_RANGE || tbd_pagemap_next(map, start, end, out);
}

void tbd_pagemap_visit(const struct tbd_pagemap *map, enum tbd_page_kind kind, uint64_t start,
                       uint64_t end, tbd_page_visitor visit, void *context)
{
    struct tbd_range run;

    for (uint64_t at = start; at < end && next_run(map, at, end, &run); at = run.end)
        visit_run(map, kind, run.start, run.end, visit, context);
}

/* ---- pages that have gone ---- */

static void visit_gone_run(const struct tbd_pagemap *before, const struct tbd_pagemap *now,
                           uint64_t start, uint64_t end, tbd_page_visitor visit, void *context)
{
    uint64_t page = start >> TBD_PAGE_SHIFT;
    uint64_t last = end >> TBD_PAGE_SHIFT;
    uint64_t old[BATCH];
    uint64_t entries[BATCH];

    while (page < last) {
        size_t count = last - page < BATCH ? (size_t)(last - page) : BATCH;
        bool known = read_batch(before, page, count, old) && read_batch(now, page, count, entries);

        for (size_t i = 0; known && i < count; i++)
            if (is_wanted(old[i], TBD_PAGES_PRIVATE) && !is_wanted(entries[i], TBD_PAGES_PRIVATE))
                visit(context, (page + i) << TBD_PAGE_SHIFT);
        page += count;
    }
}

/* Such a page looks like one that is still shared with the other process. */
static void visit_zeros(const struct tbd_pagemap *map, uint64_t start, uint64_t end,
                        tbd_page_visitor visit, void *context)
{
    struct page_region found = { 0 };

    for (uint64_t at = start; at < end; at = found.end) {
        if (scan(map, at, end, PAGE_IS_PFNZERO, &found) <= 0)
            return;
        for (uint64_t page = found.start; page < found.end; page += TBD_PAGE_SIZE)
            visit(context, page);
    }
}

void tbd_pagemap_visit_gone(const struct tbd_pagemap *before, const struct tbd_pagemap *now,
                            uint64_t start, uint64_t end, tbd_page_visitor visit, void *context)
{
    struct tbd_range run;

    for (uint64_t at = start; at < end && next_run(before, at, end, &run); at = run.end)
        visit_gone_run(before, now, run.start, run.end, visit, context);
    visit_zeros(now, start, end, visit, context);
}
