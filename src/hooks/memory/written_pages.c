// SPDX-License-Identifier: MIT
/* written_pages.c - see written_pages.h
 *
 * WRITTEN_PAGES-1  A region of the table that is private and no code, and readable or writable, is registered before the
 *     program runs with it; a scan that finds one that is not says that the pages are lost. (not checked:
 *     the scan does, by PM_SCAN_CHECK_WPASYNC) */
#include "hooks/memory/written_pages.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "base/sys_clock.h"
#include "base/sys_limit.h"
#include "hooks/memory/pagemap.h"
#include "hooks/memory/program_memory.h"

#define HIGH_DESCRIPTOR 1000u
#define HIGH_TRIES      16u
/* Beyond what the organizer's start arranges, but not so high that the table of descriptors has to grow. */
#define FIRST_DESCRIPTOR 16u
#define BATCH            64u
/* What is so large is a reservation, of which little will be used: if it cannot be accessed it is not followed, else only
 * its pages that are there are protected, which are no huge ones. */
#define RESERVED_BYTES (256ull << 20)

static int descriptor = -1; /* this process' own */
static uint32_t holder;     /* the organizer, if it has the only one; 0: it has not */
static bool is_lost;
static uint64_t marked;

/* `from`: the least number that it may have. */
static long move(int fd, uint64_t from)
{
    long moved = tbd_sys3(__NR_fcntl, (uint64_t)(unsigned)fd, F_DUPFD_CLOEXEC, from);

    if (!tbd_sys_failed(moved))
        tbd_sys_close(fd);
    return moved;
}

/* To one of the highest numbers that the limit allows, so that the program does not notice. */
static void move_up(void)
{
    uint64_t limit[2] = { HIGH_DESCRIPTOR, 0 };
    long moved = -EMFILE;

    tbd_sys4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, tbd_sys_pointer(limit));
    if (limit[0] > 1u << 20)
        limit[0] = 1u << 20;
    for (uint64_t i = 1; i <= HIGH_TRIES && i < limit[0] && tbd_sys_failed(moved); i++)
        moved = move(descriptor, limit[0] - i);
    if (!tbd_sys_failed(moved))
        descriptor = (int)moved;
}

static bool has_features(int fd)
{
    struct uffdio_api api = { .api = UFFD_API,
                              .features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED };

    return !tbd_sys_failed(
        tbd_sys3(__NR_ioctl, (uint64_t)(unsigned)fd, UFFDIO_API, tbd_sys_pointer(&api)));
}

/* ---- the copy that the organizer has ---- */

static int borrow_now(void)
{
    long process = tbd_sys3(__NR_pidfd_open, holder, 0, 0), fd;

    if (tbd_sys_failed(process))
        return (int)process;
    fd = tbd_sys3(__NR_pidfd_getfd, (uint64_t)process, TBD_WRITTEN_HELD, 0);
    tbd_sys_close((int)process);
    return (int)fd;
}

static int borrow(void)
{
    return holder ? tbd_sys_limit_open(borrow_now) : descriptor;
}

static void give_back(int fd)
{
    if (holder && fd >= 0)
        tbd_sys_close(fd);
}

int tbd_written_descriptor(void)
{
    return descriptor > TBD_WRITTEN_HELD ? descriptor : -1;
}

static bool can_borrow(void)
{
    int fd = borrow();

    give_back(fd);
    return fd >= 0;
}

void tbd_written_leave_to(uint32_t organizer)
{
    if (descriptor < 0)
        return;
    holder = tbd_written_descriptor() < 0 ? 0 : organizer;
    if (holder && can_borrow()) {
        tbd_sys_close(descriptor);
        descriptor = -1;
    } else {
        holder = 0;
        move_up();
    }
}

static void close_own(void)
{
    if (descriptor >= 0)
        tbd_sys_close(descriptor);
    descriptor = -1;
    holder = 0;
}

bool tbd_written_begin(void)
{
    long fd, moved;

    close_own(); /* a forked child has its parent's, for its parent's memory */
    fd = tbd_sys3(__NR_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY, 0, 0);
    if (tbd_sys_failed(fd))
        return false;
    if (!has_features((int)fd)) {
        tbd_sys_close((int)fd);
        return false;
    }
    moved = move((int)fd, FIRST_DESCRIPTOR);
    descriptor = tbd_sys_failed(moved) ? (int)fd : (int)moved;
    is_lost = false;
    return true;
}

bool tbd_written_is_lost(void)
{
    return is_lost;
}

static bool is_followed(const struct tbd_msg_region *map)
{
    if (map->prot & PROT_EXEC) /* not written: what becomes code is collected before */
        return false;
    return !(map->map_flags & MAP_SHARED) && !(map->flags & (TBD_REGION_VVAR | TBD_REGION_VDSO)) &&
           (map->prot & (PROT_READ | PROT_WRITE) || map->end - map->start < RESERVED_BYTES);
}

static bool is_large(const struct tbd_range *range)
{
    return range->end - range->start >= RESERVED_BYTES;
}

/* Pages that were written since the last time, and protects them again.  The number of ranges, or the kernel's
 * error. */
static long scan(const struct tbd_pagemap *map, const struct tbd_range *range, uint64_t *walked,
                 struct page_region *out)
{
    const uint64_t is_there = PAGE_IS_PRESENT | PAGE_IS_SWAPPED;
    struct pm_scan_arg scan = {
        .size = sizeof(scan),
        .flags = PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
        .start = range->start,
        .end = range->end,
        .vec = tbd_sys_pointer(out),
        .vec_len = BATCH,
        .category_mask = PAGE_IS_WRITTEN,
        .category_anyof_mask = is_large(range) ? is_there : 0,
        .return_mask = PAGE_IS_WRITTEN | is_there | PAGE_IS_PFNZERO | PAGE_IS_FILE,
    };
    long count = tbd_sys3(__NR_ioctl, (uint64_t)map->fd, PAGEMAP_SCAN, tbd_sys_pointer(&scan));

    *walked = scan.walk_end;
    return count;
}

/* Where nothing was protected, as where a stack has grown, the kernel has pages as written that were only read, or never
 * touched. */
static bool has_contents(const struct page_region *found)
{
    return found->categories & (PAGE_IS_PRESENT | PAGE_IS_SWAPPED) &&
           !(found->categories & (PAGE_IS_PFNZERO | PAGE_IS_FILE));
}

static void mark(const struct page_region *found)
{
    if (!has_contents(found))
        return;
    tbd_pages_mark_written(&tbd_memory.pages, found->start, found->end);
    marked += (found->end - found->start) / TBD_PAGE_SIZE;
}

static void collect_range(const struct tbd_pagemap *map, struct tbd_range range, bool marks)
{
    struct page_region found[BATCH];

    while (range.start < range.end && !is_lost) {
        uint64_t walked = range.end;
        long count = scan(map, &range, &walked, found);

        if (tbd_sys_failed(count) || walked <= range.start) {
            is_lost = true;
            break;
        }
        for (long i = 0; marks && i < count; i++)
            mark(&found[i]);
        range.start = walked;
    }
    if (marks && is_lost && range.end - range.start < RESERVED_BYTES)
        tbd_pages_mark_written(&tbd_memory.pages, range.start, range.end);
}

static bool is_following(void)
{
    return descriptor >= 0 || holder;
}

/* A stack's region begins below its pages: only what is mapped is registered and scanned. */
static struct tbd_range part_of(const struct tbd_msg_region *map, uint64_t start, uint64_t end)
{
    return (struct tbd_range){ map->start > start ? map->start : start,
                               map->end < end ? map->end : end };
}

/* Parts side by side are one, which saves the kernel's calls; what is large has its own. */
static bool join(struct tbd_range *part, struct tbd_range next)
{
    if (part->end != next.start || next.end - part->start >= RESERVED_BYTES)
        return false;
    part->end = next.end;
    return true;
}

static void each_part(uint64_t start, uint64_t end,
                      void (*visit)(const struct tbd_pagemap *map, struct tbd_range part))
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    struct tbd_range part = { 0, 0 };
    struct tbd_pagemap map;

    if (!is_following())
        return;
    tbd_pagemap_open(&map);
    for (size_t i = tbd_regions_lower(regions, start);
         i < regions->count && regions->table[i].map.start < end; i++) {
        struct tbd_range next = part_of(&regions->table[i].map, start, end);

        if (!is_followed(&regions->table[i].map) || join(&part, next))
            continue;
        if (part.end)
            visit(&map, part);
        part = next;
    }
    if (part.end)
        visit(&map, part);
    tbd_pagemap_close(&map);
}

static int borrowed; /* the descriptor, while mappings are registered */

static bool change(struct tbd_range part, uint64_t request)
{
    struct uffdio_register range = { .range = { part.start, part.end - part.start },
                                     .mode = UFFDIO_REGISTER_MODE_WP };

    return !tbd_sys_failed(
        tbd_sys3(__NR_ioctl, (uint64_t)(unsigned)borrowed, request, tbd_sys_pointer(&range)));
}

static void follow_part(const struct tbd_pagemap *map, struct tbd_range part, bool marks)
{
    if (!change(part, UFFDIO_REGISTER))
        is_lost = true;
    if (is_large(&part))
        tbd_sys_madvise(part.start, part.end - part.start, MADV_NOHUGEPAGE);
    collect_range(map, part, marks);
}

static void follow_new(const struct tbd_pagemap *map, struct tbd_range part)
{
    follow_part(map, part, false);
}

static void follow_old(const struct tbd_pagemap *map, struct tbd_range part)
{
    follow_part(map, part, true);
}

static void follow_no_more(const struct tbd_pagemap *map, struct tbd_range part)
{
    (void)map;
    (void)change(part, UFFDIO_UNREGISTER);
}

static void change_parts(uint64_t start, uint64_t end,
                         void (*visit)(const struct tbd_pagemap *map, struct tbd_range part))
{
    if (!is_following())
        return;
    borrowed = borrow();
    each_part(start, end, visit);
    give_back(borrowed);
}

void tbd_written_follow(uint64_t start, uint64_t end, bool is_new)
{
    change_parts(start, end, is_new ? follow_new : follow_old);
}

/* The organizer may keep its copy for a while: the mappings are free at once. */
void tbd_written_end(void)
{
    if (holder)
        change_parts(0, TBD_USER_END, follow_no_more);
    close_own();
}

static void collect_part(const struct tbd_pagemap *map, struct tbd_range part)
{
    collect_range(map, part, true);
}

void tbd_written_collect(uint64_t start, uint64_t end)
{
    each_part(start, end, collect_part);
}

uint64_t tbd_written_take_count(void)
{
    uint64_t count = marked;

    marked = 0;
    return count;
}

/* ---- what a first write costs ---- */

#define MEASURED_PAGES 8u
#define MEASUREMENTS   3u

static uint64_t measure_writes(struct tbd_range range)
{
    uint64_t start = tbd_sys_clock_ns();

    for (uint64_t at = range.start; at < range.end; at += TBD_PAGE_SIZE)
        *(volatile uint8_t *)at = 1;
    return tbd_sys_clock_ns() - start;
}

static uint64_t measure(const struct tbd_pagemap *map, struct tbd_range range)
{
    uint64_t least = UINT64_MAX;

    measure_writes(range); /* the pages are there */
    for (unsigned i = 0; i < MEASUREMENTS; i++) {
        uint64_t time;

        collect_range(map, range, false);
        time = measure_writes(range);
        least = time < least ? time : least;
    }
    return least / MEASURED_PAGES;
}

uint64_t tbd_written_measure_ns(void)
{
    const uint64_t bytes = MEASURED_PAGES * TBD_PAGE_SIZE;
    long start = tbd_sys_mmap(0, bytes, TBD_PROT_RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct tbd_range range = { (uint64_t)start, (uint64_t)start + bytes };
    struct tbd_pagemap map;
    uint64_t cost = 0;

    if (tbd_sys_failed(start))
        return 0;
    borrowed = borrow();
    tbd_pagemap_open(&map);
    if (change(range, UFFDIO_REGISTER))
        cost = measure(&map, range);
    tbd_pagemap_close(&map);
    give_back(borrowed);
    tbd_sys_munmap(range.start, bytes);
    return cost;
}
