// SPDX-License-Identifier: MIT
/* heap_errors.c - what a program does wrong with its heap, over the whole run
 *
 * Wrong frees follow from the calls alone: of a block that was freed already, of an address where no block
 * begins.  Accesses to freed memory are searched: blocks near each other make a range; all stores and loads in it
 * are looked at, in order, while a map says which block last had each 16 bytes.  What a thread does inside a call of
 * the allocator is the allocator's own business.  Rows are shown in the order of time.
 *
 * Vectors that reach over the ends of a live block are no errors (heap_vectors.h).  They are judged with their
 * neighbours: so a range has a page around its blocks, and a shard in which one lies at the edge is searched again
 * with some block entries of its neighbours.
 *
 * HEAP_ERRORS-1  A block that reuses memory takes its place in the map, so that an access to freed memory that was
 *     given out again is not seen. (not checked: it says what is not found) */
#include "query/heap/heap.h"
#include "query/heap/heap_shards.h"
#include "query/heap/heap_vectors.h"

#include "base/array.h"
#include "base/layout.h"
#include "query/commands/rows.h"
#include "query/output/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GRANULE         16u
#define GAP_MAX         (1u << 20) /* blocks that are nearer than this are in one range */
#define RANGE_MAX       (16ull << 30)
#define OWN_MAPPING_MIN (128u << 10)
#define RANGES_MAX      64u

struct heap_range {
    uint64_t start, end;
};

const char *const tbd_heap_error_columns[] = { "error",  "position", "addr",  "into",      "bytes",
                                               "source", "function", "freed", "allocated", NULL };

struct thread_call {
    uint32_t thread, call;
};

struct found_error {
    struct tbd_position at;
    const char *error;
    uint64_t address;
    json_t *row; /* owned */
};

struct checking {
    struct tbd_command_run *run;
    const struct tbd_heap *heap;
    struct found_error *found; /* owned */
    size_t found_count, found_capacity;
    struct heap_range range;     /* being searched */
    uint32_t *map;               /* owned: 1 + the block, for each granule of the range */
    uint8_t *shown;              /* owned: rows of each block */
    size_t change, call;         /* the next ones in time */
    struct thread_call *threads; /* owned: the last call of each thread */
    size_t thread_count, thread_capacity;
    struct tbd_heap_vectors vectors;
    struct tbd_asked_span asked, wide; /* the times that are asked, with some around a shard's */
    bool is_wide;                      /* that is searched */
    bool is_at_edge;                   /* a vector was judged without some of its neighbours */
    bool no_memory;
};

/* Does the question, or the shard, ask about this time? */
static bool is_asked(const struct checking *c, uint64_t time)
{
    return (!c->asked.has_since || time >= c->asked.since) &&
           (!c->asked.has_until || time < c->asked.until);
}

/* ---- rows ---- */

static void put_block(struct checking *c, const struct tbd_heap_block *block,
                      struct tbd_position at, json_t *row)
{
    const struct tbd_heap *heap = c->heap;
    char text[2048];

    json_object_set_new(row, "bytes", json_integer((json_int_t)block->size));
    tbd_heap_stack_text(c->run, heap, block->made, 4, text, sizeof(text));
    json_object_set_new(row, "allocated", tbd_output_text(text));
    json_object_set_new(row, "allocated_at", tbd_rows_position(heap->calls[block->made].enter));
    if (block->freed == TBD_HEAP_NONE ||
        tbd_position_compare(heap->calls[block->freed].enter, at) >= 0)
        return;
    tbd_heap_stack_text(c->run, heap, block->freed, 4, text, sizeof(text));
    json_object_set_new(row, "freed", tbd_output_text(text));
    json_object_set_new(row, "freed_at", tbd_rows_position(heap->calls[block->freed].enter));
}

static void add_row(struct checking *c, const char *error, const struct tbd_event *event,
                    uint32_t block, uint64_t address)
{
    json_t *row;
    char text[300];

    if (!tbd_array_grow(&c->found, c->found_count, &c->found_capacity, sizeof(*c->found))) {
        c->no_memory = true;
        return;
    }
    row = json_object();
    c->found[c->found_count++] = (struct found_error){ event->position, error, address, row };

    json_object_set_new(row, "error", json_string(error));
    json_object_set_new(row, "position", tbd_rows_position(event->position));
    json_object_set_new(row, "thread", json_integer(event->thread));
    snprintf(text, sizeof(text), "0x%" PRIx64, address);
    json_object_set_new(row, "addr", json_string(text));
    tbd_output_symbol(c->run->session,
                      tbd_trace_window_of(c->run->session->trace, event->position.time), event->pc,
                      row);
    if (json_object_get(row, "file") != NULL) {
        const char *file = json_string_value(json_object_get(row, "file"));

        tbd_output_source_cell(file, (uint32_t)json_integer_value(json_object_get(row, "line")),
                               row);
    }
    if (block != TBD_HEAP_NONE) {
        json_object_set_new(row, "into",
                            json_integer((json_int_t)(address - c->heap->blocks[block].start)));
        put_block(c, &c->heap->blocks[block], event->position, row);
    }
}

static int compare_errors(const void *left, const void *right)
{
    const struct found_error *a = left, *b = right;
    int order = tbd_position_compare(a->at, b->at);

    if (order == 0)
        order = strcmp(a->error, b->error);
    return order != 0 ? order : (a->address > b->address) - (a->address < b->address);
}

static void show_errors(struct checking *c, struct tbd_rows *rows)
{
    if (c->found_count != 0)
        qsort(c->found, c->found_count, sizeof(*c->found), compare_errors);
    for (size_t i = 0; i < c->found_count; i++)
        tbd_rows_add(rows, json_incref(c->found[i].row));
}

static void forget_errors(struct checking *c, size_t from)
{
    while (c->found_count > from)
        json_decref(c->found[--c->found_count].row);
}

/* ---- wrong frees ---- */

/* The block that an address was in before `change`, freed. */
static uint32_t earlier_block(const struct tbd_heap *heap, size_t change, uint64_t address)
{
    while (change-- > 0) {
        const struct tbd_heap_change *before = &heap->changes[change];

        if (before->block == TBD_HEAP_NONE)
            continue;
        if (address - heap->blocks[before->block].start < heap->blocks[before->block].size ||
            address == heap->blocks[before->block].start)
            return before->block;
    }
    return TBD_HEAP_NONE;
}

static void check_frees(struct checking *c)
{
    const struct tbd_heap *heap = c->heap;

    for (size_t i = 0; i < heap->change_count; i++) {
        const struct tbd_heap_change *change = &heap->changes[i];
        const struct tbd_heap_call *call = &heap->calls[change->call];
        struct tbd_event event = { .position = change->at, .thread = call->thread };
        uint32_t block;
        bool is_freed;

        if (!change->is_free || change->block != TBD_HEAP_NONE || !is_asked(c, change->at.time))
            continue;
        block = earlier_block(heap, i, call->old);
        is_freed =
            block != TBD_HEAP_NONE && heap->blocks[block].freed != TBD_HEAP_NONE &&
            tbd_position_compare(heap->calls[heap->blocks[block].freed].enter, change->at) < 0;
        event.pc = call->frame_count == 0 ? 0 : heap->frames[call->frames];
        add_row(c,
                block == TBD_HEAP_NONE                               ? "free of no block"
                : is_freed && heap->blocks[block].start == call->old ? "double free"
                                                                     : "free inside a block",
                &event, block, call->old);
    }
}

/* glibc gives such a block a mapping of its own, which is gone when it is freed: others may have these addresses. */
static bool has_own_mapping(const struct tbd_heap_block *block)
{
    return block->size >= OWN_MAPPING_MIN &&
           (block->start & (TBD_PAGE_SIZE - 1)) == 2 * sizeof(void *);
}

/* ---- accesses ---- */

/* The map, as of a position. */
static void go_on(struct checking *c, struct tbd_position to)
{
    const struct tbd_heap *heap = c->heap;

    for (; c->change < heap->change_count; c->change++) {
        const struct tbd_heap_change *change = &heap->changes[c->change];
        const struct tbd_heap_block *block;
        uint64_t start, end;

        if (tbd_position_compare(change->at, to) > 0)
            return;
        if (change->is_free || change->block == TBD_HEAP_NONE)
            continue;
        block = &heap->blocks[change->block];
        start = block->start > c->range.start ? block->start : c->range.start;
        end = block->start + block->size < c->range.end ? block->start + block->size : c->range.end;
        if (has_own_mapping(block))
            continue;
        for (uint64_t at = start; at < end; at += GRANULE)
            c->map[(at - c->range.start) / GRANULE] = change->block + 1;
    }
}

/* The last call of a thread that began. */
static struct thread_call *last_call(struct checking *c, uint32_t thread)
{
    for (size_t i = 0; i < c->thread_count; i++) {
        if (c->threads[i].thread == thread)
            return &c->threads[i];
    }
    if (!tbd_array_grow(&c->threads, c->thread_count, &c->thread_capacity, sizeof(*c->threads))) {
        c->no_memory = true;
        return NULL;
    }
    c->threads[c->thread_count] = (struct thread_call){ thread, TBD_HEAP_NONE };
    return &c->threads[c->thread_count++];
}

static bool is_in_allocator(struct checking *c, const struct tbd_event *event)
{
    const struct tbd_heap *heap = c->heap;
    struct thread_call *last;

    for (; c->call < heap->call_count &&
           tbd_position_compare(heap->calls[c->call].enter, event->position) <= 0;
         c->call++) {
        last = last_call(c, heap->calls[c->call].thread);
        if (last != NULL)
            last->call = (uint32_t)c->call;
    }
    last = last_call(c, event->thread);
    if (last == NULL || last->call == TBD_HEAP_NONE)
        return false;
    return !heap->calls[last->call].has_ended ||
           tbd_position_compare(event->position, heap->calls[last->call].exit) <= 0;
}

/* Is the block with this number in the map freed by then? */
static bool is_freed_by(const struct checking *c, uint32_t number, struct tbd_position position)
{
    const struct tbd_heap_block *block = &c->heap->blocks[number - 1];

    return block->freed != TBD_HEAP_NONE &&
           tbd_position_compare(c->heap->calls[block->freed].enter, position) < 0;
}

/* Does the access touch a block that is not freed? */
static bool touches_live(const struct checking *c, const struct tbd_event *event)
{
    uint64_t end = event->addr + event->size;

    for (uint64_t at = event->addr & ~(uint64_t)(GRANULE - 1); at < end && at < c->range.end;
         at += GRANULE) {
        uint32_t number = c->map[(at - c->range.start) / GRANULE];

        if (number != 0 && !is_freed_by(c, number, event->position))
            return true;
    }
    return false;
}

/* Is the block with this number in the map freed, and the access in it? */
static bool is_in_freed(const struct checking *c, uint32_t number, const struct tbd_event *event)
{
    const struct tbd_heap_block *block = &c->heap->blocks[number - 1];

    return event->addr - block->start < block->size && is_freed_by(c, number, event->position);
}

static void add_access(struct checking *c, const struct tbd_event *event, uint32_t block)
{
    if (!is_asked(c, event->position.time) || c->shown[block] >= TBD_HEAP_ERRORS_SHOWN)
        return;
    c->shown[block]++;
    add_row(c, event->type == TBD_EVENT_STORE ? "store after free" : "load after free", event,
            block, event->addr);
}

static void add_vector(void *context, const struct tbd_waiting_vector *vector)
{
    add_access(context, &vector->event, vector->block);
}

/* May neighbours of the vector lie beyond the shard? */
static bool is_near_edge(const struct checking *c, uint64_t time)
{
    return (c->wide.since < c->asked.since && time < c->asked.since + TBD_HEAP_EDGE) ||
           (c->wide.until > c->asked.until && time + TBD_HEAP_EDGE >= c->asked.until);
}

static bool check_access(void *context, const struct tbd_event *event)
{
    struct checking *c = context;
    uint32_t number, block = TBD_HEAP_NONE;
    enum tbd_vector_answer answer;

    if (event->addr < c->range.start || event->addr >= c->range.end)
        return true;
    go_on(c, event->position);
    tbd_heap_vectors_settle(&c->vectors, &event->position, add_vector, c);
    number = c->map[(event->addr - c->range.start) / GRANULE];
    if (is_in_allocator(c, event))
        return !c->no_memory;
    if (number != 0 && is_in_freed(c, number, event))
        block = number - 1;
    answer = tbd_heap_vectors_take(&c->vectors, event,
                                   event->size > sizeof(uint64_t) && touches_live(c, event), block);
    c->is_at_edge |= block != TBD_HEAP_NONE && event->size > sizeof(uint64_t) &&
                     is_near_edge(c, event->position.time);
    if (block != TBD_HEAP_NONE && answer == TBD_VECTOR_IS_NONE)
        add_access(c, event, block);
    return !c->no_memory;
}

static enum tbd_exit search_once(struct checking *c, enum tbd_event_type type)
{
    struct tbd_question question = tbd_question_all(type);
    enum tbd_exit result;

    c->map = calloc((size_t)((c->range.end - c->range.start) / GRANULE + 1), sizeof(*c->map));
    if (c->map == NULL) {
        tbd_question_free(&question);
        return tbd_command_no_memory();
    }
    c->change = c->call = c->thread_count = 0;
    c->vectors = (struct tbd_heap_vectors){ .session = c->run->session };
    memset(c->shown, 0, c->heap->block_count);
    tbd_question_where(&question, tbd_expr_touches(c->range.start, c->range.end - c->range.start));
    tbd_heap_narrow(&question, c->is_wide ? &c->wide : &c->asked);
    result = tbd_command_each(c->run, &question, check_access, c);
    tbd_heap_vectors_settle(&c->vectors, NULL, add_vector, c);
    free(c->map);
    c->map = NULL;
    return c->no_memory ? tbd_command_no_memory() : result;
}

static enum tbd_exit search_range(struct checking *c, enum tbd_event_type type)
{
    size_t before = c->found_count;
    enum tbd_exit result;

    c->is_at_edge = false;
    result = search_once(c, type);
    if (!c->is_at_edge || result > TBD_EXIT_NOT_FOUND)
        return result;
    forget_errors(c, before);
    c->is_wide = true;
    result = search_once(c, type);
    c->is_wide = false;
    return result;
}

/* ---- ranges ---- */

static int compare_ranges(const void *left, const void *right)
{
    const struct heap_range *a = left, *b = right;

    return a->start < b->start ? -1 : a->start > b->start;
}

/* A page before and after a block. */
static struct heap_range around(const struct tbd_heap_block *block)
{
    uint64_t start = block->start & ~(uint64_t)(GRANULE - 1);

    return (struct heap_range){ start < TBD_PAGE_SIZE ? 0 : start - TBD_PAGE_SIZE,
                                block->start + block->size + TBD_PAGE_SIZE };
}

/* Ranges of blocks that were freed; `out` has space for one of each. */
static size_t find_ranges(const struct tbd_heap *heap, struct heap_range *out)
{
    size_t count = 0, used = 0;

    for (size_t i = 0; i < heap->block_count; i++) {
        const struct tbd_heap_block *block = &heap->blocks[i];

        if (block->freed != TBD_HEAP_NONE && block->size < RANGE_MAX && !has_own_mapping(block))
            out[count++] = around(block);
    }
    if (count == 0)
        return 0;
    qsort(out, count, sizeof(*out), compare_ranges);
    for (size_t i = 1; i < count; i++) {
        if (out[i].start < out[used].end + GAP_MAX && out[i].end - out[used].start < RANGE_MAX) {
            if (out[i].end > out[used].end)
                out[used].end = out[i].end;
        } else {
            out[++used] = out[i];
        }
    }
    if (used + 1 > RANGES_MAX)
        fprintf(
            stderr,
            "tbdq: note: freed blocks lie in %zu places far from each other; accesses to those of the "
            "first %u are looked for\n",
            used + 1, RANGES_MAX);
    return used + 1 < RANGES_MAX ? used + 1 : RANGES_MAX;
}

static enum tbd_exit check_accesses(struct checking *c)
{
    struct heap_range *ranges = calloc(c->heap->block_count + 1, sizeof(*ranges));
    enum tbd_exit result = TBD_EXIT_FOUND;
    size_t count = ranges == NULL ? 0 : find_ranges(c->heap, ranges);

    if (ranges == NULL)
        return tbd_command_no_memory();
    for (size_t i = 0; i < count && result <= TBD_EXIT_NOT_FOUND; i++) {
        c->range = ranges[i];
        result = search_range(c, TBD_EVENT_STORE);
        if (result <= TBD_EXIT_NOT_FOUND)
            result = search_range(c, TBD_EVENT_LOAD);
    }
    free(ranges);
    return result;
}

enum tbd_exit tbd_heap_errors(struct tbd_command_run *run, const struct tbd_heap *heap)
{
    struct tbd_rows rows;
    struct checking c = { .run = run,
                          .heap = heap,
                          .asked = run->session->span,
                          .wide = tbd_heap_span_around(run->session) };
    enum tbd_exit result = TBD_EXIT_SYSTEM;

    tbd_rows_start(&rows, run, tbd_heap_error_columns);
    c.shown = calloc(heap->block_count + 1, 1);
    if (c.shown != NULL) {
        check_frees(&c);
        result = check_accesses(&c);
    }
    free(c.shown);
    free(c.threads);
    if (result <= TBD_EXIT_NOT_FOUND)
        show_errors(&c, &rows);
    forget_errors(&c, 0);
    free(c.found);
    if (result <= TBD_EXIT_NOT_FOUND)
        return tbd_rows_end(&rows);
    tbd_rows_drop(&rows);
    return result;
}
