// SPDX-License-Identifier: MIT
/* trace_index.c - a trace's index
 *
 * It is read once from front to end, and its windows, mappings and notes are kept.  A trace that is
 * still being recorded, or whose organizer died, may end in an incomplete record: reading stops
 * there.
 *
 * Invariants
 * TRACE_INDEX-1  Windows' numbers and times are consecutive, without gaps, from the base on.
 * TRACE_INDEX-2  Strings taken from the index end with a NUL inside their record. (not checked: it
 *     is what decoding checks of its input) */
#include "format/trace/trace_private.h"
#include "format/window/window_make.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

static enum tbd_status read_region(struct tbd_trace *trace, const struct tbd_record_view *record,
                                   struct tbd_error *why)
{
    struct tbd_mapping_event event = { .unmap = record->type == TBD_REC_UNMAP };
    size_t fixed = sizeof(event.when) +
                   (event.unmap ? sizeof(struct tbd_range) : sizeof(struct tbd_msg_region));
    struct tbd_msg_region message = { 0 };
    const char *path = "";

    if (record->bytes < fixed)
        return tbd_record_corrupt(&trace->reading.file, record, "a mapping record is too short",
                                  why);
    memcpy(&event.when, record->payload, sizeof(event.when));
    memcpy(&message, record->payload + sizeof(event.when), fixed - sizeof(event.when));
    if (!event.unmap)
        path = tbd_record_string(record->payload + fixed, record->payload + record->bytes);
    if (!path || !tbd_range_check(message.start, message.end))
        return tbd_record_corrupt(&trace->reading.file, record, "an impossible mapping", why);
    event.region = (struct tbd_region){
        .start = message.start,
        .end = message.end,
        .file_offset = message.file_offset,
        .inode = message.inode,
        .device = message.device,
        .prot = message.prot,
        .map_flags = message.map_flags,
        .flags = message.flags,
        .path = path,
    };
    return tbd_mappings_add(&trace->mappings, &event);
}

/* Names below modules/ are written by us, but the file may be forged. */
static bool is_plain_name(const char *name)
{
    return *name && *name != '.' && !strchr(name, '/');
}

static enum tbd_status read_module(struct tbd_trace *trace, const struct tbd_record_view *record,
                                   struct tbd_error *why)
{
    const uint8_t *end = record->payload + record->bytes;
    const uint8_t *at = record->payload + sizeof(struct tbd_disk_module);
    struct tbd_index_module module = { 0 };
    const char *name = NULL;
    struct tbd_index_module *grown;

    if (record->bytes > sizeof(module.disk)) {
        memcpy(&module.disk, record->payload, sizeof(module.disk));
        module.path = tbd_record_string(at, end);
        if (module.path)
            name = tbd_record_string(at + strlen(module.path) + 1, end);
    }
    if (!name || !is_plain_name(name))
        return tbd_record_corrupt(&trace->reading.file, record, "an impossible module", why);
    grown = realloc(trace->index.modules, (trace->index.module_count + 1) * sizeof(module));
    if (!grown)
        return TBD_NOMEM;
    trace->index.modules = grown;
    if (asprintf(&module.copy, "modules/%s", name) < 0)
        return TBD_NOMEM;
    trace->index.modules[trace->index.module_count++] = module;
    return TBD_OK;
}

static enum tbd_status read_note(struct tbd_trace *trace, const struct tbd_record_view *record,
                                 struct tbd_error *why)
{
    size_t fixed = sizeof(struct tbd_disk_when) + sizeof(uint32_t);
    const char *text = record->bytes > fixed ? tbd_record_string(record->payload + fixed,
                                                                 record->payload + record->bytes)
                                             : NULL;
    const char **grown;

    if (!text)
        return tbd_record_corrupt(&trace->reading.file, record, "a note without text", why);
    grown = realloc(trace->index.notes, (trace->index.note_count + 1) * sizeof(*grown));
    if (!grown)
        return TBD_NOMEM;
    trace->index.notes = grown;
    trace->index.notes[trace->index.note_count++] = text;
    return TBD_OK;
}

void tbd_trace_next_window(const struct tbd_trace *trace, uint32_t *out_number, uint64_t *out_time)
{
    const struct tbd_window_summary *last =
        trace->index.window_count ? &trace->index.windows[trace->index.window_count - 1].summary
                                  : NULL;

    *out_number = last ? last->number + last->span : trace->index.base.window;
    *out_time = last ? last->first_time + last->blocks : trace->index.base.first_time;
}

/* Takes the pages that came before. */
static struct tbd_index_window make_window(struct tbd_trace *trace,
                                           const struct tbd_disk_window *disk, uint32_t span)
{
    // clang-format off
    struct tbd_index_window window = {
        .summary = { .number = disk->window, .span = span, .first_time = disk->first_time,
                     .blocks = disk->blocks, .level = (enum tbd_level)disk->level,
                     .complete = disk->complete != 0,
                     .is_uncounted = disk->flags & TBD_WINDOW_UNCOUNTED, .toc_bytes = disk->toc_bytes,
                     .trace_bytes = disk->trace_bytes, .block_bytes = disk->block_bytes,
                     .stores = disk->stores, .calls = disk->calls, .returns = disk->returns,
                     .syscalls = disk->syscalls, .specials = disk->specials, .words = disk->words,
                     .signals = disk->signals },
        .disk = *disk,
        .pages = trace->reading.next_pages,
        .pages_bytes = trace->reading.next_pages_bytes,
    };
    // clang-format on

    trace->reading.next_pages = NULL;
    trace->reading.next_pages_bytes = 0;
    return window;
}

static bool is_possible_window(const struct tbd_trace *trace, const struct tbd_disk_window *disk,
                               uint32_t span)
{
    return (!trace->reading.next_pages || trace->reading.next_pages_window == disk->window) &&
           disk->blocks <= UINT32_MAX && disk->level && disk->level <= TBD_LEVEL_EVENTS && span &&
           disk->window <= UINT32_MAX - 1 - span && (span == 1 || disk->level < TBD_LEVEL_EVENTS);
}

static bool follows_the_last(const struct tbd_trace *trace)
{
    const struct tbd_window_summary *last =
        &trace->index.windows[trace->index.window_count - 1].summary;
    const struct tbd_window_summary *before;

    if (trace->index.window_count == 1)
        return true;
    before = &trace->index.windows[trace->index.window_count - 2].summary;
    return last->number == before->number + before->span &&
           last->first_time == before->first_time + before->blocks;
}

enum tbd_status tbd_trace_add_window(struct tbd_trace *trace, const struct tbd_disk_window *disk,
                                     uint32_t span)
{
    struct tbd_trace_info *info = &trace->info;

    if (!tbd_array_grow(&trace->index.windows, trace->index.window_count,
                        &trace->index.window_capacity, sizeof(*trace->index.windows)))
        return TBD_NOMEM;
    trace->index.windows[trace->index.window_count++] = make_window(trace, disk, span);
    TBD_INVARIANT("TRACE_INDEX-1", follows_the_last(trace));
    trace->index.is_aged |= span > 1;
    if (disk->highest_id > trace->index.highest_id)
        trace->index.highest_id = disk->highest_id;
    info->blocks = disk->first_time + disk->blocks;
    info->stores += disk->stores;
    info->calls += disk->calls;
    info->returns += disk->returns;
    info->syscalls += disk->syscalls;
    info->specials += disk->specials;
    info->signals += disk->signals;
    return TBD_OK;
}

/* Fills in the windows before it that the index has lost, and its lost pages. */
static enum tbd_status add_window(struct tbd_trace *trace, const struct tbd_record_view *record,
                                  const struct tbd_disk_window *disk, uint32_t span,
                                  struct tbd_error *why)
{
    enum tbd_status status;
    bool has_pages;

    if (trace->reading.next_pages && trace->reading.next_pages_window != disk->window)
        trace->reading.next_pages = NULL;
    if (!is_possible_window(trace, disk, span))
        return tbd_record_corrupt(&trace->reading.file, record, "an impossible window", why);
    status = tbd_damage_fill(trace, disk->window, disk->first_time);
    if (status == TBD_CORRUPT)
        return tbd_record_corrupt(&trace->reading.file, record, "a window record out of order",
                                  why);
    if (status)
        return status;
    has_pages = trace->reading.next_pages || tbd_damage_pages(trace, disk->window, span);
    status = tbd_trace_add_window(trace, disk, span);
    if (!status)
        trace->index.windows[trace->index.window_count - 1].has_no_pages = !has_pages;
    return status;
}

static enum tbd_status read_window(struct tbd_trace *trace, const struct tbd_record_view *record,
                                   struct tbd_error *why)
{
    struct tbd_disk_window disk;

    if (record->bytes < sizeof(disk))
        return tbd_record_corrupt(&trace->reading.file, record, "a window record is too short",
                                  why);
    memcpy(&disk, record->payload, sizeof(disk));
    return add_window(trace, record, &disk, 1, why);
}

static enum tbd_status read_base(struct tbd_trace *trace, const struct tbd_record_view *record,
                                 struct tbd_error *why)
{
    if (record->bytes < sizeof(trace->index.base) || trace->index.window_count)
        return tbd_record_corrupt(&trace->reading.file, record, "a base record out of order", why);
    memcpy(&trace->index.base, record->payload, sizeof(trace->index.base));
    trace->index.is_aged = true;
    return TBD_OK;
}

/* A replay may count what play has not. */
static void count_totals(struct tbd_trace_info *info, const struct tbd_disk_window *disk, int sign)
{
    info->stores += (uint64_t)sign * disk->stores;
    info->calls += (uint64_t)sign * disk->calls;
    info->returns += (uint64_t)sign * disk->returns;
}

/* Moves moments in the windows at places from .. from+count-1 into the first of them, by each
 * window's shift. */
static void move_moments(struct tbd_trace *trace, uint32_t from, uint32_t count,
                         const uint8_t *shifts)
{
    uint32_t first = trace->index.windows[from].summary.number;

    for (size_t i = trace->mappings.event_count; i-- > 0;) {
        struct tbd_disk_when *when = &trace->mappings.events[i].when;
        uint32_t place = tbd_trace_window_with(trace, when->window);
        struct tbd_disk_shift shift;

        if (place < from)
            return;
        if (place >= from + count) /* later, or of a window that is not complete yet */
            continue;
        memcpy(&shift, shifts + (place - from) * sizeof(shift), sizeof(shift));
        when->window = first;
        when->time += shift.time;
        when->order += shift.order;
    }
}

static enum tbd_status merge_windows(struct tbd_trace *trace, const struct tbd_record_view *record,
                                     const struct tbd_disk_change *change, struct tbd_error *why)
{
    uint32_t from = tbd_trace_window_with(trace, change->window.window);
    uint64_t span = 0, blocks = 0;

    if (from == UINT32_MAX || change->count > trace->index.window_count - from ||
        trace->index.windows[from].summary.number != change->window.window ||
        change->window.first_time != trace->index.windows[from].summary.first_time)
        return tbd_record_corrupt(&trace->reading.file, record,
                                  "a change of windows that are not there", why);
    for (uint32_t i = 0; i < change->count; i++) {
        span += trace->index.windows[from + i].summary.span;
        blocks += trace->index.windows[from + i].summary.blocks;
    }
    if (span != change->span || blocks != change->window.blocks ||
        !is_possible_window(trace, &change->window, change->span))
        return tbd_record_corrupt(&trace->reading.file, record, "an impossible change of windows",
                                  why);
    if (change->count > 1) {
        move_moments(trace, from, change->count, record->payload + sizeof(*change));
        if (tbd_thread_table_merge(trace, from, change->count, record->payload + sizeof(*change)))
            return TBD_NOMEM;
        trace->index.is_aged = true;
    } else if (!trace->reading.next_pages) {
        trace->reading.next_pages = trace->index.windows[from].pages;
        trace->reading.next_pages_bytes = trace->index.windows[from].pages_bytes;
    }
    for (uint32_t i = 0; i < change->count; i++)
        count_totals(&trace->info, &trace->index.windows[from + i].disk, -1);
    count_totals(&trace->info, &change->window, 1);
    trace->index.windows[from] = make_window(trace, &change->window, change->span);
    memmove(trace->index.windows + from + 1, trace->index.windows + from + change->count,
            (trace->index.window_count - from - change->count) * sizeof(*trace->index.windows));
    trace->index.window_count -= change->count - 1;
    return TBD_OK;
}

static enum tbd_status read_change(struct tbd_trace *trace, const struct tbd_record_view *record,
                                   struct tbd_error *why)
{
    struct tbd_disk_change change;
    uint64_t shifts;

    if (record->bytes < sizeof(change))
        return tbd_record_corrupt(&trace->reading.file, record, "a change record is too short",
                                  why);
    memcpy(&change, record->payload, sizeof(change));
    if (!change.count)
        return add_window(trace, record, &change.window, change.span, why);
    shifts = change.count > 1 ? change.count : 0;
    if (shifts > (record->bytes - sizeof(change)) / sizeof(struct tbd_disk_shift))
        return tbd_record_corrupt(&trace->reading.file, record, "a change record is too short",
                                  why);
    return merge_windows(trace, record, &change, why);
}

static enum tbd_status read_pages(struct tbd_trace *trace, const struct tbd_record_view *record,
                                  struct tbd_error *why)
{
    struct tbd_disk_when when;

    if (record->bytes < sizeof(when))
        return tbd_record_corrupt(&trace->reading.file, record, "a page record is too short", why);
    memcpy(&when, record->payload, sizeof(when));
    trace->reading.next_pages = record->payload + sizeof(when);
    trace->reading.next_pages_bytes = record->bytes - sizeof(when);
    trace->reading.next_pages_window = when.window;
    return TBD_OK;
}

static enum tbd_status read_end(struct tbd_trace *trace, const struct tbd_record_view *record,
                                struct tbd_error *why)
{
    const char *text = record->bytes > sizeof(trace->info.end)
                           ? tbd_record_string(record->payload + sizeof(trace->info.end),
                                               record->payload + record->bytes)
                           : NULL;
    const uint8_t *after;

    if (!text)
        return tbd_record_corrupt(&trace->reading.file, record, "the end record is too short", why);
    memcpy(&trace->info.end, record->payload, sizeof(trace->info.end));
    trace->info.finished = true;
    trace->info.end_text = text;
    after = (const uint8_t *)text + strlen(text) + 1;
    if (trace->info.end.how == TBD_ENDED_SIGNAL &&
        (size_t)(record->payload + record->bytes - after) >= TBD_SIGINFO_BYTES)
        trace->info.end_siginfo = after;
    trace->index.has_end = true;
    return TBD_OK;
}

static enum tbd_status read_index_record(struct tbd_trace *trace,
                                         const struct tbd_record_view *record,
                                         struct tbd_error *why)
{
    switch (record->type) {
    case TBD_REC_REGION:
    case TBD_REC_UNMAP: return read_region(trace, record, why);
    case TBD_REC_MODULE: return read_module(trace, record, why);
    case TBD_REC_NOTE: return read_note(trace, record, why);
    case TBD_REC_THREAD:
    case TBD_REC_RAN:
        if (tbd_thread_table_read(&trace->threads, record))
            return tbd_record_corrupt(&trace->reading.file, record, "an impossible thread record",
                                      why);
        return TBD_OK;
    case TBD_REC_PAGES: return read_pages(trace, record, why);
    case TBD_REC_WINDOW: return read_window(trace, record, why);
    case TBD_REC_CHANGE: return read_change(trace, record, why);
    case TBD_REC_BASE: return read_base(trace, record, why);
    case TBD_REC_END: return read_end(trace, record, why);
    default: return TBD_OK;
    }
}

/* Place of the window with this number, even if it is not in the trace yet. */
static uint32_t place_of_number(const struct tbd_trace *trace, uint32_t number)
{
    uint32_t place = tbd_trace_window_with(trace, number);
    uint32_t next;
    uint64_t time;

    tbd_trace_next_window(trace, &next, &time);
    if (place != UINT32_MAX || number < next)
        return place;
    return (uint32_t)trace->index.window_count + (number - next);
}

/* Converts the window numbers of the index to places. */
static void place_events(struct tbd_trace *trace)
{
    uint32_t last = 0;

    if (!trace->index.is_aged)
        return;
    for (size_t i = 0; i < trace->mappings.event_count; i++) {
        struct tbd_disk_when *when = &trace->mappings.events[i].when;
        uint32_t place = place_of_number(trace, when->window);

        if (place == UINT32_MAX) {
            tbd_damage_note(trace, "index: a mapping of window %u, which is not there",
                            when->window);
            place = last;
        }
        when->window = last = place;
    }
    tbd_thread_table_place(trace, place_of_number);
}

/* Does an organizer hold the lock on the header? */
static bool is_being_recorded(const struct tbd_trace *trace)
{
    int fd = tbd_open_below(trace->dir.fd, "header", O_RDONLY);
    bool locked = false;

    if (fd < 0)
        return false;
    if (flock(fd, LOCK_SH | LOCK_NB))
        locked = errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

static const char *why_no_end(const struct tbd_trace *trace, bool recording)
{
    if (recording)
        return "it is still being recorded";
    if (trace->reading.file.size < trace->reading.closed_bytes)
        return "the end of the index is lost";
    return trace->info.is_dump
               ? "the dump could not be written to its end; `path` has what there is"
               : "the organizer died";
}

/* The trace has no end record: say why. A dump's program did not end with its organizer. */
static void settle_end(struct tbd_trace *trace, bool recording)
{
    trace->info.finished = !recording;
    trace->info.has_lost_end = !recording && trace->damage.count != 0;
    trace->info.end = (struct tbd_msg_end){
        .how = trace->info.is_dump ? 0 : TBD_ENDED_KILLED, /* 0: nothing says */
        .offset = TBD_END_WHOLE,
    };
    snprintf(trace->end_text, sizeof(trace->end_text), "%s", why_no_end(trace, recording));
    trace->info.end_text = trace->end_text;
}

/* Maps the part of the index that `of` has read, even if the index has grown since, or was
 * replaced. */
static enum tbd_status open_index(struct tbd_trace *trace, const struct tbd_trace *of,
                                  struct tbd_error *why)
{
    if (!of) {
        trace->reading.is_recorded = is_being_recorded(trace);
        return tbd_damage_open(trace, "index", TBD_FILE_INDEX, &trace->reading.file, why);
    }
    trace->reading.is_recorded = of->reading.is_recorded;
    trace->reading.file = of->reading.file;
    trace->reading.file.next = tbd_file_header(&of->reading.file)->header_bytes;
    trace->reading.is_borrowed = true;
    return TBD_OK;
}

enum tbd_status tbd_trace_read_index(struct tbd_trace *trace, const struct tbd_trace *of,
                                     struct tbd_error *why)
{
    struct tbd_error own = { 0 };
    enum tbd_status status = open_index(trace, of, why);
    bool recording = trace->reading.is_recorded;
    struct tbd_record_view record;

    if (status)
        return status;
    while (!(status = tbd_damage_next(trace, &trace->reading.file, &record, &own))) {
        status = read_index_record(trace, &record, &own);
        if (status == TBD_CORRUPT)
            tbd_damage_note(trace, "index, offset %llu: %s", (unsigned long long)own.offset,
                            own.detail);
        else if (status)
            return status;
    }
    if (status == TBD_NOMEM)
        return status;
    if (status != TBD_NOTFOUND && !recording)
        tbd_damage_note(trace, "index, offset %llu: it is cut off there: %s",
                        (unsigned long long)own.offset, own.detail);
    else if (trace->reading.file.size < trace->reading.closed_bytes && !recording)
        tbd_damage_note(trace, "index, offset %llu: it is cut off there, of %llu bytes",
                        (unsigned long long)trace->reading.file.size,
                        (unsigned long long)trace->reading.closed_bytes);
    if (trace->damage.count && !recording && tbd_damage_follow(trace))
        return TBD_NOMEM;
    if (!trace->info.finished)
        settle_end(trace, recording);
    place_events(trace);
    trace->info.note_count = trace->index.note_count;
    trace->info.damage_count = trace->damage.count;
    status = tbd_damage_settle(trace);
    return status ? status : tbd_threads_settle(trace);
}

void tbd_trace_index_free(struct tbd_trace *trace)
{
    for (size_t i = 0; i < trace->index.module_count; i++)
        free(trace->index.modules[i].copy);
    free(trace->index.modules);
    free(trace->index.notes);
    free(trace->index.windows);
    if (!trace->reading.is_borrowed)
        tbd_file_close(&trace->reading.file);
}

/* ---- access ---- */

const struct tbd_trace_index *tbd_trace_index(const struct tbd_trace *trace)
{
    return &trace->index;
}

uint32_t tbd_trace_place_of(const struct tbd_trace *trace, uint32_t number_plus_1)
{
    return trace->index.is_aged && number_plus_1
               ? tbd_trace_window_with(trace, number_plus_1 - 1) + 1
               : number_plus_1;
}
