// SPDX-License-Identifier: MIT
/* heap_rows.c - heap: the blocks that live at a position, those that contained an address, what was done wrong
 *
 *   heap [leaks]        live blocks, by the stack of calls that allocated them; leaks: at the end of the recording
 *   heap of ADDR        each block that contained it: who allocated and who freed it, and the stores to it
 *   heap errors         wrong frees, and accesses to freed memory */
#include "query/heap/heap.h"
#include "query/heap/heap_shards.h"

#include "query/commands/rows.h"
#include "query/output/output.h"
#include "query/output/output_stack.h"
#include "query/output/shard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- stacks as text ---- */

void tbd_heap_stack_text(struct tbd_command_run *run, const struct tbd_heap *heap, uint32_t call,
                         size_t max, char *out, size_t bytes)
{
    const struct tbd_heap_call *own = &heap->calls[call];
    struct tbd_output_stack stack = {
        .name = own->name,
        .pcs = heap->frames + own->frames,
        .count = own->frame_count < max ? own->frame_count : max,
    };

    if (heap->texts != NULL) {
        snprintf(out, bytes, "%s", own->frame_count == 0 ? "" : heap->texts[own->frames]);
        return;
    }
    stack.window = tbd_trace_window_of(run->session->trace, own->enter.time);
    tbd_output_stack_text(run->session, &stack, out, bytes);
}

static void put_stack(struct tbd_command_run *run, const struct tbd_heap *heap, uint32_t call,
                      const char *key, json_t *row)
{
    char text[2048];

    if (call == TBD_HEAP_NONE) {
        json_object_set_new(row, key, json_null());
        return;
    }
    tbd_heap_stack_text(run, heap, call, TBD_HEAP_FRAMES_MAX, text, sizeof(text));
    json_object_set_new(row, key, tbd_output_text(text));
}

/* ---- live blocks ---- */

/* Live blocks whose calls have one stack. */
struct heap_group {
    uint64_t bytes, blocks;
    uint32_t call, first, last; /* one of the calls; the blocks made first and last */
    char *text;                 /* owned: its stack */
};

static int compare_by_stack(const void *left, const void *right, void *context)
{
    const struct tbd_heap *heap = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int order = tbd_heap_compare_stacks(heap, heap->blocks[a].made, heap->blocks[b].made);

    return order != 0 ? order : a < b ? -1 : a > b;
}

static int compare_groups(const void *left, const void *right)
{
    const struct heap_group *a = left, *b = right;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* The blocks that live at `position`; how many. */
static size_t find_live(const struct tbd_heap *heap, struct tbd_position position, uint32_t *out)
{
    size_t count = 0;

    for (uint32_t i = 0; i < heap->block_count; i++) {
        const struct tbd_heap_block *block = &heap->blocks[i];

        if (tbd_position_compare(heap->calls[block->made].exit, position) > 0 ||
            (block->freed != TBD_HEAP_NONE &&
             tbd_position_compare(heap->calls[block->freed].enter, position) <= 0))
            continue;
        out[count++] = i;
    }
    return count;
}

static int compare_texts(const void *left, const void *right)
{
    const struct heap_group *a = left, *b = right;

    return strcmp(a->text, b->text);
}

/* An address of a call is that of its first byte, or of its last where the stack was found by unwinding: two
 * groups may be of one stack.  `groups` is in the order of texts. */
static size_t join_groups(struct heap_group *groups, size_t count)
{
    size_t used = 0;

    for (size_t i = 1; i < count; i++) {
        struct heap_group *to = &groups[used];

        if (strcmp(to->text, groups[i].text) != 0) {
            groups[++used] = groups[i];
            continue;
        }
        to->bytes += groups[i].bytes;
        to->blocks += groups[i].blocks;
        to->first = groups[i].first < to->first ? groups[i].first : to->first;
        to->last = groups[i].last > to->last ? groups[i].last : to->last;
        free(groups[i].text);
    }
    return count == 0 ? 0 : used + 1;
}

/* Fills in the texts and joins; false without memory. */
static bool name_groups(struct tbd_command_run *run, const struct tbd_heap *heap,
                        struct heap_group *groups, size_t *io_count)
{
    char text[4096];
    bool is_good = true;

    for (size_t i = 0; i < *io_count; i++) {
        tbd_heap_stack_text(run, heap, groups[i].call, TBD_HEAP_FRAMES_MAX, text, sizeof(text));
        groups[i].text = strdup(text);
        is_good &= groups[i].text != NULL;
    }
    if (!is_good)
        return false;
    qsort(groups, *io_count, sizeof(*groups), compare_texts);
    *io_count = join_groups(groups, *io_count);
    qsort(groups, *io_count, sizeof(*groups), compare_groups);
    return true;
}

static size_t make_groups(struct tbd_heap *heap, uint32_t *live, size_t count,
                          struct heap_group *out)
{
    size_t used = 0;

    qsort_r(live, count, sizeof(*live), compare_by_stack, heap);
    for (size_t i = 0; i < count; i++) {
        const struct tbd_heap_block *block = &heap->blocks[live[i]];

        if (used == 0 || tbd_heap_compare_stacks(heap, out[used - 1].call, block->made) != 0)
            out[used++] = (struct heap_group){ .call = block->made, .first = live[i] };
        out[used - 1].bytes += block->size;
        out[used - 1].blocks++;
        out[used - 1].last = live[i];
    }
    return used;
}

static json_t *group_row(const struct tbd_heap *heap, const struct heap_group *group)
{
    json_t *row = json_object();

    json_object_set_new(row, "bytes", json_integer((json_int_t)group->bytes));
    json_object_set_new(row, "blocks", json_integer((json_int_t)group->blocks));
    json_object_set_new(row, "first",
                        tbd_rows_position(heap->calls[heap->blocks[group->first].made].enter));
    json_object_set_new(row, "last",
                        tbd_rows_position(heap->calls[heap->blocks[group->last].made].enter));
    json_object_set_new(row, "allocated", tbd_output_text(group->text));
    return row;
}

static void print_total(const struct tbd_command_run *run, const struct tbd_heap *heap,
                        const struct heap_group *groups, size_t count)
{
    uint64_t bytes = 0, blocks = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += groups[i].bytes;
        blocks += groups[i].blocks;
    }
    if (!run->session->json && !run->session->csv)
        fprintf(run->out, "%" PRIu64 " bytes in %" PRIu64 " blocks live, of %zu allocated\n", bytes,
                blocks, heap->block_count);
}

enum tbd_exit tbd_heap_print_live(struct tbd_command_run *run, struct tbd_heap *heap,
                                  struct tbd_position position)
{
    static const char *const columns[] = { "bytes", "blocks", "first", "last", "allocated", NULL };
    uint32_t *live = calloc(heap->block_count + 1, sizeof(*live));
    struct heap_group *groups = calloc(heap->block_count + 1, sizeof(*groups));
    enum tbd_exit result = TBD_EXIT_NOT_FOUND;
    struct tbd_rows rows;
    size_t count = 0;

    if (live != NULL && groups != NULL) {
        count = find_live(heap, position, live);
        count = make_groups(heap, live, count, groups);
    }
    if (live == NULL || groups == NULL || !name_groups(run, heap, groups, &count)) {
        result = tbd_command_no_memory();
    } else {
        print_total(run, heap, groups, count);
        tbd_rows_start(&rows, run, columns);
        for (size_t i = 0; i < count; i++)
            tbd_rows_add(&rows, group_row(heap, &groups[i]));
        result = tbd_rows_end(&rows);
    }
    for (size_t i = 0; groups != NULL && i < count; i++)
        free(groups[i].text);
    free(live);
    free(groups);
    return result;
}

/* ---- one address ---- */

struct stores {
    const struct tbd_heap *heap;
    const struct tbd_heap_block *block;
    uint64_t count;
    struct tbd_position last;
};

static bool count_store(void *context, const struct tbd_event *event)
{
    struct stores *stores = context;

    stores->count++;
    stores->last = event->position;
    return true;
}

/* Stores to the block from its allocation to its end. */
static enum tbd_exit find_stores(struct tbd_command_run *run, struct stores *stores)
{
    const struct tbd_heap_call *made = &stores->heap->calls[stores->block->made];
    struct tbd_question question = tbd_question_after(made->exit, TBD_EVENT_STORE);

    tbd_question_where(
        &question,
        tbd_expr_touches(stores->block->start, stores->block->size == 0 ? 1 : stores->block->size));
    if (stores->block->freed != TBD_HEAP_NONE)
        tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_LT,
                                 stores->heap->calls[stores->block->freed].enter.time);
    tbd_heap_narrow(&question, &run->session->span);
    return tbd_command_each(run, &question, count_store, stores);
}

static json_t *block_row(struct tbd_command_run *run, const struct tbd_heap *heap,
                         const struct tbd_heap_block *block, const struct stores *stores)
{
    json_t *row = json_object();
    char text[32];

    snprintf(text, sizeof(text), "0x%" PRIx64, block->start);
    json_object_set_new(row, "block", json_string(text));
    json_object_set_new(row, "bytes", json_integer((json_int_t)block->size));
    json_object_set_new(row, "from", tbd_rows_position(heap->calls[block->made].exit));
    json_object_set_new(row, "to",
                        block->freed == TBD_HEAP_NONE
                            ? json_null()
                            : tbd_rows_position(heap->calls[block->freed].enter));
    json_object_set_new(row, "stores", json_integer((json_int_t)stores->count));
    json_object_set_new(row, "last_store",
                        stores->count == 0 ? json_null() : tbd_rows_position(stores->last));
    put_stack(run, heap, block->made, "allocated", row);
    put_stack(run, heap, block->freed, "freed", row);
    return row;
}

const char *const tbd_heap_block_columns[] = { "block",      "bytes",     "from",  "to", "stores",
                                               "last_store", "allocated", "freed", NULL };

/* Was it freed before the times that are asked? */
static bool is_of_before(const struct tbd_command_run *run, const struct tbd_heap *heap,
                         const struct tbd_heap_block *block)
{
    return tbd_shard_is_on(run->session) && run->session->span.has_since &&
           block->freed != TBD_HEAP_NONE &&
           heap->calls[block->freed].enter.time < run->session->span.since;
}

static enum tbd_exit print_blocks_of(struct tbd_command_run *run, const struct tbd_heap *heap,
                                     uint64_t address)
{
    enum tbd_exit result = TBD_EXIT_FOUND;
    struct tbd_rows rows;

    tbd_rows_start(&rows, run, tbd_heap_block_columns);
    for (size_t i = 0; i < heap->block_count && result <= TBD_EXIT_NOT_FOUND; i++) {
        const struct tbd_heap_block *block = &heap->blocks[i];
        struct stores stores = { .heap = heap, .block = block };

        if (address < block->start ||
            address - block->start >= (block->size == 0 ? 1 : block->size) ||
            is_of_before(run, heap, block))
            continue;
        result = find_stores(run, &stores);
        if (result <= TBD_EXIT_NOT_FOUND)
            tbd_rows_add(&rows, block_row(run, heap, block, &stores));
    }
    if (result <= TBD_EXIT_NOT_FOUND)
        return tbd_rows_end(&rows);
    tbd_rows_drop(&rows);
    return result;
}

/* ---- the command ---- */

void tbd_heap_say_unknown(void)
{
    fprintf(stderr, "tbdq: no call of malloc, operator new or their family is in this trace\n");
}

static enum tbd_exit read_all(struct tbd_command_run *run, const struct tbd_heap_form *form,
                              struct tbd_heap *heap)
{
    struct tbd_session *session = run->session;
    struct tbd_asked_span span =
        form->is_of || form->is_errors ? tbd_heap_span_before(session) : tbd_heap_span_own(session);
    enum tbd_exit result;

    if (tbd_shard_is_on(session))
        tbd_heap_begin_shard(run, form);
    result = tbd_heap_read(run, &span, heap);
    if (tbd_shard_is_on(session))
        tbd_heap_write_known(run, heap);
    else if (result == TBD_EXIT_NOT_FOUND)
        tbd_heap_say_unknown();
    return result;
}

static enum tbd_exit print(struct tbd_command_run *run, const struct tbd_heap_form *form,
                           struct tbd_heap *heap, uint64_t address)
{
    if (form->is_errors)
        return tbd_heap_errors(run, heap);
    if (form->is_of)
        return print_blocks_of(run, heap, address);
    return tbd_shard_is_on(run->session) ? tbd_heap_write_calls(run, heap)
                                         : tbd_heap_print_live(run, heap, form->position);
}

enum tbd_exit tbd_command_heap(struct tbd_command_run *run)
{
    struct tbd_heap_form form = {
        .position = tbd_session_current(run->session),
        .is_of = run->argc == 2 && strcmp(run->argv[0], "of") == 0,
        .is_errors = run->argc == 1 && strcmp(run->argv[0], "errors") == 0,
    };
    bool is_leaks = run->argc == 1 && strcmp(run->argv[0], "leaks") == 0;
    struct tbd_heap heap = { 0 };
    uint64_t address = 0;
    enum tbd_exit result = TBD_EXIT_FOUND;

    if (run->argc != 0 && !form.is_of && !is_leaks && !form.is_errors)
        return tbd_command_usage(run, "heap takes nothing, leaks, errors, or of ADDR");
    if (form.is_of)
        result = tbd_command_value(run, 1, form.position, &address);
    if (is_leaks)
        form.position = tbd_session_last(run->session);
    if (result == TBD_EXIT_FOUND)
        result = read_all(run, &form, &heap);
    if (result == TBD_EXIT_FOUND)
        result = print(run, &form, &heap, address);
    tbd_heap_free(&heap);
    return result;
}
