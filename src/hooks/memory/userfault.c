// SPDX-License-Identifier: MIT
/* userfault.c - see userfault.h
 *
 * Ranges are few; which of their pages are logged is one bit a page of the address space, reserved
 * when the first range is registered. */
#include "hooks/memory/userfault_private.h"

#include "base/layout.h"
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/pagemap.h"
#include "hooks/boot/runtime.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"

enum {
    MAX_RANGES = 256,
};
/* safe_copy_x86_64.S: 0 when the byte was accessed; else a fault came, or *pending is set. */
size_t tbd_touch_faultable(uint64_t address, bool is_write, const uint32_t *pending);

static struct {
    struct tbd_userfault_range range[MAX_RANGES];
    struct tbd_userfault_range moving;
    uint64_t run_once; /* a page at which waiting failed: its instruction gets what is due */
    bool has_bits;
} userfault;

uint32_t tbd_userfault_count;

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- which pages are logged ---- */

static bool make_bits(void)
{
    if (!userfault.has_bits)
        userfault.has_bits =
            tbd_sys_mmap(TBD_USERFAULT_BASE, TBD_USERFAULT_BYTES, TBD_PROT_RW,
                         TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE, -1, 0) == (long)TBD_USERFAULT_BASE;
    tbd_sys_madvise(TBD_USERFAULT_BASE, TBD_USERFAULT_BYTES, MADV_DONTDUMP);
    return userfault.has_bits;
}

static uint8_t *byte_of(uint64_t page)
{
    return (uint8_t *)TBD_USERFAULT_BASE + (page >> TBD_PAGE_SHIFT >> 3);
}

static uint8_t bit_of(uint64_t page)
{
    return (uint8_t)(1u << (page >> TBD_PAGE_SHIFT & 7));
}

static bool is_logged(uint64_t page)
{
    return *byte_of(page) & bit_of(page);
}

static void set_logged(uint64_t page)
{
    *byte_of(page) |= bit_of(page);
}

static bool are_all_logged(uint64_t start, uint64_t end)
{
    for (uint64_t page = start; page < end;) {
        bool is_whole = !(page >> TBD_PAGE_SHIFT & 7) && end - page >= 8 * TBD_PAGE_SIZE;

        if (is_whole ? *byte_of(page) != 0xff : !is_logged(page))
            return false;
        page += (is_whole ? 8 : 1) * TBD_PAGE_SIZE;
    }
    return true;
}

static void clear_logged(uint64_t start, uint64_t end)
{
    for (uint64_t page = start; page < end; page += TBD_PAGE_SIZE)
        *byte_of(page) &= (uint8_t)~bit_of(page);
}

/* ---- what the kernel has ---- */

#define BIT_PRESENT         (3ull << 62)
#define BIT_WRITE_PROTECTED (1ull << 57)

static uint64_t state_of(uint64_t page)
{
    struct tbd_pagemap map;
    uint64_t state = 0;

    tbd_pagemap_open(&map);
    if (!tbd_pagemap_state(&map, page, &state))
        state = BIT_PRESENT; /* who cannot look takes it as it comes */
    tbd_pagemap_close(&map);
    return state;
}

/* ---- ranges ---- */

static const struct tbd_userfault_range *find_range(uint64_t address)
{
    for (uint32_t i = 0; i < tbd_userfault_count; i++)
        if (address >= userfault.range[i].start && address < userfault.range[i].end)
            return &userfault.range[i];
    return NULL;
}

static void add_range(uint64_t start, uint64_t end, const struct tbd_userfault_range *like)
{
    if (tbd_userfault_count == MAX_RANGES) {
        tbd_runtime.let_go = "it handles the page faults of too many ranges (userfaultfd)";
        return;
    }
    userfault.range[tbd_userfault_count] = *like;
    userfault.range[tbd_userfault_count].start = start;
    userfault.range[tbd_userfault_count++].end = end;
}

static void remove_range(uint64_t start, uint64_t end)
{
    uint32_t count = tbd_userfault_count;

    for (uint32_t i = 0; i < count;) {
        struct tbd_userfault_range old = userfault.range[i];

        if (old.end <= start || old.start >= end) {
            i++;
            continue;
        }
        userfault.range[i] = userfault.range[--count];
        userfault.range[count] = userfault.range[--tbd_userfault_count];
        if (old.start < start)
            add_range(old.start, start, &old);
        if (old.end > end)
            add_range(end, old.end, &old);
    }
}

/* Pages that are there are known in the ordinary way. */
static void log_present(uint64_t start, uint64_t end)
{
    struct tbd_pagemap map;
    uint64_t state;

    tbd_pagemap_open(&map);
    for (uint64_t page = start; page < end; page += TBD_PAGE_SIZE)
        if (tbd_pagemap_state(&map, page, &state) && (state & BIT_PRESENT))
            set_logged(page);
    tbd_pagemap_close(&map);
}

void tbd_userfault_register(const struct tbd_userfault_range *range)
{
    uint64_t start = range->start, end = range->end;

    if (!make_bits()) {
        tbd_runtime.let_go = "no memory for page faults that it handles itself (userfaultfd)";
        return;
    }
    remove_range(start, end);
    clear_logged(start, end);
    log_present(start, end);
    add_range(start, end, range);
    tbd_shared_update(start, end);
}

void tbd_userfault_unregister(uint64_t start, uint64_t end)
{
    if (!tbd_userfault_count)
        return;
    remove_range(start, end);
    tbd_shared_update(start, end);
}

void tbd_userfault_dropped(uint64_t start, uint64_t end)
{
    bool any = false;

    for (uint32_t i = 0; i < tbd_userfault_count; i++) {
        uint64_t from = greater(start, userfault.range[i].start),
                 to = lesser(end, userfault.range[i].end);

        if (from >= to)
            continue;
        clear_logged(from, to);
        any = true;
    }
    if (any)
        tbd_shared_update(start, end);
}

bool tbd_userfault_move(uint64_t from)
{
    const struct tbd_userfault_range *range = tbd_userfault_count ? find_range(from) : NULL;

    if (range)
        userfault.moving = *range;
    return range;
}

void tbd_userfault_moved(uint64_t from, uint64_t to, uint64_t to_end)
{
    struct tbd_userfault_range moved = { to, to_end, userfault.moving.modes,
                                         userfault.moving.features };

    if (from == to || (moved.features & UFFD_FEATURE_EVENT_REMAP))
        tbd_userfault_register(&moved);
}

void tbd_userfault_reset(void)
{
    if (userfault.has_bits)
        tbd_sys_madvise(TBD_USERFAULT_BASE, TBD_USERFAULT_BYTES, MADV_DONTNEED);
    tbd_userfault_count = 0;
    tbd_userfault_forget_descriptors();
}

bool tbd_userfault_may_miss(uint64_t address)
{
    return find_range(address) && !is_logged(tbd_userfault_page_of(address));
}

/* ---- guards ---- */

#define PAGES_PER_CELLS (TBD_PAGE_SIZE / 2)
#define CELL_PAGES      (TBD_TOUCH_BYTES / TBD_PAGE_SIZE)

/* Of the range, what lies in the stretch that these cells stand for, with a page at either side:
 * marks of accesses close to each other are shared (hooks/memory/shared.c). */
static bool is_missing_in(const struct tbd_userfault_range *range, uint64_t cells)
{
    uint64_t first = cells * PAGES_PER_CELLS * TBD_PAGE_SIZE;
    uint64_t start = greater(range->start, first ? first - TBD_PAGE_SIZE : 0);
    uint64_t end = lesser(range->end, first + (PAGES_PER_CELLS + 1) * TBD_PAGE_SIZE);

    return start < end && ((range->modes & UFFDIO_REGISTER_MODE_WP) || !are_all_logged(start, end));
}

static bool needs_guard(const struct tbd_userfault_range *range, uint64_t index)
{
    uint64_t low = (range->start >> TBD_PAGE_SHIFT) - 1;
    uint64_t first = low / PAGES_PER_CELLS;
    uint64_t last = (range->end >> TBD_PAGE_SHIFT) / PAGES_PER_CELLS;
    uint64_t at = first + (index - first) % CELL_PAGES;

    for (; at <= last; at += CELL_PAGES)
        if (is_missing_in(range, at))
            return true;
    return false;
}

bool tbd_userfault_needs_guard(uint64_t index)
{
    for (uint32_t i = 0; i < tbd_userfault_count; i++)
        if (needs_guard(&userfault.range[i], index))
            return true;
    return false;
}

/* ---- is it there? ---- */

bool tbd_userfault_holds(uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < tbd_userfault_count; i++)
        if (userfault.range[i].start < end && start < userfault.range[i].end)
            return true;
    return false;
}

size_t tbd_userfault_readable(uint64_t address, size_t bytes)
{
    for (uint64_t page = tbd_userfault_page_of(address); page < address + bytes;
         page += TBD_PAGE_SIZE)
        if (find_range(page) && !is_logged(page) && !(state_of(page) & BIT_PRESENT))
            return page > address ? page - address : 0;
    return bytes;
}

/* An access that is not allowed does not wait. */
static bool is_allowed(uint64_t page, bool is_write)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_runtime.regions, page);
    uint32_t prot = PROT_READ | (is_write ? PROT_WRITE : 0);

    return region && (region->map.prot & prot) == prot;
}

static bool would_wait(uint64_t page, bool is_write)
{
    const struct tbd_userfault_range *range = find_range(page);
    bool may_be_protected;
    uint64_t state;

    if (!range)
        return false;
    may_be_protected = is_write && (range->modes & UFFDIO_REGISTER_MODE_WP);
    if ((is_logged(page) && !may_be_protected) || page == userfault.run_once ||
        (range->features & UFFD_FEATURE_SIGBUS) || !is_allowed(page, is_write))
        return false;
    state = state_of(page);
    return !(state & BIT_PRESENT) || (may_be_protected && (state & BIT_WRITE_PROTECTED));
}

bool tbd_userfault_misses(const struct tbd_sys_range *range, bool is_write, uint64_t *address)
{
    uint64_t end = range->address + range->bytes;

    for (uint64_t page = tbd_userfault_page_of(range->address); tbd_userfault_count && page < end;
         page += TBD_PAGE_SIZE) {
        if (!would_wait(page, is_write))
            continue;
        *address = greater(page, range->address);
        return true;
    }
    return false;
}

/* ---- what has come ---- */

/* Memory of its own held zeros as long as nobody had filled it; other memory is seen by its view
 * (hooks/memory/shared.h). */
static bool was_zero(uint64_t page)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_runtime.regions, page);

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
    uint64_t cells = page / (PAGES_PER_CELLS * TBD_PAGE_SIZE);

    set_logged(page);
    if (was_zero(page) && tbd_copy_from_program(now, page, sizeof(now)) && !is_zero(now)) {
        tbd_effects_add_known(effects, page, zeros, now, sizeof(now));
        ++*others;
    }
    if (!tbd_userfault_needs_guard(cells % CELL_PAGES))
        tbd_shared_update(page, page + 1);
}

void tbd_userfault_adopt(struct tbd_effects *effects, const struct tbd_sys_range *range,
                         uint32_t *others)
{
    uint64_t end = range->address + range->bytes;

    userfault.run_once = 0;
    for (uint64_t page = tbd_userfault_page_of(range->address); tbd_userfault_count && page < end;
         page += TBD_PAGE_SIZE)
        if (find_range(page) && !is_logged(page) && (state_of(page) & BIT_PRESENT))
            adopt_page(effects, page, others);
}

/* ---- waiting ---- */

/* At a block boundary: the registers stand in front of the instruction. */
static void wait_for(struct tbd_thread *thread, uint64_t address, bool is_write)
{
    struct tbd_seat *seat = tbd_runtime.threads.holder;
    bool many = tbd_threads_are_many();
    size_t left;

    if (many)
        tbd_threads_give(thread, TBD_SWITCH_BLOCKED, TBD_NO_BLOCK_TIME);
    left = tbd_touch_faultable(address, is_write, &seat->signals.pending);
    if (many && !tbd_threads_take(thread, seat))
        tbd_threads_leave(seat);
    if (left && !__atomic_load_n(&seat->signals.pending, __ATOMIC_ACQUIRE))
        userfault.run_once = tbd_userfault_page_of(address);
}

static void send_left(struct tbd_special_run *s)
{
    struct tbd_msg_shared none = { 0 };
    struct tbd_part part = { &none, sizeof(none) };

    tbd_runtime_send_interrupted(tbd_slot_last_insn(s->thread));
    tbd_ring_send(&tbd_runtime.ring, s->thread, TBD_MSG_SHARED, &part, 1);
}

void tbd_userfault_leave_block(struct tbd_special_run *s, uint64_t address, bool is_write)
{
    s->thread->regs = s->before;
    send_left(s);
    wait_for(s->thread, address, is_write);
}

bool tbd_userfault_leaves(struct tbd_special_run *s, const struct tbd_sys_range *ranges,
                          size_t count, bool is_write)
{
    uint64_t address;

    if (!tbd_userfault_count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!tbd_userfault_misses(&ranges[i], is_write, &address))
            continue;
        tbd_userfault_leave_block(s, address, is_write);
        return true;
    }
    for (size_t i = 0; i < count; i++)
        tbd_userfault_adopt(s->effects, &ranges[i], &s->others);
    return false;
}

/* A signal that comes meanwhile is delivered behind the call. */
void tbd_userfault_fill(struct tbd_seat *seat, uint64_t address, uint64_t bytes)
{
    static const uint32_t never;
    uint64_t end = address + bytes;

    while (address < end) {
        bool had_signal = __atomic_load_n(&seat->signals.pending, __ATOMIC_ACQUIRE);

        if (tbd_touch_faultable(address, true, &never) && had_signal)
            return;
        address = tbd_userfault_page_of(address) + TBD_PAGE_SIZE;
    }
}
