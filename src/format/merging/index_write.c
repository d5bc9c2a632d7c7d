// SPDX-License-Identifier: MIT
/* index_write.c - rewrites an index: shorter, and perhaps with a later beginning
 *
 * The remaining windows need three things from the dropped ones: where memory was mapped, which
 * threads there were, and the contents of memory.  Mappings and threads become the new index's
 * first records, as if made when it begins; the contents become an image.
 *
 * Native play tells only of pages that were written.  What it has not written of memory that mremap has moved is in the
 * image, too, if it is not zero, and such a mapping becomes one of zeroes where the image has nothing.
 *
 * Invariants
 * INDEX_WRITE-1  The image has the latest contents of every page that the dropped windows had
 *     contents of, as long as its mapping lasts: so rule 3 of docs/FORMAT.md, "Memory", gives what
 *     rules 1 and 2 gave, and a difference in a remaining window finds its base. (not checked:
 *     test_organizer drops windows and asks again)
 * INDEX_WRITE-2  The new image has a name of its own: a reader that has the old index open still
 *     finds the old image, or none. (not checked: test_crash lets each change of a file fail) */
#include "format/merging/index_write.h"

#include "base/array.h"
#include "format/files/file_names.h"
#include "format/files/numbers.h"
#include "format/pages/page_base.h"
#include "format/pages/pages.h"
#include "format/trace/mappings.h"
#include "format/trace/thread_table.h"
#include "format/trace/trace_handle.h"
#include "format/trace/trace_index.h"
#include "format/writer/toc_write.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct index_writer {
    struct tbd_trace *trace;
    const struct tbd_trace_index *index;
    uint32_t first; /* place */
    struct tbd_buffer *out;
    size_t mapping_events, thread_events, ran; /* written so far, in the trace's order */
};

static struct tbd_disk_when base_moment(const struct index_writer *w)
{
    return (struct tbd_disk_when){ .window = w->index->windows[w->first].summary.number };
}

/* Converts a moment from places, as in memory, to window numbers, as in files. */
static struct tbd_disk_when numbered(const struct index_writer *w, struct tbd_disk_when when)
{
    uint32_t next;
    uint64_t time;

    if (when.window < w->index->window_count) {
        when.window = w->index->windows[when.window].summary.number;
        return when;
    }
    tbd_trace_next_window(w->trace, &next, &time);
    when.window = next + (when.window - (uint32_t)w->index->window_count);
    return when;
}

static void put_record(struct index_writer *w, enum tbd_record_type type,
                       const struct tbd_disk_when *when, const void *payload, size_t bytes)
{
    size_t begin = tbd_file_begin_record(w->out, type);

    if (when)
        tbd_buffer_put(w->out, when, sizeof(*when));
    tbd_buffer_put(w->out, payload, bytes);
    tbd_file_finish_record(w->out, begin);
}

/* ---- state at the beginning ---- */

/* A copy of the header's records, used if the header is damaged. */
static void put_head(struct index_writer *w)
{
    struct tbd_file header = *tbd_trace_header(w->trace);
    struct tbd_record_view record;

    if (!header.bytes)
        return;
    header.next = tbd_file_header(&header)->header_bytes;
    while (!tbd_file_next(&header, &record, NULL))
        put_record(w, (enum tbd_record_type)record.type, NULL, record.payload, record.bytes);
}

static void put_modules(struct index_writer *w)
{
    for (size_t i = 0; i < w->index->module_count; i++) {
        const struct tbd_index_module *module = &w->index->modules[i];
        const char *name = strrchr(module->copy, '/') + 1;
        size_t begin = tbd_file_begin_record(w->out, TBD_REC_MODULE);

        tbd_buffer_put(w->out, &module->disk, sizeof(module->disk));
        tbd_buffer_put(w->out, module->path, strlen(module->path) + 1);
        tbd_buffer_put(w->out, name, strlen(name) + 1);
        tbd_file_finish_record(w->out, begin);
    }
}

static void put_notes(struct index_writer *w)
{
    struct tbd_disk_when when = base_moment(w);
    uint32_t severity = 1;

    for (size_t i = 0; i < w->index->note_count; i++) {
        size_t begin = tbd_file_begin_record(w->out, TBD_REC_NOTE);

        tbd_buffer_put(w->out, &when, sizeof(when));
        tbd_buffer_put(w->out, &severity, sizeof(severity));
        tbd_buffer_put(w->out, w->index->notes[i], strlen(w->index->notes[i]) + 1);
        tbd_file_finish_record(w->out, begin);
    }
}

static void put_region(struct index_writer *w, const struct tbd_disk_when *when, bool unmap,
                       const struct tbd_region *region)
{
    struct tbd_range range = { region->start, region->end };
    // clang-format off
    struct tbd_msg_region message = {
        .start = region->start, .end = region->end, .file_offset = region->file_offset,
        .inode = region->inode, .device = region->device, .prot = region->prot,
        .map_flags = region->map_flags, .flags = region->flags,
    };
    // clang-format on
    size_t begin = tbd_file_begin_record(w->out, unmap ? TBD_REC_UNMAP : TBD_REC_REGION);

    tbd_buffer_put(w->out, when, sizeof(*when));
    if (unmap) {
        tbd_buffer_put(w->out, &range, sizeof(range));
    } else {
        tbd_buffer_put(w->out, &message, sizeof(message));
        tbd_buffer_put(w->out, region->path, strlen(region->path) + 1);
    }
    tbd_file_finish_record(w->out, begin);
}

/* Mappings at the beginning. */
static enum tbd_status put_mappings(struct index_writer *w)
{
    struct tbd_moment start = { .window = w->first };
    struct tbd_disk_when when = base_moment(w);
    const struct tbd_mapping_table *table;
    enum tbd_status status;
    struct tbd_range moved;

    w->mapping_events = tbd_mapping_events_before(w->trace, &start);
    tbd_trace_lock(w->trace);
    status = tbd_mappings_at_locked(w->trace, w->mapping_events, &table);
    for (size_t i = 0; i < table->count && !status; i++) {
        const struct tbd_mapping_piece *piece = &table->pieces[i];
        struct tbd_region region = piece->region;

        if (!piece->initial)
            region.flags |= TBD_DISK_REGION_UNKNOWN;
        switch (tbd_moved_range_locked(w->trace, piece, &moved)) {
        case TBD_OK: region.flags |= TBD_REGION_ANON_ZERO; break;
        case TBD_NOTFOUND: break;
        default: status = TBD_CORRUPT;
        }
        put_region(w, &when, false, &region);
    }
    tbd_trace_unlock(w->trace);
    return status;
}

/* Starts of threads that have not ended, and the main thread's end; borrowed. */
struct base_threads {
    const struct tbd_disk_thread **list; /* owned */
    size_t count, capacity;
};

static bool base_thread_add(struct base_threads *threads, const struct tbd_disk_thread *event)
{
    if (!tbd_array_grow(&threads->list, threads->count, &threads->capacity, sizeof(event)))
        return false;
    threads->list[threads->count++] = event;
    return true;
}

/* False: it has no start, as only the main thread. */
static bool base_thread_remove(struct base_threads *threads, uint32_t thread)
{
    for (size_t i = threads->count; i-- > 0;)
        if (threads->list[i]->thread == thread && threads->list[i]->event == TBD_THREAD_START) {
            memmove(&threads->list[i], &threads->list[i + 1],
                    (--threads->count - i) * sizeof(*threads->list));
            return true;
        }
    return false;
}

static bool base_thread_event(struct base_threads *threads, const struct tbd_disk_thread *event)
{
    bool is_end = event->event == TBD_THREAD_END;

    if (is_end && base_thread_remove(threads, event->thread))
        return true;
    return (!is_end && event->event != TBD_THREAD_START) || base_thread_add(threads, event);
}

/* Threads at the beginning.  The main thread needs no record.  What happened last in a window has the time at which the
 * next one begins: windows tell, not times. */
static enum tbd_status put_threads(struct index_writer *w)
{
    const struct tbd_thread_table *table = tbd_trace_threads(w->trace);
    struct tbd_disk_when when = base_moment(w);
    struct base_threads threads = { 0 };
    bool is_good = true;

    for (; is_good && w->thread_events < table->event_count &&
           table->events[w->thread_events].when.window < w->first;
         w->thread_events++)
        is_good = base_thread_event(&threads, &table->events[w->thread_events].thread);
    for (size_t i = 0; i < threads.count; i++)
        put_record(w, TBD_REC_THREAD, &when, threads.list[i], sizeof(*threads.list[i]));
    free(threads.list);
    return is_good ? TBD_OK : TBD_NOMEM;
}

/* ---- windows ---- */

static void put_events(struct index_writer *w, uint32_t place)
{
    const struct tbd_thread_table *threads = tbd_trace_threads(w->trace);
    size_t count;
    const struct tbd_mapping_event *mappings = tbd_mapping_events(w->trace, &count);

    for (; w->mapping_events < count && mappings[w->mapping_events].when.window <= place;
         w->mapping_events++) {
        const struct tbd_mapping_event *event = &mappings[w->mapping_events];
        struct tbd_disk_when when = numbered(w, event->when);

        put_region(w, &when, event->unmap, &event->region);
    }
    for (; w->thread_events < threads->event_count &&
           threads->events[w->thread_events].when.window <= place;
         w->thread_events++) {
        const struct tbd_thread_event_note *event = &threads->events[w->thread_events];
        struct tbd_disk_when when = numbered(w, event->when);

        put_record(w, TBD_REC_THREAD, &when, &event->thread, sizeof(event->thread));
    }
}

/* Which threads ran; the first window always says so if another thread than the main thread was in
 * control before. */
static void put_ran(struct index_writer *w, uint32_t place)
{
    const struct tbd_thread_table *table = tbd_trace_threads(w->trace);
    struct tbd_disk_when when = { .window = tbd_trace_window(w->trace, place)->number };
    const struct tbd_ran *ran;
    struct tbd_disk_ran all;

    while (w->ran < table->ran_count && table->ran[w->ran].window < place)
        w->ran++;
    ran = &table->ran[w->ran];
    if (w->ran < table->ran_count && ran->window == place) {
        put_record(w, TBD_REC_RAN, &when, ran->records, ran->count * sizeof(all));
    } else if (place == w->first && w->ran) {
        ran--;
        memcpy(&all, ran->records + (ran->count - 1) * sizeof(all), sizeof(all));
        all.switches = 0;
        all.blocks = tbd_trace_window(w->trace, place)->blocks;
        put_record(w, TBD_REC_RAN, &when, &all, sizeof(all));
    }
}

static void put_window(struct index_writer *w, uint32_t place)
{
    const struct tbd_index_window *window = &w->index->windows[place];
    struct tbd_disk_when when = { .window = window->summary.number };
    struct tbd_disk_change change = { .span = window->summary.span, .window = window->disk };

    put_events(w, place);
    put_record(w, TBD_REC_PAGES, &when, window->pages, window->pages_bytes);
    put_ran(w, place);
    change.window.highest_id =
        place + 1 == w->index->window_count ? w->index->highest_id : change.window.highest_id;
    if (change.span == 1)
        put_record(w, TBD_REC_WINDOW, NULL, &change.window, sizeof(change.window));
    else
        put_record(w, TBD_REC_CHANGE, NULL, &change, sizeof(change));
}

/* Records about windows that are not in the index yet, as their files are being written. */
static void put_rest(struct index_writer *w)
{
    const struct tbd_thread_table *table = tbd_trace_threads(w->trace);

    put_events(w, UINT32_MAX);
    for (; w->ran < table->ran_count; w->ran++) {
        const struct tbd_ran *ran = &table->ran[w->ran];
        struct tbd_disk_when when = numbered(w, (struct tbd_disk_when){ .window = ran->window });

        if (ran->window >= w->index->window_count)
            put_record(w, TBD_REC_RAN, &when, ran->records,
                       ran->count * sizeof(struct tbd_disk_ran));
    }
}

static void put_end(struct index_writer *w)
{
    const struct tbd_trace_info *info = tbd_trace_info(w->trace);
    size_t begin;

    /* an end that only the reader made up is not written */
    if (!w->index->has_end)
        return;
    begin = tbd_file_begin_record(w->out, TBD_REC_END);
    tbd_buffer_put(w->out, &info->end, sizeof(info->end));
    tbd_buffer_put(w->out, info->end_text, strlen(info->end_text) + 1);
    if (info->end_siginfo)
        tbd_buffer_put(w->out, info->end_siginfo, TBD_SIGINFO_BYTES);
    tbd_file_finish_record(w->out, begin);
}

enum tbd_status tbd_index_put(struct tbd_trace *trace, uint32_t first, struct tbd_buffer *out)
{
    const struct tbd_trace_index *index = tbd_trace_index(trace);
    struct index_writer w = { .trace = trace, .index = index, .first = first, .out = out };
    const struct tbd_window_summary *summary = tbd_trace_window(trace, first);
    struct tbd_disk_base base = { .window = summary->number,
                                  .image = index->base.image,
                                  .first_time = summary->first_time };
    enum tbd_status status = TBD_OK;

    if (first)
        base.image = base.window;
    if (tbd_trace_info(trace)
            ->damage_count) /* a better reader may restore what this one could not */
        return TBD_CORRUPT;
    tbd_file_put_header(out, TBD_FILE_INDEX, 0, tbd_trace_id(trace));
    if (tbd_trace_info(trace)->counts_later)
        tbd_file_need(out, TBD_NEEDS_COUNTING);
    if (tbd_trace_info(trace)->counts_stops)
        tbd_file_need(out, TBD_NEEDS_STOPS);
    put_head(&w);
    if (base.window)
        put_record(&w, TBD_REC_BASE, NULL, &base, sizeof(base));
    put_modules(&w);
    put_notes(&w);
    if (first) {
        status = put_mappings(&w);
        if (!status)
            status = put_threads(&w);
    }
    for (uint32_t i = first; i < index->window_count; i++)
        put_window(&w, i);
    put_rest(&w);
    put_end(&w);
    return status ? status : out->failed ? TBD_NOMEM : TBD_OK;
}

enum tbd_status tbd_index_shorten(struct tbd_trace *trace, struct tbd_writer *writer)
{
    struct tbd_buffer out = { 0 };
    enum tbd_status status = tbd_index_put(trace, 0, &out);

    if (!status)
        status = tbd_writer_index(writer, &out);
    tbd_buffer_free(&out);
    return status;
}

/* ---- memory before the beginning ---- */

struct base_image {
    struct tbd_page_contents *pages; /* owned; bytes too */
    size_t count, capacity;
    struct tbd_range *moved; /* owned; parts of mappings made by mremap */
    size_t moved_count, moved_capacity;
};

static void image_free(struct base_image *image)
{
    for (size_t i = 0; i < image->count; i++)
        free((void *)(uintptr_t)image->pages[i].bytes);
    free(image->pages);
    free(image->moved);
}

static bool is_moved(const struct base_image *image, uint64_t address)
{
    for (size_t i = 0; i < image->moved_count; i++)
        if (address >= image->moved[i].start && address < image->moved[i].end)
            return true;
    return false;
}

static bool is_zero(const uint8_t *page)
{
    return !page[0] && !memcmp(page, page + 1, 4095);
}

/* A page that the trace knows only from its old address. */
static enum tbd_status moved_page(struct tbd_trace *trace, uint32_t first, uint64_t address,
                                  uint8_t *out)
{
    enum tbd_status status = tbd_trace_page_at_start(trace, first, address, out);

    return !status && is_zero(out) ? TBD_NOTFOUND : status;
}

/* Contents that a window after `first` may need. */
static enum tbd_status add_page(struct tbd_trace *trace, uint32_t first, uint64_t address,
                                struct base_image *image)
{
    uint8_t *bytes = malloc(4096);
    enum tbd_status status = TBD_NOMEM;

    if (bytes &&
        tbd_array_grow(&image->pages, image->count, &image->capacity, sizeof(*image->pages)))
        status = tbd_trace_page_for_image(trace, first, address, bytes);
    if (status == TBD_NOTFOUND && is_moved(image, address))
        status = moved_page(trace, first, address, bytes);
    if (status) {
        free(bytes);
        return status == TBD_NOTFOUND ? TBD_OK : status;
    }
    image->pages[image->count++] = (struct tbd_page_contents){ .address = address, .bytes = bytes };
    return TBD_OK;
}

static enum tbd_status find_moved(struct tbd_trace *trace, uint32_t first, struct base_image *image)
{
    struct tbd_moment start = { .window = first };
    const struct tbd_mapping_table *table;
    enum tbd_status status;

    tbd_trace_lock(trace);
    status = tbd_mappings_at_locked(trace, tbd_mapping_events_before(trace, &start), &table);
    for (size_t i = 0; !status && i < table->count; i++) {
        struct tbd_range range;

        status = tbd_moved_range_locked(trace, &table->pieces[i], &range);
        if (status == TBD_NOTFOUND || (!status && range.start == range.end))
            status = TBD_OK;
        else if (!status && !tbd_array_grow(&image->moved, image->moved_count,
                                            &image->moved_capacity, sizeof(range)))
            status = TBD_NOMEM;
        else if (!status)
            image->moved[image->moved_count++] = range;
    }
    tbd_trace_unlock(trace);
    return status;
}

/* Adds the addresses of pages in moved memory to a list of pages. */
static bool add_moved(const struct base_image *image, uint64_t **addresses, size_t *count)
{
    size_t more = 0;
    uint64_t *grown;

    for (size_t i = 0; i < image->moved_count; i++)
        more += (image->moved[i].end - image->moved[i].start) / 4096;
    grown = realloc(*addresses, (*count + more + 1) * sizeof(*grown));
    if (!grown)
        return false;
    *addresses = grown;
    for (size_t i = 0; i < image->moved_count; i++)
        for (uint64_t at = image->moved[i].start; at < image->moved[i].end; at += 4096)
            grown[(*count)++] = at;
    return true;
}

static enum tbd_status collect(struct tbd_trace *trace, uint32_t first, struct base_image *image)
{
    uint64_t *addresses = NULL;
    size_t count = 0;
    enum tbd_status status = find_moved(trace, first, image);

    if (!status)
        status = tbd_trace_known_pages(trace, first, &addresses, &count);
    if (!status && !add_moved(image, &addresses, &count))
        status = TBD_NOMEM;
    count = status ? 0 : tbd_numbers_sort_unique(addresses, count);
    for (size_t i = 0; i < count && !status; i++)
        status = add_page(trace, first, addresses[i], image);
    free(addresses);
    return status;
}

enum tbd_status tbd_drop_prepare(struct tbd_trace *trace, struct tbd_writer *writer, uint32_t first)
{
    struct tbd_disk_base base = { .image = tbd_trace_window(trace, first)->number };
    struct tbd_buffer out = { 0 };
    struct base_image image = { 0 };
    enum tbd_status status = collect(trace, first, &image);
    char name[32];

    tbd_image_name(&base, name, sizeof(name));
    if (!status)
        status = tbd_image_put(image.pages, image.count, tbd_trace_id(trace), &out);
    if (!status)
        status = tbd_writer_file(writer, name, &out);
    tbd_buffer_free(&out);
    image_free(&image);
    return status;
}

/* ---- the same beginning for another trace ---- */

static bool is_at_base(const struct tbd_disk_when *when)
{
    return !when->window && !when->order && !when->time; /* a place */
}

/* What the index begins with, and no window has written. */
static void put_base_events(struct index_writer *w)
{
    const struct tbd_thread_table *threads = tbd_trace_threads(w->trace);
    struct tbd_disk_when when = base_moment(w);
    size_t count;
    const struct tbd_mapping_event *mappings = tbd_mapping_events(w->trace, &count);

    for (size_t i = 0; i < count && is_at_base(&mappings[i].when); i++)
        put_region(w, &when, mappings[i].unmap, &mappings[i].region);
    for (size_t i = 0; i < threads->event_count && is_at_base(&threads->events[i].when); i++)
        put_record(w, TBD_REC_THREAD, &when, &threads->events[i].thread,
                   sizeof(threads->events[i].thread));
}

enum tbd_status tbd_base_give(struct tbd_trace *trace, struct tbd_writer *to)
{
    const struct tbd_trace_index *index = tbd_trace_index(trace);
    struct tbd_buffer records = { 0 };
    struct index_writer w = { .trace = trace, .index = index, .out = &records };
    struct base_image image = { 0 };
    enum tbd_status status = collect(trace, 0, &image);

    put_record(&w, TBD_REC_BASE, NULL, &index->base, sizeof(index->base));
    put_notes(&w);
    put_base_events(&w);
    if (!status)
        status = records.failed ? TBD_NOMEM : TBD_OK;
    if (!status)
        status = tbd_writer_image(to, &index->base, image.pages, image.count);
    if (!status)
        tbd_writer_records(to, &records);
    tbd_buffer_free(&records);
    image_free(&image);
    return status;
}

/* ---- files of dropped windows ---- */

/* Windows of native play are never merged. */
static void remove_stops(const struct tbd_trace *trace, struct tbd_writer *writer, uint32_t first)
{
    char name[64];

    if (!tbd_trace_info(trace)->counts_stops)
        return;
    for (uint32_t i = 0; i < first; i++) {
        tbd_stops_file_name(tbd_trace_window(trace, i)->number, name, sizeof(name));
        tbd_writer_remove(writer, name);
    }
}

static void remove_windows(const struct tbd_trace *trace, struct tbd_writer *writer, uint32_t first)
{
    static const char *const suffixes[] = { "toc", "trace", "blocks" };
    char name[64];

    for (uint32_t i = 0; i < first; i++) {
        const struct tbd_window_summary *window = tbd_trace_window(trace, i);

        for (size_t k = 0; k < (window->level == TBD_LEVEL_EVENTS ? 3 : 1); k++) {
            tbd_window_file_name(window->number, window->span, suffixes[k], name, sizeof(name));
            tbd_writer_remove(writer, name);
        }
    }
    remove_stops(trace, writer, first);
    for (uint32_t folder = tbd_trace_index(trace)->base.window / 1000;
         folder < tbd_trace_window(trace, first)->number / 1000; folder++) {
        snprintf(name, sizeof(name), "windows/%" PRIu32, folder);
        tbd_writer_remove(writer, name);
    }
}

/* Deletes key files of which all windows are dropped: the next file begins before the trace
 * does. */
static void remove_keys(const struct tbd_trace *trace, struct tbd_writer *writer, uint32_t first)
{
    uint64_t first_time = tbd_trace_window(trace, first)->first_time, latest = 0;
    struct dirent *entry;
    char name[300];
    DIR *folder = tbd_dir_list(tbd_trace_dir(trace).fd, "keys");

    while (folder && (entry = readdir(folder))) {
        uint64_t time = strtoull(entry->d_name, NULL, 16);

        if (*entry->d_name != '.' && time <= first_time && time > latest)
            latest = time;
    }
    if (folder)
        rewinddir(folder);
    while (folder && (entry = readdir(folder)))
        if (*entry->d_name != '.' && strtoull(entry->d_name, NULL, 16) < latest) {
            snprintf(name, sizeof(name), "keys/%s", entry->d_name);
            tbd_writer_remove(writer, name);
        }
    if (folder)
        closedir(folder);
}

enum tbd_status tbd_drop_commit(struct tbd_trace *trace, struct tbd_writer *writer, uint32_t first)
{
    struct tbd_buffer out = { 0 };
    enum tbd_status status = tbd_index_put(trace, first, &out);
    char name[32];

    if (!status)
        status = tbd_writer_index(writer, &out);
    tbd_buffer_free(&out);
    if (status)
        return status;
    tbd_image_name(&tbd_trace_index(trace)->base, name, sizeof(name));
    tbd_writer_remove(writer, name);
    remove_windows(trace, writer, first);
    remove_keys(trace, writer, first);
    return TBD_OK;
}
