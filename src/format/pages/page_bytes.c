// SPDX-License-Identifier: MIT
/* page_bytes.c - bytes at any position, from the events of its window and pages.c */
#include "format/pages/pages.h"

#include "base/binary_search.h"
#include "base/layout.h"
#include "format/pages/pages_private.h"
#include "format/window/cursor.h"
#include "format/window/window_make.h"

#include <string.h>

struct page_reading {
    uint64_t address;
    uint8_t *out;
    uint32_t bytes; /* inside one page */
    uint32_t missing;
    uint8_t have[4096];
    uint64_t until; /* relative time from which on stores belong to another mapping */
};

static void take_old(struct page_reading *r, uint64_t address, uint64_t bytes,
                     const uint8_t *old_bytes)
{
    uint64_t low = address > r->address ? address : r->address;
    uint64_t end = r->address + r->bytes;
    uint64_t high = address + bytes < end ? address + bytes : end;

    for (uint64_t at = low; at < high; at++) {
        uint64_t i = at - r->address;

        if (r->have[i])
            continue;
        r->have[i] = 1;
        r->out[i] = old_bytes[at - address];
        r->missing--;
    }
}

static void take_message(struct page_reading *r, const struct tbd_message *message)
{
    struct tbd_write_cursor cursor;
    struct tbd_write_view write;
    struct tbd_message head;

    memcpy(&head, message, sizeof(head));
    tbd_writes_first(head.kind, (const uint8_t *)message + sizeof(head), head.bytes, &cursor);
    while (tbd_writes_next(&cursor, &write))
        if (write.old_bytes)
            take_old(r, write.address, write.bytes, write.old_bytes);
}

/* Highest event index at which a store touches [address, address + bytes), plus 1; 0 if none
 * does. */
static uint64_t last_touch(const struct tbd_window *window, uint64_t address, uint64_t bytes)
{
    const uint32_t *lasts = NULL;
    uint64_t last = 0;
    size_t i;

    if (!window->words)
        return UINT64_MAX;
    i = TBD_COUNT_BEFORE(k, window->word_count, window->words[k].word < (address & ~7ull));
    if (i == window->word_count || window->words[i].word >= address + bytes)
        return 0;
    if (window->level == TBD_LEVEL_BITS && window->has_events &&
        !(lasts = tbd_window_last_stores(window)))
        return UINT64_MAX;
    for (; i < window->word_count && window->words[i].word < address + bytes; i++) {
        uint64_t end = lasts ? lasts[i] : window->words[i].last + 1ull;

        last = end > last ? end : last;
    }
    return window->has_loads && last ? UINT64_MAX : last;
}

/* Takes the old bytes of stores at or after `pos`. */
static void take_later_stores(struct page_reading *r, const struct tbd_window *window,
                              struct tbd_position pos)
{
    uint64_t last = last_touch(window, r->address, r->bytes);
    struct tbd_cursor c;

    if (!last || !tbd_cursor_seek(window, pos.time, &c))
        return;
    for (; c.kind != TBD_AT_END && c.index < last && r->missing; tbd_cursor_next(&c)) {
        if (c.time - window->first_time + window->slice_time >= r->until)
            return;
        if (c.kind == TBD_AT_MESSAGE)
            take_message(r, c.message);
        else if (c.kind == TBD_AT_OP && c.op->kind == TBD_OP_STORE &&
                 (c.time > pos.time || c.op->insn >= pos.offset))
            take_old(r, tbd_cursor_address(&c), c.op->size, c.record + c.op->data);
    }
}

static struct tbd_moment end_of(const struct tbd_window *window)
{
    if (!window->is_slice)
        return (struct tbd_moment){ .window = window->index, .time = UINT64_MAX };
    return (struct tbd_moment){ .window = window->index,
                                .order = window->slice_order + (uint32_t)window->log_count,
                                .time = window->slice_time + window->blocks };
}

static const struct tbd_page_contents *capture_after(const struct tbd_window *window,
                                                     const struct tbd_page_query *q)
{
    struct tbd_moment end = end_of(window);

    for (size_t i = 0; i < window->gone_count; i++) {
        const struct tbd_page_contents *page = &window->gone[i];
        struct tbd_moment then = { window->index, page->order, page->time };

        if (page->address == q->address && tbd_moment_compare(&then, &q->at) > 0 &&
            tbd_moment_compare(&then, &q->died) < 0)
            return page;
    }
    if (tbd_moment_compare(&end, &q->died) >= 0)
        return NULL;
    return tbd_window_dirty(window, q->address);
}

/* Does a store of this window touch bytes that no later store overwrites?  Then, without an end
 * state (the program was killed, and the window is not replayed), their contents are unknown. */
static bool is_lost(const struct tbd_window *window, const struct page_reading *r)
{
    if (window->complete)
        return false;
    for (uint32_t i = 0; i < r->bytes; i++)
        if (!r->have[i] && last_touch(window, r->address + i, 1))
            return true;
    return false;
}

/* The page's contents when the slice began, if it had the same mapping then. */
static const struct tbd_page_contents *capture_before(const struct tbd_window *window,
                                                      const struct tbd_page_query *q)
{
    struct tbd_moment start = { .window = window->index,
                                .order = window->slice_order,
                                .time = window->slice_time };

    if (!q->piece->initial && tbd_moment_compare(&q->piece->born, &start) > 0)
        return NULL;
    return tbd_window_start(window, q->address);
}

static enum tbd_status take_rest(struct tbd_trace *trace, struct page_reading *r,
                                 const struct tbd_window *window, const struct tbd_page_query *q)
{
    const struct tbd_page_contents *capture = capture_after(window, q);
    enum tbd_status status = TBD_OK;
    uint8_t page[4096];

    if (!capture && is_lost(window, r))
        return TBD_NOTKEPT;
    if (!capture)
        capture = capture_before(window, q);
    if (capture) {
        memcpy(page, capture->bytes, sizeof(page));
    } else {
        tbd_trace_lock(trace);
        status = tbd_page_unmodified_locked(trace, q, page);
        tbd_trace_unlock(trace);
    }
    for (uint32_t i = 0; i < r->bytes && !status; i++)
        if (!r->have[i])
            r->out[i] = page[(r->address & 4095) + i];
    return status;
}

static struct tbd_moment moment_of(const struct tbd_window *window, struct tbd_position pos)
{
    uint64_t time = pos.time - window->first_time;
    size_t before = TBD_COUNT_BEFORE(i, window->log_count, window->log[i].time <= time);

    return (struct tbd_moment){ .window = window->index,
                                .order = window->slice_order + (uint32_t)before,
                                .time = window->slice_time + time };
}

uint64_t tbd_window_mapping_until(struct tbd_trace *trace, const struct tbd_window *window,
                                  struct tbd_position pos, uint64_t address)
{
    struct tbd_moment at = moment_of(window, pos);
    struct tbd_page_query q;
    enum tbd_status status;

    tbd_trace_lock(trace);
    status = tbd_page_ask_locked(trace, &at, address & ~4095ull, &q);
    tbd_trace_unlock(trace);
    if (status || q.died.window != window->index)
        return UINT64_MAX;
    return window->first_time - window->slice_time + q.died.time;
}

static enum tbd_status read_in_page(struct tbd_trace *trace, const struct tbd_window *window,
                                    struct tbd_position pos, bool is_stored, struct page_reading *r)
{
    struct tbd_moment at = moment_of(window, pos);
    struct tbd_mapping_piece piece;
    struct tbd_page_query q;
    enum tbd_status status;

    tbd_trace_lock(trace);
    status = tbd_page_ask_locked(trace, &at, r->address & ~4095ull, &q);
    if (!status) {
        piece = *q.piece;
        q.piece = &piece;
    }
    tbd_trace_unlock(trace);
    if (status)
        return status;
    r->until = q.died.window == window->index ? q.died.time : UINT64_MAX;
    if (is_stored)
        take_later_stores(r, window, pos);
    return r->missing ? take_rest(trace, r, window, &q) : TBD_OK;
}

enum tbd_status tbd_window_page_at_start(struct tbd_trace *trace, const struct tbd_window *window,
                                         uint64_t address, uint8_t *out)
{
    const struct tbd_page_contents *page = tbd_window_start(window, address & ~4095ull);

    if (!page)
        return tbd_trace_page_after(trace, window->index, window->slice_time, window->slice_order,
                                    address, out);
    memcpy(out, page->bytes, 4096);
    return TBD_OK;
}

/* ---- bytes that the window does not store to ---- */

/* The page's next contents in this window's table, after q->at. */
static enum tbd_status captured_later(struct tbd_trace *trace, const struct tbd_page_query *q,
                                      uint8_t *out)
{
    struct tbd_moment end = { q->at.window, UINT32_MAX, UINT64_MAX };
    struct tbd_page_entries entries;
    enum tbd_status status = tbd_page_entries_locked(trace, q->at.window, q->address, &entries);

    if (status)
        return status;
    for (size_t i = 0; i < entries.count; i++) {
        const struct tbd_disk_page *page = &entries.list[i];
        struct tbd_moment then = tbd_moment_of_page(q->at.window, page);

        if (page->flags & TBD_DISK_PAGE_END)
            then = end;
        if (page->flags & (TBD_DISK_PAGE_END | TBD_DISK_PAGE_GONE) &&
            tbd_moment_compare(&then, &q->at) > 0 && tbd_moment_compare(&then, &q->died) < 0)
            return tbd_page_of_entry_locked(trace, entries.toc, page, out);
    }
    return TBD_NOTFOUND;
}

static enum tbd_status untouched_page(struct tbd_trace *trace, const struct tbd_moment *at,
                                      uint64_t address, uint8_t *out)
{
    struct tbd_page_query q;
    enum tbd_status status;

    tbd_trace_lock(trace);
    status = tbd_page_ask_locked(trace, at, address, &q);
    if (!status)
        status = captured_later(trace, &q, out);
    if (status == TBD_NOTFOUND)
        status = tbd_page_unmodified_locked(trace, &q, out);
    tbd_trace_unlock(trace);
    return status;
}

static enum tbd_status read_untouched(struct tbd_trace *trace, const struct tbd_window *window,
                                      struct tbd_position pos, uint64_t address, uint8_t *out,
                                      size_t bytes)
{
    struct tbd_moment at = moment_of(window, pos);
    enum tbd_status status = TBD_OK;
    uint8_t page[4096];

    if (!window->complete || !window->words || last_touch(window, address, bytes))
        return TBD_NOTKEPT;
    while (bytes && !status) {
        size_t part = 4096 - (address & 4095) < bytes ? 4096 - (address & 4095) : bytes;

        status = untouched_page(trace, &at, address & ~4095ull, page);
        if (!status)
            memcpy(out, page + (address & 4095), part);
        address += part;
        out += part;
        bytes -= part;
    }
    return status;
}

enum tbd_status tbd_trace_read_untouched(struct tbd_trace *trace, const struct tbd_window *window,
                                         struct tbd_position pos, uint64_t address, void *out,
                                         size_t bytes)
{
    if (bytes > TBD_USER_END || address > TBD_USER_END - bytes)
        return TBD_UNMAPPED;
    if (pos.time < window->first_time || pos.time - window->first_time > window->blocks)
        return TBD_NOTIME;
    return read_untouched(trace, window, pos, address, out, bytes);
}

/* ---- any bytes ---- */

static enum tbd_status read_bytes(struct tbd_trace *trace, const struct tbd_window *window,
                                  struct tbd_position pos, bool is_stored, uint64_t address,
                                  void *out, size_t bytes)
{
    uint8_t *at = out;

    if (pos.time < window->first_time || pos.time - window->first_time > window->blocks)
        return TBD_NOTIME;
    if (bytes > TBD_USER_END || address > TBD_USER_END - bytes)
        return TBD_UNMAPPED;
    while (bytes) {
        struct page_reading r = { .address = address, .out = at };
        enum tbd_status status;

        r.bytes = (uint32_t)(4096 - (address & 4095));
        if (r.bytes > bytes)
            r.bytes = (uint32_t)bytes;
        r.missing = r.bytes;
        status = read_in_page(trace, window, pos, is_stored, &r);
        if (status)
            return status;
        address += r.bytes;
        at += r.bytes;
        bytes -= r.bytes;
    }
    return TBD_OK;
}

enum tbd_status tbd_trace_read(struct tbd_trace *trace, const struct tbd_window *window,
                               struct tbd_position pos, uint64_t address, void *out, size_t bytes)
{
    return read_bytes(trace, window, pos, true, address, out, bytes);
}

enum tbd_status tbd_trace_read_unstored(struct tbd_trace *trace, const struct tbd_window *window,
                                        struct tbd_position pos, uint64_t address, void *out,
                                        size_t bytes)
{
    return read_bytes(trace, window, pos, false, address, out, bytes);
}
