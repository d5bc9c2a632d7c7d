// SPDX-License-Identifier: MIT
/* page_moved.c - contents of a page that mremap moved, from its old address
 *
 * Needed only if the trace does not know the page at its new address, e.g. when the program was
 * killed before the end of the window that first used it, or because native play tells only of pages that were
 * written.  Memory that grows again and again may have been moved hundreds of times since its page was made, all within
 * one window.
 *
 * Invariants
 * PAGE_MOVED-1  Each step back leads to an earlier moment, so that there is a last one, whatever a log says. (not
 *     checked: the moment before the birth of a mapping that was there) */
#include "format/pages/page_base.h"
#include "format/pages/pages_private.h"

#include "base/array.h"
#include "base/layout.h"
#include "base/linux.h"
#include "format/files/codec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LOG_HEAD (4 + sizeof(struct tbd_message))

static enum tbd_status add_move(struct tbd_window_moves *moves, uint64_t index,
                                const uint8_t *bytes)
{
    struct tbd_logged_move move = { .index = index };

    memcpy(&move.call, bytes, sizeof(move.call));
    if (move.call.number != __NR_mremap)
        return TBD_OK;
    if (!tbd_array_grow(&moves->list, moves->count, &moves->capacity, sizeof(move)))
        return TBD_NOMEM;
    moves->list[moves->count++] = move;
    return TBD_OK;
}

static enum tbd_status find_moves(const uint8_t *bytes, uint64_t left, uint64_t count,
                                  struct tbd_window_moves *moves)
{
    enum tbd_status status = TBD_OK;

    for (uint64_t i = 0; i < count && !status; i++) {
        struct tbd_message message;

        if (left < LOG_HEAD)
            return TBD_CORRUPT;
        memcpy(&message, bytes + 4, sizeof(message));
        bytes += LOG_HEAD;
        left -= LOG_HEAD;
        if (left < message.bytes)
            return TBD_CORRUPT;
        if (message.kind == TBD_MSG_SYSCALL && message.bytes >= sizeof(struct tbd_msg_syscall))
            status = add_move(moves, i, bytes);
        bytes += message.bytes;
        left -= message.bytes;
    }
    return status;
}

static enum tbd_status read_moves(const struct tbd_record_view *record,
                                  struct tbd_window_moves *moves)
{
    struct tbd_disk_log head;
    enum tbd_status status;
    uint8_t *bytes;

    if (!record->payload || record->bytes < sizeof(head))
        return TBD_OK;
    memcpy(&head, record->payload, sizeof(head));
    if (head.raw_bytes > tbd_lz4_most(record->bytes))
        return TBD_CORRUPT;
    bytes = malloc(head.raw_bytes + 1);
    if (!bytes)
        return TBD_NOMEM;
    status = tbd_unpack(record->payload + sizeof(head), record->bytes - sizeof(head), bytes,
                        head.raw_bytes);
    if (!status)
        status = find_moves(bytes, head.raw_bytes, head.count, moves);
    free(bytes);
    return status;
}

void tbd_page_moves_forget(struct tbd_trace_pages *pages, uint32_t window)
{
    struct tbd_window_moves *moves = &pages->moves[window % TBD_PAGES_MOVES];

    if (moves->window == window)
        moves->is_read = false;
}

void tbd_page_moves_free(struct tbd_trace_pages *pages)
{
    for (size_t i = 0; i < TBD_PAGES_MOVES; i++)
        free(pages->moves[i].list);
}

/* The window's, read once as long as no other window has its place. */
static enum tbd_status moves_of(struct tbd_trace *trace, uint32_t window,
                                const struct tbd_window_moves **out)
{
    struct tbd_trace_pages *pages = tbd_trace_pages_locked(trace);
    struct tbd_window_moves *moves;
    struct tbd_toc *toc;
    enum tbd_status status;

    if (!pages)
        return TBD_NOMEM;
    moves = &pages->moves[window % TBD_PAGES_MOVES];
    *out = moves;
    if (moves->is_read && moves->window == window)
        return TBD_OK;
    moves->is_read = false;
    moves->window = window;
    moves->count = 0;
    status = tbd_open_toc_locked(trace, window, &toc);
    if (!status)
        status = read_moves(&toc->log, moves);
    moves->is_read = !status;
    return status;
}

/* The call that made a mapping, if it was one of mremap. */
static enum tbd_status maker_of(struct tbd_trace *trace, const struct tbd_moment *born,
                                struct tbd_msg_syscall *out)
{
    const struct tbd_window_moves *moves = NULL;
    enum tbd_status status = moves_of(trace, born->window, &moves);
    size_t low = 0, high;

    if (status)
        return status;
    high = moves->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (moves->list[middle].index < born->order - 1)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == moves->count || moves->list[low].index != born->order - 1)
        return TBD_NOTFOUND;
    *out = moves->list[low].call;
    return TBD_OK;
}

static enum tbd_status find_move(struct tbd_trace *trace, const struct tbd_mapping_piece *piece,
                                 struct tbd_msg_syscall *out)
{
    enum tbd_status status;

    *out = (struct tbd_msg_syscall){ 0 };
    if (piece->initial || !piece->born.order || piece->region.inode ||
        !(piece->region.map_flags & MAP_PRIVATE))
        return TBD_NOTFOUND;
    status = maker_of(trace, &piece->born, out);
    if (!status && (piece->region.start < out->result || !out->args[1] || (out->args[0] & 4095)))
        status = TBD_NOTFOUND;
    return status;
}

enum tbd_status tbd_moved_range_locked(struct tbd_trace *trace,
                                       const struct tbd_mapping_piece *piece, struct tbd_range *out)
{
    struct tbd_msg_syscall call;
    enum tbd_status status = find_move(trace, piece, &call);
    uint64_t end = call.result + call.args[1];

    *out = (struct tbd_range){ piece->region.start, piece->region.end };
    if (!status && end < out->end)
        out->end = end < out->start ? out->start : end;
    return status;
}

/* The page's address before the call that made its mapping; 0: the page was added. */
static enum tbd_status find_source(struct tbd_trace *trace, const struct tbd_page_query *q,
                                   uint64_t *out)
{
    struct tbd_msg_syscall call;
    enum tbd_status status = find_move(trace, q->piece, &call);

    if (status)
        return status;
    *out = q->address - call.result < call.args[1] ? call.args[0] + (q->address - call.result) : 0;
    return TBD_OK;
}

/* The page's capture just before the call, if the window modified it before. */
static const struct tbd_disk_page *captured(const struct tbd_page_entries *entries,
                                            const struct tbd_page_query *source,
                                            const struct tbd_moment *until)
{
    const struct tbd_disk_page *best = NULL;

    for (size_t i = 0; i < entries->count; i++) {
        const struct tbd_disk_page *page = &entries->list[i];
        struct tbd_moment then = tbd_moment_of_page(until->window, page);

        if (page->flags & TBD_DISK_PAGE_GONE && tbd_moment_compare(&then, until) <= 0 &&
            tbd_moment_compare(&then, &source->piece->born) >= 0)
            best = page;
    }
    return best;
}

/* At `address` before the call that made the page's mapping. */
static enum tbd_status at_source(struct tbd_trace *trace, struct tbd_page_query *q,
                                 uint64_t address, uint8_t *out, bool *out_known)
{
    struct tbd_moment born = q->piece->born, before = born;
    struct tbd_page_entries entries;
    const struct tbd_disk_page *page;
    enum tbd_status status;

    before.order--;
    status = tbd_page_ask_locked(trace, &before, address, q);
    if (!status)
        status = tbd_page_entries_locked(trace, before.window, address, &entries);
    if (status)
        return status;
    page = captured(&entries, q, &born);
    *out_known = page;
    return page ? tbd_page_of_entry_locked(trace, entries.toc, page, out) : TBD_OK;
}

enum tbd_status tbd_page_moved_locked(struct tbd_trace *trace, struct tbd_page_query *q,
                                      uint8_t *out, bool *out_known)
{
    uint64_t source = 0;
    enum tbd_status status = find_source(trace, q, &source);

    *out_known = false;
    if (status)
        return status;
    if (source)
        return at_source(trace, q, source, out, out_known);
    memset(out, 0, TBD_PAGE_SIZE);
    *out_known = true;
    return TBD_OK;
}
