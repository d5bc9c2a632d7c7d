// SPDX-License-Identifier: MIT
/* effects.c - see effects.h
 *
 * Old bytes are kept in an arena, in the order they were saved, with one `saved` record per stretch
 * that could be read.  A write is looked up in these records; for parts outside of them the old
 * bytes are not known (TBD_WRITE_NO_OLD).  A write longer than a message is split into several
 * writes. */
#include "hooks/memory/effects.h"

#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/pagemap.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/snapshot.h"

#define MAX_SAVED   (1u << 18)
#define MAX_WRITES  (1u << 18)
#define OLD_BYTES   (1ull << 30)
#define PIECE_BYTES ((TBD_MESSAGE_MAX_BYTES - 8192u) / 2)

struct saved {
    uint64_t address;
    uint64_t bytes;
    const uint8_t *old;
};

struct write {
    uint64_t address;
    uint64_t bytes;
    const uint8_t *old; /* NULL: not known */
    const uint8_t *now; /* NULL: read from memory when it is sent */
};

struct tbd_effects {
    struct saved *saved;
    struct write *writes;
    struct tbd_arena old;
    uint32_t saved_count;
    uint32_t write_count;
    uint64_t lowest, highest; /* bounds of the writes whose new bytes are read when sent */
    bool is_cut;
    bool is_short;
    struct tbd_snapshot snapshot; /* of all memory, instead of saved pages */
};

struct tbd_effects *tbd_effects_get(void)
{
    static struct tbd_effects effects;
    struct tbd_arena tables;

    if (effects.saved)
        return &effects;
    if (!tbd_arena_init(&tables,
                        MAX_SAVED * sizeof(struct saved) + MAX_WRITES * sizeof(struct write)) ||
        !tbd_arena_init(&effects.old, OLD_BYTES))
        return NULL;
    effects.writes = tbd_arena_alloc(&tables, MAX_WRITES * sizeof(struct write), 8);
    effects.saved = tbd_arena_alloc(&tables, MAX_SAVED * sizeof(struct saved), 8);
    return &effects;
}

/* If more than this was used (for all of the program's memory), the excess is unmapped afterwards;
 * ordinary calls keep their pages. */
#define KEPT_BYTES (16ll << 20)

void tbd_effects_clear(struct tbd_effects *effects)
{
    if (effects->old.at - effects->old.start > KEPT_BYTES)
        tbd_arena_reset(&effects->old);
    tbd_snapshot_drop(&effects->snapshot);
    tbd_arena_rewind(&effects->old, effects->old.start);
    effects->saved_count = 0;
    effects->write_count = 0;
    effects->lowest = UINT64_MAX;
    effects->highest = 0;
    effects->is_cut = false;
    effects->is_short = false;
}

bool tbd_effects_is_cut(const struct tbd_effects *effects)
{
    return effects->is_cut;
}

bool tbd_effects_is_short(const struct tbd_effects *effects)
{
    return effects->is_short;
}

/* ---- before ---- */

static bool is_off;

void tbd_effects_off(void)
{
    is_off = true;
}

/* Saves the readable bytes from the start of the range.  False: there are none. */
static bool save(struct tbd_effects *effects, uint64_t address, uint64_t bytes)
{
    uint64_t left = (uint64_t)(effects->old.end - effects->old.at);
    uint64_t got;

    if (effects->saved_count == MAX_SAVED || bytes > left) {
        effects->is_cut = true;
        bytes = effects->saved_count == MAX_SAVED ? 0 : left;
    }
    got = tbd_shared_holds(address, address + bytes)
              ? tbd_shared_read(effects->old.at, address, bytes)
              : tbd_copy_prefix_from_program(effects->old.at, address, bytes);
    if (got)
        effects->saved[effects->saved_count++] = (struct saved){ address, got, effects->old.at };
    effects->old.at += got;
    effects->is_short |= got < bytes;
    return got != 0;
}

/* Unreadable parts need no old bytes: the kernel writes in ascending order and stops at the first
 * unmapped page. */
void tbd_effects_watch(struct tbd_effects *effects, const struct tbd_sys_range *ranges,
                       size_t count)
{
    uint64_t unreadable = UINT64_MAX; /* a page; a look at it costs a fault */

    for (size_t i = 0; i < count && !is_off; i++) {
        uint64_t page = ranges[i].address / TBD_PAGE_SIZE;

        if (ranges[i].bytes && page == unreadable)
            effects->is_short = true;
        else if (ranges[i].bytes && !save(effects, ranges[i].address, ranges[i].bytes))
            unreadable = page;
    }
}

static void visit_writable(enum tbd_page_kind kind, tbd_page_visitor visit, void *context)
{
    struct tbd_pagemap map;

    tbd_pagemap_open(&map);
    for (size_t i = 0; i < tbd_memory.regions.count; i++) {
        const struct tbd_msg_region *region = &tbd_memory.regions.table[i].map;

        if ((region->prot & TBD_PROT_RW) == TBD_PROT_RW)
            tbd_pagemap_visit(&map, kind, region->start, region->end, visit, context);
    }
    tbd_pagemap_close(&map);
}

/* Pages that a fork does not inherit (MADV_WIPEONFORK): a snapshot has zeros there, so they are
 * copied.  Ranges are never removed: copying more does no harm. */
#define MAX_WIPED 64u

static struct wiped {
    uint64_t start, end;
} wiped[MAX_WIPED];
static uint32_t wiped_count;

void tbd_effects_note_wiped(uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < wiped_count; i++)
        if (wiped[i].start <= start && end <= wiped[i].end)
            return;
    if (wiped_count < MAX_WIPED)
        wiped[wiped_count++] = (struct wiped){ start, end };
}

static bool is_wiped(uint64_t address)
{
    for (uint32_t i = 0; i < wiped_count; i++)
        if (wiped[i].start <= address && address < wiped[i].end)
            return true;
    return false;
}

static void save_page(void *context, uint64_t address)
{
    save(context, address, TBD_PAGE_SIZE);
}

/* Copying is the fallback: it is slow (0.6 s for 300 MiB), and misses pages that are created
 * later. */
void tbd_effects_watch_all(struct tbd_effects *effects)
{
    if (is_off)
        return;
    for (uint32_t i = 0; i < wiped_count; i++)
        save(effects, wiped[i].start, wiped[i].end - wiped[i].start);
    if (tbd_snapshot_take(&effects->snapshot))
        return;
    visit_writable(TBD_PAGES_PRIVATE, save_page, effects);
    effects->is_cut = true;
}

/* ---- after ---- */

static void add_write(struct tbd_effects *effects, uint64_t address, uint64_t bytes,
                      const uint8_t *old)
{
    if (effects->write_count == MAX_WRITES) {
        effects->is_cut = true;
        return;
    }
    effects->writes[effects->write_count++] = (struct write){ address, bytes, old, NULL };
}

static bool overlaps(const struct write *write, uint64_t address, uint64_t end)
{
    return !write->now && write->address < end && address < write->address + write->bytes;
}

static void add_after(struct tbd_effects *effects, uint32_t first, uint64_t address, uint64_t end,
                      const uint8_t *old)
{
    for (uint32_t i = first; i < effects->write_count && address < end; i++) {
        const struct write *write = &effects->writes[i];
        uint64_t write_end = write->address + write->bytes;

        if (!overlaps(write, address, end))
            continue;
        if (address < write->address)
            add_after(effects, i + 1, address, write->address, old);
        old = old ? old + (write_end - address) : NULL;
        address = write_end;
    }
    if (address < end)
        add_write(effects, address, end - address, old);
}

/* Places of one call may overlap, as in getresuid(p, p, p): a byte is told once, with what it held
 * before the call. */
static void add_once(struct tbd_effects *effects, uint64_t address, uint64_t bytes,
                     const uint8_t *old)
{
    uint64_t end = address + bytes;

    if (address >= effects->highest || end <= effects->lowest)
        add_write(effects, address, bytes, old);
    else
        add_after(effects, 0, address, end, old);
    effects->lowest = address < effects->lowest ? address : effects->lowest;
    effects->highest = end > effects->highest ? end : effects->highest;
}

bool tbd_effects_are_none(const struct tbd_effects *effects)
{
    return !effects->write_count;
}

void tbd_effects_add(struct tbd_effects *effects, uint64_t address, const void *old, size_t bytes)
{
    if (bytes)
        add_once(effects, address, bytes, old);
}

static const uint8_t *keep(struct tbd_effects *effects, const void *data, size_t bytes)
{
    uint8_t *at = effects->old.at;

    if ((size_t)(effects->old.end - at) < bytes)
        return NULL;
    memcpy(at, data, bytes);
    effects->old.at += bytes;
    return at;
}

void tbd_effects_add_known(struct tbd_effects *effects, uint64_t address, const void *old,
                           const void *now, size_t bytes)
{
    const uint8_t *kept_old = keep(effects, old, bytes);
    const uint8_t *kept_now = keep(effects, now, bytes);

    if (!bytes)
        return;
    add_write(effects, address, bytes, kept_old);
    if (!effects->is_cut)
        effects->writes[effects->write_count - 1].now = kept_now;
}

static const struct saved *find_saved(const struct tbd_effects *effects, uint64_t address)
{
    for (uint32_t i = 0; i < effects->saved_count; i++)
        if (address - effects->saved[i].address < effects->saved[i].bytes)
            return &effects->saved[i];
    return NULL;
}

/* Bytes that could not be read before are not mapped, so they were not written: they only lie
 * within the table's upper bound. */
static void written_range(struct tbd_effects *effects, uint64_t address, uint64_t bytes)
{
    while (bytes) {
        const struct saved *saved = find_saved(effects, address);
        uint64_t inside = saved ? saved->bytes - (address - saved->address) : bytes;
        uint64_t piece = inside < bytes ? inside : bytes;

        if (saved || effects->is_cut)
            add_once(effects, address, piece,
                     saved ? saved->old + (address - saved->address) : NULL);
        address += piece;
        bytes -= piece;
    }
}

void tbd_effects_written(struct tbd_effects *effects, const struct tbd_sys_range *ranges,
                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        written_range(effects, ranges[i].address, ranges[i].bytes);
}

/* From the first difference to the last. */
static struct tbd_range find_difference(const uint8_t *old, const uint8_t *now, uint64_t bytes)
{
    struct tbd_range range = { 0, bytes };

    while (range.start < range.end && now[range.start] == old[range.start])
        range.start++;
    while (range.end > range.start && now[range.end - 1] == old[range.end - 1])
        range.end--;
    return range;
}

/* Adds one write. */
static void compare_page(struct tbd_effects *effects, const struct saved *saved, const uint8_t *now)
{
    struct tbd_range differs = find_difference(saved->old, now, saved->bytes);

    if (differs.start < differs.end)
        add_once(effects, saved->address + differs.start, differs.end - differs.start,
                 saved->old + differs.start);
}

static void compare_saved(struct tbd_effects *effects, const struct saved *saved)
{
    uint8_t now[TBD_PAGE_SIZE];
    struct saved part = *saved;

    while (part.bytes) {
        struct saved piece = part;

        if (piece.bytes > TBD_PAGE_SIZE)
            piece.bytes = TBD_PAGE_SIZE;
        if (tbd_copy_from_program(now, piece.address, piece.bytes))
            compare_page(effects, &piece, now);
        part.address += piece.bytes;
        part.old += piece.bytes;
        part.bytes -= piece.bytes;
    }
}

/* Compares the page with the snapshot's.  Its old bytes stay in the arena if a write refers to
 * them. */
static void compare_with_snapshot(void *context, uint64_t address)
{
    struct tbd_effects *effects = context;
    struct saved page = { address, TBD_PAGE_SIZE, effects->old.at };
    uint32_t before = effects->write_count;

    if (is_wiped(address))
        return;
    if (effects->old.end - effects->old.at < (long)TBD_PAGE_SIZE) {
        effects->is_cut = true;
        return;
    }
    if (!tbd_snapshot_read(&effects->snapshot, address, effects->old.at, TBD_PAGE_SIZE))
        return;
    compare_saved(effects, &page);
    if (effects->write_count != before)
        effects->old.at += TBD_PAGE_SIZE;
}

/* Pages that were dropped (madvise), or replaced by a mapping of the same kind, are not there any more. */
static void visit_gone(struct tbd_effects *effects)
{
    struct tbd_pagemap before, now;

    tbd_pagemap_open_of(&before, effects->snapshot.pid);
    tbd_pagemap_open(&now);
    for (size_t i = 0; i < tbd_memory.regions.count; i++) {
        const struct tbd_msg_region *map = &tbd_memory.regions.table[i].map;

        if (map->prot & PROT_READ && !(map->map_flags & MAP_SHARED))
            tbd_pagemap_visit_gone(&before, &now, map->start, map->end, compare_with_snapshot,
                                   effects);
    }
    tbd_pagemap_close(&now);
    tbd_pagemap_close(&before);
}

void tbd_effects_add_changed(struct tbd_effects *effects, uint64_t address, const void *old,
                             size_t bytes)
{
    struct saved saved = { address, bytes, old };

    compare_saved(effects, &saved);
}

void tbd_effects_compare(struct tbd_effects *effects)
{
    for (uint32_t i = 0; i < effects->saved_count; i++)
        compare_saved(effects, &effects->saved[i]);
    if (!effects->snapshot.pid)
        return;
    visit_writable(TBD_PAGES_UNSHARED, compare_with_snapshot, effects);
    visit_gone(effects);
    tbd_snapshot_drop(&effects->snapshot);
}

const struct tbd_snapshot *tbd_effects_snapshot(const struct tbd_effects *effects)
{
    return effects->snapshot.pid ? &effects->snapshot : NULL;
}

void tbd_effects_undo(struct tbd_effects *effects)
{
    tbd_effects_compare(effects);
    for (uint32_t i = 0; i < effects->write_count; i++)
        tbd_copy_to_program(effects->writes[i].address, effects->writes[i].old,
                            (size_t)effects->writes[i].bytes);
    tbd_effects_clear(effects);
}

/* ---- sending ---- */

struct sender {
    struct tbd_ring *ring;
    struct tbd_thread *thread;
    const struct tbd_effect_head *head;
    uint8_t *at; /* NULL while discarding */
    uint32_t in_message;
    bool is_first;
};

static size_t size_of(const struct write *write)
{
    return sizeof(struct tbd_write) + write->bytes * (write->old ? 2 : 1);
}

static uint8_t *put(uint8_t *at, const void *data, size_t bytes)
{
    memcpy(at, data, bytes);
    return at + bytes;
}

static uint8_t *put_write(uint8_t *at, const struct write *write)
{
    struct tbd_write out = { .address = write->address,
                             .bytes = (uint32_t)write->bytes,
                             .flags = write->old ? 0 : TBD_WRITE_NO_OLD };

    at = put(at, &out, sizeof(out));
    if (write->old)
        at = put(at, write->old, write->bytes);
    if (write->now)
        memcpy(at, write->now, write->bytes);
    else if (!tbd_copy_from_program(at, write->address, write->bytes))
        memset(at, 0, write->bytes); /* cannot happen: the kernel has just written it */
    if (tbd_shared_holds(write->address, write->address + write->bytes))
        tbd_shared_logged(write->address, at, write->bytes);
    return at + write->bytes;
}

static bool is_shared(const struct write *write)
{
    return tbd_shared_holds(write->address, write->address + write->bytes);
}

bool tbd_effects_settle(struct tbd_effects *effects, struct tbd_pages *pages, size_t most)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < effects->write_count; i++) {
        bytes += size_of(&effects->writes[i]);
        if (bytes > most || (!effects->writes[i].now && is_shared(&effects->writes[i])))
            return false;
    }
    for (uint32_t i = 0; i < effects->write_count; i++) {
        const struct write *write = &effects->writes[i];

        tbd_pages_mark_written(pages, write->address, write->address + write->bytes);
        if (write->now && is_shared(write))
            tbd_shared_logged(write->address, write->now, write->bytes);
    }
    return true;
}

/* Splits off the part that fits into one message. */
static struct write take_piece(struct write *rest)
{
    struct write piece = *rest;

    if (piece.bytes > PIECE_BYTES)
        piece.bytes = PIECE_BYTES;
    rest->address += piece.bytes;
    rest->bytes -= piece.bytes;
    if (rest->old)
        rest->old += piece.bytes;
    if (rest->now)
        rest->now += piece.bytes;
    return piece;
}

/* The number of writes that go into the next message; the first is already cut to a piece. */
static uint32_t count_fitting(const struct tbd_effects *effects, uint32_t next, size_t capacity)
{
    uint32_t count = 0;

    for (; next + count < effects->write_count; count++) {
        const struct write *write = &effects->writes[next + count];

        if (write->bytes > PIECE_BYTES || size_of(write) > capacity)
            break;
        capacity -= size_of(write);
    }
    return count;
}

static void send_one(struct sender *sender, const struct write *writes, uint32_t count, bool more,
                     const struct tbd_part *tail, size_t tail_count)
{
    const struct tbd_effect_head *head = sender->head;
    size_t bytes = head->bytes;
    uint8_t *at;

    for (uint32_t i = 0; i < count; i++)
        bytes += size_of(&writes[i]);
    for (size_t i = 0; i < tail_count; i++)
        bytes += tail[i].bytes;
    *head->write_count = count;
    *head->flags = (*head->flags & ~(head->more | head->continued)) | (more ? head->more : 0) |
                   (sender->is_first ? 0 : head->continued);
    sender->is_first = false;
    at = tbd_ring_reserve(sender->ring, sender->thread, head->kind, bytes);
    if (!at)
        return;
    at = put(at, head->data, head->bytes);
    for (uint32_t i = 0; i < count; i++)
        at = put_write(at, &writes[i]);
    for (size_t i = 0; i < tail_count; i++)
        at = put(at, tail[i].data, tail[i].bytes);
    tbd_ring_commit(sender->ring, sender->thread);
}

static size_t tail_bytes(const struct tbd_part *tail, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += tail[i].bytes;
    return bytes;
}

void tbd_effects_send(struct tbd_effects *effects, struct tbd_ring *ring, struct tbd_thread *thread,
                      struct tbd_pages *pages, const struct tbd_effect_head *head,
                      const struct tbd_part *tail, size_t tail_count)
{
    struct sender sender = { .ring = ring, .thread = thread, .head = head, .is_first = true };
    size_t capacity = TBD_MESSAGE_MAX_BYTES - head->bytes - tail_bytes(tail, tail_count);
    uint32_t next = 0;

    for (uint32_t i = 0; i < effects->write_count; i++)
        tbd_pages_mark_written(pages, effects->writes[i].address,
                               effects->writes[i].address + effects->writes[i].bytes);
    for (;;) {
        uint32_t fitting = count_fitting(effects, next, capacity);

        if (next + fitting == effects->write_count) {
            send_one(&sender, effects->writes + next, fitting, false, tail, tail_count);
            return;
        }
        if (fitting == 0) {
            struct write piece = take_piece(&effects->writes[next]);

            send_one(&sender, &piece, 1, true, NULL, 0);
            continue;
        }
        send_one(&sender, effects->writes + next, fitting, true, NULL, 0);
        next += fitting;
    }
}
