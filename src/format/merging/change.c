// SPDX-License-Identifier: MIT
/* change.c - windows are lowered, raised and replaced on disk
 *
 * Invariants
 * CHANGE-1  A TOC that replaces another one under the same name describes the same window, in less
 *     detail or more: readers that know the window's old level can read it. (not checked:
 *     test_crash lets each change of a file fail)
 * CHANGE-2  Files are deleted only after the index says that they are not needed. (not checked:
 *     test_crash lets each change of a file fail) */
#include "format/merging/change.h"

#include "format/coding/packed.h"
#include "format/files/file_names.h"
#include "format/merging/merge.h"
#include "format/pages/page_base.h"
#include "format/reading/window_read.h"
#include "format/trace/open_tocs.h"
#include "format/trace/trace_handle.h"
#include "format/trace/trace_index.h"
#include "format/window/window_make.h"
#include "format/writer/toc_write.h"

#include <stdio.h>
#include <stdlib.h>

/* A page that would need more than this many differences is stored whole.  In merged windows the
 * limit is lower, as each difference costs unpacking a group of pages. */
#define DEPTH_MAX        8u
#define DEPTH_MERGED_MAX 4u

void tbd_change_free(struct tbd_change *change)
{
    free(change->shifts);
    free(change->old);
    tbd_buffer_free(&change->pages);
    *change = (struct tbd_change){ 0 };
}

bool tbd_change_is_possible(const struct tbd_trace *trace, uint32_t window)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, window);

    return summary && summary->complete &&
           (tbd_trace_info(trace)->hook_set & TBD_HOOKS_PLAY) == TBD_HOOKS_PLAY;
}

static enum tbd_status refuse(const struct tbd_trace *trace, uint32_t window, struct tbd_error *why)
{
    return tbd_error_set(why, TBD_NOREPLAY, tbd_trace_path(trace), 0,
                         "window %u must stay as it is: no replay would bring it back", window);
}

static bool begin(const struct tbd_trace *trace, uint32_t first, uint32_t count,
                  struct tbd_change *out)
{
    *out = (struct tbd_change){
        .disk = { .count = count, .window = tbd_trace_index(trace)->windows[first].disk },
        .old = calloc(3 * (size_t)count, sizeof(*out->old)),
    };
    for (uint32_t i = 0; i < count; i++)
        out->disk.span += tbd_trace_window(trace, first + i)->span;
    return out->old;
}

static void add_old(struct tbd_change *change, const struct tbd_window_summary *window,
                    const char *suffix)
{
    tbd_window_file_name(window->number, window->span, suffix, change->old[change->old_count++],
                         sizeof(change->old[0]));
}

/* ---- pages as differences ---- */

struct bases {
    struct tbd_trace *trace;
    const struct tbd_window *window;
    uint32_t first, last; /* the places of the window */
    uint32_t depth;
    uint8_t page[4096];
};

/* The base that a reader will find for a difference (page_base.c): the page's first contents, if
 * they are from the window's start, else the latest before.  These must be of the same mapping, so
 * that no change of older windows removes them. */
static const uint8_t *base_of(void *context, uint64_t address)
{
    struct bases *bases = context;
    const struct tbd_window *window = bases->window;
    const struct tbd_page_contents *first = tbd_window_first(window, address);

    if (first)
        return first->time || first->order ? NULL : first->bytes;
    return tbd_trace_delta_base(bases->trace, bases->first, bases->last, address, bases->depth,
                                bases->page)
               ? bases->page
               : NULL;
}

/* Writes the window's TOC under the name that it has with the change. */
static enum tbd_status write_toc(struct tbd_trace *trace, struct tbd_writer *writer,
                                 const struct tbd_window *window, uint32_t last,
                                 struct tbd_change *change)
{
    struct bases bases = { .trace = trace,
                           .window = window,
                           .first = window->index,
                           .last = last,
                           .depth = change->disk.span > 1 ? DEPTH_MERGED_MAX : DEPTH_MAX };
    struct tbd_toc_content content = { .window = window,
                                       .disk = &change->disk.window,
                                       .trace_id = tbd_trace_id(trace),
                                       .level = (enum tbd_level)change->disk.window.level,
                                       .is_old = change->disk.span > 1,
                                       .is_brief = change->is_brief,
                                       .base = base_of,
                                       .context = &bases };
    struct tbd_buffer out = { 0 };
    enum tbd_status status;
    char name[64];

    change->disk.window.toc_bytes = 0;
    change->disk.window.trace_bytes = 0;
    change->disk.window.block_bytes = 0;
    if (content.level > TBD_LEVEL_BITS)
        content.base = NULL;
    status = tbd_toc_put(&content, &out, &change->pages);
    tbd_window_file_name(window->number, change->disk.span, "toc", name, sizeof(name));
    if (!status)
        status = tbd_writer_file(writer, name, &out);
    change->disk.window.toc_bytes = out.used;
    tbd_buffer_free(&out);
    return status;
}

/* ---- levels ---- */

static enum tbd_status lower_toc(struct tbd_trace *trace, struct tbd_writer *writer, uint32_t index,
                                 struct tbd_change *change, struct tbd_error *why)
{
    struct tbd_window *window = NULL;
    enum tbd_status status = tbd_page_history_begin(trace, index, 1);

    if (!status)
        status = tbd_window_load(trace, index, false, &window, why);
    if (!status) {
        status = write_toc(trace, writer, window, index, change);
        if (status)
            tbd_error_set(why, status, tbd_trace_path(trace), 0, "window %u", index);
    }
    tbd_page_history_end(trace);
    tbd_window_free(window);
    return status;
}

enum tbd_status tbd_change_drop_events(const struct tbd_disk_window *window, struct tbd_change *out)
{
    struct tbd_window_summary summary = { .number = window->window, .span = 1 };

    *out = (struct tbd_change){ .disk = { .count = 1, .span = 1, .window = *window },
                                .old = calloc(2, sizeof(*out->old)) };
    if (!out->old)
        return TBD_NOMEM;
    add_old(out, &summary, "trace");
    add_old(out, &summary, "blocks");
    out->disk.window.level = TBD_LEVEL_COUNTS;
    out->disk.window.trace_bytes = 0;
    out->disk.window.block_bytes = 0;
    return TBD_OK;
}

enum tbd_status tbd_change_lower(struct tbd_trace *trace, struct tbd_writer *writer,
                                 uint32_t window, enum tbd_level level, struct tbd_change *out,
                                 struct tbd_error *why)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, window);
    enum tbd_status status;

    *out = (struct tbd_change){ 0 };
    if (!tbd_change_is_possible(trace, window))
        return refuse(trace, window, why);
    if (!begin(trace, window, 1, out))
        return TBD_NOMEM;
    if (summary->level == TBD_LEVEL_EVENTS) {
        add_old(out, summary, "trace");
        add_old(out, summary, "blocks");
    }
    out->disk.window.level = (uint8_t)level;
    out->disk.window.trace_bytes = 0;
    out->disk.window.block_bytes = 0;
    if (level > TBD_LEVEL_BITS)
        return TBD_OK;
    status = lower_toc(trace, writer, window, out, why);
    tbd_trace_forget_toc(trace, window); /* depths of differences count from the new contents */
    return status;
}

static enum tbd_status lower_by_one(struct tbd_trace *trace, struct tbd_writer *writer,
                                    uint32_t window, enum tbd_level level, struct tbd_error *why)
{
    struct tbd_change change = { 0 };
    enum tbd_status status = tbd_change_lower(trace, writer, window, level, &change, why);

    if (!status)
        status = tbd_change_commit(writer, &change);
    tbd_change_free(&change);
    return status;
}

enum tbd_status tbd_change_lower_to(struct tbd_trace *trace, struct tbd_writer *writer,
                                    uint32_t window, enum tbd_level level, struct tbd_error *why)
{
    enum tbd_status status = TBD_OK;

    if (level == TBD_LEVEL_BITS && tbd_trace_window(trace, window)->level == TBD_LEVEL_EVENTS)
        status = lower_by_one(trace, writer, window, TBD_LEVEL_COUNTS, why);
    return status ? status : lower_by_one(trace, writer, window, level, why);
}

static enum tbd_status write_events(struct tbd_writer *writer, const struct tbd_window *window,
                                    uint64_t trace_id, struct tbd_disk_window *disk)
{
    struct tbd_buffer out = { 0 };
    enum tbd_status status;
    char name[64];

    tbd_packed_put_records(&out, window, NULL, trace_id);
    tbd_window_file_name(window->number, 1, "trace", name, sizeof(name));
    status = tbd_writer_file(writer, name, &out);
    disk->trace_bytes = out.used;
    out.used = 0;
    if (!status) {
        tbd_packed_put_entries(&out, window, trace_id);
        tbd_window_file_name(window->number, 1, "blocks", name, sizeof(name));
        status = tbd_writer_file(writer, name, &out);
        disk->block_bytes = out.used;
    }
    tbd_buffer_free(&out);
    return status;
}

/* An uncounted window's TOC gets its counts; pages, log and state stay as they were packed. */
static enum tbd_status write_counts(struct tbd_trace *trace, struct tbd_writer *writer,
                                    const struct tbd_window *window, struct tbd_change *change,
                                    struct tbd_error *why)
{
    struct tbd_disk_window *disk = &change->disk.window;
    struct tbd_toc_content content = { .window = window,
                                       .disk = disk,
                                       .trace_id = tbd_trace_id(trace),
                                       .level = (enum tbd_level)disk->level };
    struct tbd_buffer out = { 0 };
    enum tbd_status status;
    struct tbd_file old;
    char name[64];

    disk->toc_bytes = 0;
    tbd_window_file_name(window->number, 1, "toc", name, sizeof(name));
    status =
        tbd_file_open(tbd_trace_dir(trace), name, TBD_FILE_TOC, tbd_trace_id(trace), &old, why);
    if (status)
        return status;
    status = tbd_toc_put_counts(&content, &old, &out, why);
    tbd_file_close(&old);
    if (!status)
        status = tbd_writer_file(writer, name, &out);
    disk->toc_bytes = out.used;
    tbd_buffer_free(&out);
    return status;
}

enum tbd_status tbd_change_raise(struct tbd_trace *trace, struct tbd_writer *writer,
                                 const struct tbd_window *window, enum tbd_level level,
                                 struct tbd_change *out, struct tbd_error *why)
{
    bool is_uncounted;
    enum tbd_status status;

    *out = (struct tbd_change){ 0 };
    if (tbd_trace_window(trace, window->index)->span > 1)
        return tbd_error_set(why, TBD_NOREPLAY, tbd_trace_path(trace), 0,
                             "window %u is a merged one: its events are found by replay only",
                             window->index);
    if (!begin(trace, window->index, 1, out))
        return TBD_NOMEM;
    out->disk.window.level = (uint8_t)level;
    is_uncounted = out->disk.window.flags & TBD_WINDOW_UNCOUNTED;
    if (is_uncounted) {
        out->disk.window.flags &= (uint16_t)~TBD_WINDOW_UNCOUNTED;
        out->disk.window.stores = window->stores;
        out->disk.window.calls = window->calls;
        out->disk.window.returns = window->returns;
    }
    status = is_uncounted && level < TBD_LEVEL_EVENTS
                 ? write_counts(trace, writer, window, out, why)
                 : write_toc(trace, writer, window, window->index, out);
    if (!status && level == TBD_LEVEL_EVENTS)
        status = write_events(writer, window, tbd_trace_id(trace), &out->disk.window);
    if (status)
        tbd_error_set(why, status, tbd_trace_path(trace), 0, "window %u", window->index);
    return status;
}

/* ---- merging ---- */

static enum tbd_status write_merged(struct tbd_trace *trace, struct tbd_writer *writer,
                                    struct tbd_window *window, struct tbd_change *change)
{
    uint32_t first = window->index;
    struct tbd_disk_window *disk = &change->disk.window;

    for (uint32_t i = 1; i < change->disk.count; i++) {
        const struct tbd_disk_window *more = &tbd_trace_index(trace)->windows[first + i].disk;

        disk->blocks += more->blocks;
        disk->stores += more->stores;
        disk->calls += more->calls;
        disk->returns += more->returns;
        disk->syscalls += more->syscalls;
        disk->specials += more->specials;
        disk->signals += more->signals;
        disk->complete = more->complete;
        disk->flags |= more->flags;
        if (more->highest_id > disk->highest_id)
            disk->highest_id = more->highest_id;
    }
    disk->level = (uint8_t)window->level;
    return write_toc(trace, writer, window, first + change->disk.count - 1, change);
}

/* Gives pages whose earlier contents are known a base for differences. */
static enum tbd_status merge_known(struct tbd_trace *trace, struct tbd_writer *writer,
                                   uint32_t first, enum tbd_level level, uint64_t brief_blocks,
                                   struct tbd_change *out, struct tbd_error *why)
{
    uint32_t count = out->disk.count;
    struct tbd_window *window;
    enum tbd_status status =
        tbd_merge_windows(trace, first, count, level, &window, out->shifts, why);

    if (status)
        return status;
    for (uint32_t i = 0; i < count; i++) {
        const struct tbd_window_summary *summary = tbd_trace_window(trace, first + i);

        add_old(out, summary, "toc");
        if (summary->level == TBD_LEVEL_EVENTS) {
            add_old(out, summary, "trace");
            add_old(out, summary, "blocks");
        }
    }
    out->is_brief = window->blocks < brief_blocks;
    status = write_merged(trace, writer, window, out);
    tbd_window_free(window);
    if (status)
        tbd_error_set(why, status, tbd_trace_path(trace), 0, "window %u", first);
    return status;
}

enum tbd_status tbd_change_merge(struct tbd_trace *trace, struct tbd_writer *writer, uint32_t first,
                                 uint32_t count, enum tbd_level level, uint64_t brief_blocks,
                                 struct tbd_change *out, struct tbd_error *why)
{
    enum tbd_status status;

    *out = (struct tbd_change){ 0 };
    for (uint32_t i = 0; i < count; i++)
        if (!tbd_change_is_possible(trace, first + i))
            return refuse(trace, first + i, why);
    if (!begin(trace, first, count, out))
        return TBD_NOMEM;
    out->shifts = calloc(count, sizeof(*out->shifts));
    if (!out->shifts)
        return TBD_NOMEM;
    status = tbd_page_history_begin(trace, first, count);
    if (!status)
        status = merge_known(trace, writer, first, level, brief_blocks, out, why);
    tbd_page_history_end(trace);
    return status;
}

enum tbd_status tbd_change_commit(struct tbd_writer *writer, const struct tbd_change *change)
{
    enum tbd_status status =
        tbd_writer_change(writer, &change->disk, change->shifts, &change->pages);

    for (size_t i = 0; i < change->old_count && !status; i++)
        tbd_writer_remove(writer, change->old[i]);
    return status;
}
