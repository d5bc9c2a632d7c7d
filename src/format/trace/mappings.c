// SPDX-License-Identifier: MIT
/* mappings.c - the mappings at any moment of a trace
 *
 * The index holds mapping events in order.  A map is a sorted array of pieces; applying events in
 * order gives the state at a moment.  A piece knows when its contents began: a REGION event over
 * the same mapping changes only attributes; over nothing, or over another file, it makes a new
 * piece.  Contents of a page from before its piece began are not used. */
#include "format/trace/trace_private.h"

#include "base/array.h"
#include "base/binary_search.h"

#include <stdlib.h>
#include <string.h>

static bool map_reserve(struct tbd_mapping_table *map, size_t more)
{
    size_t capacity = map->capacity * 2 + 64;
    struct tbd_mapping_piece *grown;

    if (map->count + more <= map->capacity)
        return true;
    if (capacity < map->count + more)
        capacity = map->count + more;
    grown = realloc(map->pieces, capacity * sizeof(*grown));
    if (!grown)
        return false;
    map->pieces = grown;
    map->capacity = capacity;
    return true;
}

/* Index of the first piece that ends after `address`. */
static size_t piece_from(const struct tbd_mapping_table *map, uint64_t address)
{
    return TBD_COUNT_BEFORE(i, map->count, map->pieces[i].region.end <= address);
}

static const struct tbd_mapping_piece *find(const struct tbd_mapping_table *map, uint64_t address)
{
    size_t i = piece_from(map, address);

    return i < map->count && map->pieces[i].region.start <= address ? &map->pieces[i] : NULL;
}

static void insert_at(struct tbd_mapping_table *map, size_t i,
                      const struct tbd_mapping_piece *piece)
{
    memmove(map->pieces + i + 1, map->pieces + i, (map->count - i) * sizeof(*piece));
    map->pieces[i] = *piece;
    map->count++;
}

static void move_start(struct tbd_mapping_piece *piece, uint64_t start)
{
    if (piece->region.inode)
        piece->region.file_offset += start - piece->region.start;
    piece->region.start = start;
}

/* Makes `address` a border between pieces. */
static bool split_at(struct tbd_mapping_table *map, uint64_t address)
{
    size_t i = piece_from(map, address);
    struct tbd_mapping_piece tail;

    if (i == map->count || map->pieces[i].region.start >= address)
        return true;
    if (!map_reserve(map, 1))
        return false;
    tail = map->pieces[i];
    move_start(&tail, address);
    map->pieces[i].region.end = address;
    insert_at(map, i + 1, &tail);
    return true;
}

static void cut(struct tbd_mapping_table *map, uint64_t start, uint64_t end)
{
    size_t from = piece_from(map, start);
    size_t to = from;

    while (to < map->count && map->pieces[to].region.start < end)
        to++;
    if (to == from)
        return;
    memmove(map->pieces + from, map->pieces + to, (map->count - to) * sizeof(*map->pieces));
    map->count -= to - from;
}

/* Is `piece` a part of the mapping that `region` describes? */
static bool is_same_mapping(const struct tbd_mapping_piece *piece, const struct tbd_region *region)
{
    const struct tbd_region *old = &piece->region;

    if (old->inode != region->inode || old->device != region->device ||
        (old->map_flags ^ region->map_flags) & 3)
        return false;
    return !region->inode || old->file_offset - old->start == region->file_offset - region->start;
}

static struct tbd_mapping_piece part_of(const struct tbd_mapping_event *event, uint64_t start,
                                        uint64_t end)
{
    struct tbd_mapping_piece piece = {
        .region = event->region,
        .born = { event->when.window, event->when.order, event->when.time },
        .initial = !event->when.window && !event->when.order && !event->when.time,
    };

    move_start(&piece, start);
    piece.region.end = end;
    return piece;
}

static bool lay(struct tbd_mapping_table *map, const struct tbd_mapping_event *event)
{
    uint64_t at = event->region.start;
    uint64_t end = event->region.end;
    size_t i = piece_from(map, at);

    while (at < end) {
        bool there = i < map->count && map->pieces[i].region.start == at;
        uint64_t to = there ? map->pieces[i].region.end
                            : (i < map->count && map->pieces[i].region.start < end
                                   ? map->pieces[i].region.start
                                   : end);
        struct tbd_mapping_piece piece = part_of(event, at, to);

        if (there && is_same_mapping(&map->pieces[i], &event->region)) {
            piece.born = map->pieces[i].born;
            piece.initial = map->pieces[i].initial;
            piece.region.flags |= map->pieces[i].region.flags & TBD_REGION_ANON_ZERO;
        }
        if (there)
            map->pieces[i] = piece;
        else if (map_reserve(map, 1))
            insert_at(map, i, &piece);
        else
            return false;
        at = to;
        i++;
    }
    return true;
}

static bool apply(struct tbd_mapping_table *map, const struct tbd_mapping_event *event)
{
    if (event->region.start == event->region.end)
        return true;
    if (!split_at(map, event->region.start) || !split_at(map, event->region.end))
        return false;
    if (!event->unmap)
        return lay(map, event);
    cut(map, event->region.start, event->region.end);
    return true;
}

static bool is_after(const struct tbd_disk_when *when, const struct tbd_moment *moment)
{
    struct tbd_moment then = { when->window, when->order, when->time };

    return tbd_moment_compare(&then, moment) > 0;
}

size_t tbd_mapping_events_before(const struct tbd_trace *trace, const struct tbd_moment *moment)
{
    return TBD_COUNT_BEFORE(i, trace->mappings.event_count,
                            !is_after(&trace->mappings.events[i].when, moment));
}

size_t tbd_trace_mapping_changes(const struct tbd_trace *trace, uint32_t window)
{
    struct tbd_moment start = { .window = window };

    return tbd_mapping_events_before(trace, &start);
}

bool tbd_trace_mapping_change(const struct tbd_trace *trace, size_t number, struct tbd_region *out)
{
    if (number >= trace->mappings.event_count || trace->mappings.events[number].unmap)
        return false;
    *out = trace->mappings.events[number].region;
    return true;
}

enum tbd_status tbd_mappings_add(struct tbd_mappings *mappings,
                                 const struct tbd_mapping_event *event)
{
    if (!tbd_array_grow(&mappings->events, mappings->event_count, &mappings->event_capacity,
                        sizeof(*event)))
        return TBD_NOMEM;
    mappings->events[mappings->event_count++] = *event;
    return TBD_OK;
}

const struct tbd_mapping_event *tbd_mapping_events(const struct tbd_trace *trace, size_t *out_count)
{
    *out_count = trace->mappings.event_count;
    return trace->mappings.events;
}

enum tbd_status tbd_mappings_at_locked(struct tbd_trace *trace, size_t events,
                                       const struct tbd_mapping_table **out)
{
    struct tbd_mappings *mappings = &trace->mappings;

    *out = &mappings->table;
    if (events < mappings->at) {
        mappings->table.count = 0;
        mappings->at = 0;
    }
    while (mappings->at < events) {
        if (!apply(&mappings->table, &mappings->events[mappings->at]))
            return TBD_NOMEM;
        mappings->at++;
    }
    return TBD_OK;
}

enum tbd_status tbd_mapping_at_locked(struct tbd_trace *trace, const struct tbd_moment *at,
                                      uint64_t address, const struct tbd_mapping_piece **out)
{
    const struct tbd_mapping_table *table;
    enum tbd_status status =
        tbd_mappings_at_locked(trace, tbd_mapping_events_before(trace, at), &table);

    *out = status ? NULL : find(table, address);
    return status;
}

struct tbd_moment tbd_mapping_death(const struct tbd_trace *trace, const struct tbd_moment *at,
                                    uint64_t address)
{
    const struct tbd_mappings *mappings = &trace->mappings;

    for (size_t i = tbd_mapping_events_before(trace, at); i < mappings->event_count; i++) {
        const struct tbd_mapping_event *event = &mappings->events[i];

        if (event->unmap && event->region.start <= address && address < event->region.end)
            return (struct tbd_moment){ event->when.window, event->when.order, event->when.time };
    }
    return (struct tbd_moment){ .window = UINT32_MAX };
}

/* ---- regions for callers: neighbours with the same attributes are joined ---- */

static bool can_join(const struct tbd_region *a, const struct tbd_region *b)
{
    return a->end == b->start && a->inode == b->inode && a->device == b->device &&
           a->prot == b->prot && a->map_flags == b->map_flags && a->flags == b->flags &&
           strcmp(a->path, b->path) == 0 &&
           (!a->inode || a->file_offset + (a->end - a->start) == b->file_offset);
}

struct tbd_mapping_snapshot {
    size_t events;              /* number of events applied */
    struct tbd_region *regions; /* owned */
    size_t count;
    struct tbd_mapping_snapshot *next;
};

static struct tbd_mapping_snapshot *make_snapshot(struct tbd_mappings *mappings,
                                                  const struct tbd_mapping_table *table)
{
    struct tbd_mapping_snapshot *snapshot = calloc(1, sizeof(*snapshot));

    if (!snapshot)
        return NULL;
    snapshot->regions = calloc(table->count + 1, sizeof(*snapshot->regions));
    if (!snapshot->regions) {
        free(snapshot);
        return NULL;
    }
    for (size_t i = 0; i < table->count; i++) {
        const struct tbd_region *region = &table->pieces[i].region;
        struct tbd_region *last = snapshot->count ? &snapshot->regions[snapshot->count - 1] : NULL;

        if (last && can_join(last, region))
            last->end = region->end;
        else
            snapshot->regions[snapshot->count++] = *region;
    }
    snapshot->events = mappings->at;
    snapshot->next = mappings->snapshots;
    mappings->snapshots = snapshot;
    return snapshot;
}

static enum tbd_status regions_at(struct tbd_trace *trace, const struct tbd_moment *moment,
                                  const struct tbd_region **out, size_t *out_count,
                                  struct tbd_error *why)
{
    size_t events = tbd_mapping_events_before(trace, moment);
    const struct tbd_mapping_table *table;
    struct tbd_mapping_snapshot *snapshot;

    if (moment->window && moment->window >= trace->index.window_count)
        return tbd_error_set(why, TBD_NOWINDOW, trace->path, 0, "window %u", moment->window);
    pthread_mutex_lock(&trace->lock);
    for (snapshot = trace->mappings.snapshots; snapshot && snapshot->events != events;)
        snapshot = snapshot->next;
    if (!snapshot) {
        enum tbd_status status = tbd_mappings_at_locked(trace, events, &table);

        snapshot = status ? NULL : make_snapshot(&trace->mappings, table);
    }
    pthread_mutex_unlock(&trace->lock);
    if (!snapshot)
        return tbd_error_set(why, TBD_NOMEM, trace->path, 0, "list of mappings");
    *out = snapshot->regions;
    *out_count = snapshot->count;
    return TBD_OK;
}

enum tbd_status tbd_trace_regions(struct tbd_trace *trace, uint32_t window,
                                  const struct tbd_region **out, size_t *out_count,
                                  struct tbd_error *why)
{
    struct tbd_moment start = { .window = window };

    return regions_at(trace, &start, out, out_count, why);
}

enum tbd_status tbd_trace_regions_at(struct tbd_trace *trace, uint64_t time,
                                     const struct tbd_region **out, size_t *out_count,
                                     struct tbd_error *why)
{
    uint32_t window = tbd_trace_window_of(trace, time);
    struct tbd_moment moment = { .window = window, .order = UINT32_MAX };

    if (window == UINT32_MAX)
        return tbd_error_set(why, TBD_NOTIME, trace->path, 0, "time %lu", time);
    moment.time = time - tbd_trace_window(trace, window)->first_time;
    return regions_at(trace, &moment, out, out_count, why);
}

enum tbd_status tbd_slice_regions(struct tbd_trace *trace, const struct tbd_window *slice,
                                  const struct tbd_region **out, size_t *out_count,
                                  struct tbd_error *why)
{
    struct tbd_moment start = { .window = slice->index,
                                .order = slice->slice_order,
                                .time = slice->slice_time };

    return regions_at(trace, &start, out, out_count, why);
}

void tbd_mappings_free(struct tbd_mappings *mappings)
{
    while (mappings->snapshots) {
        struct tbd_mapping_snapshot *next = mappings->snapshots->next;

        free(mappings->snapshots->regions);
        free(mappings->snapshots);
        mappings->snapshots = next;
    }
    free(mappings->table.pieces);
    free(mappings->events);
}
