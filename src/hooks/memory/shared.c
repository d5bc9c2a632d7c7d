// SPDX-License-Identifier: MIT
/* shared.c - see shared.h: reading such memory, choosing its address, and memory that becomes
 * shared
 *
 * The views themselves are in shared_views.c, the guarded cells of the touch map in
 * shared_guards.c. */
#include "hooks/memory/shared_private.h"

#include "base/linux.h"
#include "base/string.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/recording.h"
#include "patcher/forced_specials.h"

/* Returns the view of a page, taking it if there is none.  NULL: the page is not mapped, or there
 * are too many views.  A new view is sent at once: if the program is killed before the window's
 * end, its contents cannot be found elsewhere. */
uint8_t *tbd_shared_view(uint64_t page)
{
    uint8_t *found = tbd_shared_find_view(page);

    if (found)
        return found;
    found = tbd_shared_take_view(page);
    if (found && tbd_recording.is_on && !tbd_pages_is_changed(&tbd_memory.pages, page))
        tbd_window_send_first(&tbd_recording.ring, tbd_thread_now(), &tbd_memory.pages, page);
    return found;
}

size_t tbd_shared_read(void *out, uint64_t address, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        uint64_t at = address + done;
        uint64_t page = at & ~(TBD_PAGE_SIZE - 1);
        size_t part = tbd_shared_page_part(at, bytes - done);
        const uint8_t *view = tbd_shared_is_page(page) ? tbd_shared_view(page) : NULL;
        size_t got = part;

        if (view)
            memcpy((uint8_t *)out + done, view + (at - page), part);
        else
            got = tbd_copy_prefix_from_program((uint8_t *)out + done, at, part);
        done += got;
        if (got < part)
            break;
    }
    return done;
}

/* ---- addresses of new mappings ---- */

#define CELL_BYTES (TBD_PAGE_SIZE << TBD_SHARED_CELL_SHIFT) /* of memory: 8 MiB */
/* Between the engine and the program.  Programs and libraries are never at these addresses, modulo 8 TiB, where the touch
 * map wraps around. */
#define PLACE_FIRST 0x541000000000ull
#define PLACE_LAST  0x554000000000ull

uint64_t tbd_shared_place(uint64_t bytes)
{
    const struct tbd_regions *regions = &tbd_memory.regions;
    uint64_t span = ((bytes + CELL_BYTES - 1) & ~(CELL_BYTES - 1)) + CELL_BYTES;
    uint64_t at = PLACE_FIRST;

    if (bytes > PLACE_LAST - PLACE_FIRST)
        return 0;
    for (size_t i = tbd_regions_lower(regions, PLACE_FIRST); i < regions->count; i++) {
        if (regions->table[i].map.start >= at + span)
            break;
        at = (regions->table[i].map.end + 2 * CELL_BYTES - 1) & ~(CELL_BYTES - 1);
    }
    return at + span <= PLACE_LAST ? at : 0;
}

/* ---- forks ---- */

/* Takes the views now: they must have the contents that the log knows, and from now on others can
 * change the pages. */
static void take_known_views(const struct tbd_msg_region *map)
{
    const struct tbd_pages *pages = &tbd_memory.pages;

    for (uint64_t page = map->start; page < map->end; page += TBD_PAGE_SIZE)
        if (tbd_pages_is_used(pages, page))
            tbd_shared_view(page);
}

static void set_shared(struct tbd_msg_region *map, bool has_log)
{
    map->flags |= TBD_REGION_SHARED;
    tbd_shared_update(map->start, map->end);
    if (has_log)
        take_known_views(map);
}

static void become_shared(struct tbd_msg_region *map, bool has_log)
{
    bool is_ours = map->flags & (TBD_REGION_VVAR | TBD_REGION_VDSO);

    if (!is_ours && map->map_flags & MAP_SHARED && !(map->flags & TBD_REGION_SHARED))
        set_shared(map, has_log);
}

static void all_become_shared(bool has_log)
{
    struct tbd_regions *regions = &tbd_memory.regions;

    if (!tbd_recording_has_pages())
        return;
    for (size_t i = 0; i < regions->count; i++)
        become_shared(&regions->table[i].map, has_log);
}

void tbd_shared_fork(void)
{
    all_become_shared(true);
}

void tbd_shared_double(uint64_t address)
{
    struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, address);

    if (region && tbd_recording_has_pages())
        become_shared(&region->map, true);
}

uint64_t tbd_shared_private_changes;

void tbd_shared_private(struct tbd_msg_region *map)
{
    tbd_shared_private_changes++;
    set_shared(map, true);
}

void tbd_shared_take_over(void)
{
    all_become_shared(false);
}

void tbd_shared_reset(void)
{
    tbd_forced_specials_clear();
    tbd_shared_drop_guards();
    tbd_shared_drop_views();
}
