// SPDX-License-Identifier: MIT
/* userfault.c - see userfault.h */
#include "hooks/memory/userfault.h"

#include "base/linux.h"
#include "base/string.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/userfault_private.h"

static struct tbd_userfault_range moving;
static uint64_t events;    /* that a descriptor has asked for */
static bool is_for_kernel; /* a descriptor handles the kernel's page faults, too */

void tbd_userfault_register(const struct tbd_userfault_range *range)
{
    if (tbd_userfault_set_range(range))
        tbd_shared_update(range->start, range->end);
}

void tbd_userfault_unregister(uint64_t start, uint64_t end)
{
    if (!tbd_userfault_count)
        return;
    tbd_userfault_remove_range(start, end);
    tbd_shared_update(start, end);
}

void tbd_userfault_dropped(uint64_t start, uint64_t end)
{
    if (tbd_userfault_drop_pages(start, end))
        tbd_shared_update(start, end);
}

bool tbd_userfault_move(uint64_t from)
{
    const struct tbd_userfault_range *range = tbd_userfault_count ? tbd_userfault_find(from) : NULL;

    if (range)
        moving = *range;
    return range;
}

void tbd_userfault_moved(uint64_t from, uint64_t to, uint64_t to_end)
{
    struct tbd_userfault_range moved = { to, to_end, moving.modes, moving.features };

    if (from == to || (moved.features & UFFD_FEATURE_EVENT_REMAP))
        tbd_userfault_register(&moved);
}

void tbd_userfault_reset(void)
{
    tbd_userfault_drop_ranges();
    events = 0;
    is_for_kernel = false;
}

/* ---- features of the descriptors ---- */

void tbd_userfault_note_descriptor(uint64_t features, bool for_kernel)
{
    events |= features;
    is_for_kernel |= for_kernel;
}

bool tbd_userfault_waits_for_events(void)
{
    return tbd_userfault_count && (events & (UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |
                                             UFFD_FEATURE_EVENT_UNMAP));
}

bool tbd_userfault_follows_forks(void)
{
    return events & UFFD_FEATURE_EVENT_FORK;
}

bool tbd_userfault_is_for_kernel(void)
{
    return is_for_kernel;
}

/* ---- pages that were filled ---- */

/* The process' own memory was zero before somebody filled it; for shared memory, the view has the
 * old contents (hooks/memory/shared.h). */
static bool was_zero(uint64_t page)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, page);

    return region && !region->map.inode && !(region->map.flags & TBD_REGION_SHARED);
}

static bool is_zero(const uint8_t *bytes)
{
    for (size_t i = 0; i < TBD_PAGE_SIZE; i += 8) {
        uint64_t word;

        memcpy(&word, bytes + i, sizeof(word));
        if (word)
            return false;
    }
    return true;
}

static void adopt_page(struct tbd_effects *effects, uint64_t page, uint32_t *others)
{
    static const uint8_t zeros[TBD_PAGE_SIZE];
    static uint8_t now[TBD_PAGE_SIZE];
    uint64_t index = tbd_userfault_cells_of(page);

    tbd_userfault_set_logged(page);
    if (was_zero(page) && tbd_copy_from_program(now, page, sizeof(now)) && !is_zero(now)) {
        tbd_effects_add_known(effects, page, zeros, now, sizeof(now));
        ++*others;
    }
    if (!tbd_userfault_needs_guard(index))
        tbd_shared_update(page, page + 1);
}

void tbd_userfault_adopt(struct tbd_effects *effects, const struct tbd_sys_range *range,
                         uint32_t *others)
{
    uint64_t end = range->address + range->bytes;

    tbd_userfault_set_run_once(0);
    for (uint64_t page = tbd_userfault_page_of(range->address); tbd_userfault_count && page < end;
         page += TBD_PAGE_SIZE)
        if (tbd_userfault_is_filled(page))
            adopt_page(effects, page, others);
}
