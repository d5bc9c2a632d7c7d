// SPDX-License-Identifier: MIT
/* replayed_events.c - see replayed_events.h
 *
 * Invariants
 * REPLAYED_EVENTS-1  A file is used only for the window it was made from: same times, same detail
 *     level, same end state. (not checked: it is what decoding checks of its input)
 * REPLAYED_EVENTS-2  Loading allocates no more than the file's size, and the window's own TOC,
 *     allow. (not checked: it is what decoding checks of its input) */
#include "format/merging/replayed_events.h"

#include "format/coding/coding.h"
#include "format/files/file.h"
#include "format/files/large_buffers.h"
#include "format/reading/window_read.h"
#include "format/trace/trace_handle.h"
#include "format/window/window_make.h"

#include <stdio.h>
#include <stdlib.h>

void tbd_raised_name(const struct tbd_trace *trace, uint32_t index, char *out, size_t bytes)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, index);

    snprintf(out, bytes, "%08u-%u-%u.raised", summary->number, summary->span, summary->level);
}

static struct tbd_disk_raised describe(const struct tbd_trace *trace, uint32_t index)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, index);

    return (struct tbd_disk_raised){
        .first_time = summary->first_time,
        .blocks = summary->blocks,
        .hooks = TBD_HOOKS_FULL,
        .span = summary->span,
        .level = summary->level,
    };
}

/* ---- writing ---- */

static void put_packed(struct tbd_buffer *out, enum tbd_record_type type, const void *content,
                       size_t bytes)
{
    size_t record = tbd_file_begin_record(out, type);

    tbd_lz4_pack(out, content, bytes);
    tbd_file_finish_record(out, record);
}

void tbd_raised_put(const struct tbd_trace *trace, const struct tbd_window *window,
                    struct tbd_buffer *out)
{
    struct tbd_disk_raised head = describe(trace, window->index);
    struct tbd_buffer coded = { 0 };

    tbd_records_encode(&coded, window);
    head.digest = window->digest;
    head.entry_count = window->entry_count;
    head.operand_bytes = window->operand_bytes;
    head.coded_bytes = coded.used;
    tbd_file_put_header(out, TBD_FILE_RAISED, window->number, tbd_trace_id(trace));
    tbd_file_put_record(out, TBD_REC_RAISED, &head, sizeof(head));
    put_packed(out, TBD_REC_RAISED_ENTRIES, window->entries,
               window->entry_count * sizeof(*window->entries));
    put_packed(out, TBD_REC_RAISED_RECORDS, coded.bytes, coded.used);
    out->failed |= coded.failed;
    tbd_buffer_free(&coded);
}

/* ---- reading ---- */

struct raised {
    struct tbd_file file;
    struct tbd_disk_raised head;
    struct tbd_record_view entries, records;
};

static enum tbd_status bad(const struct raised *r, const char *what, struct tbd_error *why)
{
    return tbd_error_set(why, TBD_CORRUPT, r->file.path, 0, "%s", what);
}

static enum tbd_status take_record(struct raised *r, const struct tbd_record_view *record)
{
    switch (record->type) {
    case TBD_REC_RAISED:
        if (record->bytes < sizeof(r->head))
            return TBD_CORRUPT;
        memcpy(&r->head, record->payload, sizeof(r->head));
        break;
    case TBD_REC_RAISED_ENTRIES: r->entries = *record; break;
    case TBD_REC_RAISED_RECORDS: r->records = *record; break;
    default: break;
    }
    return TBD_OK;
}

static enum tbd_status open_raised(const struct tbd_trace *trace, struct tbd_dir folder,
                                   const char *name, struct raised *r, struct tbd_error *why)
{
    struct tbd_record_view record;
    enum tbd_status status =
        tbd_file_open(folder, name, TBD_FILE_RAISED, tbd_trace_id(trace), &r->file, why);

    if (status)
        return status;
    while (!(status = tbd_file_next(&r->file, &record, why)))
        if (take_record(r, &record))
            return bad(r, "a record is too short", why);
    if (status != TBD_NOTFOUND)
        return status;
    return r->entries.payload && r->records.payload ? TBD_OK : bad(r, "a record is missing", why);
}

/* Keeps REPLAYED_EVENTS-1. */
static bool is_of(const struct raised *r, const struct tbd_trace *trace,
                  const struct tbd_window *window)
{
    struct tbd_disk_raised wanted = describe(trace, window->index);

    return tbd_file_header(&r->file)->window == window->number &&
           r->head.first_time == wanted.first_time && r->head.blocks == wanted.blocks &&
           r->head.hooks == wanted.hooks && r->head.span == wanted.span &&
           r->head.level == wanted.level && r->head.digest == window->digest;
}

static enum tbd_status get_entries(const struct raised *r, struct tbd_window *window)
{
    uint32_t *entries;

    if (r->head.entry_count > tbd_lz4_most(r->entries.bytes) / sizeof(*entries))
        return TBD_CORRUPT;
    window->entry_count = r->head.entry_count;
    entries = tbd_window_large_buffer(window, window->entry_count * sizeof(*entries));
    if (!entries)
        return TBD_NOMEM;
    window->entries = entries;
    return tbd_unpack(r->entries.payload, r->entries.bytes, entries,
                      window->entry_count * sizeof(*entries));
}

/* The size of records and messages is bounded as for a trace file (packed.c). */
static bool is_possible(const struct raised *r, const struct tbd_window *window)
{
    uint64_t bytes = r->head.coded_bytes * 16 + TBD_RECORD_MAX_BYTES;

    if (r->head.coded_bytes > tbd_lz4_most(r->records.bytes))
        return false;
    for (size_t i = 0; i < window->log_count; i++) {
        struct tbd_message head;

        memcpy(&head, window->log[i].message, sizeof(head));
        bytes += sizeof(head) + head.bytes;
    }
    return r->head.operand_bytes <= bytes;
}

static enum tbd_status get_records(const struct raised *r, struct tbd_window *window)
{
    enum tbd_status status = TBD_OK;
    uint8_t *coded, *operands;

    if (!is_possible(r, window))
        return TBD_CORRUPT;
    window->operand_bytes = r->head.operand_bytes;
    operands = tbd_window_large_buffer(window, window->operand_bytes + TBD_ROW_SLACK);
    coded = tbd_large_buffer_take(r->head.coded_bytes + 8);
    if (!operands || !coded)
        status = TBD_NOMEM;
    if (!status)
        status = tbd_unpack(r->records.payload, r->records.bytes, coded, r->head.coded_bytes);
    if (!status) {
        window->operands = operands;
        status = tbd_records_decode(coded, r->head.coded_bytes, window, operands);
    }
    tbd_large_buffer_give(coded);
    return status;
}

static enum tbd_status fill(const struct raised *r, struct tbd_window *window,
                            struct tbd_error *why)
{
    enum tbd_status status = get_entries(r, window);

    if (!status)
        status = get_records(r, window);
    window->has_events = true;
    return status ? tbd_error_set(why, status, r->file.path, 0, "impossible events") : TBD_OK;
}

enum tbd_status tbd_raised_load(struct tbd_trace *trace, uint32_t index, struct tbd_dir folder,
                                const char *name, struct tbd_window **out, struct tbd_error *why)
{
    struct raised r = { 0 };
    struct tbd_window *window = NULL;
    enum tbd_status status = open_raised(trace, folder, name, &r, why);

    *out = NULL;
    if (!status)
        status = tbd_window_load(trace, index, false, &window, why);
    if (!status)
        status = is_of(&r, trace, window) ? fill(&r, window, why) : TBD_NOTFOUND;
    tbd_file_close(&r.file);
    if (status)
        tbd_window_free(window);
    else
        *out = window;
    return status;
}
