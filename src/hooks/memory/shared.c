// SPDX-License-Identifier: MIT
/* shared.c - see shared.h
 *
 * Views are chained by a hash of their page; entry n belongs to page n of the arena. */
#include "hooks/memory/shared.h"

#include "base/linux.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/userfault.h"
#include "hooks/boot/runtime.h"
#include "hooks/memory/safe_copy.h"
#include "patcher/decode.h"
#include "patcher/forced_specials.h"

/* ---- views ---- */

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
    uint32_t free;  /* chain; index + 1 */
    bool is_needed; /* there is, or was, shared memory; never in a replay process */
} views;

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

static uint8_t *find_view(uint64_t page)
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

static uint8_t *take_view(uint64_t page)
{
    uint8_t *found = find_view(page);
    uint32_t n;

    if (found || !make_views())
        return found;
    n = new_index();
    if (!n) {
        tbd_runtime.let_go = "it uses too much memory that other processes may write";
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

/* The view of a page; taken now if there is none.  NULL: it is not there, or too many.  The
 * trace gets it at once: should the program be killed before the window's end, nobody else
 * knows what it was. */
static uint8_t *view_of(uint64_t page)
{
    uint8_t *found = find_view(page);

    if (found)
        return found;
    found = take_view(page);
    if (found && tbd_runtime.recording)
        tbd_window_send_first(&tbd_runtime.ring, tbd_runtime.thread, &tbd_runtime.pages, page);
    return found;
}

static void drop_view(uint64_t page)
{
    for (uint32_t *link = bucket_of(page); *link; link = &views.view[*link - 1].next) {
        uint32_t n = *link;

        if (views.view[n - 1].page != page)
            continue;
        *link = views.view[n - 1].next;
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

/* ---- which memory ---- */

static bool is_shared(const struct tbd_mapped_region *region)
{
    return region && (region->map.flags & TBD_REGION_SHARED);
}

bool tbd_shared_holds(uint64_t start, uint64_t end)
{
    return views.is_needed && tbd_regions_any(&tbd_runtime.regions, start, end, TBD_REGION_SHARED);
}

static bool is_shared_page(uint64_t page)
{
    return views.is_needed && is_shared(tbd_regions_find(&tbd_runtime.regions, page));
}

static uint64_t page_part(uint64_t address, uint64_t bytes)
{
    uint64_t part = TBD_PAGE_SIZE - (address & (TBD_PAGE_SIZE - 1));

    return part < bytes ? part : bytes;
}

bool tbd_shared_read_page(void *out, uint64_t page)
{
    const uint8_t *view = is_shared_page(page) ? take_view(page) : NULL;

    if (!view)
        return tbd_copy_from_program(out, page, TBD_PAGE_SIZE);
    memcpy(out, view, TBD_PAGE_SIZE);
    return true;
}

size_t tbd_shared_read(void *out, uint64_t address, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        uint64_t at = address + done;
        uint64_t page = at & ~(TBD_PAGE_SIZE - 1);
        size_t part = page_part(at, bytes - done);
        const uint8_t *view = is_shared_page(page) ? view_of(page) : NULL;
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

void tbd_shared_logged(uint64_t address, const void *now, size_t bytes)
{
    for (size_t done = 0, part; done < bytes; done += part) {
        uint64_t at = address + done;
        uint64_t page = at & ~(TBD_PAGE_SIZE - 1);
        uint8_t *view = find_view(page);

        part = page_part(at, bytes - done);
        if (view)
            memcpy(view + (at - page), (const uint8_t *)now + done, part);
    }
}

/* ---- what others wrote ---- */

/* One write from the first difference to the last of each stretch within a page. */
static void add_difference(struct tbd_effects *effects, uint64_t address, const uint8_t *old,
                           const uint8_t *now, size_t bytes, uint32_t *others)
{
    size_t first = 0;
    size_t last = bytes;

    while (first < last && now[first] == old[first])
        first++;
    while (last > first && now[last - 1] == old[last - 1])
        last--;
    if (first == last)
        return;
    tbd_effects_add_known(effects, address + first, old + first, now + first, last - first);
    ++*others;
}

void tbd_shared_add_others(struct tbd_effects *effects, uint64_t address, const void *now,
                           size_t bytes, uint32_t *others)
{
    const uint8_t *read = now;

    for (size_t done = 0, part; done < bytes; done += part) {
        uint64_t at = address + done;
        uint64_t page = at & ~(TBD_PAGE_SIZE - 1);
        const uint8_t *view = is_shared_page(page) ? view_of(page) : NULL;

        part = page_part(at, bytes - done);
        if (view)
            add_difference(effects, at, view + (at - page), read + done, part, others);
    }
}

bool tbd_shared_load(struct tbd_effects *effects, void *out, uint64_t address, size_t bytes,
                     uint32_t *others)
{
    if (!tbd_load_from_program(out, address, bytes))
        return false;
    tbd_shared_add_others(effects, address, out, bytes, others);
    return true;
}

/* ---- the touch map ---- */

#define CELL_PAGES (TBD_TOUCH_BYTES / TBD_PAGE_SIZE)
/* Pages of memory that a page of cells stands for, as a shift. */
#define CELL_SHIFT (TBD_PAGE_SHIFT - 1)

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
    uint8_t *first = tbd_runtime.pages.touch + index * TBD_PAGE_SIZE;
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

/* Cells that marks of an access to [start, end) can be in: marks of accesses close to each other
 * are shared, so the pages beside count too. */
struct cells {
    uint64_t first, last; /* not reduced */
};

static struct cells cells_of(uint64_t start, uint64_t end)
{
    uint64_t low = start >> TBD_PAGE_SHIFT;

    return (struct cells){ (low ? low - 1 : 0) >> CELL_SHIFT,
                           (end >> TBD_PAGE_SHIFT) >> CELL_SHIFT };
}

static bool is_needed_by(const struct tbd_mapped_region *region, uint64_t index)
{
    struct cells cells = cells_of(region->map.start, region->map.end);

    return (index - cells.first) % CELL_PAGES <= cells.last - cells.first;
}

static bool is_guard_needed(uint64_t index)
{
    const struct tbd_regions *regions = &tbd_runtime.regions;

    for (size_t i = 0; i < regions->count; i++)
        if (is_shared(&regions->table[i]) && is_needed_by(&regions->table[i], index))
            return true;
    return tbd_userfault_needs_guard(index);
}

void tbd_shared_update(uint64_t start, uint64_t end)
{
    struct cells cells = cells_of(start, end);

    if (!views.is_needed && !tbd_userfault_count &&
        !tbd_regions_any(&tbd_runtime.regions, start, end, TBD_REGION_SHARED))
        return;
    views.is_needed = true;
    if (!make_second_map() || !make_views()) {
        tbd_runtime.let_go = "no memory for what other processes may write";
        return;
    }
    for (uint64_t at = cells.first; at <= cells.last && at - cells.first < CELL_PAGES; at++) {
        bool needed = is_guard_needed(at % CELL_PAGES);

        if (needed != is_guarded(at % CELL_PAGES))
            set_guard(at % CELL_PAGES, needed);
    }
}

bool tbd_shared_owns_sigsafe(uint64_t address)
{
    uint64_t offset = address - tbd_sys_pointer(tbd_runtime.pages.touch);

    return tbd_shared_guards && offset < TBD_TOUCH_BYTES && is_guarded(offset / TBD_PAGE_SIZE);
}

/* ---- where mappings go ---- */

#define CELL_BYTES (TBD_PAGE_SIZE << CELL_SHIFT) /* of memory: 8 MiB */
/* Modulo 8 TiB, which the touch map folds, neither programs nor libraries are here. */
#define PLACE_FIRST 0x201000000000ull
#define PLACE_LAST  0x240000000000ull

uint64_t tbd_shared_place(uint64_t bytes)
{
    const struct tbd_regions *regions = &tbd_runtime.regions;
    uint64_t room = ((bytes + CELL_BYTES - 1) & ~(CELL_BYTES - 1)) + CELL_BYTES;
    uint64_t at = PLACE_FIRST;

    if (bytes > PLACE_LAST - PLACE_FIRST)
        return 0;
    for (size_t i = tbd_regions_lower(regions, PLACE_FIRST); i < regions->count; i++) {
        if (regions->table[i].map.start >= at + room)
            break;
        at = (regions->table[i].map.end + 2 * CELL_BYTES - 1) & ~(CELL_BYTES - 1);
    }
    return at + room <= PLACE_LAST ? at : 0;
}

/* ---- forks ---- */

/* What the log knows of a page must be in the view before others can change it. */
static void take_known_views(const struct tbd_msg_region *map)
{
    const struct tbd_pages *pages = &tbd_runtime.pages;

    for (uint64_t page = map->start; page < map->end; page += TBD_PAGE_SIZE)
        if (tbd_pages_is_used(pages, page))
            view_of(page);
}

static void become_shared(struct tbd_msg_region *map, bool has_log)
{
    bool is_ours = map->flags & (TBD_REGION_VVAR | TBD_REGION_VDSO);

    if (is_ours || !(map->map_flags & MAP_SHARED) || (map->flags & TBD_REGION_SHARED))
        return;
    map->flags |= TBD_REGION_SHARED;
    tbd_shared_update(map->start, map->end);
    if (has_log)
        take_known_views(map);
}

static void all_become_shared(bool has_log)
{
    struct tbd_regions *regions = &tbd_runtime.regions;

    if (!tbd_runtime.recording || !(tbd_runtime.options.hooks & TBD_HOOK_TOUCH))
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
    struct tbd_mapped_region *region = tbd_regions_find(&tbd_runtime.regions, address);

    if (region && tbd_runtime.recording && (tbd_runtime.options.hooks & TBD_HOOK_TOUCH))
        become_shared(&region->map, true);
}

void tbd_shared_take_over(void)
{
    all_become_shared(false);
}

void tbd_shared_reset(void)
{
    tbd_forced_specials_clear();
    for (uint64_t index = 0; tbd_shared_guards && index < CELL_PAGES; index++)
        if (is_guarded(index))
            set_guard(index, false);
    if (has_second_map)
        tbd_sys_madvise(TBD_SECOND_TOUCH_BASE, TBD_TOUCH_BYTES, MADV_DONTNEED);
    if (views.view) {
        memset(views.bucket, 0, BUCKETS * sizeof(uint32_t));
        views.used = views.free = 0;
    }
    views.is_needed = false;
}

/* ---- the set of instructions ---- */

static void send_set(struct tbd_thread *thread, uint32_t flags, const uint64_t *pcs, size_t count)
{
    struct tbd_msg_shared head = { .flags = flags, .count = (uint32_t)count };
    struct tbd_part parts[2] = { { &head, sizeof(head) }, { pcs, count * sizeof(*pcs) } };

    tbd_ring_send(&tbd_runtime.ring, thread, TBD_MSG_SHARED, parts, 2);
}

struct shared_decoding {
    struct tbd_insn insn;
    uint64_t pc;
    bool ok;
};

static void decode(void *arg)
{
    struct shared_decoding *d = arg;

    d->ok = tbd_decode(&d->insn, d->pc, (const uint8_t *)d->pc, 15);
}

void tbd_shared_found(struct tbd_thread *thread, uint32_t insn)
{
    struct shared_decoding d = { .pc = thread->regs.rip };

    tbd_runtime_callbacks()->with_vector_state(decode, &d);
    if (!d.ok)
        tbd_detach(thread, "an instruction cannot be decoded again", insn);
    if (!tbd_forced_specials_add(d.pc))
        tbd_detach(thread, "too many of its instructions use memory that other processes may write",
                   insn);
    tbd_runtime_send_interrupted(insn);
    send_set(thread, 0, &d.pc, 1);
    tbd_patcher_flush_range(thread, d.pc, d.pc + 1);
    TBD_LOG(TBD_LOG_DEBUG, "shared", "%p is executed by the engine from here on", (void *)d.pc);
}

/* Instructions that mostly work elsewhere, as those of memcpy, are translated again. */
static bool is_worth_it(const struct tbd_single *single)
{
    return single->runs < 16 || single->hits >= single->runs / 8;
}

void tbd_shared_begin_window(struct tbd_thread *thread)
{
    static uint64_t pcs[TBD_MAX_SINGLES];
    size_t count = tbd_forced_specials_list(pcs);
    size_t kept = 0;

    if (!count)
        return;
    for (size_t i = 0; i < count; i++) {
        if (is_worth_it(tbd_forced_specials_find(pcs[i])))
            pcs[kept++] = pcs[i];
        else
            tbd_patcher_flush_range(thread, pcs[i], pcs[i] + 1);
    }
    tbd_forced_specials_clear();
    for (size_t i = 0; i < kept; i++)
        tbd_forced_specials_add(pcs[i]);
    send_set(thread, TBD_SHARED_WHOLE, pcs, kept); /* empty, too: windows can be merged */
}
