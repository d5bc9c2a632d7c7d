// SPDX-License-Identifier: MIT
/* packed.c - trace and block files: coding, LZ4, checksums
 *
 * The block file holds the entries.  The trace file holds the records of the blocks, coded
 * (coding.h), without the messages between them: these are in the TOC's log already, and are
 * inserted again when the window is loaded.  Only messages that are in no log (unlogged.h) are in it.
 *
 * Invariants
 * PACKED-1  Decoding allocates no more than the file's size allows (tbd_lz4_most), whatever its
 *     head says. (not checked: it is what decoding checks of its input) */
#include "format/coding/packed.h"

#include "format/coding/pick_private.h"
#include "format/coding/unlogged.h"
#include "format/files/disk_window.h"
#include "format/files/file_names.h"
#include "format/files/large_buffers.h"
#include "format/window/window_make.h"

#include <xxhash.h>

/* ---- writing ---- */

static void put_packed(struct tbd_buffer *out, struct tbd_disk_packed *head, const void *content,
                       size_t bytes)
{
    head->skippable = TBD_SKIPPABLE_MAGIC;
    head->skip_bytes = (uint32_t)(sizeof(*head) - 8);
    head->packed_bytes = bytes;
    head->checksum = XXH3_64bits(content, bytes);
    head->head_checksum = XXH3_64bits(head, offsetof(struct tbd_disk_packed, head_checksum));
    tbd_buffer_put(out, head, sizeof(*head));
    tbd_lz4_pack(out, content, bytes);
}

void tbd_packed_put_entries(struct tbd_buffer *out, const struct tbd_window *window,
                            uint64_t trace_id)
{
    struct tbd_disk_packed head = {
        .header = tbd_file_make_header(TBD_FILE_ENTRIES, window->number, trace_id),
        .coding = TBD_CODING_PLAIN,
        .count = window->entry_count,
    };

    put_packed(out, &head, window->entries, window->entry_count * sizeof(uint32_t));
}

void tbd_packed_put_records(struct tbd_buffer *out, const struct tbd_window *window,
                            const struct tbd_buffer *coded, uint64_t trace_id)
{
    struct tbd_disk_packed head = {
        .header = tbd_file_make_header(TBD_FILE_TRACE, window->number, trace_id),
        .coding = TBD_CODING_COLUMNS,
        .count = window->operand_bytes,
    };
    struct tbd_buffer made = { 0 };

    if (!coded) {
        tbd_records_encode(&made, window);
        coded = &made;
    }
    put_packed(out, &head, coded->bytes, coded->used);
    out->failed |= coded->failed;
    tbd_buffer_free(&made);
}

/* ---- reading ---- */

#define UNPACKED_LIKELY 8u /* times the bytes of its file */

struct packed {
    struct tbd_file file;
    struct tbd_disk_packed head;
    uint8_t *content; /* from large_buffers.h; owned */
};

static enum tbd_status open_packed(struct tbd_dir dir, uint32_t window, enum tbd_file_kind kind,
                                   uint64_t trace_id, struct packed *out, struct tbd_error *why)
{
    struct tbd_disk_packed *head = &out->head;
    enum tbd_status status;
    char name[64];

    *out = (struct packed){ 0 };
    tbd_window_file_name(window, 1, kind == TBD_FILE_TRACE ? "trace" : "blocks", name,
                         sizeof(name));
    status = tbd_file_map(dir, name, &out->file, why);
    if (status)
        return status;
    if (out->file.size < sizeof(*head))
        return tbd_error_set(why, TBD_TRUNCATED, name, out->file.size, "in the file header");
    memcpy(head, out->file.bytes, sizeof(*head));
    if (head->skippable != TBD_SKIPPABLE_MAGIC)
        return tbd_error_set(why, TBD_BADMAGIC, name, 0, "the magic number is wrong");
    status = tbd_file_check_header(&head->header, kind, trace_id, name, 8, why);
    if (status)
        return status;
    if (head->head_checksum != XXH3_64bits(head, offsetof(struct tbd_disk_packed, head_checksum)))
        return tbd_error_set(why, TBD_CHECKSUM, name, 104, "in the file header");
    if (head->header.window != window || head->skip_bytes != sizeof(*head) - 8 ||
        head->coding != (kind == TBD_FILE_TRACE ? TBD_CODING_COLUMNS : TBD_CODING_PLAIN) ||
        head->packed_bytes > tbd_lz4_most(out->file.size - sizeof(*head)))
        return tbd_error_set(why, TBD_CORRUPT, name, 72, "impossible file header");
    return TBD_OK;
}

static enum tbd_status unpack(struct packed *p, struct tbd_error *why)
{
    const struct tbd_disk_packed *head = &p->head;
    enum tbd_status status;

    p->content = tbd_large_buffer_take(head->packed_bytes + 8);
    if (!p->content)
        return tbd_error_set(why, TBD_NOMEM, p->file.path, 80, "content of %llu bytes",
                             (unsigned long long)head->packed_bytes);
    /* no more than the file makes likely: its head may lie */
    tbd_large_buffer_ready(p->content, head->packed_bytes / UNPACKED_LIKELY < p->file.size
                                           ? head->packed_bytes
                                           : p->file.size * UNPACKED_LIKELY);
    status = tbd_unpack(p->file.bytes + sizeof(*head), p->file.size - sizeof(*head), p->content,
                        head->packed_bytes);
    if (status)
        return tbd_error_set(why, status, p->file.path, sizeof(*head), "in the LZ4 frame");
    if (XXH3_64bits(p->content, head->packed_bytes) != head->checksum)
        return tbd_error_set(why, TBD_CHECKSUM, p->file.path, sizeof(*head), "of the LZ4 frame");
    return TBD_OK;
}

static void close_packed(struct packed *p)
{
    tbd_file_close(&p->file);
    tbd_large_buffer_give(p->content);
    p->content = NULL;
}

static enum tbd_status open_content(struct tbd_dir dir, uint32_t window, enum tbd_file_kind kind,
                                    uint64_t trace_id, struct packed *out, struct tbd_error *why)
{
    enum tbd_status status = open_packed(dir, window, kind, trace_id, out, why);

    return status ? status : unpack(out, why);
}

static size_t message_bytes(const struct tbd_message *message)
{
    struct tbd_message head;

    memcpy(&head, message, sizeof(head));
    return sizeof(head) + head.bytes;
}

static enum tbd_status check_entries(const struct packed *p, const struct tbd_window *window,
                                     struct tbd_error *why)
{
    if (p->head.count != window->entry_count || p->head.packed_bytes != p->head.count * 4)
        return tbd_error_set(why, TBD_CORRUPT, p->file.path, 88,
                             "%llu entries where the TOC has %zu",
                             (unsigned long long)p->head.count, window->entry_count);
    return TBD_OK;
}

static enum tbd_status get_entries(struct packed *p, struct tbd_window *window,
                                   struct tbd_error *why)
{
    enum tbd_status status = check_entries(p, window, why);

    if (status)
        return status;
    if (!tbd_window_adopt_large_buffer(window, p->content)) {
        p->content = NULL;
        return TBD_NOMEM;
    }
    window->entries = (const void *)p->content;
    p->content = NULL;
    return TBD_OK;
}

/* The size of the window's records and messages is bounded by the sizes of the file and the TOC. */
static bool is_possible(const struct packed *p, const struct tbd_window *window)
{
    uint64_t bytes = p->head.packed_bytes * 16 + TBD_RECORD_MAX_BYTES;

    for (size_t i = 0; i < window->log_count; i++)
        bytes += message_bytes(window->log[i].message);
    return p->head.count == window->operand_bytes && window->operand_bytes <= bytes;
}

static enum tbd_status get_records(struct packed *p, struct tbd_window *window,
                                   struct tbd_error *why)
{
    enum tbd_status status;
    uint8_t *operands;

    if (!is_possible(p, window))
        return tbd_error_set(why, TBD_CORRUPT, p->file.path, 88, "impossible length");
    operands = tbd_window_large_buffer(window, window->operand_bytes + TBD_ROW_SLACK);
    status = operands ? TBD_OK : TBD_NOMEM;
    if (!status) {
        window->operands = operands;
        status = tbd_records_decode(p->content, p->head.packed_bytes, window, operands);
    }
    if (status)
        tbd_error_set(why, status, p->file.path, sizeof(p->head),
                      "the records do not fit the block file");
    return status;
}

enum tbd_status tbd_packed_get(struct tbd_dir dir, uint64_t trace_id, struct tbd_window *window,
                               struct tbd_error *why)
{
    struct packed p;
    enum tbd_status status = open_content(dir, window->number, TBD_FILE_ENTRIES, trace_id, &p, why);

    if (!status)
        status = get_entries(&p, window, why);
    close_packed(&p);
    if (status)
        return status;
    status = open_content(dir, window->number, TBD_FILE_TRACE, trace_id, &p, why);
    if (!status)
        status = get_records(&p, window, why);
    close_packed(&p);
    return status;
}

enum tbd_status tbd_packed_pick(struct tbd_dir dir, uint64_t trace_id, struct tbd_window *window,
                                struct tbd_picker *picker, struct tbd_error *why)
{
    struct packed entries, records = { 0 };
    enum tbd_status status =
        open_content(dir, window->number, TBD_FILE_ENTRIES, trace_id, &entries, why);

    if (!status)
        status = check_entries(&entries, window, why);
    if (!status && (tbd_picker_needs_records(picker) ||
                    tbd_unlogged_occur((const void *)entries.content, window->entry_count)))
        status = open_content(dir, window->number, TBD_FILE_TRACE, trace_id, &records, why);
    if (!status && records.content && !is_possible(&records, window))
        status = tbd_error_set(why, TBD_CORRUPT, records.file.path, 88, "impossible length");
    if (!status) {
        status = tbd_picker_decode(picker, window, (const void *)entries.content, records.content,
                                   records.head.packed_bytes);
        if (status == TBD_CORRUPT)
            tbd_error_set(why, status, entries.file.path, sizeof(entries.head),
                          "block and trace file do not fit each other, or the TOC");
    }
    close_packed(&records);
    close_packed(&entries);
    return status;
}
