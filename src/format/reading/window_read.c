// SPDX-License-Identifier: MIT
/* window_read.c - loading one window from its TOC, trace and block files */
#include "format/reading/window_read.h"

#include "base/layout.h"
#include "format/coding/packed.h"
#include "format/coding/other_threads.h"
#include "format/pages/page_base.h"
#include "format/pages/pages.h"
#include "format/summaries/stamps.h"
#include "format/window/opened.h"
#include "format/summaries/summaries.h"
#include "format/trace/toc.h"
#include "format/trace/trace_handle.h"
#include "format/trace/trace_index.h"
#include "format/window/window_make.h"

#include <stdlib.h>
#include <string.h>

static enum tbd_status bad(const struct tbd_toc *toc, const struct tbd_record_view *record,
                           const char *what, struct tbd_error *why)
{
    return tbd_error_set(why, TBD_CORRUPT, toc->file.path, record->offset, "%s", what);
}

/* The same of a record that a function refused, which may only have been short of memory. */
static enum tbd_status refused(const struct tbd_toc *toc, const struct tbd_record_view *record,
                               enum tbd_status status, const char *what, struct tbd_error *why)
{
    return status == TBD_OK || status == TBD_NOMEM ? status : bad(toc, record, what, why);
}

static enum tbd_status read_state(const struct tbd_toc *toc, struct tbd_window *window,
                                  struct tbd_error *why)
{
    uint64_t start = window->regs.xsave_bytes;
    uint64_t end = window->complete ? window->end_regs.xsave_bytes : 0;
    enum tbd_status status;
    uint8_t *image;

    if (!toc->state.payload)
        return start || end ? bad(toc, &toc->state, "the xsave images are missing", why) : TBD_OK;
    if (start + end > tbd_lz4_most(toc->state.bytes))
        return bad(toc, &toc->state, "impossible xsave length", why);
    image = tbd_window_memory(window, start + end);
    if (!image)
        return TBD_NOMEM;
    status = tbd_unpack(toc->state.payload, toc->state.bytes, image, start + end);
    if (status)
        return refused(toc, &toc->state, status, "the xsave images do not unpack", why);
    window->xsave = image;
    window->end_xsave = image + start;
    return TBD_OK;
}

static bool is_wanted(const struct tbd_wanted_pages *wanted, uint64_t address)
{
    return !wanted || wanted->is_wanted(wanted->context, address);
}

/* Memory that is not cleared and faulted in for each window, where it is much. */
#define LARGE_BYTES ((size_t)256 << 10)

static void *contents_memory(struct tbd_window *window, size_t bytes)
{
    return bytes < LARGE_BYTES ? tbd_window_memory(window, bytes)
                               : tbd_window_large_buffer(window, bytes);
}

/* `wanted` NULL: all.  Pages that are not wanted get no bytes. */
static const struct tbd_page_contents *read_page_kind(struct tbd_toc *toc, uint32_t flag,
                                                      const struct tbd_wanted_pages *wanted,
                                                      struct tbd_window *window, size_t *out_count,
                                                      enum tbd_status *status)
{
    struct tbd_page_contents *pages;
    uint8_t *bytes;
    size_t count = 0, with_bytes = 0;

    for (size_t i = 0; i < toc->page_count; i++)
        if (toc->pages[i].flags & flag) {
            with_bytes += is_wanted(wanted, toc->pages[i].address);
            count++;
        }
    pages = tbd_window_memory(window, count * sizeof(*pages));
    bytes = contents_memory(window, with_bytes * TBD_PAGE_SIZE);
    *out_count = count;
    if (!pages || !bytes) {
        *status = TBD_NOMEM;
        return NULL;
    }
    count = 0;
    for (size_t i = 0; i < toc->page_count && !*status; i++) {
        const struct tbd_disk_page *page = toc->pages + i;

        if (!(page->flags & flag))
            continue;
        pages[count] = (struct tbd_page_contents){ .address = page->address,
                                                   .time = page->time,
                                                   .order = page->order };
        if (is_wanted(wanted, page->address)) {
            *status = tbd_toc_page(toc, page, bytes);
            pages[count].bytes = bytes;
            bytes += TBD_PAGE_SIZE;
        }
        count++;
    }
    return pages;
}

static enum tbd_status read_pages(struct tbd_toc *toc, const struct tbd_wanted_pages *wanted,
                                  struct tbd_window *window, struct tbd_error *why)
{
    enum tbd_status status = TBD_OK;

    window->dirty =
        read_page_kind(toc, TBD_DISK_PAGE_END, wanted, window, &window->dirty_count, &status);
    if (!status)
        window->gone =
            read_page_kind(toc, TBD_DISK_PAGE_GONE, NULL, window, &window->gone_count, &status);
    if (!status)
        window->first =
            read_page_kind(toc, TBD_DISK_PAGE_FIRST, NULL, window, &window->first_count, &status);
    if (status)
        return tbd_error_set(why, status, toc->file.path, 0, "in the page contents");
    return TBD_OK;
}

static enum tbd_status read_read_pages(const struct tbd_toc *toc, struct tbd_window *window,
                                       struct tbd_error *why)
{
    const struct tbd_record_view *record = &toc->read_pages;
    struct tbd_reader in = { record->payload, record->payload + record->bytes, false };
    uint64_t *pages;
    uint64_t count;
    uint64_t page = 0;

    if (!record->payload)
        return TBD_OK;
    count = tbd_reader_varint(&in);
    if (in.failed || count > record->bytes)
        return bad(toc, record, "impossible number of pages read", why);
    pages = tbd_window_memory(window, count * sizeof(*pages));
    if (!pages)
        return TBD_NOMEM;
    for (uint64_t i = 0; i < count; i++) {
        page += tbd_reader_varint(&in);
        if (in.failed || page >= TBD_USER_END / TBD_PAGE_SIZE)
            return bad(toc, record, "impossible page", why);
        pages[i] = page * TBD_PAGE_SIZE;
    }
    window->read_pages = pages;
    window->read_page_count = count;
    return TBD_OK;
}

static enum tbd_status fill_log(const struct tbd_toc *toc, struct tbd_window *window,
                                const uint8_t *bytes, uint64_t raw_bytes, struct tbd_log_entry *log,
                                struct tbd_error *why)
{
    struct tbd_reader in = { bytes, bytes + raw_bytes, false };

    for (size_t i = 0; i < window->log_count; i++) {
        const uint8_t *head = tbd_reader_take(&in, 4 + sizeof(struct tbd_message));
        struct tbd_message message;
        uint32_t time;

        if (!head)
            return bad(toc, &toc->log, "the log is too short", why);
        memcpy(&time, head, sizeof(time));
        memcpy(&message, head + 4, sizeof(message));
        log[i].time = time;
        log[i].message = (const void *)(head + 4);
        head = tbd_reader_take(&in, message.bytes);
        if (!head || !tbd_message_is_event(message.kind) || time > window->blocks ||
            (i && time < log[i - 1].time) || !tbd_message_check(message.kind, head, message.bytes))
            return bad(toc, &toc->log, "an impossible message", why);
    }
    return in.at == in.end ? TBD_OK : bad(toc, &toc->log, "the log is too long", why);
}

static enum tbd_status read_log(const struct tbd_toc *toc, struct tbd_window *window,
                                struct tbd_error *why)
{
    const struct tbd_record_view *record = &toc->log;
    struct tbd_log_entry *log;
    struct tbd_disk_log head;
    enum tbd_status status;
    uint8_t *bytes;

    if (!record->payload)
        return TBD_OK;
    if (record->bytes < sizeof(head))
        return bad(toc, record, "the log record is too short", why);
    memcpy(&head, record->payload, sizeof(head));
    if (head.raw_bytes > tbd_lz4_most(record->bytes) ||
        head.count > head.raw_bytes / (4 + sizeof(struct tbd_message)))
        return bad(toc, record, "impossible log length", why);
    bytes = contents_memory(window, head.raw_bytes);
    log = tbd_window_memory(window, head.count * sizeof(*log));
    if (!bytes || !log)
        return TBD_NOMEM;
    status = tbd_unpack(record->payload + sizeof(head), record->bytes - sizeof(head), bytes,
                        head.raw_bytes);
    if (status)
        return refused(toc, record, status, "the log does not unpack", why);
    window->log = log;
    window->log_count = head.count;
    return fill_log(toc, window, bytes, head.raw_bytes, log, why);
}

static enum tbd_status read_stamps(const struct tbd_toc *toc, struct tbd_window *window,
                                   struct tbd_error *why)
{
    size_t most = tbd_stamps_most(&toc->stamps);
    struct tbd_stamp *stamps;

    if (!most)
        return TBD_OK;
    stamps = tbd_window_memory(window, most * sizeof(*stamps));
    if (!stamps)
        return TBD_NOMEM;
    window->stamps = stamps;
    if (!tbd_stamps_get(&toc->stamps, window->blocks, stamps, &window->stamp_count))
        return bad(toc, &toc->stamps, "impossible time", why);
    return TBD_OK;
}

/* After the log has been read: OPENED-1. */
static enum tbd_status read_opened(const struct tbd_toc *toc, struct tbd_window *window,
                                   struct tbd_error *why)
{
    const struct tbd_record_view *record = &toc->opened;
    enum tbd_status status;
    uint8_t *list;
    uint64_t bytes;

    if (!record->payload)
        return TBD_OK;
    if (record->bytes < sizeof(bytes))
        return bad(toc, record, "it is too short", why);
    memcpy(&bytes, record->payload, sizeof(bytes));
    if (bytes > tbd_lz4_most(record->bytes))
        return bad(toc, record, "impossible length", why);
    list = tbd_window_memory(window, bytes);
    if (!list)
        return TBD_NOMEM;
    status =
        tbd_unpack(record->payload + sizeof(bytes), record->bytes - sizeof(bytes), list, bytes);
    if (status)
        return refused(toc, record, status, "it does not unpack", why);
    if (!tbd_opened_check(list, bytes, window->log_count))
        return bad(toc, record, "an impossible descriptor", why);
    window->opened = list;
    window->opened_bytes = bytes;
    return TBD_OK;
}

static enum tbd_status read_early_calls(const struct tbd_toc *toc, struct tbd_window *window,
                                        struct tbd_error *why)
{
    const struct tbd_record_view *record = &toc->early_calls;
    struct tbd_early_call *calls;
    struct tbd_reader in;

    if (!record->payload)
        return TBD_OK;
    in = (struct tbd_reader){ record->payload, record->payload + record->bytes, false };
    calls = tbd_window_memory(window, record->bytes / 3 * sizeof(*calls));
    if (!calls)
        return TBD_NOMEM;
    window->early_calls = calls;
    while (in.at < in.end && window->early_call_count < record->bytes / 3) {
        uint64_t thread = tbd_reader_varint(&in);
        uint64_t id = tbd_reader_varint(&in);
        uint64_t time = tbd_reader_varint(&in);

        if (in.failed || thread > UINT32_MAX || id > UINT32_MAX || time > window->blocks)
            return bad(toc, record, "impossible call", why);
        calls[window->early_call_count++] =
            (struct tbd_early_call){ (uint32_t)thread, (uint32_t)id, (uint32_t)time };
    }
    return TBD_OK;
}

static enum tbd_status read_counts(const struct tbd_toc *toc, struct tbd_window *window,
                                   struct tbd_word_summary *words, struct tbd_block_summary *blocks,
                                   struct tbd_error *why)
{
    enum tbd_status status = tbd_words_get(&toc->words, window->number, words);

    if (status)
        return refused(toc, &toc->words, status, "impossible word summary", why);
    status = tbd_block_summaries_get(&toc->block_summaries, window->number, blocks);
    if (status)
        return refused(toc, &toc->block_summaries, status, "impossible block summary", why);
    if (!tbd_trace_index(window->trace)->is_aged)
        return TBD_OK;
    for (size_t i = 0; i < window->word_count; i++)
        words[i].previous = tbd_trace_place_of(window->trace, words[i].previous);
    for (size_t i = 0; i < window->block_summary_count; i++)
        blocks[i].previous = tbd_trace_place_of(window->trace, blocks[i].previous);
    return TBD_OK;
}

static enum tbd_status read_bits(const struct tbd_toc *toc, struct tbd_word_summary *words,
                                 struct tbd_block_summary *blocks, struct tbd_error *why)
{
    enum tbd_status status = tbd_word_bits_get(&toc->word_bits, words);

    if (status)
        return refused(toc, &toc->word_bits, status, "impossible words", why);
    status = tbd_block_bits_get(&toc->block_bits, &toc->called_bits, blocks);
    return refused(toc, &toc->block_bits, status, "impossible blocks", why);
}

/* Before native play is counted, any word of a page may have been written, and any block entered: nobody asks such a trace
 * for more than its stops and contents, and the list of all words has 8 KiB for each page. */
static bool says_nothing(const struct tbd_window *window)
{
    return window->is_uncounted && tbd_trace_info(window->trace)->counts_stops;
}

static enum tbd_status read_summaries(const struct tbd_toc *toc, struct tbd_window *window,
                                      struct tbd_error *why)
{
    struct tbd_word_summary *words = NULL;
    struct tbd_block_summary *blocks = NULL;
    bool has_counts = toc->words.payload != NULL;
    enum tbd_status status = has_counts ? tbd_summaries_count(&toc->words, &window->word_count)
                                        : tbd_bits_count(&toc->word_bits, &window->word_count);

    if (!status && says_nothing(window)) {
        window->word_count = 0;
        window->level = TBD_LEVEL_BITS;
        return TBD_OK;
    }
    if (!status)
        status = has_counts
                     ? tbd_summaries_count(&toc->block_summaries, &window->block_summary_count)
                     : tbd_bits_count(&toc->block_bits, &window->block_summary_count);
    if (status)
        return refused(toc, &toc->state, status, "the summaries do not fit their records", why);
    words = tbd_window_memory(window, window->word_count * sizeof(*words));
    blocks = tbd_window_memory(window, window->block_summary_count * sizeof(*blocks));
    if (!words || !blocks)
        return TBD_NOMEM;
    window->words = words;
    window->block_summaries = blocks;
    window->level = has_counts ? TBD_LEVEL_COUNTS : TBD_LEVEL_BITS;
    return has_counts ? read_counts(toc, window, words, blocks, why)
                      : read_bits(toc, words, blocks, why);
}

static void read_meta(const struct tbd_toc *toc, struct tbd_window *window)
{
    window->index = toc->window;
    window->number = toc->meta.window.window;
    window->first_time = toc->meta.window.first_time;
    window->blocks = toc->meta.window.blocks;
    window->complete = toc->meta.window.complete != 0;
    window->is_uncounted = toc->meta.window.flags & TBD_WINDOW_UNCOUNTED;
    window->regs = toc->meta.regs;
    window->end_regs = toc->meta.end_regs;
    window->digest = toc->meta.digest;
    window->entry_count = toc->meta.entry_count;
    window->operand_bytes = toc->meta.operand_bytes;
}

static enum tbd_status read_toc(struct tbd_toc *toc, const struct tbd_wanted_pages *wanted,
                                struct tbd_window *window, struct tbd_error *why)
{
    enum tbd_status status;

    read_meta(toc, window);
    status = read_state(toc, window, why);
    if (!status)
        status = refused(toc, &toc->threads, tbd_thread_states_get(&toc->threads, window),
                         "impossible state of threads", why);
    if (!status && !tbd_called_threads_get(&toc->called, window))
        status = TBD_NOMEM;
    if (!status)
        status = read_pages(toc, wanted, window, why);
    if (!status)
        status = read_read_pages(toc, window, why);
    if (!status)
        status = read_log(toc, window, why);
    if (!status)
        status = read_early_calls(toc, window, why);
    if (!status)
        status = read_stamps(toc, window, why);
    if (!status)
        status = read_opened(toc, window, why);
    return status ? status : read_summaries(toc, window, why);
}

/* `picker` NULL: all. */
static enum tbd_status read_events(const struct tbd_trace *trace, struct tbd_window *window,
                                   struct tbd_picker *picker, struct tbd_error *why)
{
    struct tbd_dir dir = tbd_trace_dir(trace);
    uint64_t id = tbd_trace_id(trace);
    enum tbd_status status = picker ? tbd_packed_pick(dir, id, window, picker, why)
                                    : tbd_packed_get(dir, id, window, why);

    window->has_events = !status;
    return status;
}

enum tbd_status tbd_window_load_summaries(struct tbd_trace *trace, uint32_t index,
                                          struct tbd_window **out, struct tbd_error *why)
{
    struct tbd_window *window = NULL;
    enum tbd_status status;
    struct tbd_toc toc;

    *out = NULL;
    status = tbd_toc_open(trace, index, &toc, why);
    if (status)
        return status;
    window = tbd_window_new(tbd_trace_blocks(trace));
    status = window ? TBD_OK : TBD_NOMEM;
    if (!status) {
        read_meta(&toc, window);
        tbd_trace_adopt(trace, window);
        window->entry_count = window->operand_bytes = 0;
        status = read_read_pages(&toc, window, why);
    }
    if (!status)
        status = refused(&toc, &toc.threads, tbd_thread_states_get(&toc.threads, window),
                         "impossible state of threads", why);
    if (!status)
        status = read_log(&toc, window, why);
    if (!status)
        status = read_opened(&toc, window, why);
    if (!status)
        status = read_summaries(&toc, window, why);
    tbd_toc_close(&toc);
    if (status)
        tbd_window_free(window);
    else
        *out = window;
    return status;
}

static enum tbd_status lost_before(struct tbd_trace *trace, const struct tbd_toc *toc,
                                   const struct tbd_disk_page *page, enum tbd_status status,
                                   struct tbd_error *why)
{
    struct tbd_error own;

    tbd_trace_page_why(trace, &own);
    if (own.status != status) /* about another page */
        own = (struct tbd_error){ 0 };
    return tbd_error_set(why, TBD_CORRUPT, toc->file.path, page->offset,
                         "what page 0x%llx held before is not there%s%s%s%s",
                         (unsigned long long)page->address, *own.file ? ": " : "", own.file,
                         *own.detail ? ": " : "", own.detail);
}

/* Turns pages that are stored as differences into contents. */
static enum tbd_status resolve_deltas(struct tbd_trace *trace, const struct tbd_toc *toc,
                                      struct tbd_window *window, struct tbd_error *why)
{
    size_t at = 0;

    for (size_t i = 0; i < toc->page_count; i++) {
        const struct tbd_disk_page *page = toc->pages + i;
        enum tbd_status status;
        uint8_t *bytes;

        if (!(page->flags & TBD_DISK_PAGE_END))
            continue;
        bytes = (uint8_t *)(uintptr_t)window->dirty[at++].bytes;
        status = bytes ? tbd_trace_page_at_end(trace, toc, page, bytes) : TBD_OK;
        if (status == TBD_BUSY)
            return tbd_error_set(why, TBD_BUSY, toc->file.path, page->offset,
                                 "windows before it were merged or dropped since the trace was "
                                 "opened: ask again");
        if (status)
            return status == TBD_NOMEM ? status : lost_before(trace, toc, page, status, why);
    }
    return TBD_OK;
}

/* Copies of the frames of pages at the window's end. */
static enum tbd_status copy_frames(const struct tbd_toc *toc, struct tbd_window *window)
{
    struct tbd_page_contents *next = (struct tbd_page_contents *)(uintptr_t)window->dirty;
    size_t bytes = 0;
    uint8_t *copy;

    for (size_t i = 0; i < toc->page_count; i++)
        bytes += toc->pages[i].flags & TBD_DISK_PAGE_END ? toc->pages[i].bytes : 0;
    copy = contents_memory(window, bytes);
    if (!copy)
        return TBD_NOMEM;
    for (size_t i = 0; i < toc->page_count; i++) {
        const struct tbd_disk_page *page = toc->pages + i;

        if (!(page->flags & TBD_DISK_PAGE_END))
            continue;
        if (page->flags & TBD_DISK_PAGE_GROUP)
            return TBD_UNSUPPORTED;
        next->packed = copy;
        next->packed_bytes = page->flags & TBD_DISK_PAGE_ZERO ? 0 : page->bytes;
        next->is_difference = page->flags & TBD_DISK_PAGE_DELTA;
        if (next->packed_bytes)
            memcpy(copy, toc->page_data + page->offset, next->packed_bytes);
        copy += next->packed_bytes;
        next++;
    }
    return TBD_OK;
}

static bool wants_none(void *context, uint64_t address)
{
    (void)context;
    (void)address;
    return false;
}

/* Whoever wants no contents gets frames. */
static const struct tbd_wanted_pages packed_pages = { .is_wanted = wants_none };

static enum tbd_status load_window(struct tbd_trace *trace, uint32_t index, bool with_events,
                                   const struct tbd_wanted_pages *wanted, struct tbd_picker *picker,
                                   struct tbd_window **out, struct tbd_error *why)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, index);
    struct tbd_window *window;
    enum tbd_status status;
    struct tbd_toc toc;

    *out = NULL;
    if (!summary)
        return tbd_error_set(why, TBD_NOWINDOW, tbd_trace_path(trace), 0, "window %u", index);
    if (with_events && (summary->level < TBD_LEVEL_EVENTS || summary->span > 1))
        return tbd_error_set(why, TBD_NOTKEPT, tbd_trace_path(trace), 0, "events of window %u",
                             index);
    status = tbd_toc_open(trace, index, &toc, why);
    if (status)
        return status;
    window = tbd_window_new(tbd_trace_blocks(trace));
    if (window)
        tbd_trace_adopt(trace, window);
    status = window ? read_toc(&toc, wanted, window, why) : TBD_NOMEM;
    if (!status)
        status = wanted == &packed_pages ? copy_frames(&toc, window)
                                         : resolve_deltas(trace, &toc, window, why);
    tbd_toc_close(&toc);
    if (!status) {
        if (with_events)
            status = read_events(trace, window, picker, why);
        else
            window->entry_count = window->operand_bytes = 0;
        if (status == TBD_NOTRACE) /* lowered since the index was read */
            status = TBD_NOTKEPT;
    }
    if (status == TBD_NOMEM)
        tbd_error_set(why, status, tbd_trace_path(trace), 0, "window %u", index);
    if (status) {
        tbd_window_free(window);
        return status;
    }
    *out = window;
    return TBD_OK;
}

enum tbd_status tbd_window_load(struct tbd_trace *trace, uint32_t index, bool with_events,
                                struct tbd_window **out, struct tbd_error *why)
{
    return load_window(trace, index, with_events, NULL, NULL, out, why);
}

enum tbd_status tbd_window_load_wanted(struct tbd_trace *trace, uint32_t index,
                                       const struct tbd_wanted_pages *wanted,
                                       struct tbd_window **out, struct tbd_error *why)
{
    return load_window(trace, index, false, wanted, NULL, out, why);
}

enum tbd_status tbd_window_load_packed(struct tbd_trace *trace, uint32_t index,
                                       struct tbd_window **out, struct tbd_error *why)
{
    return load_window(trace, index, false, &packed_pages, NULL, out, why);
}

enum tbd_status tbd_window_load_picked(struct tbd_trace *trace, uint32_t index,
                                       struct tbd_picker *picker, struct tbd_window **out,
                                       struct tbd_error *why)
{
    return load_window(trace, index, true, NULL, picker, out, why);
}
