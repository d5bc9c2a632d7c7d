// SPDX-License-Identifier: MIT
/* writer_windows.c - windows of a growing trace: writes their files, then the record that names
 * them
 *
 * Keeps WRITER-1. */
#include "format/writer/writer_private.h"

#include "format/coding/packed.h"
#include "format/files/file_names.h"
#include "format/writer/toc_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static enum tbd_status write_window_file(struct tbd_writer *w, uint32_t window, const char *suffix,
                                         struct tbd_buffer *content, uint64_t *out_bytes)
{
    enum tbd_status status = TBD_NOMEM;
    char name[64];

    tbd_window_file_name(window, 1, suffix, name, sizeof(name));
    if (!content->failed)
        status = tbd_dir_write(w->dir, name, content->bytes, content->used);
    *out_bytes = content->used;
    content->used = 0;
    return status;
}

static void remove_window_files(struct tbd_writer *w, uint32_t window)
{
    static const char *const suffixes[] = { "toc", "trace", "blocks" };
    char name[64];

    for (size_t i = 0; i < 3; i++) {
        tbd_window_file_name(window, 1, suffixes[i], name, sizeof(name));
        tbd_dir_remove(w->dir, name);
    }
}

/* Windows come all the time, and memory that is given back and taken again is cleared and faulted in for each: what the file
 * of one was put together in is kept for the next, unless it was a very large one. */
#define SPARE_MOST (16u << 20)

static struct tbd_buffer take_spare(struct tbd_writer *w)
{
    struct tbd_buffer *spare = __atomic_exchange_n(&w->spare, NULL, __ATOMIC_ACQUIRE);
    struct tbd_buffer out = { 0 };

    if (spare)
        out = *spare;
    free(spare);
    return out;
}

static void give_spare(struct tbd_writer *w, struct tbd_buffer *buffer)
{
    struct tbd_buffer *spare =
        buffer->bytes && buffer->capacity <= SPARE_MOST ? malloc(sizeof(*spare)) : NULL;

    if (!spare) {
        tbd_buffer_free(buffer);
        return;
    }
    *spare = *buffer;
    spare->used = 0;
    spare->failed = false;
    spare = __atomic_exchange_n(&w->spare, spare, __ATOMIC_ACQ_REL);
    if (spare)
        tbd_buffer_free(spare);
    free(spare);
}

static enum tbd_status write_files(struct tbd_writer *w, const struct tbd_window *window,
                                   const struct tbd_window_extra *extra,
                                   struct tbd_disk_window *disk, struct tbd_buffer *for_index)
{
    struct tbd_toc_content toc = { .window = window,
                                   .disk = disk,
                                   .trace_id = w->id,
                                   .level = (enum tbd_level)disk->level,
                                   .is_brief = true,
                                   .base = extra->base,
                                   .context = extra->context };
    struct tbd_buffer out = take_spare(w);
    enum tbd_status status = tbd_toc_put(&toc, &out, for_index);

    if (!status)
        status = write_window_file(w, window->number, "toc", &out, &disk->toc_bytes);
    if (!status && disk->level == TBD_LEVEL_EVENTS) {
        tbd_packed_put_records(&out, window, extra->coded, w->id);
        status = write_window_file(w, window->number, "trace", &out, &disk->trace_bytes);
    }
    if (!status && disk->level == TBD_LEVEL_EVENTS) {
        tbd_packed_put_entries(&out, window, w->id);
        status = write_window_file(w, window->number, "blocks", &out, &disk->block_bytes);
    }
    give_spare(w, &out);
    return status;
}

static enum tbd_status make_folder(struct tbd_writer *w, uint32_t window)
{
    uint32_t folder = window / 1000;
    enum tbd_status status;
    char name[64];

    if (__atomic_load_n(&w->folders, __ATOMIC_ACQUIRE) == folder + 1)
        return TBD_OK;
    snprintf(name, sizeof(name), "windows/%u", folder);
    status = tbd_dir_make_folder(w->dir, name);
    if (!status)
        __atomic_store_n(&w->folders, folder + 1, __ATOMIC_RELEASE);
    return status;
}

enum tbd_status tbd_writer_put_window(struct tbd_writer *w, const struct tbd_window *window,
                                      const struct tbd_window_summary *counts,
                                      const struct tbd_window_extra *extra,
                                      struct tbd_window_files *out)
{
    struct tbd_buffer for_index = { 0 };
    enum tbd_status status = make_folder(w, window->number);

    *out = (struct tbd_window_files){
        .disk = { .window = window->number,
                  .level = (uint8_t)counts->level,
                  .complete = window->complete,
                  .flags = window->is_uncounted ? TBD_WINDOW_UNCOUNTED : 0,
                  .first_time = window->first_time,
                  .blocks = window->blocks,
                  .stores = counts->stores,
                  .calls = counts->calls,
                  .returns = counts->returns,
                  .syscalls = counts->syscalls,
                  .specials = counts->specials,
                  .signals = counts->signals },
    };
    if (!status)
        status = write_files(w, window, extra, &out->disk, &for_index);
    if (status) {
        tbd_buffer_free(&for_index);
        remove_window_files(w, window->number);
        return status;
    }
    out->pages = for_index.bytes;
    out->pages_bytes = for_index.used;
    return TBD_OK;
}

/* Is a pending record about a window after this one? */
static bool is_of_later(const struct tbd_record *head, const uint8_t *payload, uint32_t window)
{
    struct tbd_disk_when when;

    switch (head->type) {
    case TBD_REC_REGION:
    case TBD_REC_UNMAP:
    case TBD_REC_NOTE:
    case TBD_REC_PAGES:
    case TBD_REC_THREAD:
    case TBD_REC_RAN: memcpy(&when, payload, sizeof(when)); return when.window > window;
    default: return false;
    }
}

/* Windows are joined before the windows before them are committed.  Index records about a window
 * must come just before its WINDOW record: rewriting the index sees only windows that it names. */
static void take_later(struct tbd_writer *w, uint32_t window, struct tbd_buffer *later)
{
    struct tbd_buffer now = { 0 };
    struct tbd_record head;

    if (w->pending.failed) /* its last record ends anywhere */
        return;
    for (size_t at = 0, bytes; at < w->pending.used; at += bytes) {
        const uint8_t *record = w->pending.bytes + at;

        memcpy(&head, record, sizeof(head));
        bytes = (sizeof(head) + head.bytes + 7) & ~(size_t)7;
        tbd_buffer_put(is_of_later(&head, record + sizeof(head), window) ? later : &now, record,
                       bytes);
    }
    now.failed |= later->failed;
    tbd_buffer_free(&w->pending);
    w->pending = now;
}

enum tbd_status tbd_writer_commit_window(struct tbd_writer *w, struct tbd_window_files *files)
{
    struct tbd_disk_when when = { .window = files->disk.window };
    struct tbd_buffer later = { 0 };
    enum tbd_status status;

    take_later(w, files->disk.window, &later);
    files->disk.highest_id = w->last_block;
    tbd_writer_event(w, TBD_REC_PAGES, &when, files->pages, files->pages_bytes);
    tbd_file_put_record(&w->pending, TBD_REC_WINDOW, &files->disk, sizeof(files->disk));
    free(files->pages);
    files->pages = NULL;
    status = tbd_writer_flush(w);
    tbd_buffer_free(&w->pending);
    w->pending = later;
    if (status)
        remove_window_files(w, files->disk.window);
    return status;
}

void tbd_writer_code_segment(const struct tbd_writer *w, struct tbd_key_segment *segment,
                             struct tbd_buffer *out)
{
    tbd_key_segment_encode(segment, w->id, out);
}

void tbd_writer_segment(const struct tbd_writer *w, const struct tbd_key_segment *segment,
                        const struct tbd_buffer *file)
{
    char name[64];

    tbd_key_segment_name(segment, name, sizeof(name));
    if (!tbd_dir_make_folder(w->dir, "keys") && !file->failed)
        (void)!tbd_dir_write(w->dir, name, file->bytes, file->used);
}
