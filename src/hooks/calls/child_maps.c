// SPDX-License-Identifier: MIT
/* child_maps.c - see child_maps.h */
#include "hooks/calls/child_maps.h"

#include "base/linux.h"
#include "base/sys.h"
#include "hooks/calls/map_changes.h"
#include "hooks/memory/maps.h"
#include "hooks/memory/pagemap.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/unlinked_files.h"
#include "hooks/stream/recording.h"

static struct tbd_regions lists[2]; /* before, after; their tables are reserved at the first call */
/* Not so where the program cannot see /proc any more (chroot(2)): then the child is taken to have changed
 * no mapping, and the trace says so. */
static bool both_are_read;

static bool add_line(void *context, const struct tbd_msg_region *map, const char *path)
{
    if (map->end > TBD_USER_END || tbd_map_is_engine(map->start, map->end))
        return true;
    return tbd_regions_add(context, map, path);
}

static bool read_list(struct tbd_regions *list)
{
    if (!list->table && !tbd_regions_init(list))
        return false;
    tbd_regions_clear(list);
    return tbd_maps_read(add_line, list);
}

void tbd_child_maps_note(void)
{
    both_are_read = read_list(&lists[0]);
}

/* One range, with the same mapping everywhere before, and the same after.  NULL: none. */
struct difference {
    uint64_t start;
    uint64_t end;
    const struct tbd_mapped_region *before;
    const struct tbd_mapped_region *after;
};

static uint64_t offset_at(const struct tbd_msg_region *map, uint64_t address)
{
    return map->inode ? map->file_offset + (address - map->start) : 0;
}

static bool is_same_object(const struct difference *d)
{
    const struct tbd_msg_region *before = &d->before->map, *after = &d->after->map;

    return before->inode == after->inode && before->device == after->device &&
           before->map_flags == after->map_flags &&
           offset_at(before, d->start) == offset_at(after, d->start);
}

/* Stacks grow without a call, and the table has that already (growth.h). */
static bool is_growth(const struct difference *d)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, d->start);

    return !d->before && region && region->map.map_flags & MAP_GROWSDOWN &&
           region->map.prot == d->after->map.prot;
}

static void tell(struct tbd_call *call, const struct difference *d, uint32_t flags)
{
    const struct tbd_msg_region *map = &(d->after ? d->after : d->before)->map;

    tbd_map_tell(call->thread, d->start, d->end, d->after ? map->prot : 0,
                 flags | (map->flags & TBD_REGION_HEAP ? TBD_MAPPED_HEAP : 0));
}

/* What the window knew of pages that are gone is in the snapshot alone. */
static void capture_before(struct tbd_call *call, const struct difference *d)
{
    tbd_window_read_from(tbd_effects_snapshot(call->effects));
    tbd_map_capture(call->thread, d->start, d->end);
    tbd_window_read_from(NULL);
}

static void take_away(struct tbd_call *call, const struct difference *d)
{
    capture_before(call, d);
    tell(call, d, TBD_MAPPED_GONE);
    tbd_map_remove(call->thread, d->start, d->end);
}

static void add_page(void *context, uint64_t address)
{
    tbd_effects_add(context, address, NULL, TBD_PAGE_SIZE);
}

/* Anonymous memory counts as zero, other memory has its file's contents; what the child has written counts as written by
 * the call. */
static void add_contents(struct tbd_call *call, const struct tbd_msg_region *map)
{
    struct tbd_pagemap pages;

    if (!(map->prot & PROT_READ))
        return;
    tbd_pagemap_open(&pages);
    tbd_pagemap_visit(&pages, TBD_PAGES_PRIVATE, map->start, map->end, add_page, call->effects);
    tbd_pagemap_close(&pages);
}

static void add(struct tbd_call *call, const struct difference *d)
{
    struct tbd_msg_region map = d->after->map;
    uint32_t shared = map.map_flags & MAP_SHARED ? TBD_MAPPED_SHARED : 0;

    map.file_offset = offset_at(&map, d->start);
    map.start = d->start;
    map.end = d->end;
    tell(call, d, map.inode ? shared : TBD_MAPPED_ZERO);
    tbd_map_add(call->thread, &map, d->after->path);
    if (!shared)
        add_contents(call, &map);
    tbd_written_files_send(call->thread, map.start, map.end);
}

static void protect(struct tbd_call *call, const struct difference *d)
{
    tell(call, d, TBD_MAPPED_KEPT);
    tbd_map_flush_code(call->thread, d->start, d->end);
    tbd_memory_protect_regions(d->start, d->end, d->after->map.prot);
    tbd_map_send(call->thread, d->start, d->end, false);
}

/* What the child has written is compared, and sent, only if it can be written and read: so such a protection comes
 * after the call's message, and what cannot be read can be until then. */
static bool is_later(const struct difference *d)
{
    return d->before->map.prot & ~d->after->map.prot & TBD_PROT_RW;
}

static void protect_first(struct tbd_call *call, const struct difference *d)
{
    if (!is_later(d))
        protect(call, d);
    else if (!(d->after->map.prot & PROT_READ))
        tbd_sys_mprotect(d->start, d->end - d->start, PROT_READ);
}

static void protect_later(struct tbd_call *call, const struct difference *d)
{
    if (!is_later(d))
        return;
    if (!(d->after->map.prot & PROT_READ)) {
        tbd_map_capture(call->thread, d->start, d->end);
        tbd_sys_mprotect(d->start, d->end - d->start, (int)d->after->map.prot);
    }
    protect(call, d);
}

static bool is_kept(const struct difference *d)
{
    return d->before && d->after && is_same_object(d);
}

static void apply_first(struct tbd_call *call, const struct difference *d)
{
    if (is_kept(d)) {
        if (d->before->map.prot != d->after->map.prot)
            protect_first(call, d);
        return;
    }
    if (d->before)
        take_away(call, d);
    if (d->after && !is_growth(d))
        add(call, d);
}

static void apply_later(struct tbd_call *call, const struct difference *d)
{
    if (is_kept(d))
        protect_later(call, d);
}

/* The list's region at `at`, and where that may change. */
static const struct tbd_mapped_region *region_at(const struct tbd_regions *list, uint64_t at,
                                                 uint64_t *end)
{
    size_t i = tbd_regions_lower(list, at);
    const struct tbd_mapped_region *region = i < list->count ? &list->table[i] : NULL;
    bool is_there = region && region->map.start <= at;
    uint64_t limit = !region ? TBD_USER_END : is_there ? region->map.end : region->map.start;

    *end = limit < *end ? limit : *end;
    return is_there ? region : NULL;
}

static void for_each(struct tbd_call *call,
                     void (*apply)(struct tbd_call *call, const struct difference *d))
{
    struct difference d = { 0 };

    if (!both_are_read)
        return;
    for (uint64_t at = 0; at < TBD_USER_END; at = d.end) {
        d.start = at;
        d.end = TBD_USER_END;
        d.before = region_at(&lists[0], at, &d.end);
        d.after = region_at(&lists[1], at, &d.end);
        if (d.before || d.after)
            apply(call, &d);
    }
}

void tbd_child_maps_compare(struct tbd_call *call)
{
    both_are_read = both_are_read && read_list(&lists[1]);
    if (!both_are_read)
        tbd_recording_note(0, "without /proc, mappings changed by process %u are not seen",
                           (unsigned)call->result);
    for_each(call, apply_first);
    tbd_memory.brk_end = (uint64_t)tbd_sys3(__NR_brk, 0, 0, 0);
}

void tbd_child_maps_finish(struct tbd_call *call)
{
    for_each(call, apply_later);
}
