// SPDX-License-Identifier: MIT
/* timeline.c - see timeline.h
 *
 * TIMELINE-1  A slice lies in the one around it, and slices of one thread at one depth do not overlap. */
#include "query/exports/timeline.h"

#include "base/array.h"
#include "base/assert.h"
#include "query/calls/call_list.h"
#include "query/session/source/source.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static bool add_name(struct tbd_command_run *run, struct tbd_timeline *timeline,
                     const struct tbd_call_entry *enter)
{
    uint32_t window = tbd_trace_window_of(run->session->trace, enter->position.time);
    struct tbd_timeline_name *name;
    struct tbd_source_line line;
    struct tbd_symbol symbol;
    char text[256];

    if (!tbd_array_grow(&timeline->names, timeline->name_count, &timeline->name_capacity,
                        sizeof(*timeline->names)))
        return false;
    name = &timeline->names[timeline->name_count++];
    *name = (struct tbd_timeline_name){ .pc = enter->pc };
    if (tbd_symbols_at(run->session->symbols, window, enter->pc, &symbol) && symbol.name != NULL)
        name->text = strdup(symbol.name);
    else
        name->text = strdup(
            tbd_symbols_format(run->session->symbols, window, enter->pc, text, sizeof(text)));
    if (tbd_source_line_at(run->session, window, enter->pc, &line)) {
        name->file = strdup(line.file);
        name->line = line.line;
    } else {
        name->file = strdup("");
    }
    return name->text != NULL && name->file != NULL;
}

struct name_place {
    uint64_t pc;
    size_t call;
};

static int compare_places(const void *left, const void *right)
{
    const struct name_place *a = left, *b = right;

    if (a->pc != b->pc)
        return a->pc < b->pc ? -1 : 1;
    return a->call < b->call ? -1 : a->call > b->call;
}

/* The number of each call's name; in `out`, by call. */
static bool find_names(struct tbd_command_run *run, const struct tbd_call_list *list,
                       struct tbd_timeline *timeline, uint32_t *out)
{
    struct name_place *places = calloc(list->count + 1, sizeof(*places));
    bool is_good = places != NULL;

    for (size_t i = 0; is_good && i < list->count; i++)
        places[i] = (struct name_place){ list->all[i].enter.pc, i };
    if (is_good)
        qsort(places, list->count, sizeof(*places), compare_places);
    for (size_t i = 0; is_good && i < list->count; i++) {
        if (i == 0 || places[i].pc != places[i - 1].pc)
            is_good = add_name(run, timeline, &list->all[places[i].call].enter);
        out[places[i].call] = (uint32_t)timeline->name_count - 1;
    }
    free(places);
    return is_good;
}

/* ---- slices ---- */

static int compare_slices(const void *left, const void *right)
{
    const struct tbd_timeline_slice *a = left, *b = right;

    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->depth < b->depth ? -1 : a->depth > b->depth; /* the order of entry, until nest() */
}

static uint64_t end_of(const struct tbd_command_run *run, const struct tbd_listed_call *call)
{
    if (call->end == TBD_FRAME_STAYS || call->exit.time < call->enter.position.time)
        return run->session->info->blocks;
    return call->exit.time + 1;
}

/* Fills in depths, and has slices end with those around them; false without memory. */
static bool nest(struct tbd_timeline *timeline)
{
    size_t *open = calloc(timeline->count + 1, sizeof(*open)), depth = 0;

    if (open == NULL)
        return false;
    for (size_t i = 0; i < timeline->count; i++) {
        struct tbd_timeline_slice *slice = &timeline->slices[i];

        while (depth != 0 && (timeline->slices[open[depth - 1]].thread != slice->thread ||
                              timeline->slices[open[depth - 1]].end <= slice->start))
            depth--;
        if (depth != 0 && timeline->slices[open[depth - 1]].end < slice->end)
            slice->end = timeline->slices[open[depth - 1]].end;
        TBD_INVARIANT("TIMELINE-1", slice->start <= slice->end);
        slice->depth = (uint32_t)depth;
        open[depth++] = i;
    }
    free(open);
    return true;
}

static bool make_slices(struct tbd_command_run *run, const struct tbd_call_list *list,
                        struct tbd_timeline *out)
{
    uint32_t *names = calloc(list->count + 1, sizeof(*names));
    bool is_good = names != NULL && find_names(run, list, out, names);

    out->slices = calloc(list->count + 1, sizeof(*out->slices));
    is_good &= out->slices != NULL;
    for (size_t i = 0; is_good && i < list->count; i++)
        out->slices[out->count++] =
            (struct tbd_timeline_slice){ .start = list->all[i].enter.position.time,
                                         .end = end_of(run, &list->all[i]),
                                         .thread = list->all[i].enter.thread,
                                         .name = names[i],
                                         .depth = (uint32_t)i };
    free(names);
    if (is_good && out->count != 0)
        qsort(out->slices, out->count, sizeof(*out->slices), compare_slices);
    return is_good && nest(out);
}

enum tbd_exit tbd_timeline_read(struct tbd_command_run *run, struct tbd_question *question,
                                struct tbd_timeline *out)
{
    struct tbd_call_list list = { 0 };
    enum tbd_exit result;

    *out = (struct tbd_timeline){ 0 };
    result = tbd_call_list_find(run, question, &list);
    if (result == TBD_EXIT_FOUND && !make_slices(run, &list, out))
        result = tbd_command_no_memory();
    tbd_call_list_free(&list);
    return result;
}

void tbd_timeline_limit(struct tbd_timeline *timeline, uint32_t depth)
{
    size_t kept = 0;

    for (size_t i = 0; i < timeline->count; i++) {
        if (timeline->slices[i].depth < depth)
            timeline->slices[kept++] = timeline->slices[i];
    }
    timeline->count = kept;
}

void tbd_timeline_free(struct tbd_timeline *timeline)
{
    for (size_t i = 0; i < timeline->name_count; i++) {
        free(timeline->names[i].text);
        free(timeline->names[i].file);
    }
    free(timeline->names);
    free(timeline->slices);
    *timeline = (struct tbd_timeline){ 0 };
}

/* ---- the walk ---- */

struct open_slice {
    const struct tbd_timeline_slice *slice;
    uint64_t inner; /* time of the slices in it */
};

struct walking {
    const struct tbd_timeline_visitor *visitor;
    struct open_slice *open; /* owned */
    size_t depth;
};

static void close_last(struct walking *walk)
{
    struct open_slice *last = &walk->open[--walk->depth];
    uint64_t whole = last->slice->end - last->slice->start;

    if (walk->depth != 0)
        walk->open[walk->depth - 1].inner += whole;
    walk->visitor->close(walk->visitor->context, last->slice,
                         whole > last->inner ? whole - last->inner : 0);
}

bool tbd_timeline_walk(const struct tbd_timeline *timeline,
                       const struct tbd_timeline_visitor *visitor)
{
    struct walking walk = { .visitor = visitor };

    walk.open = calloc(timeline->count + 1, sizeof(*walk.open));
    if (walk.open == NULL)
        return false;
    for (size_t i = 0; i < timeline->count; i++) {
        const struct tbd_timeline_slice *slice = &timeline->slices[i];
        bool is_new = i == 0 || slice->thread != timeline->slices[i - 1].thread;

        while (walk.depth > (is_new ? 0 : slice->depth))
            close_last(&walk);
        if (is_new && visitor->thread != NULL)
            visitor->thread(visitor->context, slice->thread);
        visitor->open(visitor->context, slice);
        walk.open[walk.depth++] = (struct open_slice){ .slice = slice };
    }
    while (walk.depth != 0)
        close_last(&walk);
    free(walk.open);
    return true;
}
