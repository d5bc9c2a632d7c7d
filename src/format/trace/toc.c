// SPDX-License-Identifier: MIT
/* toc.c - opening a window's TOC file (and the image, which has the same page table)
 *
 * Invariants
 * TOC-1  After tbd_toc_open() the page table is sorted and every entry's frame lies inside
 *     PAGE_DATA.
 * TOC-2  If PAGE_DATA is damaged, a page's contents are given out only if they have a checksum of
 *     their own, and it is right. (not checked: it is what decoding checks of its input) */
#include "format/trace/trace_private.h"

#include "base/assert.h"
#include "base/binary_search.h"
#include "base/layout.h"
#include "format/files/file_names.h"

#include <stdio.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

/* Pages that share a frame: their neighbours are asked for next. */
struct tbd_unpacked_group {
    const uint8_t *frame; /* NULL: none */
    size_t bytes;
    uint8_t pages[TBD_PAGE_GROUP * 4096];
};

static bool page_is_sane(const struct tbd_disk_page *page, const struct tbd_disk_page *before,
                         uint64_t data_bytes)
{
    if (page->address % 4096 || page->address >= TBD_USER_END)
        return false;
    if (before && page->address < before->address)
        return false;
    if (page->flags & TBD_DISK_PAGE_DELTA &&
        (page->flags & 0xffff &
         ~(TBD_DISK_PAGE_DELTA | TBD_DISK_PAGE_ZERO | TBD_DISK_PAGE_GROUP)) != TBD_DISK_PAGE_END)
        return false;
    if (page->flags >> 16 >= TBD_PAGE_GROUP)
        return false;
    if (page->flags & TBD_DISK_PAGE_ZERO)
        return true;
    return page->offset <= data_bytes && page->bytes <= data_bytes - page->offset;
}

static enum tbd_status check_pages(const struct tbd_toc *toc, struct tbd_error *why)
{
    for (size_t i = 0; i < toc->page_count; i++)
        if (!page_is_sane(toc->pages + i, i ? toc->pages + i - 1 : NULL, toc->page_data_bytes))
            return tbd_error_set(why, TBD_CORRUPT, toc->file.path,
                                 (uint64_t)((const uint8_t *)(toc->pages + i) - toc->file.bytes),
                                 "impossible entry in the page table");
    return TBD_OK;
}

static enum tbd_status read_meta(struct tbd_toc *toc, const struct tbd_record_view *record,
                                 struct tbd_error *why)
{
    if (record->bytes < sizeof(toc->meta))
        return tbd_error_set(why, TBD_CORRUPT, toc->file.path, record->offset,
                             "the window's record is too short");
    memcpy(&toc->meta, record->payload, sizeof(toc->meta));
    return TBD_OK;
}

static enum tbd_status take_record(struct tbd_toc *toc, const struct tbd_record_view *record,
                                   struct tbd_error *why)
{
    switch (record->type) {
    case TBD_REC_META: return read_meta(toc, record, why);
    case TBD_REC_PAGE_TABLE:
        toc->pages = (const void *)record->payload;
        toc->page_count = record->bytes / sizeof(*toc->pages);
        break;
    case TBD_REC_PAGE_CHECKS:
        toc->checks = (const void *)record->payload;
        toc->check_count = record->bytes / sizeof(*toc->checks);
        break;
    case TBD_REC_PAGE_DATA:
        toc->page_data = record->payload;
        toc->page_data_bytes = record->bytes;
        break;
    case TBD_REC_STATE: toc->state = *record; break;
    case TBD_REC_READ_PAGES: toc->read_pages = *record; break;
    case TBD_REC_LOG: toc->log = *record; break;
    case TBD_REC_WORDS: toc->words = *record; break;
    case TBD_REC_BLOCK_SUMMARIES: toc->block_summaries = *record; break;
    case TBD_REC_CALLED: toc->called = *record; break;
    case TBD_REC_THREADS: toc->threads = *record; break;
    case TBD_REC_WORD_BITS: toc->word_bits = *record; break;
    case TBD_REC_BLOCK_BITS: toc->block_bits = *record; break;
    case TBD_REC_CALLED_BITS: toc->called_bits = *record; break;
    case TBD_REC_EARLY_CALLS: toc->early_calls = *record; break;
    case TBD_REC_STAMPS: toc->stamps = *record; break;
    case TBD_REC_OPENED: toc->opened = *record; break;
    default: break;
    }
    return TBD_OK;
}

/* Does the file have all records?  One that was cut between records has no bad record. */
static bool has_all(const struct tbd_toc *toc)
{
    bool is_image = toc->window == UINT32_MAX;
    bool has_counts = toc->words.payload && toc->block_summaries.payload;
    bool has_bits = toc->word_bits.payload && toc->block_bits.payload && toc->called_bits.payload;

    return toc->pages && toc->page_data &&
           (is_image || (toc->state.payload && toc->read_pages.payload && toc->log.payload &&
                         (has_counts || has_bits)));
}

/* Some pages are damaged: each is checked when it is read. */
static bool has_good_pages(struct tbd_toc *toc, const struct tbd_record_view *record)
{
    if (record->type != TBD_REC_PAGE_DATA || !toc->pages || toc->check_count != toc->page_count)
        return false;
    toc->is_damaged = true;
    tbd_file_pass(&toc->file, record);
    return true;
}

/* Damaged checksums count as missing. */
static enum tbd_status next_record(struct tbd_toc *toc, struct tbd_record_view *out,
                                   struct tbd_error *why)
{
    enum tbd_status status = tbd_file_next(&toc->file, out, why);

    if (status == TBD_CHECKSUM && out->type == TBD_REC_PAGE_CHECKS) {
        tbd_file_pass(&toc->file, out);
        status = tbd_file_next(&toc->file, out, why);
    }
    return status == TBD_CHECKSUM && has_good_pages(toc, out) ? TBD_OK : status;
}

static enum tbd_status read_records(struct tbd_toc *toc, struct tbd_error *why)
{
    struct tbd_record_view record;
    enum tbd_status status;

    while (!(status = next_record(toc, &record, why))) {
        status = take_record(toc, &record, why);
        if (status)
            return status;
    }
    if (status != TBD_NOTFOUND)
        return status;
    if (!has_all(toc))
        return tbd_error_set(why, TBD_TRUNCATED, toc->file.path, toc->file.size,
                             "a record is missing");
    return check_pages(toc, why);
}

enum tbd_status tbd_toc_open(const struct tbd_trace *trace, uint32_t window, struct tbd_toc *out,
                             struct tbd_error *why)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, window);
    enum tbd_status status;
    char name[64];

    *out = (struct tbd_toc){ .window = window };
    if (!summary)
        return tbd_error_set(why, TBD_NOWINDOW, trace->path, 0, "window %u", window);
    tbd_window_file_name(summary->number, summary->span, "toc", name, sizeof(name));
    status = tbd_file_open(trace->dir, name, TBD_FILE_TOC, trace->id, &out->file, why);
    if (status == TBD_NOTRACE && trace->damage.count)
        return tbd_error_set(why, TBD_TRUNCATED, name, 0,
                             "it is not there: the index has lost what became of it");
    if (status == TBD_NOTRACE)
        return tbd_error_set(why, TBD_BUSY, name, 0,
                             "it was merged or dropped since the trace was opened: ask again");
    if (status)
        return status;
    status = read_records(out, why);
    if (!status && (tbd_file_header(&out->file)->window != summary->number ||
                    out->meta.window.window != summary->number ||
                    out->meta.window.first_time != summary->first_time ||
                    out->meta.window.blocks != summary->blocks))
        status =
            tbd_error_set(why, TBD_CORRUPT, name, 0, "it is not window %u of the index", window);
    if (status)
        tbd_toc_close(out);
    TBD_INVARIANT("TOC-1", status || out->is_damaged || !check_pages(out, NULL));
    return status;
}

enum tbd_status tbd_toc_peek(const struct tbd_trace *trace, uint32_t number, uint32_t span,
                             struct tbd_toc *out)
{
    enum tbd_status status;
    char name[64];

    *out = (struct tbd_toc){ 0 };
    tbd_window_file_name(number, span, "toc", name, sizeof(name));
    status = tbd_file_open(trace->dir, name, TBD_FILE_TOC, trace->id, &out->file, NULL);
    if (!status)
        status = read_records(out, NULL);
    if (!status && out->meta.window.window != number)
        status = TBD_CORRUPT;
    if (status)
        tbd_toc_close(out);
    return status;
}

enum tbd_status tbd_image_open(const struct tbd_trace *trace, struct tbd_toc *out,
                               struct tbd_error *why)
{
    enum tbd_status status;
    char name[32];

    *out = (struct tbd_toc){ .window = UINT32_MAX };
    tbd_image_name(&trace->index.base, name, sizeof(name));
    status = tbd_file_open(trace->dir, name, TBD_FILE_IMAGE, trace->id, &out->file, why);
    if (status == TBD_NOTRACE && trace->info.finished)
        return tbd_error_set(why, TBD_TRUNCATED, name, 0, "it is not there");
    if (status == TBD_NOTRACE)
        return tbd_error_set(why, TBD_BUSY, name, 0,
                             "windows were dropped since the trace was opened: ask again");
    if (status)
        return status;
    status = read_records(out, why);
    if (status)
        tbd_toc_close(out);
    return status;
}

void tbd_toc_close(struct tbd_toc *toc)
{
    tbd_file_close(&toc->file);
    free(toc->group);
    toc->group = NULL;
}

static enum tbd_status unpack_group(struct tbd_toc *toc, const uint8_t *frame, size_t bytes)
{
    enum tbd_status status;

    if (!toc->group)
        toc->group = calloc(1, sizeof(*toc->group));
    if (!toc->group)
        return TBD_NOMEM;
    if (toc->group->frame == frame)
        return TBD_OK;
    toc->group->frame = NULL;
    status = tbd_unpack_some(frame, bytes, toc->group->pages, sizeof(toc->group->pages),
                             &toc->group->bytes);
    if (!status)
        toc->group->frame = frame;
    return status;
}

static enum tbd_status page_of_group(struct tbd_toc *toc, const struct tbd_disk_page *page,
                                     uint8_t *out)
{
    size_t at = (size_t)(page->flags >> 16) * 4096;
    enum tbd_status status = unpack_group(toc, toc->page_data + page->offset, page->bytes);

    if (status)
        return status;
    if (at + 4096 > toc->group->bytes)
        return TBD_CORRUPT;
    memcpy(out, toc->group->pages + at, 4096);
    return TBD_OK;
}

static bool is_good(const struct tbd_toc *toc, const struct tbd_disk_page *page)
{
    return !toc->is_damaged || (uint32_t)XXH3_64bits(toc->page_data + page->offset, page->bytes) ==
                                   toc->checks[page - toc->pages];
}

static enum tbd_status unpack_page(struct tbd_toc *toc, const struct tbd_disk_page *page,
                                   uint8_t *out)
{
    if (!is_good(toc, page))
        return TBD_CHECKSUM;
    return page->flags & TBD_DISK_PAGE_GROUP
               ? page_of_group(toc, page, out)
               : tbd_unpack(toc->page_data + page->offset, page->bytes, out, 4096);
}

enum tbd_status tbd_toc_page(struct tbd_toc *toc, const struct tbd_disk_page *page, uint8_t *out)
{
    enum tbd_status status;

    if (page->flags & TBD_DISK_PAGE_ZERO) {
        memset(out, 0, 4096);
        return TBD_OK;
    }
    status = unpack_page(toc, page, out);
    if (status && toc->page_why)
        tbd_error_set(toc->page_why, status, toc->file.path,
                      (uint64_t)(toc->page_data + page->offset - toc->file.bytes),
                      "the page at 0x%" PRIx64, page->address);
    return status;
}

const struct tbd_disk_page *tbd_toc_find_page(const struct tbd_toc *toc, uint64_t address,
                                              size_t *out_count)
{
    size_t found = TBD_COUNT_BEFORE(i, toc->page_count, toc->pages[i].address < address);
    size_t end;

    for (end = found; end < toc->page_count && toc->pages[end].address == address;)
        end++;
    *out_count = end - found;
    return toc->pages + found;
}
