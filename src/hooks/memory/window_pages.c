// SPDX-License-Identifier: MIT
/* window_pages.c - see window_pages.h
 *
 * A page is sent as DIRTY if it was written in the window, as FIRST if it was touched and the trace
 * did not know its contents.  The contents are those at the time of the message; the organizer
 * undoes the window's stores to get the contents at its start. */
#include "hooks/memory/window_pages.h"

#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/code_traps.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/snapshot.h"

#define TOUCH_READ    1u
#define TOUCH_WRITTEN 0x100u /* the second byte, as a little-endian 16-bit load sees it */

static uint16_t *cell_of(const struct tbd_pages *pages, uint64_t page)
{
    uint16_t *cell = (uint16_t *)(pages->touch + (page * 2 & (TBD_TOUCH_BYTES - 1)));

    return tbd_shared_guards ? tbd_shared_cell(cell, page) : cell;
}

static bool is_known(const struct tbd_pages *pages, uint64_t page)
{
    return !pages->known || (pages->known[page >> 3] >> (page & 7) & 1);
}

bool tbd_pages_is_known(const struct tbd_pages *pages, uint64_t address)
{
    return is_known(pages, address >> TBD_PAGE_SHIFT);
}

bool tbd_pages_is_used(const struct tbd_pages *pages, uint64_t address)
{
    uint64_t page = address >> TBD_PAGE_SHIFT;

    return *cell_of(pages, page) || is_known(pages, page);
}

bool tbd_pages_is_written(const struct tbd_pages *pages, uint64_t address)
{
    return *cell_of(pages, address >> TBD_PAGE_SHIFT) & 0xff00;
}

bool tbd_pages_is_changed(const struct tbd_pages *pages, uint64_t address)
{
    return pages->omits_stores && tbd_pages_is_written(pages, address);
}

static void set_known(struct tbd_pages *pages, uint64_t page)
{
    if (pages->known)
        pages->known[page >> 3] |= (uint8_t)(1u << (page & 7));
}

static void set_bits(struct tbd_pages *pages, uint64_t page, uint64_t last, bool known)
{
    for (; page < last; page++)
        pages->known[page >> 3] = (uint8_t)((pages->known[page >> 3] & ~(1u << (page & 7))) |
                                            (unsigned)known << (page & 7));
}

/* Bytes of the map; where it is large and cleared, memory is given back. */
static void set_bytes(uint8_t *from, uint8_t *to, bool known)
{
    const uint64_t large = 16 * TBD_PAGE_SIZE;
    uint64_t first = (tbd_sys_pointer(from) + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1);
    uint64_t last = tbd_sys_pointer(to) & ~(TBD_PAGE_SIZE - 1);

    if (known || (uint64_t)(to - from) < large ||
        tbd_sys_madvise(first, last - first, MADV_DONTNEED)) {
        memset(from, known ? 0xff : 0, (size_t)(to - from));
        return;
    }
    memset(from, 0, first - tbd_sys_pointer(from));
    memset(to - (tbd_sys_pointer(to) - last), 0, tbd_sys_pointer(to) - last);
}

/* Programs use little of so large a mapping; pages that are not known are sent when they are used. */
#define NEVER_KNOWN_BYTES (64ull << 30)

void tbd_pages_set_known(struct tbd_pages *pages, uint64_t start, uint64_t end, bool known)
{
    uint64_t page = start >> TBD_PAGE_SHIFT;
    uint64_t last = (end + TBD_PAGE_SIZE - 1) >> TBD_PAGE_SHIFT;
    uint64_t first_byte = (page + 7) >> 3, last_byte = last >> 3;

    if (!pages->known || last > TBD_USER_END >> TBD_PAGE_SHIFT)
        return;
    known = known && end - start < NEVER_KNOWN_BYTES;
    if (first_byte >= last_byte) {
        set_bits(pages, page, last, known);
        return;
    }
    set_bits(pages, page, first_byte * 8, known);
    set_bytes(pages->known + first_byte, pages->known + last_byte, known);
    set_bits(pages, last_byte * 8, last, known);
}

static void set_marks(const struct tbd_pages *pages, uint64_t start, uint64_t end, size_t byte,
                      uint8_t mark)
{
    if (start >= end)
        return;
    for (uint64_t page = start >> TBD_PAGE_SHIFT; page <= (end - 1) >> TBD_PAGE_SHIFT; page++)
        ((uint8_t *)cell_of(pages, page))[byte] = mark;
}

void tbd_pages_mark_written(struct tbd_pages *pages, uint64_t start, uint64_t end)
{
    set_marks(pages, start, end, 1, 1);
}

void tbd_pages_forget(struct tbd_pages *pages, uint64_t start, uint64_t end)
{
    set_marks(pages, start, end, 1, 0);
}

void tbd_pages_mark_read(struct tbd_pages *pages, uint64_t start, uint64_t end)
{
    set_marks(pages, start, end, 0, 1);
}

static const struct tbd_snapshot *source;

void tbd_window_read_from(const struct tbd_snapshot *snapshot)
{
    source = snapshot;
}

static bool read_page(void *out, uint64_t page)
{
    return source ? tbd_snapshot_read(source, page, out, TBD_PAGE_SIZE)
                  : tbd_shared_read_page(out, page);
}

bool tbd_window_send_page(struct tbd_ring *ring, struct tbd_thread *thread, uint64_t address,
                          uint64_t flags)
{
    struct tbd_msg_page head = { .address = address, .flags = flags };
    uint8_t *at = tbd_ring_reserve(ring, thread, TBD_MSG_PAGE, sizeof(head) + TBD_PAGE_SIZE);

    if (!at)
        return true;
    memcpy(at, &head, sizeof(head));
    if (!read_page(at + sizeof(head), address))
        return false; /* without commit, the reservation has no effect */
    tbd_code_traps_hide(at + sizeof(head), address, TBD_PAGE_SIZE);
    tbd_ring_commit(ring, thread);
    return true;
}

bool tbd_window_send_first(struct tbd_ring *ring, struct tbd_thread *thread,
                           struct tbd_pages *pages, uint64_t address)
{
    if (is_known(pages, address >> TBD_PAGE_SHIFT))
        return true;
    if (!tbd_window_send_page(ring, thread, address, TBD_PAGE_FIRST))
        return false;
    set_known(pages, address >> TBD_PAGE_SHIFT);
    return true;
}

/* ---- scanning ---- */

#define READ_BATCH 512u

struct scan {
    struct tbd_ring *ring;
    struct tbd_thread *thread;
    struct tbd_pages *pages;
    uint64_t limit; /* first page after the stretch */
    size_t read_count;
    uint64_t read[READ_BATCH];
};

static void flush_reads(struct scan *scan)
{
    struct tbd_part part = { scan->read, scan->read_count * sizeof(uint64_t) };

    if (scan->read_count)
        tbd_ring_send(scan->ring, scan->thread, TBD_MSG_READ_PAGES, &part, 1);
    scan->read_count = 0;
}

static void note_read(struct scan *scan, uint64_t page)
{
    if (scan->read_count == READ_BATCH)
        flush_reads(scan);
    scan->read[scan->read_count++] = page << TBD_PAGE_SHIFT;
    scan->pages->read++;
}

static void send_contents(struct scan *scan, uint64_t page, bool written)
{
    bool is_first = !is_known(scan->pages, page) && !(written && scan->pages->omits_stores);
    uint64_t flags = (written ? TBD_PAGE_DIRTY : 0) | (is_first ? TBD_PAGE_FIRST : 0);

    if (!flags)
        return;
    if (written && scan->pages->ends_window)
        flags |= TBD_PAGE_LAST;
    if (!tbd_window_send_page(scan->ring, scan->thread, page << TBD_PAGE_SHIFT, flags))
        return;
    set_known(scan->pages, page);
    scan->pages->dirty += written;
}

/* Are marks exact at this page?  In shared memory they are: the engine executes the instructions
 * there, and marks both pages of an access.  Reading a page there without a mark could create
 * it. */
static bool is_exact(uint64_t page)
{
    uint64_t at = page << TBD_PAGE_SHIFT;

    return tbd_shared_guards && tbd_shared_holds(at, at + 1);
}

/* A load across a page boundary marks only the first page (base/layout.h). */
static void send_touched(struct scan *scan, uint64_t page, uint16_t marks)
{
    bool reads = scan->pages->known; /* replay sends written pages only */

    if (reads)
        note_read(scan, page);
    send_contents(scan, page, marks & 0xff00);
    if (reads && (marks & 0xff) && page + 1 < scan->limit && !*cell_of(scan->pages, page + 1) &&
        !is_exact(page + 1)) {
        note_read(scan, page + 1);
        send_contents(scan, page + 1, false);
    }
}

/* A program uses little of so large a range. */
#define LARGE_STRETCH (1ull << 30)

/* Iterates over the parts of [at, end) that may have marks. */
static bool next_run(const struct tbd_pages *pages, uint64_t at, uint64_t end,
                     struct tbd_range *out)
{
    if (at < end && pages->next_marked && end - at >= LARGE_STRETCH)
        return pages->next_marked(at, end, out);
    *out = (struct tbd_range){ at, end };
    return at < end;
}

/* The first page in [page, last) with marks; `last` if there is none. */
static uint64_t next_marked(const struct tbd_pages *pages, uint64_t page, uint64_t last)
{
    while (page < last) {
        const uint16_t *cell = cell_of(pages, page);
        uint64_t four = 1;

        if (!((uintptr_t)cell & 7) && page + 4 <= last)
            memcpy(&four, cell, sizeof(four));
        if (four && *cell)
            return page;
        page += four ? 1 : 4;
    }
    return last;
}

uint64_t tbd_pages_next_marked(const struct tbd_pages *pages, uint64_t start, uint64_t end)
{
    struct tbd_range run;

    for (uint64_t at = start; next_run(pages, at, end, &run); at = run.end) {
        uint64_t page = next_marked(pages, run.start >> TBD_PAGE_SHIFT, run.end >> TBD_PAGE_SHIFT);

        if (page < run.end >> TBD_PAGE_SHIFT)
            return page << TBD_PAGE_SHIFT;
    }
    return end;
}

static void scan_run(struct scan *scan, const struct tbd_range *run, bool folds)
{
    uint64_t last = run->end >> TBD_PAGE_SHIFT;

    for (uint64_t page = run->start >> TBD_PAGE_SHIFT;
         (page = next_marked(scan->pages, page, last)) < last; page++) {
        uint16_t *cell = cell_of(scan->pages, page);

        send_touched(scan, page, *cell);
        if (!folds)
            *cell = 0;
    }
}

static void scan_stretch(struct scan *scan, const struct tbd_stretch *stretch)
{
    struct tbd_range run;

    scan->limit = stretch->end >> TBD_PAGE_SHIFT;
    for (uint64_t at = stretch->start; next_run(scan->pages, at, stretch->end, &run); at = run.end)
        scan_run(scan, &run, stretch->folds);
}

void tbd_window_send_pages(struct tbd_ring *ring, struct tbd_thread *thread,
                           struct tbd_pages *pages, const struct tbd_stretch *stretches,
                           size_t count)
{
    struct scan scan;

    scan.ring = ring;
    scan.thread = thread;
    scan.pages = pages;
    scan.read_count = 0;
    for (size_t i = 0; i < count; i++)
        scan_stretch(&scan, &stretches[i]);
    flush_reads(&scan);
}

void tbd_window_clear_marks(struct tbd_pages *pages, const struct tbd_stretch *stretch)
{
    struct tbd_range run;

    for (uint64_t at = stretch->start; next_run(pages, at, stretch->end, &run); at = run.end) {
        uint64_t last = run.end >> TBD_PAGE_SHIFT;

        for (uint64_t page = run.start >> TBD_PAGE_SHIFT;
             (page = next_marked(pages, page, last)) < last; page++)
            *cell_of(pages, page) = 0;
    }
}

static void send_unknown(struct scan *scan, uint64_t page)
{
    if (!is_known(scan->pages, page) &&
        tbd_window_send_page(scan->ring, scan->thread, page << TBD_PAGE_SHIFT, TBD_PAGE_FIRST))
        set_known(scan->pages, page);
}

static void send_unknown_run(struct scan *scan, const struct tbd_range *run)
{
    uint64_t last = run->end >> TBD_PAGE_SHIFT;

    for (uint64_t page = run->start >> TBD_PAGE_SHIFT;
         (page = next_marked(scan->pages, page, last)) < last; page++) {
        uint16_t marks = *cell_of(scan->pages, page);

        if (!((marks & 0xff00) && scan->pages->omits_stores))
            send_unknown(scan, page);
        if ((marks & 0xff) && page + 1 < scan->limit && !is_exact(page + 1))
            send_unknown(scan, page + 1);
    }
}

void tbd_window_send_unknown(struct tbd_ring *ring, struct tbd_thread *thread,
                             struct tbd_pages *pages, const struct tbd_stretch *stretches,
                             size_t count)
{
    struct scan scan;

    scan.ring = ring;
    scan.thread = thread;
    scan.pages = pages;
    for (size_t i = 0; i < count; i++) {
        struct tbd_range run;

        scan.limit = stretches[i].end >> TBD_PAGE_SHIFT;
        for (uint64_t at = stretches[i].start; next_run(pages, at, stretches[i].end, &run);
             at = run.end)
            send_unknown_run(&scan, &run);
    }
}

void tbd_window_send_end(struct tbd_ring *ring, struct tbd_thread *thread, struct tbd_pages *pages,
                         uint64_t due)
{
    struct tbd_msg_window_end end;
    struct tbd_part part = { &end, sizeof(end) };

    end.time = tbd_ring_time(ring, thread);
    end.dirty_pages = pages->dirty;
    end.read_pages = pages->read;
    tbd_ring_send(ring, thread, TBD_MSG_WINDOW_END, &part, 1);
    pages->dirty = 0;
    pages->read = 0;
    ring->due = due;
    tbd_ring_turn(ring, thread, TBD_CHUNK_ENDS_WINDOW);
}
