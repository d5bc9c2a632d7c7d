// SPDX-License-Identifier: MIT
/* thread_table.c - threads in the files of a trace
 *
 * Invariants
 * THREAD_TABLE-1  Nothing in the index is trusted: a thread that ends without a start, or a window
 *     that the index does not have, is skipped; only sizes must be right. (not checked: it is what
 *     decoding checks of its input) */
#include "format/trace/thread_table.h"

#include "base/array.h"
#include "base/binary_search.h"
#include "format/trace/trace_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- the index ---- */

static enum tbd_status read_event(struct tbd_thread_table *table,
                                  const struct tbd_record_view *record)
{
    struct tbd_thread_event_note note;

    if (record->bytes < sizeof(note))
        return TBD_CORRUPT;
    memcpy(&note.when, record->payload, sizeof(note.when));
    memcpy(&note.thread, record->payload + sizeof(note.when), sizeof(note.thread));
    if (!tbd_array_grow(&table->events, table->event_count, &table->event_capacity, sizeof(note)))
        return TBD_NOMEM;
    table->events[table->event_count++] = note;
    return TBD_OK;
}

static enum tbd_status read_ran(struct tbd_thread_table *table,
                                const struct tbd_record_view *record)
{
    struct tbd_disk_when when;
    struct tbd_ran ran;

    if (record->bytes < sizeof(when) + sizeof(struct tbd_disk_ran))
        return TBD_CORRUPT;
    memcpy(&when, record->payload, sizeof(when));
    if (table->ran_count && table->ran[table->ran_count - 1].window >= when.window)
        return TBD_CORRUPT;
    ran = (struct tbd_ran){
        .window = when.window,
        .count = (uint32_t)((record->bytes - sizeof(when)) / sizeof(struct tbd_disk_ran)),
        .records = record->payload + sizeof(when),
    };
    if (!tbd_array_grow(&table->ran, table->ran_count, &table->ran_capacity, sizeof(ran)))
        return TBD_NOMEM;
    table->ran[table->ran_count++] = ran;
    return TBD_OK;
}

enum tbd_status tbd_thread_table_read(struct tbd_thread_table *table,
                                      const struct tbd_record_view *record)
{
    return record->type == TBD_REC_THREAD ? read_event(table, record) : read_ran(table, record);
}

void tbd_thread_table_free(struct tbd_thread_table *table)
{
    for (size_t i = 0; i < table->sum_count; i++)
        free(table->sums[i]);
    free(table->sums);
    free(table->events);
    free(table->ran);
    free(table->threads);
    *table = (struct tbd_thread_table){ 0 };
}

/* The record of this window, or the latest before; NULL: the main thread has had control all the
 * time. */
static const struct tbd_ran *ran_until(const struct tbd_thread_table *table, uint32_t window)
{
    size_t upto = TBD_COUNT_BEFORE(i, table->ran_count, table->ran[i].window <= window);

    return upto ? &table->ran[upto - 1] : NULL;
}

static struct tbd_disk_ran ran_entry(const struct tbd_ran *ran, uint32_t i)
{
    struct tbd_disk_ran entry;

    memcpy(&entry, ran->records + i * sizeof(entry), sizeof(entry));
    return entry;
}

/* ---- windows that were merged ---- */

/* Adds up which threads ran; the one that had control last comes last. */
static bool add_ran(struct tbd_disk_ran **sum, size_t *count, size_t *capacity,
                    const struct tbd_disk_ran *more, bool is_last)
{
    struct tbd_disk_ran *list = *sum;
    struct tbd_disk_ran entry = *more;
    size_t i = 0;

    while (i < *count && list[i].thread != more->thread)
        i++;
    if (i == *count) {
        if (!tbd_array_grow(sum, *count, capacity, sizeof(*list)))
            return false;
        (*sum)[(*count)++] = entry;
        return true;
    }
    list[i].switches += more->switches;
    list[i].blocks += more->blocks;
    if (is_last) {
        entry = list[i];
        memmove(list + i, list + i + 1, (*count - i - 1) * sizeof(*list));
        list[*count - 1] = entry;
    }
    return true;
}

/* The sum of the parts' records; in a part without a record its running thread ran all the time. */
static struct tbd_disk_ran *sum_ran(const struct tbd_trace *trace, uint32_t first, uint32_t count,
                                    size_t *out_count)
{
    struct tbd_disk_ran *sum = NULL;
    size_t capacity = 0;

    *out_count = 0;
    for (uint32_t w = first; w < first + count; w++) {
        const struct tbd_window_summary *window = tbd_trace_window(trace, w);
        const struct tbd_ran *ran = ran_until(&trace->threads, window->number);
        bool has_own = ran && ran->window == window->number;
        struct tbd_disk_ran all = {
            .thread = ran ? ran_entry(ran, ran->count - 1).thread : trace->info.main_thread,
            .blocks = window->blocks,
        };

        for (uint32_t i = 0; i < (has_own ? ran->count : 1); i++) {
            if (has_own)
                all = ran_entry(ran, i);
            if (!add_ran(&sum, out_count, &capacity, &all, !has_own || i + 1 == ran->count)) {
                free(sum);
                return NULL;
            }
        }
    }
    return sum;
}

static enum tbd_status merge_ran(struct tbd_trace *trace, size_t from, size_t to, uint32_t first,
                                 uint32_t count)
{
    struct tbd_thread_table *table = &trace->threads;
    struct tbd_disk_ran *sum;
    size_t sum_count;

    if (from == to)
        return TBD_OK;
    sum = sum_ran(trace, first, count, &sum_count);
    if (!sum || !tbd_array_grow(&table->sums, table->sum_count, &table->sum_capacity,
                                sizeof(*table->sums))) {
        free(sum);
        return TBD_NOMEM;
    }
    table->sums[table->sum_count++] = sum;
    table->ran[from] = (struct tbd_ran){ .window = tbd_trace_window(trace, first)->number,
                                         .count = (uint32_t)sum_count,
                                         .records = (const uint8_t *)sum };
    memmove(table->ran + from + 1, table->ran + to, (table->ran_count - to) * sizeof(*table->ran));
    table->ran_count -= to - from - 1;
    return TBD_OK;
}

enum tbd_status tbd_thread_table_merge(struct tbd_trace *trace, uint32_t first, uint32_t count,
                                       const uint8_t *shifts)
{
    struct tbd_thread_table *table = &trace->threads;
    const struct tbd_window_summary *begin = tbd_trace_window(trace, first);
    const struct tbd_window_summary *last = tbd_trace_window(trace, first + count - 1);
    size_t from = 0, to;

    for (size_t i = 0; i < table->event_count; i++) {
        struct tbd_disk_when *when = &table->events[i].when;
        uint32_t place = tbd_trace_window_with(trace, when->window);
        struct tbd_disk_shift shift;

        if (place < first || place >= first + count)
            continue;
        memcpy(&shift, shifts + (place - first) * sizeof(shift), sizeof(shift));
        when->window = begin->number;
        when->time += shift.time;
        when->order += shift.order;
    }
    while (from < table->ran_count && table->ran[from].window < begin->number)
        from++;
    for (to = from; to < table->ran_count && table->ran[to].window <= last->number;)
        to++;
    return merge_ran(trace, from, to, first, count);
}

void tbd_thread_table_place(struct tbd_trace *trace,
                            uint32_t (*place)(const struct tbd_trace *trace, uint32_t number))
{
    struct tbd_thread_table *table = &trace->threads;

    for (size_t i = 0; i < table->event_count; i++)
        table->events[i].when.window = place(trace, table->events[i].when.window);
    for (size_t i = 0; i < table->ran_count; i++)
        table->ran[i].window = place(trace, table->ran[i].window);
}

/* ---- the table, once the index is read ---- */

/* The latest thread with this tid. */
static struct tbd_thread_info *latest(struct tbd_thread_table *table, uint32_t tid)
{
    for (size_t i = table->thread_count; i-- > 0;)
        if (table->threads[i].tid == tid)
            return &table->threads[i];
    return NULL;
}

static bool add_thread(struct tbd_thread_table *table, uint32_t tid, uint32_t creator,
                       uint64_t time)
{
    if (!tbd_array_grow(&table->threads, table->thread_count, &table->thread_capacity,
                        sizeof(*table->threads)))
        return false;
    table->threads[table->thread_count++] = (struct tbd_thread_info){
        .tid = tid,
        .creator = creator,
        .start_time = time,
        .end_time = UINT64_MAX,
    };
    return true;
}

static bool apply_event(struct tbd_thread_table *table, const struct tbd_thread_event_note *note,
                        uint64_t time)
{
    const struct tbd_disk_thread *event = &note->thread;
    struct tbd_thread_info *thread = latest(table, event->thread);

    if (event->event == TBD_THREAD_START)
        return add_thread(table, event->thread, event->from, time);
    if (thread && event->event == TBD_THREAD_END && !thread->has_ended) {
        thread->has_ended = true;
        thread->end_time = time;
        thread->status = event->value;
    }
    if (thread && event->event == TBD_DISK_THREAD_NAMED) {
        thread->name_time = time;
        thread->name_address = event->name;
    }
    return true;
}

static struct tbd_thread_info *find(const struct tbd_thread_table *table, uint32_t tid,
                                    uint64_t time)
{
    struct tbd_thread_info *found = NULL;

    for (size_t i = 0; i < table->thread_count; i++) {
        struct tbd_thread_info *thread = &table->threads[i];

        if (thread->tid == tid && (!found || thread->start_time <= time))
            found = thread;
    }
    return found;
}

static void count(struct tbd_trace *trace, struct tbd_window_summary *summary,
                  const struct tbd_disk_ran *ran)
{
    uint64_t last = summary->first_time + (summary->blocks ? summary->blocks - 1 : 0);
    struct tbd_thread_info *thread = find(&trace->threads, ran->thread, last);

    summary->switches += ran->switches;
    trace->info.switches += ran->switches;
    if (thread)
        thread->blocks += ran->blocks;
    if (thread)
        thread->switches += ran->switches;
}

static void count_all(struct tbd_trace *trace)
{
    struct tbd_disk_ran running = { .thread = trace->info.main_thread };

    for (uint32_t w = 0; w < trace->index.window_count; w++) {
        struct tbd_window_summary *summary = &trace->index.windows[w].summary;
        const struct tbd_ran *ran = ran_until(&trace->threads, w);

        if (!ran || ran->window != w) {
            running.switches = 0;
            running.blocks = summary->blocks;
            count(trace, summary, &running);
            continue;
        }
        for (uint32_t i = 0; i < ran->count; i++) {
            running = ran_entry(ran, i);
            count(trace, summary, &running);
        }
    }
}

enum tbd_status tbd_threads_settle(struct tbd_trace *trace)
{
    struct tbd_thread_table *table = &trace->threads;

    if (!add_thread(table, trace->info.main_thread, 0, 0))
        return TBD_NOMEM;
    for (size_t i = 0; i < table->event_count; i++) {
        const struct tbd_thread_event_note *note = &table->events[i];
        const struct tbd_window_summary *summary = tbd_trace_window(trace, note->when.window);

        if (summary && note->when.time <= summary->blocks &&
            !apply_event(table, note, summary->first_time + note->when.time))
            return TBD_NOMEM;
    }
    count_all(trace);
    return TBD_OK;
}

uint32_t tbd_trace_thread_count(const struct tbd_trace *trace)
{
    return (uint32_t)trace->threads.thread_count;
}

const struct tbd_thread_info *tbd_trace_thread(const struct tbd_trace *trace, uint32_t index)
{
    return index < trace->threads.thread_count ? &trace->threads.threads[index] : NULL;
}

const struct tbd_thread_info *tbd_trace_thread_of(const struct tbd_trace *trace, uint32_t tid,
                                                  uint64_t time)
{
    return find(&trace->threads, tid, time);
}

bool tbd_trace_thread_ran(const struct tbd_trace *trace, uint32_t window, uint32_t tid)
{
    const struct tbd_ran *ran = ran_until(&trace->threads, window);

    if (!ran)
        return tid == trace->info.main_thread;
    if (ran->window != window)
        return tid == ran_entry(ran, ran->count - 1).thread;
    for (uint32_t i = 0; i < ran->count; i++)
        if (ran_entry(ran, i).thread == tid)
            return true;
    return false;
}

const struct tbd_thread_table *tbd_trace_threads(const struct tbd_trace *trace)
{
    return &trace->threads;
}
