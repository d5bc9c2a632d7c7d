// SPDX-License-Identifier: MIT
/* program_memory.c - see program_memory.h */
#include "hooks/memory/program_memory.h"

#include "base/linux.h"
#include "hooks/memory/written_pages.h"
#include "hooks/stream/recording.h"

struct tbd_program_memory tbd_memory;

/* ---- the table of regions ---- */

/* Does a page outside the range, which can be read, share the page's marks? */
static bool has_other(uint64_t page, const struct tbd_range *range)
{
    for (uint64_t at = page % TBD_TOUCH_SPAN; at < TBD_USER_END; at += TBD_TOUCH_SPAN) {
        const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, at);

        if ((at < range->start || at >= range->end) && region && region->map.prot & PROT_READ)
            return true;
    }
    return false;
}

/* Marks of such a page stay: they are cleared where the window ends. */
static void clear_alone(const struct tbd_range *range)
{
    struct tbd_pages *pages = &tbd_memory.pages;

    for (uint64_t at = range->start;
         (at = tbd_pages_next_marked(pages, at, range->end)) < range->end; at += TBD_PAGE_SIZE) {
        struct tbd_stretch page = { at, at + TBD_PAGE_SIZE, false };

        if (!has_other(at, range))
            tbd_window_clear_marks(pages, &page);
    }
}

void tbd_memory_becomes_readable(uint64_t start, uint64_t end)
{
    struct tbd_stretch stretch = { start, end, false };

    if (tbd_regions_folds(&tbd_memory.regions, start, end))
        clear_alone(&(struct tbd_range){ start, end });
    else
        tbd_window_clear_marks(&tbd_memory.pages, &stretch);
}

bool tbd_memory_add_region(const struct tbd_msg_region *map, const char *path)
{
    if (map->prot & PROT_READ)
        tbd_memory_becomes_readable(map->start, map->end);
    return tbd_regions_add(&tbd_memory.regions, map, path);
}

bool tbd_memory_protect_regions(uint64_t start, uint64_t end, uint32_t prot)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = tbd_regions_lower(regions, start);
         (prot & PROT_READ) && i < regions->count && regions->table[i].map.start < end; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;

        if (!(map->prot & PROT_READ))
            tbd_memory_becomes_readable(map->start > start ? map->start : start,
                                        map->end < end ? map->end : end);
    }
    return tbd_regions_protect(&tbd_memory.regions, start, end, prot);
}

/* ---- sending pages ---- */

#define STRETCH_BATCH 256u

enum sent { TOUCHED, UNKNOWN };

static void send_stretches(struct tbd_thread *thread, enum sent what,
                           const struct tbd_stretch *stretches, size_t count)
{
    struct tbd_ring *ring = &tbd_recording.ring;

    if (what == TOUCHED)
        tbd_window_send_pages(ring, thread, &tbd_memory.pages, stretches, count);
    else
        tbd_window_send_unknown(ring, thread, &tbd_memory.pages, stretches, count);
}

/* Unreadable mappings need no scan: their contents were sent when they became unreadable. */
static bool is_sent(const struct tbd_msg_region *map)
{
    return map->prot & PROT_READ && !(map->flags & TBD_REGION_VVAR);
}

/* Returns whether marks remain, since several pages may share them. */
static bool send_everywhere(struct tbd_thread *thread, enum sent what)
{
    struct tbd_stretch stretches[STRETCH_BATCH];
    const struct tbd_regions *regions = &tbd_memory.regions;
    bool can_fold = tbd_regions_any_folds(regions);
    bool any_folds = false;
    size_t count = 0;

    for (size_t i = 0; i < regions->count; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;
        bool folds;

        if (!is_sent(map))
            continue;
        folds = can_fold && tbd_regions_folds(regions, map->start, map->end);
        any_folds |= folds;
        stretches[count++] = (struct tbd_stretch){ map->start, map->end, folds };
        if (count == STRETCH_BATCH) {
            send_stretches(thread, what, stretches, count);
            count = 0;
        }
    }
    send_stretches(thread, what, stretches, count);
    return any_folds;
}

void tbd_memory_send_touched(struct tbd_thread *thread)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    bool any_folds;

    tbd_written_collect(0, TBD_USER_END);
    tbd_memory.pages.ends_window = tbd_recording.ring.head->flags & TBD_STREAM_NATIVE;
    any_folds = send_everywhere(thread, TOUCHED);
    tbd_memory.pages.ends_window = false;
    if (!any_folds)
        return;
    for (size_t i = 0; i < regions->count; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;
        struct tbd_stretch stretch = { .start = map->start, .end = map->end };

        if (is_sent(map))
            tbd_window_clear_marks(&tbd_memory.pages, &stretch);
    }
}

void tbd_memory_send_unknown(struct tbd_thread *thread)
{
    tbd_written_collect(0, TBD_USER_END);
    if (tbd_recording.hooks & TBD_HOOK_TOUCH)
        send_everywhere(thread, UNKNOWN);
}
