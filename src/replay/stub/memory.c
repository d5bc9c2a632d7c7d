// SPDX-License-Identifier: MIT
/* memory.c - the program's memory inside a replay process
 *
 * Neighbours: plan.h describes the memory at the window's start; the fault handler (fault.c) asks
 * for missing pages; the log's mapping calls (map_calls.c) change mappings.
 *
 * MEMORY-1  tbd_memory.regions has the program's mappings.  A page is really mapped if and only if
 *     its bit in the present map is set; its protection is the region's, without execute
 *     permission, since only translated code runs here.  (not checked: replays in any order do:
 *     contents would differ)
 * MEMORY-2  Every page is absent, or present with contents that come from the trace, are zero, or
 *     were moved there.  (not checked: replays in any order do: contents would differ)
 * MEMORY-3  Nothing here changes addresses outside the regions, so patch areas and the engine stay
 *     mapped. */
#include "replay/stub/memory.h"

#include "base/assert.h"
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/marked_pages.h"
#include "hooks/memory/program_memory.h"
#include "replay/stub/present_map.h"
#include "replay/stub/stub.h"
#include "replay/stub/turn.h"

/* A fresh mapping of this size is mapped where it is used, LAZY_STEP at a time: programs reserve
 * terabytes and use little. */
#define LAZY_BYTES  (4ull << 30)
#define LAZY_STEP   (2ull << 20)
#define REGION_LAZY (1u << 31) /* absent pages are zero; not a flag of traces */

static struct tbd_plan_head *plan;

/* tbd_memory.regions, as in play, so that code shared with play sees the program's mappings.  In
 * struct tbd_msg_region, `device` is the order of the log message of the call that made the mapping
 * (0: before the window), and `inode` is 1 for files. */
static struct tbd_regions *table(void)
{
    return &tbd_memory.regions;
}

static uint64_t page_of(uint64_t address)
{
    return address & ~(TBD_PAGE_SIZE - 1);
}

static uint64_t page_up(uint64_t address)
{
    return page_of(address + TBD_PAGE_SIZE - 1);
}

/* ---- real mappings ---- */

static int real_prot(uint32_t prot)
{
    if (prot & PROT_EXEC)
        prot |= PROT_READ;
    return (int)(prot & (PROT_READ | PROT_WRITE));
}

static bool is_outside_engine(uint64_t start, uint64_t end)
{
    return start <= end && (end <= TBD_ENGINE_BASE || start >= TBD_ENGINE_END);
}

static bool is_refused; /* by the system, as only memory below vm.mmap_min_addr is */

const char *tbd_memory_refused(void)
{
    return is_refused ? "it has memory that the system gives to no confined process "
                        "(vm.mmap_min_addr)"
                      : NULL;
}

static bool real_map(uint64_t start, uint64_t bytes, int prot)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    long result;

    TBD_INVARIANT("MEMORY-3", is_outside_engine(start, start + bytes));
    result = tbd_sys_mmap(start, bytes, prot, flags, -1, 0);
    is_refused = is_refused || result == -EPERM;
    return result == (long)start;
}

static void real_unmap(uint64_t start, uint64_t end)
{
    TBD_INVARIANT("MEMORY-3", is_outside_engine(start, end));
    for (uint64_t at = start, next; at < end; at = next) {
        next = tbd_present_run_end(at, end);
        if (tbd_present_has(at))
            tbd_sys_munmap(at, next - at);
    }
    tbd_present_clear(start, end);
}

static void real_protect(uint64_t start, uint64_t end, int prot)
{
    TBD_INVARIANT("MEMORY-3", is_outside_engine(start, end));
    for (uint64_t at = start, next; at < end; at = next) {
        next = tbd_present_run_end(at, end);
        if (tbd_present_has(at))
            tbd_sys_mprotect(at, next - at, prot);
    }
}

bool tbd_memory_clear_process(void)
{
    uint64_t last = TBD_USER_END - TBD_PAGE_SIZE;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;

    if (tbd_sys_munmap(0, TBD_ENGINE_BASE) || tbd_sys_munmap(TBD_ENGINE_END, last - TBD_ENGINE_END))
        return false;
    return tbd_sys_mmap(TBD_PRESENT_BASE, 4ull << 30, PROT_READ | PROT_WRITE, flags, -1, 0) ==
           (long)TBD_PRESENT_BASE;
}

/* ---- a window begins ---- */

/* Iterates in address order over the memory that stays mapped: unchanged code (`keep`), unchanged
 * pages, and readable and writable pages that the next window has, too, which only get new
 * contents. */
struct stay {
    const struct tbd_plan_range *keep, *keep_end;
    const struct tbd_plan_page *page, *page_end;
    const struct tbd_plan_region *region, *region_end;
};

#define ORDINARY ((uint32_t)(PROT_READ | PROT_WRITE))

static struct stay stay_begin(const struct tbd_plan_head *head)
{
    const char *base = (const char *)head;
    struct stay stay = { .keep = (const void *)(base + head->keep.offset),
                         .page = (const void *)(base + head->pages.offset),
                         .region = (const void *)(base + head->regions.offset) };

    stay.keep_end = stay.keep + head->keep.count;
    stay.page_end = stay.page + head->pages.count;
    stay.region_end = stay.region + head->regions.count;
    return stay;
}

/* Can the page, which had the protection `prot`, stay mapped? */
static bool can_stay(struct stay *stay, const struct tbd_plan_page *page, uint32_t prot)
{
    if (prot != ORDINARY && page->contents != TBD_PLAN_SAME_PAGE)
        return false;
    while (stay->region < stay->region_end && stay->region->end <= page->address)
        stay->region++;
    return stay->region < stay->region_end && stay->region->start <= page->address &&
           stay->region->prot == prot;
}

/* The next range that stays mapped, from `at` on; an empty one at `end` if there is none before. */
static struct tbd_plan_range next_stay(struct stay *stay, uint64_t at, uint64_t end, uint32_t prot)
{
    struct tbd_plan_range none = { end, end };

    if (prot & PROT_EXEC) {
        while (stay->keep < stay->keep_end && stay->keep->end <= at)
            stay->keep++;
        return stay->keep < stay->keep_end && stay->keep->start < end ? *stay->keep : none;
    }
    while (stay->page < stay->page_end && stay->page->address < end) {
        uint64_t address = stay->page->address;

        if (address >= at && can_stay(stay, stay->page, prot))
            return (struct tbd_plan_range){ address, address + TBD_PAGE_SIZE };
        stay->page++;
    }
    return none;
}

static void forget_window(const struct tbd_plan_head *head)
{
    struct stay stay = stay_begin(head);

    for (size_t i = 0; i < table()->count; i++) {
        const struct tbd_msg_region *map = &table()->table[i].map;

        for (uint64_t at = map->start; at < map->end;) {
            struct tbd_plan_range next = next_stay(&stay, at, map->end, map->prot);

            if (next.start > at)
                real_unmap(at, next.start);
            at = next.end;
        }
    }
    table()->count = 0;
}

static bool add_regions(const struct tbd_plan_head *head)
{
    const struct tbd_plan_region *from = (const void *)((const char *)head + head->regions.offset);

    for (uint64_t i = 0; i < head->regions.count; i++) {
        struct tbd_msg_region map = { .start = from[i].start,
                                      .end = from[i].end,
                                      .prot = from[i].prot,
                                      .flags = from[i].flags & ~REGION_LAZY,
                                      .map_flags = from[i].map_flags,
                                      .inode = from[i].is_file };

        if (!tbd_regions_add(table(), &map, ""))
            return false;
    }
    return true;
}

static struct tbd_msg_region *region_of(uint64_t address)
{
    struct tbd_mapped_region *region = tbd_regions_find(table(), address);

    return region ? &region->map : NULL;
}

static void fill(const struct tbd_plan_head *head, const struct tbd_plan_page *pages,
                 uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (pages[i].contents != TBD_PLAN_ZERO_PAGE)
            memcpy((void *)pages[i].address, (const char *)head + pages[i].contents, TBD_PAGE_SIZE);
}

/* Maps adjacent pages of one region with one call.  Returns their number. */
static uint64_t place_run(const struct tbd_plan_head *head, const struct tbd_plan_page *pages,
                          uint64_t count, const struct tbd_msg_region *region)
{
    uint64_t start = pages[0].address, end = start + TBD_PAGE_SIZE, used = 1;
    int prot = real_prot(region->prot);

    while (used < count && pages[used].address == end && end < region->end &&
           !tbd_present_has(end) && pages[used].contents != TBD_PLAN_SAME_PAGE) {
        end += TBD_PAGE_SIZE;
        used++;
    }
    if (!real_map(start, end - start, PROT_READ | PROT_WRITE))
        return 0;
    fill(head, pages, used);
    if (prot != (PROT_READ | PROT_WRITE))
        tbd_sys_mprotect(start, end - start, prot);
    tbd_present_set(start, end);
    return used;
}

static void refill(const struct tbd_plan_head *head, const struct tbd_plan_page *page)
{
    if (page->contents == TBD_PLAN_SAME_PAGE)
        return;
    if (page->contents == TBD_PLAN_ZERO_PAGE)
        memset((void *)page->address, 0, TBD_PAGE_SIZE);
    else
        fill(head, page, 1);
}

static const char *place_pages(const struct tbd_plan_head *head)
{
    const struct tbd_plan_page *pages = (const void *)((const char *)head + head->pages.offset);
    uint64_t used;

    for (uint64_t i = 0; i < head->pages.count; i += used) {
        const struct tbd_msg_region *region = region_of(pages[i].address);

        used = 1;
        if (region && tbd_present_has(pages[i].address) && region->prot == ORDINARY)
            refill(head, &pages[i]);
        if (!region || tbd_present_has(pages[i].address))
            continue; /* it stayed mapped */
        if (pages[i].contents == TBD_PLAN_SAME_PAGE)
            continue; /* it did not; the driver will be asked for it */
        used = place_run(head, pages + i, head->pages.count - i, region);
        if (!used)
            return is_refused ? tbd_memory_refused()
                              : "an address range of the program is taken in the replay process";
    }
    return NULL;
}

/* Only pages that are present can have been modified, or share their marks with such a page. */
static bool next_marked(uint64_t start, uint64_t end, struct tbd_range *out)
{
    return tbd_marked_find(tbd_present_cells, start, end, out);
}

void tbd_memory_scan_all(void)
{
    tbd_memory.pages.next_marked = NULL;
}

const char *tbd_memory_begin(struct tbd_plan_head *head)
{
    plan = head;
    is_refused = false;
    tbd_memory.pages.next_marked =
        head->slice || !(head->hook_set & TBD_HOOK_TOUCH) ? NULL : next_marked;
    forget_window(head);
    if (!add_regions(head))
        return "too many mappings";
    return place_pages(head);
}

/* ---- pages on demand ---- */

static bool place_answer(const struct tbd_msg_region *region, uint64_t page)
{
    struct tbd_plan_page one = { .address = page, .contents = TBD_PLAN_ZERO_PAGE };

    if (plan->page.answer == TBD_PAGE_ABSENT)
        return false;
    if (plan->page.answer == TBD_PAGE_GIVEN)
        one.contents = (uint64_t)(plan->page.contents - (uint8_t *)plan);
    return place_run(plan, &one, 1, region) == 1;
}

static bool place_zeros(const struct tbd_msg_region *region, uint64_t page)
{
    uint64_t step_end = page + LAZY_STEP;
    uint64_t end = tbd_present_run_end(page, step_end < region->end ? step_end : region->end);

    if (!real_map(page, end - page, real_prot(region->prot)))
        return false;
    tbd_present_set(page, end);
    return true;
}

static bool allows(uint32_t prot, uint32_t access)
{
    if (prot & (PROT_WRITE | PROT_EXEC))
        prot |= PROT_READ;
    return (prot & access) == access;
}

/* Makes a page present, whatever its protection.  Returns its region; NULL if there is no such
 * page. */
static struct tbd_msg_region *obtain(uint64_t address)
{
    struct tbd_msg_region *region = region_of(address);
    uint64_t page = page_of(address);

    if (!region || tbd_present_has(page))
        return region;
    if (region->flags & REGION_LAZY)
        return place_zeros(region, page) ? region : NULL;
    plan->page.address = page;
    plan->page.order = region->device;
    tbd_turn_ask_page(plan);
    return place_answer(region, page) ? region : NULL;
}

bool tbd_memory_fault(uint64_t address, uint32_t access)
{
    struct tbd_msg_region *region = region_of(address);

    if (!region || !allows(region->prot, access) || tbd_present_has(page_of(address)))
        return false;
    return obtain(address);
}

uint64_t tbd_memory_executable(uint64_t address, uint64_t want, bool *out_changes)
{
    uint64_t at = address;

    *out_changes = false;
    while (at < address + want) {
        const struct tbd_msg_region *region = region_of(at);

        if (!region || !(region->prot & PROT_EXEC) || !obtain(at))
            break;
        *out_changes |= region->prot & PROT_WRITE || region->map_flags & MAP_SHARED;
        at = page_of(at) + TBD_PAGE_SIZE;
    }
    return at - address < want ? at - address : want;
}

/* Copies page by page, to the program or from it. */
static bool copy(uint64_t address, uint8_t *ours, uint64_t bytes, bool to_program)
{
    while (bytes) {
        uint64_t left = TBD_PAGE_SIZE - (address & (TBD_PAGE_SIZE - 1));
        uint64_t now = bytes < left ? bytes : left;
        struct tbd_msg_region *region = obtain(address);
        bool open;

        if (!region)
            return false;
        open = allows(region->prot, to_program ? PROT_READ | PROT_WRITE : PROT_READ);
        if (!open)
            tbd_sys_mprotect(page_of(address), TBD_PAGE_SIZE, PROT_READ | PROT_WRITE);
        if (to_program)
            memcpy((void *)address, ours, now);
        else
            memcpy(ours, (const void *)address, now);
        if (!open)
            tbd_sys_mprotect(page_of(address), TBD_PAGE_SIZE, real_prot(region->prot));
        address += now;
        ours += now;
        bytes -= now;
    }
    return true;
}

bool tbd_memory_read(uint64_t address, void *out, uint64_t bytes)
{
    return copy(address, out, bytes, false);
}

bool tbd_memory_write(uint64_t address, const void *from, uint64_t bytes)
{
    return copy(address, (uint8_t *)(uintptr_t)from, bytes, true);
}

/* ---- mapping calls ---- */

/* Engine ranges are never the program's. */
static bool is_program_range(uint64_t start, uint64_t bytes)
{
    uint64_t end = start + bytes;

    if (start & (TBD_PAGE_SIZE - 1) || !bytes || end < start || end > TBD_USER_END)
        return false;
    return end <= TBD_ENGINE_BASE || start >= TBD_ENGINE_END;
}

bool tbd_memory_map(uint64_t start, uint64_t bytes, uint32_t prot, bool zero, uint64_t order)
{
    struct tbd_msg_region map = { .start = start,
                                  .end = start + page_up(bytes),
                                  .prot = prot,
                                  .flags = zero && bytes >= LAZY_BYTES ? REGION_LAZY : 0,
                                  .inode = !zero,
                                  .device = (uint32_t)order };

    if (!is_program_range(start, page_up(bytes)))
        return false;
    real_unmap(start, map.end);
    if (!tbd_memory_add_region(&map, ""))
        return false;
    if (!zero || map.flags & REGION_LAZY)
        return true;
    if (!real_map(start, map.end - start, real_prot(prot)))
        return false;
    tbd_present_set(start, map.end);
    return true;
}

bool tbd_memory_unmap(uint64_t start, uint64_t bytes)
{
    if (!is_program_range(start, page_up(bytes)))
        return false;
    real_unmap(start, start + page_up(bytes));
    return tbd_regions_remove(table(), start, start + page_up(bytes));
}

bool tbd_memory_protect(uint64_t start, uint64_t bytes, uint32_t prot)
{
    if (!is_program_range(start, page_up(bytes)))
        return false;
    real_protect(start, start + page_up(bytes), real_prot(prot));
    return tbd_memory_protect_regions(start, start + page_up(bytes), prot);
}

/* Maps each mapping in the range again. */
bool tbd_memory_discard(uint64_t start, uint64_t bytes, uint64_t order)
{
    uint64_t end = start + page_up(bytes);

    if (!is_program_range(start, page_up(bytes)))
        return false;
    while (start < end) {
        size_t i = tbd_regions_lower(table(), start);
        const struct tbd_mapped_region *region = &table()->table[i];
        uint64_t part_end;

        if (i == table()->count || region->map.start >= end)
            return true;
        start = region->map.start > start ? region->map.start : start;
        part_end = region->map.end < end ? region->map.end : end;
        if (!tbd_memory_map(start, part_end - start, region->map.prot, !region->map.inode, order))
            return false;
        start = part_end;
    }
    return true;
}

static void move_pages(uint64_t from, uint64_t bytes, uint64_t to)
{
    for (uint64_t at = from, next; at < from + bytes; at = next) {
        next = tbd_present_run_end(at, from + bytes);
        if (!tbd_present_has(at))
            continue;
        tbd_sys6(__NR_mremap, at, next - at, next - at, MREMAP_MAYMOVE | MREMAP_FIXED,
                 to + (at - from), 0);
        tbd_present_set(to + (at - from), to + (next - from));
    }
    tbd_present_clear(from, from + bytes);
}

/* Maps the new part after the old end of a mapping.  If it is a file's, its pages come from the
 * trace. */
static bool grow_in_place(const struct tbd_msg_region *old, uint64_t start, uint64_t end,
                          uint64_t order)
{
    return start >= end || tbd_memory_map(start, end - start, old->prot, !old->inode, order);
}

/* Play takes the contents of such memory anew after the call: others may have written to it. */
static bool is_shared_file(const struct tbd_msg_region *map)
{
    return map->inode && map->map_flags & MAP_SHARED;
}

bool tbd_memory_move(uint64_t from, uint64_t old_bytes, uint64_t to, uint64_t new_bytes,
                     uint64_t order)
{
    const struct tbd_mapped_region *found = tbd_regions_find(table(), from);
    uint64_t old_end = from + page_up(old_bytes), new_end = to + page_up(new_bytes);
    uint64_t kept = old_end - from < new_end - to ? old_end - from : new_end - to;
    struct tbd_msg_region old;

    if (!found || !is_program_range(to, new_end - to))
        return false;
    old = found->map;
    if (from == to) {
        if (new_end < old_end && !tbd_memory_unmap(new_end, old_end - new_end))
            return false;
        old.start = from;
        old.end = from + kept;
        old.device = (uint32_t)order; /* absent pages will get their contents as of now */
        if (is_shared_file(&old))
            real_unmap(old.start, old.end);
        return tbd_regions_add(table(), &old, "") && grow_in_place(&old, old_end, new_end, order);
    }
    if (!tbd_memory_map(to, new_end - to, old.prot, false, order))
        return false;
    if (!is_shared_file(&old))
        move_pages(from, kept, to);
    tbd_regions_find(table(), to)->map.inode = old.inode;
    tbd_regions_find(table(), to)->map.map_flags = old.map_flags;
    return tbd_memory_unmap(from, old_end - from) && grow_in_place(&old, to + kept, new_end, order);
}
