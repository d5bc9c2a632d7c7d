// SPDX-License-Identifier: MIT
/* damage.c - see damage.h */
#include "format/trace/damage.h"

#include "base/array.h"
#include "base/binary_search.h"
#include "base/open_file.h"
#include "format/files/file_names.h"
#include "format/files/page_list.h"
#include "format/trace/trace_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define NOTES_MAX 32u
#define TYPES_MAX 64u
/* At most this many consecutive windows may be lost: a forged number must not fill memory. */
#define GAP_MAX 100000u

void tbd_damage_note(struct tbd_trace *trace, const char *format, ...)
{
    struct tbd_damage *damage = &trace->damage;
    va_list args;

    if (damage->count == NOTES_MAX ||
        !tbd_array_grow(&damage->texts, damage->count, &damage->capacity, sizeof(*damage->texts)))
        return;
    va_start(args, format);
    vsnprintf(damage->texts[damage->count], sizeof(*damage->texts), format, args);
    va_end(args);
    damage->count++;
}

const char *tbd_trace_damage(const struct tbd_trace *trace, uint64_t index)
{
    return index < trace->damage.count ? trace->damage.texts[index] : NULL;
}

void tbd_damage_free(struct tbd_trace *trace)
{
    for (size_t i = 0; i < trace->damage.owned_count; i++)
        free(trace->damage.owned[i]);
    free(trace->damage.owned);
    free(trace->damage.texts);
    free(trace->damage.lost);
}

/* ---- records ---- */

enum tbd_status tbd_damage_open(struct tbd_trace *trace, const char *name, enum tbd_file_kind kind,
                                struct tbd_file *out, struct tbd_error *why)
{
    struct tbd_error own = { 0 };
    enum tbd_status status = tbd_file_open(trace->dir, name, kind, trace->id, out, &own);

    if (!status || status == TBD_NOTRACE || status == TBD_IO || status == TBD_NOMEM) {
        if (why)
            *why = own;
        return status;
    }
    tbd_damage_note(trace, "%s, offset %llu: %s", name, (unsigned long long)own.offset, own.detail);
    status = tbd_file_map(trace->dir, name, out, why);
    if (status == TBD_TRUNCATED || (!status && out->size <= sizeof(struct tbd_file_header))) {
        tbd_file_close(out); /* the whole file is lost: it counts as one without records */
        *out = (struct tbd_file){ 0 };
        snprintf(out->path, sizeof(out->path), "%s", name);
        return TBD_OK;
    }
    out->next = sizeof(struct tbd_file_header);
    return status;
}

/* Finds the next good record from file->next on, within a limit of bytes. */
static bool find_record(struct tbd_file *file)
{
    uint64_t effort = 64 * (uint64_t)file->size + (16 << 20);
    size_t begin = file->next;

    for (file->next = (begin & ~(size_t)7) + 8; file->next < file->size; file->next += 8) {
        struct tbd_record_view record;
        struct tbd_record head;
        size_t here = file->next;

        if (file->size - here < sizeof(head))
            break;
        memcpy(&head, file->bytes + here, sizeof(head));
        if (!head.type || head.type >= TYPES_MAX || head.flags > TBD_RECORD_OPTIONAL ||
            head.bytes > file->size - here - sizeof(head))
            continue;
        if (head.bytes > effort)
            break;
        effort -= head.bytes;
        if (tbd_file_next(file, &record, NULL) == TBD_OK) {
            file->next = here;
            return true;
        }
    }
    file->next = begin;
    return false;
}

enum tbd_status tbd_damage_next(struct tbd_trace *trace, struct tbd_file *file,
                                struct tbd_record_view *out, struct tbd_error *why)
{
    struct tbd_error own = { 0 };
    enum tbd_status status = tbd_file_next(file, out, &own);
    size_t begin = file->next;

    if (status == TBD_CHECKSUM || status == TBD_TRUNCATED) {
        if (find_record(file)) {
            tbd_damage_note(trace, "%s, offset %zu: %zu bytes are damaged", file->path, begin,
                            file->next - begin);
            return tbd_file_next(file, out, why);
        }
    }
    if (status && why)
        *why = own;
    return status;
}

/* ---- windows ---- */

/* How many windows the TOC file of window `number` covers. */
static uint32_t find_span(const struct tbd_trace *trace, uint32_t number)
{
    struct dirent *entry;
    uint32_t span = 1;
    char path[64];
    DIR *folder;

    snprintf(path, sizeof(path), "windows/%u", number / 1000);
    folder = tbd_dir_list(trace->dir.fd, path);
    while (folder && (entry = readdir(folder))) {
        unsigned first, many;
        int end = 0;

        if (sscanf(entry->d_name, "%3u-%9u.toc%n", &first, &many, &end) == 2 && end &&
            !entry->d_name[end] && first == number % 1000 && many > span)
            span = many;
    }
    if (folder)
        closedir(folder);
    return span;
}

static uint64_t file_bytes(const struct tbd_trace *trace, uint32_t window, const char *suffix)
{
    struct stat status;
    char name[64];

    tbd_window_file_name(window, 1, suffix, name, sizeof(name));
    return tbd_stat_below(trace->dir.fd, name, &status) && S_ISREG(status.st_mode)
               ? (uint64_t)status.st_size
               : 0;
}

/* Page numbers with their kinds, as in the index. */
static bool keep_pages(struct tbd_trace *trace, const struct tbd_toc *toc)
{
    struct tbd_damage *damage = &trace->damage;
    struct tbd_buffer pages = { 0 };

    tbd_page_list_put(toc->pages, toc->page_count, &pages);
    if (pages.failed || !tbd_array_grow(&damage->owned, damage->owned_count,
                                        &damage->owned_capacity, sizeof(*damage->owned))) {
        tbd_buffer_free(&pages);
        return false;
    }
    damage->owned[damage->owned_count++] = pages.bytes;
    trace->reading.next_pages = pages.bytes;
    trace->reading.next_pages_bytes = pages.used;
    return true;
}

bool tbd_damage_pages(struct tbd_trace *trace, uint32_t number, uint32_t span)
{
    struct tbd_toc toc;
    bool good;

    trace->reading.next_pages = NULL;
    trace->reading.next_pages_bytes = 0;
    if (tbd_toc_peek(trace, number, span, &toc))
        return false;
    good = keep_pages(trace, &toc);
    tbd_toc_close(&toc);
    return good;
}

/* One line for all consecutive windows. */
static void note_restored(struct tbd_trace *trace, uint32_t number, uint32_t span)
{
    struct tbd_damage *damage = &trace->damage;

    if (damage->restored == number && damage->count == damage->restored_note + 1)
        damage->count--;
    else
        damage->restored_from = number;
    damage->restored_note = damage->count;
    damage->restored = number + span;
    tbd_damage_note(
        trace, "index: windows %u to %u come from their own files, without what was mapped then",
        damage->restored_from, number + span - 1);
}

/* The next window, from its TOC.  TBD_NOTFOUND: there is none that fits. */
static enum tbd_status restore_window(struct tbd_trace *trace, uint64_t limit)
{
    struct tbd_disk_window disk;
    enum tbd_status status = TBD_OK;
    struct tbd_toc toc;
    uint32_t number, span = 1;
    uint64_t time;

    tbd_trace_next_window(trace, &number, &time);
    if (tbd_toc_peek(trace, number, span, &toc)) {
        span = find_span(trace, number);
        if (span == 1 || tbd_toc_peek(trace, number, span, &toc))
            return TBD_NOTFOUND;
    }
    disk = toc.meta.window;
    if (disk.first_time != time || !disk.level || disk.level > TBD_LEVEL_EVENTS ||
        disk.blocks > UINT32_MAX || disk.blocks > limit - time ||
        (span > 1 && disk.level > TBD_LEVEL_COUNTS))
        status = TBD_NOTFOUND;
    if (!status && !keep_pages(trace, &toc))
        status = TBD_NOMEM;
    disk.toc_bytes = toc.file.size;
    tbd_toc_close(&toc);
    if (status)
        return status;
    disk.trace_bytes = file_bytes(trace, number, "trace");
    disk.block_bytes = file_bytes(trace, number, "blocks");
    if (disk.level == TBD_LEVEL_EVENTS && (!disk.trace_bytes || !disk.block_bytes))
        disk.level = TBD_LEVEL_COUNTS;
    note_restored(trace, number, span);
    return tbd_trace_add_window(trace, &disk, span);
}

/* First time of the next window after `from` that has a TOC, or of the window after the gap. */
static uint64_t time_after(const struct tbd_trace *trace, uint32_t from, uint32_t number,
                           uint64_t first_time)
{
    uint64_t time = first_time;
    struct tbd_toc toc;

    for (uint32_t n = from + 1; n < number && time == first_time; n++) {
        if (tbd_toc_peek(trace, n, 1, &toc))
            continue;
        if (toc.meta.window.first_time < first_time)
            time = toc.meta.window.first_time;
        tbd_toc_close(&toc);
    }
    return time;
}

static enum tbd_status lose_window(struct tbd_trace *trace, uint32_t after, uint64_t first_time)
{
    struct tbd_disk_window disk = { .level = TBD_LEVEL_COUNTS };
    enum tbd_status status;
    uint64_t until;

    tbd_trace_next_window(trace, &disk.window, &disk.first_time);
    until = time_after(trace, disk.window, after, first_time);
    disk.blocks = until - disk.first_time;
    if (until < disk.first_time || disk.blocks > UINT32_MAX)
        return TBD_CORRUPT;
    tbd_damage_note(trace, "index: window %u is lost", disk.window);
    trace->reading.next_pages = NULL;
    trace->reading.next_pages_bytes = 0;
    status = tbd_trace_add_window(trace, &disk, 1);
    if (!status)
        trace->index.windows[trace->index.window_count - 1].summary.is_lost = true;
    return status;
}

enum tbd_status tbd_damage_fill(struct tbd_trace *trace, uint32_t number, uint64_t first_time)
{
    const uint8_t *pages = trace->reading.next_pages; /* of window `number` */
    size_t pages_bytes = trace->reading.next_pages_bytes;
    enum tbd_status status = TBD_OK;
    uint32_t next;
    uint64_t time;

    tbd_trace_next_window(trace, &next, &time);
    if (number < next || number - next > GAP_MAX || first_time < time ||
        (number == next && first_time != time))
        return TBD_CORRUPT;
    while (!status && next < number) {
        status = restore_window(trace, first_time);
        if (status == TBD_NOTFOUND)
            status = lose_window(trace, number, first_time);
        tbd_trace_next_window(trace, &next, &time);
    }
    trace->reading.next_pages = pages;
    trace->reading.next_pages_bytes = pages_bytes;
    return !status && time != first_time ? TBD_CORRUPT : status;
}

enum tbd_status tbd_damage_follow(struct tbd_trace *trace)
{
    enum tbd_status status;

    do
        status = restore_window(trace, UINT64_MAX);
    while (!status);
    return status == TBD_NOTFOUND ? TBD_OK : status;
}

enum tbd_status tbd_damage_settle(struct tbd_trace *trace)
{
    struct tbd_damage *damage = &trace->damage;

    for (size_t w = 0; w < trace->index.window_count; w++) {
        if (!trace->index.windows[w].summary.is_lost && !trace->index.windows[w].has_no_pages)
            continue;
        if (!tbd_array_grow(&damage->lost, damage->lost_count, &damage->lost_capacity,
                            sizeof(*damage->lost)))
            return TBD_NOMEM;
        damage->lost[damage->lost_count++] = (uint32_t)w;
    }
    return TBD_OK;
}

bool tbd_damage_between(const struct tbd_trace *trace, uint32_t from, uint32_t to)
{
    size_t found = TBD_COUNT_BEFORE(i, trace->damage.lost_count, trace->damage.lost[i] < from);

    return found < trace->damage.lost_count && trace->damage.lost[found] < to;
}
