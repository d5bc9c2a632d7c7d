// SPDX-License-Identifier: MIT
/* toc_write.c - the contents of a window's TOC file, and of an image
 *
 * At level 1 summaries are bits.  At level 1, and in windows born lean, a page is stored as a
 * difference to its earlier contents if the caller knows them and the difference is smaller. */
#include "format/writer/toc_write.h"

#include "format/files/file.h"
#include "format/coding/other_threads.h"
#include "format/files/page_difference.h"
#include "format/files/page_list.h"
#include "format/summaries/summaries.h"
#include "format/window/window_make.h"

#include <stdlib.h>

#include <xxhash.h>

/* ---- pages ---- */

struct page_list {
    struct tbd_disk_page *disk;                /* owned */
    const struct tbd_page_contents **contents; /* owned */
    size_t count;
};

static void list_pages(struct page_list *list, const struct tbd_page_contents *pages, size_t count,
                       uint32_t flag)
{
    for (size_t i = 0; i < count; i++) {
        list->disk[list->count] = (struct tbd_disk_page){
            .address = pages[i].address,
            .time = (uint32_t)pages[i].time,
            .order = pages[i].order,
            .flags = flag,
            .offset = list->count,
        };
        list->contents[list->count++] = &pages[i];
    }
}

static int compare_pages(const void *left, const void *right)
{
    const struct tbd_disk_page *a = left;
    const struct tbd_disk_page *b = right;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->flags > b->flags ? -1 : a->flags < b->flags;
}

/* Is the difference smaller than the page when packed?  If one of them has far fewer changing
 * words, or will soon be packed again, the counts decide without packing. */
static bool is_smaller(const uint8_t *difference, const uint8_t *bytes, bool is_brief)
{
    struct tbd_buffer trial = { 0 };
    uint64_t of_difference = tbd_page_news(difference), of_page = tbd_page_news(bytes);
    size_t whole;
    bool smaller;

    if (is_brief || of_difference * 2 < of_page || of_page * 2 < of_difference)
        return of_difference < of_page;
    tbd_lz4_pack(&trial, bytes, 4096);
    whole = trial.used;
    tbd_lz4_pack(&trial, difference, 4096);
    smaller = !trial.failed && trial.used - whole < whole;
    tbd_buffer_free(&trial);
    return smaller;
}

/* Chooses what to store of a page: its bytes, or the difference, written into `buffer`, if that packs
 * smaller. */
static const uint8_t *choose_difference(struct tbd_disk_page *page, const uint8_t *bytes,
                                        const uint8_t *base, bool is_brief, uint8_t *buffer)
{
    tbd_page_difference(buffer, bytes, base);
    if (!is_smaller(buffer, bytes, is_brief))
        return bytes;
    page->flags |= TBD_DISK_PAGE_DELTA;
    return buffer;
}

typedef void pack_function(struct tbd_buffer *out, const void *data, size_t bytes);

static pack_function *packer_of(const struct tbd_toc_content *content)
{
    return !content->is_old ? tbd_lz4_pack : content->is_brief ? tbd_pack_quick : tbd_pack_hard;
}

/* Pages that go into one frame. */
struct page_group {
    pack_function *pack;
    struct tbd_disk_page *members[TBD_PAGE_GROUP];
    uint8_t bytes[TBD_PAGE_GROUP * 4096];
    uint32_t count;
};

/* Where pages are appended: their offsets are from `begin` on. */
struct page_data {
    struct tbd_buffer *out;
    size_t begin;
};

static uint64_t offset_now(const struct page_data *data)
{
    return data->out->used - data->begin;
}

static void put_group(const struct page_data *data, struct page_group *group)
{
    uint64_t before = offset_now(data);

    if (!group->count)
        return;
    group->pack(data->out, group->bytes, group->count * 4096ul);
    for (uint32_t i = 0; i < group->count; i++) {
        group->members[i]->flags |= TBD_DISK_PAGE_GROUP | i << 16;
        group->members[i]->offset = before;
        group->members[i]->bytes = (uint32_t)(offset_now(data) - before);
    }
    group->count = 0;
}

/* Pages of native play are packed while the program runs, and are most of what its organizer does. */
static pack_function *page_packer_of(const struct tbd_toc_content *content)
{
    return content && content->is_brief && content->window->is_uncounted ? tbd_lz4_pack_fast
                                                                         : tbd_lz4_pack;
}

/* `group` NULL: each page has a frame of its own. */
static void put_page(const struct page_data *data, struct page_group *group,
                     const struct tbd_toc_content *content, struct tbd_disk_page *page,
                     const uint8_t *bytes)
{
    const uint8_t *base = NULL;
    uint8_t buffer[4096];

    if (content && content->base && page->flags == TBD_DISK_PAGE_END && !tbd_page_is_zero(bytes))
        base = content->base(content->context, page->address);
    if (base)
        bytes = choose_difference(page, bytes, base, content->is_brief, buffer);
    page->offset = offset_now(data);
    if (tbd_page_is_zero(bytes)) {
        page->flags |= TBD_DISK_PAGE_ZERO;
    } else if (group) {
        memcpy(group->bytes + group->count * 4096ul, bytes, 4096);
        group->members[group->count++] = page;
    } else {
        page_packer_of(content)(data->out, bytes, 4096);
        page->bytes = (uint32_t)(offset_now(data) - page->offset);
    }
    if (group && group->count == TBD_PAGE_GROUP)
        put_group(data, group);
}

/* Packed when it came (organizer/page_packer.h). */
static void put_packed(const struct page_data *data, struct tbd_disk_page *page,
                       const struct tbd_page_contents *contents)
{
    page->offset = offset_now(data);
    page->bytes = contents->packed_bytes;
    if (contents->is_difference)
        page->flags |= TBD_DISK_PAGE_DELTA;
    if (!page->bytes)
        page->flags |= TBD_DISK_PAGE_ZERO;
    tbd_buffer_put(data->out, contents->packed, contents->packed_bytes);
}

static void put_contents(const struct page_data *data, struct page_group *group,
                         const struct tbd_toc_content *content, struct tbd_disk_page *page,
                         const struct tbd_page_contents *contents)
{
    if (contents->bytes)
        put_page(data, group, content, page, contents->bytes);
    else
        put_packed(data, page, contents);
}

static void put_page_data(struct tbd_buffer *out, struct page_list *list,
                          const struct tbd_toc_content *content)
{
    struct page_data data = { out, out->used };
    struct page_group *group = NULL;

    if (content && content->is_old) {
        group = calloc(1, sizeof(*group));
        out->failed |= !group;
        if (group)
            group->pack = packer_of(content);
    }
    for (size_t i = 0; i < list->count; i++)
        put_contents(&data, group, content, &list->disk[i], list->contents[list->disk[i].offset]);
    if (group)
        put_group(&data, group);
    free(group);
}

/* A record whose contents are known later: then renew() has it right. */
static size_t reserve_record(struct tbd_buffer *out, enum tbd_record_type type, size_t bytes)
{
    size_t begin = tbd_file_begin_record(out, type);
    uint8_t *at = bytes ? tbd_buffer_reserve(out, bytes) : NULL;

    if (at)
        memset(at, 0, bytes);
    out->used += at ? bytes : 0;
    tbd_file_finish_record(out, begin);
    return begin;
}

static void renew_table(struct tbd_buffer *out, size_t begin, const struct page_list *list)
{
    if (out->failed || !list->count)
        return;
    memcpy(out->bytes + begin + sizeof(struct tbd_record), list->disk,
           list->count * sizeof(*list->disk));
    tbd_file_renew_record(out, begin);
}

/* One checksum for each page, as all windows need the image: a flipped bit must affect only windows
 * that need its page. */
static void renew_checks(struct tbd_buffer *out, size_t begin, const struct page_list *list,
                         size_t data)
{
    if (out->failed)
        return;
    for (size_t i = 0; i < list->count; i++) {
        const struct tbd_disk_page *page = &list->disk[i];
        uint32_t check =
            page->bytes ? (uint32_t)XXH3_64bits(out->bytes + data + page->offset, page->bytes) : 0;

        memcpy(out->bytes + begin + sizeof(struct tbd_record) + i * sizeof(check), &check,
               sizeof(check));
    }
    tbd_file_renew_record(out, begin);
}

/* Space for what will be put as it is: a buffer that grows is copied. */
static void reserve_packed(struct tbd_buffer *out, const struct page_list *list)
{
    size_t bytes = list->count * sizeof(*list->disk);

    for (size_t i = 0; i < list->count; i++)
        bytes += list->contents[i]->packed_bytes;
    (void)tbd_buffer_reserve(out, bytes);
}

/* The table stands before the data, and is known after them: they are packed to their place all the same, as another copy
 * of them would cost more than the table. */
static void put_pages(struct tbd_buffer *out, struct page_list *list,
                      const struct tbd_toc_content *content)
{
    size_t table, checks = 0, data;
    bool has_checks;

    if (list->count)
        qsort(list->disk, list->count, sizeof(*list->disk), compare_pages);
    has_checks = list->count && list->disk[0].flags & TBD_DISK_PAGE_IMAGE;
    reserve_packed(out, list);
    table = reserve_record(out, TBD_REC_PAGE_TABLE, list->count * sizeof(*list->disk));
    if (has_checks)
        checks = reserve_record(out, TBD_REC_PAGE_CHECKS, list->count * sizeof(uint32_t));
    data = tbd_file_begin_record(out, TBD_REC_PAGE_DATA);
    put_page_data(out, list, content);
    tbd_file_finish_record(out, data);
    if (has_checks)
        renew_checks(out, checks, list, data + sizeof(struct tbd_record));
    renew_table(out, table, list);
}

static bool page_list_new(struct page_list *list, size_t count)
{
    *list = (struct page_list){
        .disk = calloc(count + 1, sizeof(*list->disk)),
        .contents = calloc(count + 1, sizeof(*list->contents)),
    };
    return list->disk && list->contents;
}

static void page_list_free(struct page_list *list)
{
    free(list->disk);
    free(list->contents);
}

/* ---- windows ---- */

static void put_state(struct tbd_buffer *out, const struct tbd_window *window)
{
    size_t begin = tbd_file_begin_record(out, TBD_REC_STATE);
    struct tbd_buffer images = { 0 };

    if (window->xsave)
        tbd_buffer_put(&images, window->xsave, window->regs.xsave_bytes);
    if (window->complete && window->end_xsave)
        tbd_buffer_put(&images, window->end_xsave, window->end_regs.xsave_bytes);
    tbd_lz4_pack(out, images.bytes, images.used);
    tbd_file_finish_record(out, begin);
    if (images.failed)
        out->failed = true;
    tbd_buffer_free(&images);
}

static void put_read_pages(struct tbd_buffer *out, const struct tbd_window *window)
{
    size_t begin = tbd_file_begin_record(out, TBD_REC_READ_PAGES);
    uint64_t last = 0;

    tbd_buffer_varint(out, window->read_page_count);
    for (size_t i = 0; i < window->read_page_count; i++) {
        tbd_buffer_varint(out, window->read_pages[i] / 4096 - last);
        last = window->read_pages[i] / 4096;
    }
    tbd_file_finish_record(out, begin);
}

/* The bytes of a message with its head. */
static uint32_t log_bytes(const struct tbd_log_entry *entry)
{
    struct tbd_message message;

    memcpy(&message, entry->message, sizeof(message));
    return (uint32_t)sizeof(message) + message.bytes;
}

static void put_log_entries(struct tbd_buffer *out, const struct tbd_window *window, uint64_t bytes)
{
    struct tbd_lz4_parts parts;

    tbd_lz4_begin(&parts, out, bytes);
    for (size_t i = 0; i < window->log_count; i++) {
        uint32_t time = (uint32_t)window->log[i].time;

        tbd_lz4_put(&parts, &time, sizeof(time));
        tbd_lz4_put(&parts, window->log[i].message, log_bytes(&window->log[i]));
    }
    tbd_lz4_finish(&parts);
}

static void pack_log_entries(struct tbd_buffer *out, const struct tbd_window *window,
                             pack_function *pack)
{
    struct tbd_buffer raw = { 0 };

    for (size_t i = 0; i < window->log_count; i++) {
        uint32_t time = (uint32_t)window->log[i].time;

        tbd_buffer_put(&raw, &time, sizeof(time));
        tbd_buffer_put(&raw, window->log[i].message, log_bytes(&window->log[i]));
    }
    pack(out, raw.bytes, raw.used);
    if (raw.failed)
        out->failed = true;
    tbd_buffer_free(&raw);
}

/* A log of native play has what system calls wrote, megabytes in a window of a tenth of a second: it is packed without a copy of it. */
static void put_log(struct tbd_buffer *out, const struct tbd_toc_content *content)
{
    const struct tbd_window *window = content->window;
    size_t begin = tbd_file_begin_record(out, TBD_REC_LOG);
    struct tbd_disk_log head = { .count = window->log_count };

    for (size_t i = 0; i < window->log_count; i++)
        head.raw_bytes += sizeof(uint32_t) + log_bytes(&window->log[i]);
    tbd_buffer_put(out, &head, sizeof(head));
    if (window->is_uncounted && !content->is_old)
        put_log_entries(out, window, head.raw_bytes);
    else
        pack_log_entries(out, window, packer_of(content));
    tbd_file_finish_record(out, begin);
}

static void put_early_calls(struct tbd_buffer *out, const struct tbd_window *window)
{
    size_t begin;

    if (!window->early_call_count)
        return;
    begin = tbd_file_begin_record(out, TBD_REC_EARLY_CALLS);
    for (size_t i = 0; i < window->early_call_count; i++) {
        tbd_buffer_varint(out, window->early_calls[i].thread);
        tbd_buffer_varint(out, window->early_calls[i].id);
        tbd_buffer_varint(out, window->early_calls[i].time);
    }
    tbd_file_finish_record(out, begin);
}

static void put_stamps(struct tbd_buffer *out, const struct tbd_window *window)
{
    struct tbd_stamp before = { 0 };
    size_t begin;

    if (!window->stamp_count)
        return;
    begin = tbd_file_begin_record(out, TBD_REC_STAMPS);
    for (size_t i = 0; i < window->stamp_count; i++) {
        const struct tbd_stamp *stamp = &window->stamps[i];

        tbd_buffer_varint(out, stamp->time - before.time);
        tbd_buffer_varint(out, tbd_zigzag((int64_t)(stamp->ns - before.ns)));
        before = *stamp;
    }
    tbd_file_finish_record(out, begin);
}

static void put_opened(struct tbd_buffer *out, const struct tbd_window *window, pack_function *pack)
{
    uint64_t bytes = window->opened_bytes;
    size_t begin;

    if (!bytes)
        return;
    begin = tbd_file_begin_record(out, TBD_REC_OPENED);
    tbd_buffer_put(out, &bytes, sizeof(bytes));
    pack(out, window->opened, bytes);
    tbd_file_finish_record(out, begin);
}

static void put_meta(struct tbd_buffer *out, const struct tbd_window *window,
                     const struct tbd_disk_window *disk)
{
    struct tbd_disk_meta meta = {
        .window = *disk,
        .digest = window->digest,
        .entry_count = window->entry_count,
        .operand_bytes = window->operand_bytes,
        .regs = window->regs,
        .end_regs = window->end_regs,
    };

    /* These are in the index: a TOC must not depend on how often the window was changed. */
    meta.window.toc_bytes = meta.window.trace_bytes = meta.window.block_bytes = 0;
    meta.window.highest_id = 0;
    tbd_file_put_record(out, TBD_REC_META, &meta, sizeof(meta));
}

static void put_summaries(struct tbd_buffer *out, const struct tbd_toc_content *content)
{
    const struct tbd_window *window = content->window;

    if (content->level > TBD_LEVEL_BITS) {
        tbd_words_put(out, window->number, window->words, window->word_count);
        tbd_block_summaries_put(out, window->number, window->block_summaries,
                                window->block_summary_count);
    } else {
        tbd_word_bits_put(out, window->words, window->word_count, window->all_words,
                          window->all_words_count);
        tbd_block_bits_put(out, window->block_summaries, window->block_summary_count, false);
        tbd_block_bits_put(out, window->block_summaries, window->block_summary_count, true);
    }
}

/* Only instructions that the log names as those that access shared memory may be in no log. */
static bool may_have_unlogged(const struct tbd_window *window)
{
    bool any = false;

    for (size_t i = 0; i < window->log_count && !any; i++)
        any = tbd_message_kind(window->log[i].message) == TBD_MSG_SHARED;
    return any;
}

enum tbd_status tbd_toc_put(const struct tbd_toc_content *content, struct tbd_buffer *out,
                            struct tbd_buffer *for_index)
{
    const struct tbd_window *window = content->window;
    size_t count = window->dirty_count + window->gone_count + window->first_count;
    struct page_list list;

    if (!page_list_new(&list, count)) {
        page_list_free(&list);
        return TBD_NOMEM;
    }
    list_pages(&list, window->dirty, window->dirty_count, TBD_DISK_PAGE_END);
    list_pages(&list, window->gone, window->gone_count, TBD_DISK_PAGE_GONE);
    list_pages(&list, window->first, window->first_count, TBD_DISK_PAGE_FIRST);
    content->disk->pages = count;
    content->disk->words = window->word_count;
    content->disk->block_ids = window->block_summary_count;
    tbd_file_put_header(out, TBD_FILE_TOC, window->number, content->trace_id);
    if (content->is_old)
        tbd_file_need(out, TBD_NEEDS_ZSTD);
    if (content->disk->flags & TBD_WINDOW_UNCOUNTED)
        tbd_file_need(out, TBD_NEEDS_COUNTING);
    if (may_have_unlogged(window))
        tbd_file_need(out, TBD_NEEDS_UNLOGGED);
    put_meta(out, window, content->disk);
    put_state(out, window);
    tbd_thread_states_put(out, window);
    put_pages(out, &list, content);
    put_read_pages(out, window);
    put_log(out, content);
    put_early_calls(out, window);
    put_stamps(out, window);
    put_opened(out, window, packer_of(content));
    put_summaries(out, content);
    tbd_page_list_put(list.disk, list.count, for_index);
    page_list_free(&list);
    return out->failed || for_index->failed ? TBD_NOMEM : TBD_OK;
}

/* ---- counts for a window that had none ---- */

static bool is_summary(uint32_t type)
{
    return type == TBD_REC_WORD_BITS || type == TBD_REC_BLOCK_BITS || type == TBD_REC_CALLED_BITS ||
           type == TBD_REC_WORDS || type == TBD_REC_BLOCK_SUMMARIES;
}

enum tbd_status tbd_toc_put_counts(const struct tbd_toc_content *content, struct tbd_file *old,
                                   struct tbd_buffer *out, struct tbd_error *why)
{
    const struct tbd_window *window = content->window;
    struct tbd_record_view record;
    enum tbd_status status;

    content->disk->words = window->word_count;
    content->disk->block_ids = window->block_summary_count;
    tbd_file_put_header(out, TBD_FILE_TOC, window->number, content->trace_id);
    tbd_file_need(out, tbd_file_header(old)->need_features & ~(uint64_t)TBD_NEEDS_COUNTING);
    while (!(status = tbd_file_next(old, &record, why)))
        if (record.type == TBD_REC_META)
            put_meta(out, window, content->disk);
        else if (!is_summary(record.type))
            tbd_file_put_record(out, record.type, record.payload, record.bytes);
    if (status != TBD_NOTFOUND)
        return status;
    put_summaries(out, content);
    return out->failed ? TBD_NOMEM : TBD_OK;
}

enum tbd_status tbd_image_put(const struct tbd_page_contents *pages, size_t count,
                              uint64_t trace_id, struct tbd_buffer *out)
{
    struct page_list list;
    enum tbd_status status = TBD_NOMEM;

    if (page_list_new(&list, count)) {
        list_pages(&list, pages, count, TBD_DISK_PAGE_IMAGE);
        tbd_file_put_header(out, TBD_FILE_IMAGE, 0, trace_id);
        put_pages(out, &list, NULL);
        status = out->failed ? TBD_NOMEM : TBD_OK;
    }
    page_list_free(&list);
    return status;
}
