// SPDX-License-Identifier: MIT
/* stops.c - see stops.h */
#include "organizer/stops.h"

#include "format/files/file.h"
#include "format/files/file_names.h"
#include "format/reading/window_read.h"
#include "format/trace/trace_handle.h"
#include "format/window/window_make.h"

#include <string.h>

#define PAGE_BYTES 4096u
/* The payloads of shorter events cost less than the search for them. */
#define LONG_EVENT 128u

/* ---- writing ---- */

static struct tbd_reader reader_of(const uint8_t *bytes, size_t count)
{
    return (struct tbd_reader){ .at = bytes, .end = bytes + count };
}

/* Behind the last message after which the program ran: pages that follow are as they are at the window's end.  NULL: there is no stop. */
static const uint8_t *end_of_run(struct tbd_reader list)
{
    const uint8_t *payload, *end = NULL;
    struct tbd_message head;
    bool has_stops = false;

    while ((payload = tbd_stops_next(&list, &head))) {
        has_stops |= head.kind == TBD_MSG_PASSED;
        if (tbd_message_is_event(head.kind) || head.kind == TBD_MSG_PASSED)
            end = payload + head.bytes;
    }
    return has_stops ? end : NULL;
}

static bool is_end_page(const struct tbd_message *head, const uint8_t *payload)
{
    struct tbd_msg_page page;

    if (head->kind != TBD_MSG_PAGE || head->bytes != sizeof(page) + PAGE_BYTES)
        return false;
    memcpy(&page, payload, sizeof(page));
    return page.flags == TBD_PAGE_DIRTY;
}

static bool is_packed_page(const struct tbd_message *head)
{
    return head->kind == TBD_MSG_PAGE && head->bytes == sizeof(struct tbd_msg_page);
}

/* Puts what play sent of a page that came packed, without its contents. */
static void put_packed_head(struct tbd_buffer *out, const uint8_t *payload, uint32_t kind)
{
    struct tbd_message head = { kind, sizeof(struct tbd_msg_page) + PAGE_BYTES };
    struct tbd_msg_page page;

    memcpy(&page, payload, sizeof(page));
    page.flags = TBD_PAGE_DIRTY;
    tbd_buffer_put(out, &head, sizeof(head));
    tbd_buffer_put(out, &page, sizeof(page));
}

/* How many of its bytes a file that leaves out what the TOC has begins with. */
static uint32_t brief_bytes(const struct tbd_message *head, const uint8_t *payload,
                            const uint8_t *end)
{
    if (payload >= end && is_end_page(head, payload))
        return sizeof(struct tbd_msg_page);
    return tbd_message_is_event(head->kind) && head->bytes > LONG_EVENT ? 0 : head->bytes;
}

/* False: it cannot be, or must not. */
static bool put_brief(struct tbd_buffer *out, const struct tbd_raw_window *raw)
{
    struct tbd_reader list = reader_of(raw->operands, raw->operand_bytes);
    const uint8_t *payload, *end = end_of_run(list);
    struct tbd_message head;

    if (!end)
        return false;
    while ((payload = tbd_stops_next(&list, &head))) {
        uint32_t bytes = brief_bytes(&head, payload, end);

        if (is_packed_page(&head)) {
            put_packed_head(out, payload, head.kind | TBD_STOPS_ELSEWHERE);
            continue;
        }
        if (bytes != head.bytes)
            head.kind |= TBD_STOPS_ELSEWHERE;
        tbd_buffer_put(out, &head, sizeof(head));
        tbd_buffer_put(out, payload, bytes);
    }
    return !list.failed && list.at == list.end && !out->failed;
}

/* All messages, with what came packed.  False: some of it is not known any more. */
static bool put_whole(struct tbd_buffer *out, const struct tbd_raw_window *raw,
                      const struct tbd_page_packer *packer)
{
    struct tbd_reader list = reader_of(raw->operands, raw->operand_bytes);
    const uint8_t *payload, *copied = raw->operands;
    struct tbd_message head;
    uint8_t bytes[PAGE_BYTES];
    size_t next = 0;

    while (raw->packed.count && (payload = tbd_stops_next(&list, &head))) {
        if (!is_packed_page(&head))
            continue;
        if (next == raw->packed.count ||
            !tbd_page_packer_unpack(packer, &raw->packed, next++, bytes))
            return false;
        tbd_buffer_put(out, copied, (size_t)(payload - sizeof(head) - copied));
        put_packed_head(out, payload, head.kind);
        tbd_buffer_put(out, bytes, PAGE_BYTES);
        copied = payload + head.bytes;
    }
    tbd_buffer_put(out, copied, raw->operand_bytes - (size_t)(copied - raw->operands));
    return !out->failed;
}

static void put_record(struct tbd_buffer *file, enum tbd_record_type type, const void *messages,
                       uint64_t bytes)
{
    size_t record = tbd_file_begin_record(file, type);

    tbd_buffer_put(file, &bytes, sizeof(bytes));
    tbd_lz4_pack(file, messages, bytes);
    tbd_file_finish_record(file, record);
}

/* A window without stops does not come into the trace, the last one perhaps, and a broken one is the builder's to judge: these are kept
 * whole. */
enum tbd_status tbd_stops_keep(int dir, uint64_t window, const struct tbd_raw_window *raw,
                               const struct tbd_page_packer *packer)
{
    struct tbd_buffer file = { 0 }, messages = { 0 };
    enum tbd_status status = window ? TBD_OK : tbd_dir_make_folder(dir, "stops");
    char name[40];

    tbd_stops_file_name(window, name, sizeof(name));
    tbd_file_put_header(&file, TBD_FILE_STOPS, (uint32_t)window, 0);
    if (!raw->is_last && !raw->cut && put_brief(&messages, raw)) {
        put_record(&file, TBD_REC_STOPS_BRIEF, messages.bytes, messages.used);
        if (raw->packed.count)
            tbd_file_need(&file, TBD_NEEDS_GONE);
    } else {
        messages.used = 0;
        if (put_whole(&messages, raw, packer))
            put_record(&file, TBD_REC_STOPS, messages.bytes, messages.used);
        else if (!status)
            status = messages.failed ? TBD_NOMEM : TBD_CORRUPT;
    }
    if (file.failed)
        status = TBD_NOMEM;
    if (!status)
        status = tbd_dir_write(dir, name, file.bytes, file.used);
    tbd_buffer_free(&messages);
    tbd_buffer_free(&file);
    return status;
}

/* ---- reading ---- */

static enum tbd_status unpack(const struct tbd_record_view *record, const char *name,
                              struct tbd_buffer *out, struct tbd_error *why)
{
    uint64_t bytes;

    if (record->bytes < sizeof(bytes) ||
        (record->type != TBD_REC_STOPS && record->type != TBD_REC_STOPS_BRIEF))
        return tbd_error_set(why, TBD_CORRUPT, name, record->offset, "no messages");
    memcpy(&bytes, record->payload, sizeof(bytes));
    if (bytes > tbd_lz4_most(record->bytes))
        return tbd_error_set(why, TBD_CORRUPT, name, record->offset, "impossible size");
    if (!tbd_buffer_reserve(out, bytes + 1))
        return TBD_NOMEM;
    out->used = bytes;
    return tbd_unpack(record->payload + sizeof(bytes), record->bytes - sizeof(bytes), out->bytes,
                      bytes);
}

static enum tbd_status load_file(struct tbd_dir dir, uint64_t number, struct tbd_buffer *out,
                                 bool *out_is_brief, struct tbd_error *why)
{
    struct tbd_record_view record;
    struct tbd_file file;
    enum tbd_status status;
    char name[40];

    *out = (struct tbd_buffer){ 0 };
    tbd_stops_file_name(number, name, sizeof(name));
    status = tbd_file_open(dir, name, TBD_FILE_STOPS, 0, &file, why);
    if (status)
        return status;
    status = tbd_file_next(&file, &record, why);
    if (!status)
        status = unpack(&record, name, out, why);
    *out_is_brief = !status && record.type == TBD_REC_STOPS_BRIEF;
    tbd_file_close(&file);
    if (status)
        tbd_buffer_free(out);
    return status;
}

/* What messages that were left out are taken from. */
struct refill {
    const struct tbd_window *window;
    size_t event; /* of its log: the next one */
    struct tbd_buffer whole;
};

/* What the page had after that many events, if it went away then; else at the window's end. */
static const struct tbd_page_contents *contents_after(const struct tbd_window *window,
                                                      uint64_t address, size_t events)
{
    size_t low = 0, high = window->gone_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (window->gone[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < window->gone_count && window->gone[low].address == address; low++)
        if (window->gone[low].order == events)
            return &window->gone[low];
    return tbd_window_dirty(window, address);
}

static void put_frame(struct tbd_buffer *out, const struct tbd_msg_page *page,
                      const struct tbd_page_contents *contents)
{
    struct tbd_message head = { TBD_MSG_PAGE, (uint32_t)sizeof(*page) + contents->packed_bytes };
    struct tbd_msg_page frame = *page;

    frame.flags |= TBD_PAGE_FRAME | (contents->is_difference ? TBD_PAGE_DIFFERENCE : 0);
    tbd_buffer_put(out, &head, sizeof(head));
    tbd_buffer_put(out, &frame, sizeof(frame));
    tbd_buffer_put(out, contents->packed, contents->packed_bytes);
}

static bool fill_page(struct refill *f, struct tbd_message head, struct tbd_reader *brief)
{
    const uint8_t *start = tbd_reader_take(brief, sizeof(struct tbd_msg_page));
    const struct tbd_page_contents *contents;
    struct tbd_msg_page page;

    if (!start || head.bytes != sizeof(page) + PAGE_BYTES)
        return false;
    memcpy(&page, start, sizeof(page));
    contents = contents_after(f->window, page.address, f->event);
    if (!contents)
        return false;
    if (!contents->bytes) {
        put_frame(&f->whole, &page, contents);
        return true;
    }
    tbd_buffer_put(&f->whole, &head, sizeof(head));
    tbd_buffer_put(&f->whole, &page, sizeof(page));
    tbd_buffer_put(&f->whole, contents->bytes, PAGE_BYTES);
    return true;
}

/* The window's log has all events, also those that were not left out. */
static bool fill_event(struct refill *f, struct tbd_message head)
{
    struct tbd_message logged;

    if (f->event >= f->window->log_count)
        return false;
    memcpy(&logged, f->window->log[f->event].message, sizeof(logged));
    if (logged.kind != head.kind || logged.bytes != head.bytes)
        return false;
    tbd_buffer_put(&f->whole, f->window->log[f->event].message, sizeof(logged) + logged.bytes);
    return true;
}

static bool fill(struct refill *f, struct tbd_reader brief)
{
    while (brief.at < brief.end) {
        const uint8_t *at = tbd_reader_take(&brief, sizeof(struct tbd_message));
        struct tbd_message head;
        bool is_brief, is_good;

        if (!at)
            return false;
        memcpy(&head, at, sizeof(head));
        is_brief = head.kind & TBD_STOPS_ELSEWHERE;
        head.kind &= ~TBD_STOPS_ELSEWHERE;
        if (is_brief && head.kind == TBD_MSG_PAGE) {
            is_good = fill_page(f, head, &brief);
        } else if (is_brief) {
            is_good = tbd_message_is_event(head.kind) && fill_event(f, head);
        } else {
            at = tbd_reader_take(&brief, head.bytes);
            is_good = at != NULL;
            if (is_good)
                tbd_buffer_put(&f->whole, at - sizeof(head), sizeof(head) + head.bytes);
        }
        if (!is_good)
            return false;
        f->event += tbd_message_is_event(head.kind);
    }
    return true;
}

static enum tbd_status load_window(struct tbd_trace *trace, uint32_t index, bool packed,
                                   struct tbd_window **out, struct tbd_error *why)
{
    enum tbd_status status =
        packed ? tbd_window_load_packed(trace, index, out, why) : TBD_UNSUPPORTED;

    return status == TBD_UNSUPPORTED ? tbd_window_load(trace, index, false, out, why) : status;
}

static enum tbd_status fill_from(struct tbd_trace *trace, uint32_t index, bool packed,
                                 const struct tbd_buffer *brief, struct tbd_buffer *out,
                                 struct tbd_error *why)
{
    struct tbd_window *window;
    enum tbd_status status = load_window(trace, index, packed, &window, why);
    struct refill refill = { .window = window };

    if (status)
        return status;
    if (!fill(&refill, reader_of(brief->bytes, brief->used)))
        status = tbd_error_set(why, TBD_CORRUPT, tbd_trace_dir(trace).path, 0,
                               "window %u has not what its stops leave out", index);
    else if (refill.whole.failed)
        status = TBD_NOMEM;
    tbd_window_free(window);
    if (status)
        tbd_buffer_free(&refill.whole);
    *out = refill.whole;
    return status;
}

static enum tbd_status load(struct tbd_trace *trace, uint32_t index, bool packed,
                            struct tbd_buffer *out, struct tbd_error *why)
{
    uint64_t number = tbd_trace_window(trace, index)->number;
    struct tbd_buffer brief;
    bool is_brief;
    enum tbd_status status = load_file(tbd_trace_dir(trace), number, out, &is_brief, why);

    if (status || !is_brief)
        return status;
    brief = *out;
    status = fill_from(trace, index, packed, &brief, out, why);
    tbd_buffer_free(&brief);
    return status;
}

enum tbd_status tbd_stops_load(struct tbd_trace *trace, uint32_t index, struct tbd_buffer *out,
                               struct tbd_error *why)
{
    return load(trace, index, false, out, why);
}

enum tbd_status tbd_stops_load_packed(struct tbd_trace *trace, uint32_t index,
                                      struct tbd_buffer *out, struct tbd_error *why)
{
    return load(trace, index, true, out, why);
}

enum tbd_status tbd_stops_load_last(struct tbd_dir dir, uint64_t number, struct tbd_buffer *out,
                                    struct tbd_error *why)
{
    bool is_brief;
    enum tbd_status status = load_file(dir, number, out, &is_brief, why);

    if (!status && is_brief) {
        tbd_buffer_free(out);
        status = TBD_NOTFOUND;
    }
    return status;
}

const uint8_t *tbd_stops_next(struct tbd_reader *list, struct tbd_message *head)
{
    const uint8_t *at = list->at < list->end ? tbd_reader_take(list, sizeof(*head)) : NULL;

    if (!at)
        return NULL;
    memcpy(head, at, sizeof(*head));
    return tbd_reader_take(list, head->bytes);
}
