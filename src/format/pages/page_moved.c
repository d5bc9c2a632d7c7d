// SPDX-License-Identifier: MIT
/* page_moved.c - contents of a page that mremap moved, from its old address
 *
 * Needed only if the trace does not know the page at its new address, e.g. when the program was
 * killed before the end of the window that first used it, or because native play tells only of pages that were
 * written.  Bound: each step goes back in time, at most STEPS_MAX. */
#include "format/pages/page_base.h"
#include "format/pages/pages_private.h"

#include "base/layout.h"
#include "base/linux.h"
#include "format/files/codec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STEPS_MAX 16u
#define LOG_HEAD  (4 + sizeof(struct tbd_message))

/* The system call that is message `index` of a window's log. */
static enum tbd_status find_call(const uint8_t *bytes, uint64_t left, uint64_t index,
                                 struct tbd_msg_syscall *out)
{
    struct tbd_message message;

    for (uint64_t i = 0;; i++) {
        if (left < LOG_HEAD)
            return TBD_CORRUPT;
        memcpy(&message, bytes + 4, sizeof(message));
        bytes += LOG_HEAD;
        left -= LOG_HEAD;
        if (left < message.bytes)
            return TBD_CORRUPT;
        if (i == index)
            break;
        bytes += message.bytes;
        left -= message.bytes;
    }
    if (message.kind != TBD_MSG_SYSCALL || message.bytes < sizeof(*out))
        return TBD_NOTFOUND;
    memcpy(out, bytes, sizeof(*out));
    return TBD_OK;
}

static enum tbd_status read_call(const struct tbd_record_view *record, uint64_t index,
                                 struct tbd_msg_syscall *out)
{
    struct tbd_disk_log head;
    enum tbd_status status;
    uint8_t *bytes;

    if (!record->payload || record->bytes < sizeof(head))
        return TBD_NOTFOUND;
    memcpy(&head, record->payload, sizeof(head));
    if (head.raw_bytes > tbd_lz4_most(record->bytes))
        return TBD_CORRUPT;
    if (index >= head.count)
        return TBD_NOTFOUND;
    bytes = malloc(head.raw_bytes + 1);
    if (!bytes)
        return TBD_NOMEM;
    status = tbd_unpack(record->payload + sizeof(head), record->bytes - sizeof(head), bytes,
                        head.raw_bytes);
    if (!status)
        status = find_call(bytes, head.raw_bytes, index, out);
    free(bytes);
    return status;
}

/* The call that made the mapping, kept for its other pages. */
static enum tbd_status maker_of(struct tbd_trace *trace, const struct tbd_moment *born,
                                struct tbd_msg_syscall *out)
{
    struct tbd_trace_pages *pages = tbd_trace_pages_locked(trace);
    struct tbd_toc *toc;
    enum tbd_status status;

    if (!pages)
        return TBD_NOMEM;
    if (pages->has_maker && !tbd_moment_compare(&pages->made, born)) {
        *out = pages->maker;
        return TBD_OK;
    }
    status = tbd_open_toc_locked(trace, born->window, &toc);
    if (!status)
        status = read_call(&toc->log, born->order - 1, out);
    pages->has_maker = !status;
    pages->made = *born;
    pages->maker = *out;
    return status;
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
    if (!status && (out->number != __NR_mremap || piece->region.start < out->result ||
                    !out->args[1] || (out->args[0] & 4095)))
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

static enum tbd_status at_source(struct tbd_trace *trace, const struct tbd_moment *born,
                                 uint64_t address, unsigned moves, uint8_t *out)
{
    struct tbd_moment before = *born;
    struct tbd_page_query source;
    struct tbd_page_entries entries;
    const struct tbd_disk_page *page;
    enum tbd_status status;

    before.order--;
    status = tbd_page_ask_locked(trace, &before, address, &source);
    if (!status)
        status = tbd_page_entries_locked(trace, before.window, address, &entries);
    if (status)
        return status;
    page = captured(&entries, &source, born);
    if (page)
        return tbd_page_of_entry_locked(trace, entries.toc, page, out);
    source.moves = moves;
    return tbd_page_unmodified_locked(trace, &source, out);
}

enum tbd_status tbd_page_moved_locked(struct tbd_trace *trace, const struct tbd_page_query *q,
                                      uint8_t *out)
{
    struct tbd_moment born = q->piece->born;
    uint64_t source = 0;
    enum tbd_status status = q->moves < STEPS_MAX ? find_source(trace, q, &source) : TBD_NOTFOUND;

    if (status)
        return status;
    if (source)
        return at_source(trace, &born, source, q->moves + 1, out);
    memset(out, 0, TBD_PAGE_SIZE);
    return TBD_OK;
}
