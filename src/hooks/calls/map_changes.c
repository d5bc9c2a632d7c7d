// SPDX-License-Identifier: MIT
/* map_changes.c - see map_changes.h */
#include "hooks/calls/map_changes.h"

#include "base/linux.h"
#include "base/log.h"
#include "base/string.h"
#include "hooks/memory/branches.h"
#include "hooks/memory/calling_memory.h"
#include "hooks/memory/code_areas.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/unlinked_files.h"
#include "hooks/memory/userfault.h"
#include "hooks/memory/written_pages.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "patcher/patcher.h"

uint64_t tbd_map_page_up(uint64_t bytes)
{
    return (bytes + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1);
}

bool tbd_map_overlaps(uint64_t start, uint64_t end, uint64_t other_start, uint64_t other_end)
{
    return start < other_end && other_start < end;
}

bool tbd_map_is_engine(uint64_t start, uint64_t end)
{
    if (tbd_map_overlaps(start, end, TBD_ENGINE_BASE, TBD_ENGINE_END) ||
        tbd_calling_memory_overlaps(start, end) || tbd_branches_overlap(start, end))
        return true;
    for (size_t i = 0; i < tbd_code_areas.count; i++)
        if (tbd_map_overlaps(start, end, tbd_code_areas.area[i].start, tbd_code_areas.area[i].end))
            return true;
    return false;
}

/* A range that begins within a page is refused by the kernel, even if the engine is in the page after it. */
void tbd_map_check(struct tbd_call *call, uint64_t start, uint64_t bytes)
{
    if (start % TBD_PAGE_SIZE == 0 && bytes && bytes < TBD_USER_END &&
        tbd_map_is_engine(start, start + tbd_map_page_up(bytes)))
        tbd_call_detach(call, "it changes mappings where the engine is");
}

/* Guards are pages that fault though their mapping says otherwise, and that outlive mprotect.  A trace has no word for
 * them, so a recording refuses them as kernels before 6.13 do: who asks for them then uses mprotect. */
bool tbd_map_refuses_advice(struct tbd_call *call, uint64_t advice)
{
    if (!tbd_recording_has_pages() || (advice != MADV_GUARD_INSTALL && advice != MADV_GUARD_REMOVE))
        return false;
    call->flags |= TBD_SYSCALL_REFUSED;
    call->result = -EINVAL;
    tbd_call_finish(call);
    return true;
}

/* ---- telling the trace ---- */

void tbd_map_send_unmap(struct tbd_thread *thread, uint64_t start, uint64_t end)
{
    struct tbd_range range = { start, end };
    struct tbd_part part = { &range, sizeof(range) };

    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_UNMAP, &part, 1);
}

void tbd_map_tell(struct tbd_thread *thread, uint64_t start, uint64_t end, uint32_t prot,
                  uint32_t flags)
{
    struct tbd_msg_mapped mapped = { .start = start, .end = end, .prot = prot, .flags = flags };
    struct tbd_part part = { &mapped, sizeof(mapped) };

    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_MAPPED, &part, 1);
}

static void send_region(struct tbd_thread *thread, const struct tbd_msg_region *map,
                        const char *path)
{
    struct tbd_part parts[2] = { { map, sizeof(*map) }, { path, strlen(path) + 1 } };

    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_REGION, parts, 2);
    TBD_LOG(TBD_LOG_DEBUG, "region", "%lx-%lx prot %u flags %u %s", map->start, map->end, map->prot,
            map->flags, path);
}

void tbd_map_send(struct tbd_thread *thread, uint64_t start, uint64_t end, bool zero)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = tbd_regions_lower(regions, start);
         i < regions->count && regions->table[i].map.start < end; i++) {
        struct tbd_msg_region map = regions->table[i].map;

        if (map.start < start) {
            map.file_offset += map.inode ? start - map.start : 0;
            map.start = start;
        }
        if (map.end > end)
            map.end = end;
        if (zero && !map.inode && !(map.map_flags & MAP_SHARED))
            map.flags |= TBD_REGION_ANON_ZERO;
        send_region(thread, &map, regions->table[i].path);
    }
}

/* ---- before ---- */

void tbd_map_capture(struct tbd_thread *thread, uint64_t start, uint64_t end)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    if (!tbd_recording_has_pages())
        return;
    tbd_written_collect(start, end);
    for (size_t i = tbd_regions_lower(regions, start);
         i < regions->count && regions->table[i].map.start < end; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;
        struct tbd_stretch stretch = { map->start > start ? map->start : start,
                                       map->end < end ? map->end : end, false };

        stretch.folds = tbd_regions_folds(regions, stretch.start, stretch.end);
        if (map->prot & PROT_READ)
            tbd_window_send_pages(&tbd_recording.ring, thread, &tbd_memory.pages, &stretch, 1);
    }
}

/* The range starts an instruction earlier: a block before it may have ended because it could not go
 * on here. */
void tbd_map_flush_code(struct tbd_thread *thread, uint64_t start, uint64_t end)
{
    start -= start < TBD_INSN_MAX_BYTES ? start : TBD_INSN_MAX_BYTES;
    if (tbd_regions_has_code(&tbd_memory.regions, start, end) || tbd_patcher_may_read(start, end))
        tbd_patcher_flush_range(thread, start, end);
}

/* ---- the change ---- */

/* What follows changes the table of regions, and calls tbd_shared_update(). */
static void forget_but_regions(struct tbd_thread *thread, uint64_t start, uint64_t end)
{
    tbd_map_flush_code(thread, start, end);
    tbd_pages_set_known(&tbd_memory.pages, start, end, false);
    tbd_shared_forget(start, end);
    tbd_userfault_unregister(start, end);
}

void tbd_map_remove(struct tbd_thread *thread, uint64_t start, uint64_t end)
{
    forget_but_regions(thread, start, end);
    tbd_regions_remove(&tbd_memory.regions, start, end);
    tbd_shared_update(start, end);
    tbd_map_send_unmap(thread, start, end);
}

static void put(const struct tbd_msg_region *map, const char *path)
{
    if (!tbd_memory_add_region(map, path))
        tbd_leave_soon("it has too many mappings");
    tbd_shared_update(map->start, map->end);
}

/* A file can be open elsewhere; anonymous memory belongs to this process alone until it forks. */
static bool may_others_write(const struct tbd_msg_region *map)
{
    return tbd_recording_has_pages() && (map->map_flags & MAP_SHARED) && map->inode;
}

/* Shared anonymous memory counts as fresh too: bytes that others wrote before this process first
 * used a page are recorded as the page's first contents (hooks/memory/shared.c). */
void tbd_map_add(struct tbd_thread *thread, struct tbd_msg_region *map, const char *path)
{
    bool is_fresh = !map->inode;
    struct tbd_msg_region told;

    forget_but_regions(thread, map->start, map->end);
    tbd_map_send_unmap(thread, map->start, map->end);
    if (may_others_write(map))
        map->flags |= TBD_REGION_SHARED;
    put(map, path);
    if (is_fresh && !(map->map_flags & MAP_SHARED))
        tbd_pages_set_known(&tbd_memory.pages, map->start, map->end, true);
    told = *map;
    told.flags |= is_fresh ? TBD_REGION_ANON_ZERO : 0;
    send_region(thread, &told, path);
}

void tbd_map_add_unknown(struct tbd_thread *thread, const struct tbd_msg_region *map,
                         const char *path)
{
    tbd_map_remove(thread, map->start, map->end);
    put(map, path);
    tbd_map_send(thread, map->start, map->end, false);
}

/* ---- contents ---- */

/* Private anonymous pages are zero now; others have the contents of their file. */
static void forget_contents(uint64_t start, uint64_t end)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    tbd_shared_forget(start, end);
    tbd_userfault_dropped(start, end);
    for (size_t i = tbd_regions_lower(regions, start);
         i < regions->count && regions->table[i].map.start < end; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;

        tbd_pages_set_known(&tbd_memory.pages, map->start > start ? map->start : start,
                            map->end < end ? map->end : end,
                            !map->inode && !(map->map_flags & MAP_SHARED));
    }
}

/* STREAM-6 */
void tbd_map_drop_contents(struct tbd_thread *thread, uint64_t from, uint64_t to)
{
    tbd_map_flush_code(thread, from, to);
    forget_contents(from, to);
    tbd_map_send_unmap(thread, from, to);
    tbd_map_send(thread, from, to, true);
    tbd_unlinked_files_send_again(thread, from, to);
}
