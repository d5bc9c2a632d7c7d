// SPDX-License-Identifier: MIT
/* page_moved.c - contents of a page that mremap moved, from its old address
 *
 * Needed only if the trace does not know the page at its new address, e.g. when the program was
 * killed before the end of the window that first used it.  Bound: each step goes back in time, at
 * most STEPS_MAX. */
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

/* The page's address before the call that made its mapping; 0: the page was added. */
static enum tbd_status find_source(struct tbd_trace *trace, const struct tbd_page_query *q,
                                   uint64_t *out)
{
    const struct tbd_moment *born = &q->piece->born;
    struct tbd_msg_syscall call;
    struct tbd_toc *toc;
    enum tbd_status status = tbd_open_toc_locked(trace, born->window, &toc);

    if (!status)
        status = read_call(&toc->log, born->order - 1, &call);
    if (status)
        return status;
    if (call.number != __NR_mremap || q->address < call.result || !call.args[1] ||
        (call.args[0] & 4095))
        return TBD_NOTFOUND;
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
    const struct tbd_mapping_piece *piece = q->piece;
    struct tbd_moment born = piece->born;
    enum tbd_status status;
    uint64_t source = 0;

    if (piece->initial || !born.order || piece->region.inode || q->moves >= STEPS_MAX ||
        !(piece->region.map_flags & MAP_PRIVATE))
        return TBD_NOTFOUND;
    status = find_source(trace, q, &source);
    if (status)
        return status;
    if (source)
        return at_source(trace, &born, source, q->moves + 1, out);
    memset(out, 0, TBD_PAGE_SIZE);
    return TBD_OK;
}
