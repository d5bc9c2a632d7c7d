// SPDX-License-Identifier: MIT
/* trace.c - opening a trace: header, index, block table
 *
 * The index is read once from front to end; what it says about windows, mappings and notes is
 * kept.  A trace that is still being recorded, or whose organizer died, may end in an incomplete
 * record: reading stops there.  Damage is passed over, and said (damage.h).
 *
 * Invariants
 * R1  Windows' numbers and times follow on each other without gaps, from the base on.
 * R2  Strings taken from the index end with a NUL inside their record. */
#include "format/trace.h"

#include "base/search.h"
#include "format/codec.h"
#include "format/trace_private.h"
#include "format/window.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- where traces are ---- */

enum tbd_status tbd_trace_root(char *out, size_t bytes)
{
    const char *own = getenv("TBD_DIR");
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    int length;

    if (own && *own)
        length = snprintf(out, bytes, "%s", own);
    else if (data && *data)
        length = snprintf(out, bytes, "%s/tbd", data);
    else if (home && *home)
        length = snprintf(out, bytes, "%s/.local/share/tbd", home);
    else
        return TBD_NOTRACE;
    return length > 0 && (size_t)length < bytes ? TBD_OK : TBD_NOTRACE;
}

/* ---- strings in records ---- */

/* The NUL-terminated string at `at`, or NULL if it does not end before `end`. */
static const char *string_at(const uint8_t *at, const uint8_t *end)
{
    return at < end && memchr(at, 0, (size_t)(end - at)) ? (const char *)at : NULL;
}

static enum tbd_status corrupt(const struct tbd_file *file, const struct tbd_record_view *record,
                               const char *what, struct tbd_error *why)
{
    return tbd_error_set(why, TBD_CORRUPT, file->path, record->offset, "%s", what);
}

/* ---- header file ---- */

static enum tbd_status read_start(struct tbd_trace *trace, const struct tbd_record_view *record,
                                  struct tbd_error *why)
{
    struct tbd_trace_info *info = &trace->info;
    const uint8_t *at = record->payload + sizeof(struct tbd_msg_start);
    struct tbd_msg_start start;

    if (trace->argv || !tbd_start_check(record->payload, record->bytes))
        return corrupt(&trace->header, record, "an impossible start record", why);
    memcpy(&start, record->payload, sizeof(start));
    trace->argv = calloc((size_t)start.argc + 1, sizeof(*trace->argv));
    if (!trace->argv)
        return TBD_NOMEM;
    for (uint32_t i = 0; i < start.argc + 2; i++) {
        const char *text = (const char *)at;

        at += strlen(text) + 1;
        if (i == 0)
            info->program = text;
        else if (i <= start.argc)
            trace->argv[i - 1] = (char *)(uintptr_t)text;
        else
            info->cwd = text;
    }
    info->argv = trace->argv;
    info->argc = (int)start.argc;
    info->pid = start.pid;
    info->main_thread = start.tid;
    info->parent_pid = start.parent_pid;
    info->is_forked = start.flags & TBD_START_FORKED;
    info->realtime_ns = start.realtime_ns;
    info->xcr0 = start.xcr0;
    info->brk_end = start.brk_end;
    info->hook_set = (uint32_t)start.hook_set;
    info->max_insns = start.max_insns;
    if (!start.max_insns || start.max_insns > TBD_BLOCK_MAX_INSNS)
        info->max_insns = TBD_BLOCK_MAX_INSNS;
    info->xsave_bytes = start.xsave_bytes;
    return TBD_OK;
}

/* START and CONFIG are in the header, and in the index once more. */
static enum tbd_status read_head_record(struct tbd_trace *trace,
                                        const struct tbd_record_view *record,
                                        struct tbd_error *why)
{
    struct tbd_disk_config config;
    struct tbd_disk_closed closed;

    if (record->type == TBD_REC_START)
        return read_start(trace, record, why);
    if (record->type == TBD_REC_CLOSED && record->bytes >= sizeof(closed)) {
        memcpy(&closed, record->payload, sizeof(closed));
        trace->closed_bytes = closed.index_bytes;
    }
    if (record->type == TBD_REC_CONFIG && record->bytes >= sizeof(config)) {
        memcpy(&config, record->payload, sizeof(config));
        trace->info.window_blocks = config.window_blocks;
        trace->info.budget = config.budget;
        trace->has_config = true;
    }
    return TBD_OK;
}

static bool has_head(const struct tbd_trace *trace)
{
    return trace->info.program && trace->has_config;
}

static enum tbd_status read_header(struct tbd_trace *trace, struct tbd_error *why)
{
    enum tbd_status status =
        tbd_file_open(trace->path, "header", TBD_FILE_HEADER, 0, &trace->header, why);
    struct tbd_record_view record;

    if (status)
        return status;
    trace->id = tbd_file_header(&trace->header)->trace_id;
    while (!(status = tbd_file_next(&trace->header, &record, why))) {
        status = read_head_record(trace, &record, why);
        if (status)
            return status;
    }
    if (status != TBD_NOTFOUND)
        return status;
    if (!has_head(trace))
        return tbd_error_set(why, TBD_TRUNCATED, "header", trace->header.size,
                             "a record is missing");
    return TBD_OK;
}

/* The header is damaged: the index has a copy of what is in it. */
static enum tbd_status read_header_copy(struct tbd_trace *trace)
{
    enum tbd_status status =
        tbd_file_open(trace->path, "index", TBD_FILE_INDEX, trace->id, &trace->header_copy, NULL);
    struct tbd_record_view record;

    if (status)
        return status;
    trace->id = tbd_file_header(&trace->header_copy)->trace_id;
    for (int i = 0; i < 2 && !has_head(trace); i++) {
        status = tbd_file_next(&trace->header_copy, &record, NULL);
        if (status || (record.type != TBD_REC_START && record.type != TBD_REC_CONFIG) ||
            (record.type == TBD_REC_START && trace->info.program))
            continue;
        status = read_head_record(trace, &record, NULL);
        if (status)
            return status;
    }
    return has_head(trace) ? TBD_OK : TBD_NOTFOUND;
}

static enum tbd_status read_head(struct tbd_trace *trace, struct tbd_error *why)
{
    struct tbd_error own = { 0 };
    enum tbd_status status = read_header(trace, &own);

    if (status && status != TBD_NOTRACE && status != TBD_NOMEM && !read_header_copy(trace)) {
        tbd_damage_note(trace, "header, offset %llu: %s", (unsigned long long)own.offset,
                        own.detail);
        return TBD_OK;
    }
    if (status && why)
        *why = own;
    return status;
}

/* A trace's folder is there a moment before its header; what is in a folder changes the folder's time. */
#define MOMENT_SECONDS 2

static bool is_being_made(const char *path)
{
    struct stat info;

    return !stat(path, &info) && S_ISDIR(info.st_mode) && time(NULL) - info.st_mtime <= MOMENT_SECONDS;
}

static enum tbd_status await_header(struct tbd_trace *trace, struct tbd_error *why)
{
    static const struct timespec moment = { .tv_nsec = 5000000 };
    enum tbd_status status = read_head(trace, why);

    while (status == TBD_NOTRACE && is_being_made(trace->path)) {
        nanosleep(&moment, NULL);
        status = read_head(trace, why);
    }
    return status;
}

/* ---- index ---- */

static enum tbd_status read_region(struct tbd_trace *trace, const struct tbd_record_view *record,
                                   struct tbd_error *why)
{
    struct region_event event = { .unmap = record->type == TBD_REC_UNMAP };
    size_t fixed = sizeof(event.when) + (event.unmap ? sizeof(struct tbd_range)
                                                     : sizeof(struct tbd_msg_region));
    struct tbd_msg_region message = { 0 };
    const char *path = "";

    if (record->bytes < fixed)
        return corrupt(&trace->index, record, "a mapping record is too short", why);
    memcpy(&event.when, record->payload, sizeof(event.when));
    memcpy(&message, record->payload + sizeof(event.when), fixed - sizeof(event.when));
    if (!event.unmap)
        path = string_at(record->payload + fixed, record->payload + record->bytes);
    if (!path || !tbd_range_check(message.start, message.end))
        return corrupt(&trace->index, record, "an impossible mapping", why);
    event.region = (struct tbd_region){
        .start = message.start, .end = message.end, .file_offset = message.file_offset,
        .inode = message.inode, .device = message.device, .prot = message.prot,
        .map_flags = message.map_flags, .flags = message.flags, .path = path,
    };
    if (!tbd_array_grow(&trace->region_events, trace->region_event_count,
                        &trace->region_event_capacity,
              sizeof(event)))
        return TBD_NOMEM;
    trace->region_events[trace->region_event_count++] = event;
    return TBD_OK;
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
    struct module module = { 0 };
    const char *name = NULL;
    struct module *grown;

    if (record->bytes > sizeof(module.disk)) {
        memcpy(&module.disk, record->payload, sizeof(module.disk));
        module.path = string_at(at, end);
        if (module.path)
            name = string_at(at + strlen(module.path) + 1, end);
    }
    if (!name || !is_plain_name(name))
        return corrupt(&trace->index, record, "an impossible module", why);
    grown = realloc(trace->modules, (trace->module_count + 1) * sizeof(module));
    if (!grown)
        return TBD_NOMEM;
    trace->modules = grown;
    if (asprintf(&module.copy, "%s/modules/%s", trace->path, name) < 0)
        return TBD_NOMEM;
    trace->modules[trace->module_count++] = module;
    return TBD_OK;
}

static enum tbd_status read_note(struct tbd_trace *trace, const struct tbd_record_view *record,
                                 struct tbd_error *why)
{
    size_t fixed = sizeof(struct tbd_disk_when) + sizeof(uint32_t);
    const char *text = record->bytes > fixed ? string_at(record->payload + fixed,
                                                         record->payload + record->bytes)
                                             : NULL;
    const char **grown;

    if (!text)
        return corrupt(&trace->index, record, "a note without text", why);
    grown = realloc(trace->notes, (trace->note_count + 1) * sizeof(*grown));
    if (!grown)
        return TBD_NOMEM;
    trace->notes = grown;
    trace->notes[trace->note_count++] = text;
    return TBD_OK;
}

void tbd_trace_next_window(const struct tbd_trace *trace, uint32_t *out_number, uint64_t *out_time)
{
    const struct tbd_window_summary *last =
        trace->window_count ? &trace->windows[trace->window_count - 1].summary : NULL;

    *out_number = last ? last->number + last->span : trace->base.window;
    *out_time = last ? last->first_time + last->blocks : trace->base.first_time;
}

/* Takes the pages that came before. */
static struct trace_window make_window(struct tbd_trace *trace, const struct tbd_disk_window *disk,
                                       uint32_t span)
{
    struct trace_window window = {
        .summary = { .number = disk->window, .span = span, .first_time = disk->first_time,
                     .blocks = disk->blocks, .level = disk->level,
                     .complete = disk->complete != 0, .toc_bytes = disk->toc_bytes,
                     .trace_bytes = disk->trace_bytes, .block_bytes = disk->block_bytes,
                     .stores = disk->stores, .calls = disk->calls, .returns = disk->returns,
                     .syscalls = disk->syscalls, .specials = disk->specials,
                     .signals = disk->signals },
        .disk = *disk,
        .pages = trace->next_pages,
        .pages_bytes = trace->next_pages_bytes,
    };

    trace->next_pages = NULL;
    trace->next_pages_bytes = 0;
    return window;
}

static bool is_possible_window(const struct tbd_trace *trace, const struct tbd_disk_window *disk,
                               uint32_t span)
{
    return (!trace->next_pages || trace->next_pages_window == disk->window) &&
           disk->blocks <= UINT32_MAX && disk->level && disk->level <= 3 && span &&
           disk->window <= UINT32_MAX - 1 - span && (span == 1 || disk->level < 3);
}

enum tbd_status tbd_trace_add_window(struct tbd_trace *trace, const struct tbd_disk_window *disk,
                                     uint32_t span)
{
    struct tbd_trace_info *info = &trace->info;

    if (!tbd_array_grow(&trace->windows, trace->window_count, &trace->window_capacity,
                        sizeof(*trace->windows)))
        return TBD_NOMEM;
    trace->windows[trace->window_count++] = make_window(trace, disk, span);
    trace->is_aged |= span > 1;
    if (disk->highest_id > trace->highest_id)
        trace->highest_id = disk->highest_id;
    info->blocks = disk->first_time + disk->blocks;
    info->stores += disk->stores;
    info->calls += disk->calls;
    info->returns += disk->returns;
    info->syscalls += disk->syscalls;
    info->specials += disk->specials;
    info->signals += disk->signals;
    return TBD_OK;
}

/* Windows before it that the index has lost are filled in; so are its pages. */
static enum tbd_status add_window(struct tbd_trace *trace, const struct tbd_record_view *record,
                                  const struct tbd_disk_window *disk, uint32_t span,
                                  struct tbd_error *why)
{
    enum tbd_status status;
    bool has_pages;

    if (trace->next_pages && trace->next_pages_window != disk->window)
        trace->next_pages = NULL;
    if (!is_possible_window(trace, disk, span))
        return corrupt(&trace->index, record, "an impossible window", why);
    status = tbd_damage_fill(trace, disk->window, disk->first_time);
    if (status == TBD_CORRUPT)
        return corrupt(&trace->index, record, "a window record out of order", why);
    if (status)
        return status;
    has_pages = trace->next_pages || tbd_damage_pages(trace, disk->window, span);
    status = tbd_trace_add_window(trace, disk, span);
    if (!status)
        trace->windows[trace->window_count - 1].has_no_pages = !has_pages;
    return status;
}

static enum tbd_status read_window(struct tbd_trace *trace, const struct tbd_record_view *record,
                                   struct tbd_error *why)
{
    struct tbd_disk_window disk;

    if (record->bytes < sizeof(disk))
        return corrupt(&trace->index, record, "a window record is too short", why);
    memcpy(&disk, record->payload, sizeof(disk));
    return add_window(trace, record, &disk, 1, why);
}

static enum tbd_status read_base(struct tbd_trace *trace, const struct tbd_record_view *record,
                                 struct tbd_error *why)
{
    if (record->bytes < sizeof(trace->base) || trace->window_count)
        return corrupt(&trace->index, record, "a base record out of order", why);
    memcpy(&trace->base, record->payload, sizeof(trace->base));
    trace->is_aged = true;
    return TBD_OK;
}

/* Moments in the windows at places from .. from+count-1, of which each is shifted, are in the first
 * of them from now on. */
static void move_moments(struct tbd_trace *trace, uint32_t from, uint32_t count,
                         const uint8_t *shifts)
{
    uint32_t first = trace->windows[from].summary.number;

    for (size_t i = trace->region_event_count; i-- > 0;) {
        struct tbd_disk_when *when = &trace->region_events[i].when;
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

    if (from == UINT32_MAX || change->count > trace->window_count - from ||
        trace->windows[from].summary.number != change->window.window ||
        change->window.first_time != trace->windows[from].summary.first_time)
        return corrupt(&trace->index, record, "a change of windows that are not there", why);
    for (uint32_t i = 0; i < change->count; i++) {
        span += trace->windows[from + i].summary.span;
        blocks += trace->windows[from + i].summary.blocks;
    }
    if (span != change->span || blocks != change->window.blocks ||
        !is_possible_window(trace, &change->window, change->span))
        return corrupt(&trace->index, record, "an impossible change of windows", why);
    if (change->count > 1) {
        move_moments(trace, from, change->count, record->payload + sizeof(*change));
        if (tbd_thread_table_merge(trace, from, change->count, record->payload + sizeof(*change)))
            return TBD_NOMEM;
        trace->is_aged = true;
    } else if (!trace->next_pages) {
        trace->next_pages = trace->windows[from].pages;
        trace->next_pages_bytes = trace->windows[from].pages_bytes;
    }
    trace->windows[from] = make_window(trace, &change->window, change->span);
    memmove(trace->windows + from + 1, trace->windows + from + change->count,
            (trace->window_count - from - change->count) * sizeof(*trace->windows));
    trace->window_count -= change->count - 1;
    return TBD_OK;
}

static enum tbd_status read_change(struct tbd_trace *trace, const struct tbd_record_view *record,
                                   struct tbd_error *why)
{
    struct tbd_disk_change change;
    uint64_t shifts;

    if (record->bytes < sizeof(change))
        return corrupt(&trace->index, record, "a change record is too short", why);
    memcpy(&change, record->payload, sizeof(change));
    if (!change.count)
        return add_window(trace, record, &change.window, change.span, why);
    shifts = change.count > 1 ? change.count : 0;
    if (shifts > (record->bytes - sizeof(change)) / sizeof(struct tbd_disk_shift))
        return corrupt(&trace->index, record, "a change record is too short", why);
    return merge_windows(trace, record, &change, why);
}

static enum tbd_status read_pages(struct tbd_trace *trace, const struct tbd_record_view *record,
                                  struct tbd_error *why)
{
    struct tbd_disk_when when;

    if (record->bytes < sizeof(when))
        return corrupt(&trace->index, record, "a page record is too short", why);
    memcpy(&when, record->payload, sizeof(when));
    trace->next_pages = record->payload + sizeof(when);
    trace->next_pages_bytes = record->bytes - sizeof(when);
    trace->next_pages_window = when.window;
    return TBD_OK;
}

static enum tbd_status read_end(struct tbd_trace *trace, const struct tbd_record_view *record,
                                struct tbd_error *why)
{
    const char *text = record->bytes > sizeof(trace->info.end)
                           ? string_at(record->payload + sizeof(trace->info.end),
                                       record->payload + record->bytes)
                           : NULL;

    if (!text)
        return corrupt(&trace->index, record, "the end record is too short", why);
    memcpy(&trace->info.end, record->payload, sizeof(trace->info.end));
    trace->info.finished = true;
    trace->info.end_text = text;
    return TBD_OK;
}

static enum tbd_status read_index_record(struct tbd_trace *trace,
                                         const struct tbd_record_view *record,
                                         struct tbd_error *why)
{
    switch (record->type) {
    case TBD_REC_REGION:
    case TBD_REC_UNMAP:
        return read_region(trace, record, why);
    case TBD_REC_MODULE:
        return read_module(trace, record, why);
    case TBD_REC_NOTE:
        return read_note(trace, record, why);
    case TBD_REC_THREAD:
    case TBD_REC_RAN:
        if (tbd_thread_table_read(&trace->threads, record))
            return corrupt(&trace->index, record, "an impossible thread record", why);
        return TBD_OK;
    case TBD_REC_PAGES:
        return read_pages(trace, record, why);
    case TBD_REC_WINDOW:
        return read_window(trace, record, why);
    case TBD_REC_CHANGE:
        return read_change(trace, record, why);
    case TBD_REC_BASE:
        return read_base(trace, record, why);
    case TBD_REC_END:
        return read_end(trace, record, why);
    default:
        return TBD_OK;
    }
}

/* Place of the window with this number, also of one that is not in the trace yet. */
static uint32_t place_of_number(const struct tbd_trace *trace, uint32_t number)
{
    uint32_t place = tbd_trace_window_with(trace, number);
    uint32_t next;
    uint64_t time;

    tbd_trace_next_window(trace, &next, &time);
    if (place != UINT32_MAX || number < next)
        return place;
    return (uint32_t)trace->window_count + (number - next);
}

/* The index names windows by number; from now on they are known by place. */
static void place_events(struct tbd_trace *trace)
{
    uint32_t last = 0;

    if (!trace->is_aged)
        return;
    for (size_t i = 0; i < trace->region_event_count; i++) {
        struct tbd_disk_when *when = &trace->region_events[i].when;
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
    char name[4096];
    bool locked = false;
    int fd;

    snprintf(name, sizeof(name), "%s/header", trace->path);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (flock(fd, LOCK_SH | LOCK_NB))
        locked = errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

/* The trace has no end record: say why. */
static void settle_end(struct tbd_trace *trace, bool recording)
{
    trace->info.finished = !recording;
    trace->info.end = (struct tbd_msg_end){ .how = TBD_ENDED_KILLED, .offset = TBD_END_WHOLE };
    snprintf(trace->end_text, sizeof(trace->end_text), "%s",
             recording                                 ? "it is still being recorded"
             : trace->index.size < trace->closed_bytes ? "the end of the index is lost"
                                                       : "the organizer died");
    trace->info.end_text = trace->end_text;
}

static enum tbd_status read_index(struct tbd_trace *trace, struct tbd_error *why)
{
    bool recording = is_being_recorded(trace);
    struct tbd_error own = { 0 };
    enum tbd_status status =
        tbd_damage_open(trace, "index", TBD_FILE_INDEX, &trace->index, why);
    struct tbd_record_view record;

    if (status)
        return status;
    while (!(status = tbd_damage_next(trace, &trace->index, &record, &own))) {
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
    else if (trace->index.size < trace->closed_bytes && !recording)
        tbd_damage_note(trace, "index, offset %llu: it is cut off there, of %llu bytes",
                        (unsigned long long)trace->index.size,
                        (unsigned long long)trace->closed_bytes);
    if (trace->damage.count && !recording && tbd_damage_follow(trace))
        return TBD_NOMEM;
    if (!trace->info.finished)
        settle_end(trace, recording);
    place_events(trace);
    trace->info.note_count = trace->note_count;
    trace->info.damage_count = trace->damage.count;
    status = tbd_damage_settle(trace);
    return status ? status : tbd_threads_settle(trace);
}

/* ---- blocks ---- */

static enum tbd_status read_block(struct tbd_trace *trace, const struct tbd_file *file,
                                  const struct tbd_record_view *record, uint32_t id,
                                  const struct tbd_block_def *def, struct tbd_error *why)
{
    const char *wrong = NULL;
    const struct tbd_op *ops = NULL;

    if (def->ops_offset % 8 || def->ops_offset > record->bytes ||
        sizeof(*ops) * def->op_count > record->bytes - def->ops_offset ||
        def->code_offset > record->bytes || def->code_bytes > record->bytes - def->code_offset)
        wrong = "a block lies outside its record";
    else
        ops = (const void *)(record->payload + def->ops_offset);
    if (!wrong)
        wrong = tbd_block_check(def, ops, false);
    if (wrong)
        return tbd_error_set(why, TBD_CORRUPT, file->path, record->offset, "block %u: %s", id,
                             wrong);
    if (tbd_block_table_get(trace->blocks, id))
        return tbd_error_set(why, TBD_CORRUPT, file->path, record->offset, "block %u twice", id);
    return tbd_block_table_put(trace->blocks, id, def, ops, record->payload + def->code_offset);
}

static enum tbd_status read_block_batch(struct tbd_trace *trace, const struct tbd_file *file,
                                        const struct tbd_record_view *record,
                                        struct tbd_error *why)
{
    struct tbd_disk_blocks head;
    enum tbd_status status = TBD_OK;

    if (record->bytes < sizeof(head))
        return corrupt(file, record, "a block record is too short", why);
    memcpy(&head, record->payload, sizeof(head));
    if (head.count > (record->bytes - sizeof(head)) / sizeof(struct tbd_block_def) ||
        head.first_id <= tbd_block_table_count(trace->blocks) ||
        head.count >= (1u << 30) - head.first_id)
        return corrupt(file, record, "impossible block numbers", why);
    for (uint32_t i = 0; i < head.count && !status; i++) {
        struct tbd_block_def def;

        memcpy(&def, record->payload + sizeof(head) + i * sizeof(def), sizeof(def));
        status = read_block(trace, file, record, head.first_id + i, &def, why);
    }
    return status;
}

/* Blocks that windows may name, but that are in no record: those windows cannot be read. */
static void note_missing_blocks(struct tbd_trace *trace)
{
    uint64_t there = tbd_block_table_count(trace->blocks);
    uint64_t missing = trace->highest_id > there ? trace->highest_id - there : 0;

    for (uint64_t id = 1; id <= there && id <= trace->highest_id; id++)
        missing += !tbd_block_table_get(trace->blocks, (uint32_t)id);
    if (missing)
        tbd_damage_note(trace, "blocks: %llu of %llu are missing; windows with them cannot be read",
                        (unsigned long long)missing, (unsigned long long)trace->highest_id);
}

static enum tbd_status read_blocks(struct tbd_trace *trace, struct tbd_error *why)
{
    struct tbd_error own = { 0 };
    struct tbd_record_view record;
    struct tbd_file file;
    enum tbd_status status = tbd_damage_open(trace, "blocks", TBD_FILE_BLOCKS, &file, why);

    if (status)
        return status;
    while (!(status = tbd_damage_next(trace, &file, &record, &own))) {
        if (record.type == TBD_REC_BLOCKS)
            status = read_block_batch(trace, &file, &record, &own);
        if (status == TBD_CORRUPT)
            tbd_damage_note(trace, "blocks, offset %llu: %s", (unsigned long long)own.offset,
                            own.detail);
        else if (status)
            break;
    }
    note_missing_blocks(trace);
    trace->info.damage_count = trace->damage.count;
    tbd_file_close(&file);
    return status == TBD_NOTFOUND || status == TBD_TRUNCATED || status == TBD_CHECKSUM ? TBD_OK
                                                                                      : status;
}

/* ---- open, close ---- */

static void find_copies(struct tbd_trace *trace)
{
    for (size_t i = 0; i < trace->region_event_count; i++) {
        struct tbd_region *region = &trace->region_events[i].region;

        if (!region->inode)
            continue;
        for (size_t m = 0; m < trace->module_count; m++)
            if (trace->modules[m].disk.inode == region->inode &&
                trace->modules[m].disk.device == region->device &&
                strcmp(trace->modules[m].path, region->path) == 0)
                region->copy = trace->modules[m].copy;
    }
}

static char *resolve_path(const char *path, struct tbd_error *why)
{
    char root[3072];
    char latest[4096];
    char *full;

    if (!path) {
        if (tbd_trace_root(root, sizeof(root))) {
            tbd_error_set(why, TBD_NOTRACE, "", 0, "none of TBD_DIR, XDG_DATA_HOME, HOME is set");
            return NULL;
        }
        snprintf(latest, sizeof(latest), "%s/latest", root);
        path = latest;
    }
    full = realpath(path, NULL);
    if (!full)
        tbd_error_set(why, TBD_NOTRACE, path, 0, "%s", strerror(errno));
    return full;
}

static enum tbd_status open_trace(const char *path, bool with_blocks, struct tbd_trace **out,
                                  struct tbd_error *why)
{
    struct tbd_trace *trace;
    enum tbd_status status;
    char *full = resolve_path(path, why);

    *out = NULL;
    if (!full)
        return TBD_NOTRACE;
    trace = calloc(1, sizeof(*trace));
    if (!trace) {
        free(full);
        return TBD_NOMEM;
    }
    trace->path = full;
    trace->info.path = full;
    pthread_mutex_init(&trace->lock, NULL);
    trace->blocks = tbd_block_table_new();
    status = trace->blocks ? await_header(trace, why) : TBD_NOMEM;
    if (!status)
        status = read_index(trace, why);
    if (!status && with_blocks)
        status = read_blocks(trace, why);
    if (status == TBD_NOMEM)
        tbd_error_set(why, TBD_NOMEM, full, 0, "the tables do not fit into memory");
    if (status) {
        tbd_trace_close(trace);
        return status;
    }
    find_copies(trace);
    *out = trace;
    return TBD_OK;
}

enum tbd_status tbd_trace_open(const char *path, struct tbd_trace **out, struct tbd_error *why)
{
    return open_trace(path, true, out, why);
}

enum tbd_status tbd_trace_open_summary(const char *path, struct tbd_trace **out,
                                       struct tbd_error *why)
{
    return open_trace(path, false, out, why);
}

void tbd_trace_close(struct tbd_trace *trace)
{
    if (!trace)
        return;
    tbd_pages_free(trace);
    tbd_trace_keys_free(trace);
    tbd_region_free(trace);
    tbd_thread_table_free(&trace->threads);
    for (size_t i = 0; i < trace->module_count; i++)
        free(trace->modules[i].copy);
    free(trace->modules);
    free(trace->notes);
    free(trace->region_events);
    free(trace->windows);
    tbd_block_table_release(trace->blocks);
    tbd_file_close(&trace->index);
    tbd_file_close(&trace->header);
    tbd_file_close(&trace->header_copy);
    tbd_damage_free(trace);
    pthread_mutex_destroy(&trace->lock);
    free(trace->argv);
    free(trace->path);
    free(trace);
}

/* ---- tables ---- */

const struct tbd_trace_info *tbd_trace_info(const struct tbd_trace *trace)
{
    return &trace->info;
}

const char *tbd_trace_module(const struct tbd_trace *trace, uint32_t index)
{
    return index < trace->module_count ? trace->modules[index].path : NULL;
}

const char *tbd_trace_note(const struct tbd_trace *trace, uint64_t index)
{
    return index < trace->note_count ? trace->notes[index] : NULL;
}

uint32_t tbd_trace_block_count(const struct tbd_trace *trace)
{
    return tbd_block_table_count(trace->blocks);
}

const struct tbd_block *tbd_trace_block(const struct tbd_trace *trace, uint32_t id)
{
    return tbd_block_table_get(trace->blocks, id);
}

struct tbd_block_table *tbd_trace_blocks(const struct tbd_trace *trace)
{
    return trace->blocks;
}

uint32_t tbd_trace_window_count(const struct tbd_trace *trace)
{
    return (uint32_t)trace->window_count;
}

const struct tbd_window_summary *tbd_trace_window(const struct tbd_trace *trace, uint32_t window)
{
    return window < trace->window_count ? &trace->windows[window].summary : NULL;
}

uint32_t tbd_trace_window_with(const struct tbd_trace *trace, uint32_t number)
{
    size_t upto = TBD_COUNT_BEFORE(i, trace->window_count,
                                   trace->windows[i].summary.number <= number);
    const struct tbd_window_summary *s = upto ? &trace->windows[upto - 1].summary : NULL;

    return s && number - s->number < s->span ? (uint32_t)(upto - 1) : UINT32_MAX;
}

static bool ends_by(const struct tbd_window_summary *window, uint64_t time)
{
    return window->first_time <= time && time - window->first_time >= window->blocks;
}

uint32_t tbd_trace_window_of(const struct tbd_trace *trace, uint64_t time)
{
    /* windows without blocks begin where the next one does */
    size_t i = TBD_COUNT_BEFORE(k, trace->window_count, ends_by(&trace->windows[k].summary, time));

    return i < trace->window_count && trace->windows[i].summary.first_time <= time ? (uint32_t)i
                                                                                   : UINT32_MAX;
}
