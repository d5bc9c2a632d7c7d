// SPDX-License-Identifier: MIT
/* shared_views.c - the contents of shared memory as the log knows them (shared.h)
 *
 * Views are chained by a hash of their page; entry n belongs to page n of the arena. */
#include "hooks/memory/shared_private.h"

#include "base/arena.h"
#include "base/string.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/leaving.h"

#define MAX_VIEWS (1u << 18)
#define BUCKETS   (1u << 17)

struct view {
    uint64_t page; /* address */
    uint32_t next; /* index + 1 */
};

static struct {
    struct tbd_arena arena;
    uint8_t *bytes;
    struct view *view;
    uint32_t *bucket;
    uint32_t used;
    uint32_t free;  /* chain of free entries; index + 1 */
    bool is_needed; /* there is, or was, shared memory; never in a replay process */
} views;
uint64_t tbd_shared_views_dropped;

static uint32_t *bucket_of(uint64_t page)
{
    return &views.bucket[(uint32_t)((page >> TBD_PAGE_SHIFT) * 0x9e3779b1u >> 7) % BUCKETS];
}

static bool make_views(void)
{
    uint64_t bytes = MAX_VIEWS * (TBD_PAGE_SIZE + sizeof(struct view)) + BUCKETS * sizeof(uint32_t);

    if (views.view)
        return true;
    if (!tbd_arena_init(&views.arena, bytes + TBD_PAGE_SIZE))
        return false;
    views.bytes = tbd_arena_alloc(&views.arena, MAX_VIEWS * TBD_PAGE_SIZE, TBD_PAGE_SIZE);
    views.bucket = tbd_arena_alloc(&views.arena, BUCKETS * sizeof(uint32_t), 8);
    views.view = tbd_arena_alloc(&views.arena, MAX_VIEWS * sizeof(struct view), 8);
    return views.view;
}

static uint8_t *bytes_of(uint32_t index)
{
    return views.bytes + (uint64_t)index * TBD_PAGE_SIZE;
}

uint8_t *tbd_shared_find_view(uint64_t page)
{
    if (!views.view)
        return NULL;
    for (uint32_t n = *bucket_of(page); n; n = views.view[n - 1].next)
        if (views.view[n - 1].page == page)
            return bytes_of(n - 1);
    return NULL;
}

static uint32_t new_index(void)
{
    uint32_t n = views.free;

    if (n) {
        views.free = views.view[n - 1].next;
        return n;
    }
    return views.used < MAX_VIEWS ? ++views.used : 0;
}

uint8_t *tbd_shared_take_view(uint64_t page)
{
    uint8_t *found = tbd_shared_find_view(page);
    uint32_t n;

    if (found || !make_views())
        return found;
    n = new_index();
    if (!n) {
        tbd_leave_soon("it uses too much memory that other processes may write");
        return NULL;
    }
    views.view[n - 1].next = *bucket_of(page);
    views.view[n - 1].page = page;
    *bucket_of(page) = n;
    if (tbd_copy_from_program(bytes_of(n - 1), page, TBD_PAGE_SIZE))
        return bytes_of(n - 1);
    tbd_shared_forget(page, page + TBD_PAGE_SIZE);
    return NULL;
}

static void drop_view(uint64_t page)
{
    for (uint32_t *link = bucket_of(page); *link; link = &views.view[*link - 1].next) {
        uint32_t n = *link;

        if (views.view[n - 1].page != page)
            continue;
        *link = views.view[n - 1].next;
        tbd_shared_views_dropped++;
        views.view[n - 1] = (struct view){ .next = views.free };
        views.free = n;
        return;
    }
}

void tbd_shared_forget(uint64_t start, uint64_t end)
{
    if (!views.view)
        return;
    if ((end - start) >> TBD_PAGE_SHIFT <= views.used) {
        for (uint64_t page = start; page < end; page += TBD_PAGE_SIZE)
            drop_view(page);
        return;
    }
    for (uint32_t n = 0; n < views.used; n++)
        if (views.view[n].page >= start && views.view[n].page < end)
            drop_view(views.view[n].page);
}

bool tbd_shared_is_needed(void)
{
    return views.is_needed;
}

bool tbd_shared_need(void)
{
    views.is_needed = true;
    return make_views();
}

void tbd_shared_drop_views(void)
{
    if (views.view) {
        memset(views.bucket, 0, BUCKETS * sizeof(uint32_t));
        views.used = views.free = 0;
    }
    tbd_shared_views_dropped++;
    views.is_needed = false;
}

/* ---- is it shared memory? ---- */

bool tbd_shared_holds(uint64_t start, uint64_t end)
{
    return views.is_needed && tbd_regions_any(&tbd_memory.regions, start, end, TBD_REGION_SHARED);
}

bool tbd_shared_is_page(uint64_t page)
{
    const struct tbd_mapped_region *region =
        views.is_needed ? tbd_regions_find(&tbd_memory.regions, page) : NULL;

    return region && (region->map.flags & TBD_REGION_SHARED);
}

uint8_t *tbd_shared_view_of(uint64_t page)
{
    return tbd_shared_is_page(page) ? tbd_shared_find_view(page) : NULL;
}

bool tbd_shared_read_page(void *out, uint64_t page)
{
    const uint8_t *view = tbd_shared_is_page(page) ? tbd_shared_take_view(page) : NULL;

    if (!view)
        return tbd_copy_from_program(out, page, TBD_PAGE_SIZE);
    memcpy(out, view, TBD_PAGE_SIZE);
    return true;
}

void tbd_shared_logged(uint64_t address, const void *now, size_t bytes)
{
    for (size_t done = 0, part; done < bytes; done += part) {
        uint64_t at = address + done;
        uint64_t page = at & ~(TBD_PAGE_SIZE - 1);
        uint8_t *view = tbd_shared_find_view(page);

        part = tbd_shared_page_part(at, bytes - done);
        if (view)
            memcpy(view + (at - page), (const uint8_t *)now + done, part);
    }
}
