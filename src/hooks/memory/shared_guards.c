// SPDX-License-Identifier: MIT
/* shared_guards.c - makes the touch map's cells read-only for memory that translated code must not
 * access (shared.h) */
#include "hooks/memory/shared_private.h"

#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/userfault.h"
#include "hooks/memory/userfault_ranges.h"
#include "hooks/stream/leaving.h"

#define CELL_PAGES (TBD_TOUCH_BYTES / TBD_PAGE_SIZE)

static uint8_t guarded[CELL_PAGES / 8];
static bool has_second_map;
uint32_t tbd_shared_guards;

static bool is_guarded(uint64_t index)
{
    return guarded[index / 8] >> (index % 8) & 1;
}

static uint8_t *second_map(void)
{
    return (uint8_t *)TBD_SECOND_TOUCH_BASE;
}

static bool make_second_map(void)
{
    if (!has_second_map)
        has_second_map = tbd_sys_mmap(TBD_SECOND_TOUCH_BASE, TBD_TOUCH_BYTES, TBD_PROT_RW,
                                      TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE, -1,
                                      0) == (long)TBD_SECOND_TOUCH_BASE;
    tbd_sys_madvise(TBD_SECOND_TOUCH_BASE, TBD_TOUCH_BYTES, MADV_DONTDUMP);
    return has_second_map;
}

uint16_t *tbd_shared_cell(uint16_t *cell, uint64_t page)
{
    uint64_t at = page * 2 & (TBD_TOUCH_BYTES - 1);

    if (!is_guarded(at / TBD_PAGE_SIZE))
        return cell;
    return (uint16_t *)(second_map() + at);
}

static void set_guard(uint64_t index, bool guard)
{
    uint8_t *first = tbd_memory.pages.touch + index * TBD_PAGE_SIZE;
    uint8_t *second = second_map() + index * TBD_PAGE_SIZE;

    if (guard) {
        memcpy(second, first, TBD_PAGE_SIZE);
        tbd_sys_mprotect(tbd_sys_pointer(first), TBD_PAGE_SIZE, PROT_READ);
    } else {
        tbd_sys_mprotect(tbd_sys_pointer(first), TBD_PAGE_SIZE, TBD_PROT_RW);
        memcpy(first, second, TBD_PAGE_SIZE);
    }
    guarded[index / 8] ^= (uint8_t)(1u << (index % 8));
    tbd_shared_guards += guard ? 1 : -1u;
}

/* Cells that an access to [start, end) can mark: accesses at close addresses share a mark, so the
 * neighbouring pages count, too. */
struct cells {
    uint64_t first, last; /* not reduced */
};

static struct cells cells_of(uint64_t start, uint64_t end)
{
    uint64_t low = start >> TBD_PAGE_SHIFT;

    return (struct cells){ (low ? low - 1 : 0) >> TBD_SHARED_CELL_SHIFT,
                           (end >> TBD_PAGE_SHIFT) >> TBD_SHARED_CELL_SHIFT };
}

/* Do pages whose marks are in this page of cells, or beside them, belong to shared memory? */
static bool is_guard_needed(uint64_t index)
{
    const uint64_t bytes = TBD_PAGE_SIZE << TBD_SHARED_CELL_SHIFT;

    for (uint64_t start = index * bytes; start < TBD_USER_END; start += TBD_TOUCH_SPAN)
        if (tbd_regions_any(&tbd_memory.regions, start ? start - 1 : 0,
                            start + bytes + TBD_PAGE_SIZE, TBD_REGION_SHARED))
            return true;
    return tbd_userfault_needs_guard(index);
}

void tbd_shared_update(uint64_t start, uint64_t end)
{
    struct cells cells = cells_of(start, end);
    bool adds; /* guards, not only takes them away */

    if (!tbd_shared_is_needed() && !tbd_userfault_count &&
        !tbd_regions_any(&tbd_memory.regions, start, end, TBD_REGION_SHARED))
        return;
    if (!tbd_shared_need() || !make_second_map()) {
        tbd_leave_soon("no memory for what other processes may write");
        return;
    }
    adds =
        tbd_userfault_count || tbd_regions_any(&tbd_memory.regions, start, end, TBD_REGION_SHARED);
    for (uint64_t at = cells.first; at <= cells.last && at - cells.first < CELL_PAGES; at++) {
        bool needed;

        if (!adds && !is_guarded(at % CELL_PAGES))
            continue;
        needed = is_guard_needed(at % CELL_PAGES);
        if (needed != is_guarded(at % CELL_PAGES))
            set_guard(at % CELL_PAGES, needed);
    }
}

bool tbd_shared_owns_sigsafe(uint64_t address)
{
    uint64_t offset = address - tbd_sys_pointer(tbd_memory.pages.touch);

    return tbd_shared_guards && offset < TBD_TOUCH_BYTES && is_guarded(offset / TBD_PAGE_SIZE);
}

void tbd_shared_drop_guards(void)
{
    for (uint64_t index = 0; tbd_shared_guards && index < CELL_PAGES; index++)
        if (is_guarded(index))
            set_guard(index, false);
    if (has_second_map)
        tbd_sys_madvise(TBD_SECOND_TOUCH_BASE, TBD_TOUCH_BYTES, MADV_DONTNEED);
}
