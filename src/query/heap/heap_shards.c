// SPDX-License-Identifier: MIT
/* heap_shards.c - see heap_shards.h
 *
 * A stack is written once for each shard, as a row with its number; calls name the number. */
#include "query/heap/heap_shards.h"

#include "base/array.h"
#include "query/output/output.h"
#include "query/output/shard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- times ---- */

static uint64_t before(const struct tbd_session *session)
{
    uint64_t since = session->span.since;

    since = since > TBD_HEAP_EDGE ? since - TBD_HEAP_EDGE : 0;
    return session->shard.given.has_since && since < session->shard.given.since
               ? session->shard.given.since
               : since;
}

static uint64_t after(const struct tbd_session *session)
{
    uint64_t until = session->span.until + TBD_HEAP_EDGE;

    return session->shard.given.has_until && until > session->shard.given.until
               ? session->shard.given.until
               : until;
}

struct tbd_asked_span tbd_heap_span_around(const struct tbd_session *session)
{
    struct tbd_asked_span span = session->span;

    if (!tbd_shard_is_on(session))
        return span;
    span.since = span.has_since ? before(session) : 0;
    span.until = span.has_until ? after(session) : 0;
    return span;
}

struct tbd_asked_span tbd_heap_span_before(const struct tbd_session *session)
{
    struct tbd_asked_span span = tbd_heap_span_around(session);

    span.has_since = false;
    return span;
}

struct tbd_asked_span tbd_heap_span_own(const struct tbd_session *session)
{
    return (struct tbd_asked_span){
        .has_since = tbd_shard_is_on(session) && session->shard.number != 1,
        .has_until = tbd_shard_is_on(session) && session->shard.number != session->shard.count,
        .since = session->shard.from,
        .until = session->shard.to,
    };
}

/* ---- one shard ---- */

void tbd_heap_begin_shard(struct tbd_command_run *run, const struct tbd_heap_form *form)
{
    static const char *const none[] = { NULL };
    char at[48];
    struct tbd_shard_kind kind = {
        .name = form->is_errors ? "heap errors"
                : form->is_of   ? "heap of"
                                : "heap",
        .question = run->text,
        .columns = form->is_errors ? tbd_heap_error_columns
                   : form->is_of   ? tbd_heap_block_columns
                                   : none,
        .at = at,
    };

    snprintf(at, sizeof(at), "%" PRIu64 "+%" PRIu32, form->position.time, form->position.offset);
    tbd_shard_begin(run->session, &kind, run->out);
}

void tbd_heap_write_known(struct tbd_command_run *run, const struct tbd_heap *heap)
{
    tbd_shard_row(run->session, json_pack("{s:b}", "known", heap->is_known), run->out);
}

static int compare_calls(const void *left, const void *right, void *context)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int order = tbd_heap_compare_stacks(context, a, b);

    return order != 0 ? order : (a > b) - (a < b);
}

/* Writes the stacks of the allocations, and puts the number of each into `out`, by call. */
static void write_stacks(struct tbd_command_run *run, const struct tbd_heap *heap, uint32_t *sorted,
                         uint32_t *out)
{
    char text[4096];
    size_t count = 0;
    uint32_t number = 0;

    for (uint32_t i = 0; i < heap->call_count; i++)
        if (heap->calls[i].fresh != 0)
            sorted[count++] = i;
    qsort_r(sorted, count, sizeof(*sorted), compare_calls, (void *)(uintptr_t)heap);
    for (size_t i = 0; i < count; i++) {
        if (i != 0 && tbd_heap_compare_stacks(heap, sorted[i - 1], sorted[i]) == 0) {
            out[sorted[i]] = number - 1;
            continue;
        }
        tbd_heap_stack_text(run, heap, sorted[i], TBD_HEAP_FRAMES_MAX, text, sizeof(text));
        tbd_shard_row(
            run->session,
            json_pack("{s:I, s:o}", "stack", (json_int_t)number, "text", tbd_output_text(text)),
            run->out);
        out[sorted[i]] = number++;
    }
}

static void write_call(struct tbd_command_run *run, const struct tbd_heap_call *call,
                       uint32_t stack)
{
    json_t *row = json_object();

    tbd_output_count(row, "time", call->enter.time);
    tbd_output_count(row, "insn", call->enter.offset);
    tbd_output_count(row, "thread", call->thread);
    if (call->has_ended) {
        tbd_output_count(row, "exit_time", call->exit.time);
        tbd_output_count(row, "exit_insn", call->exit.offset);
    }
    tbd_output_count(row, "size", call->size);
    tbd_output_count(row, "old", call->old);
    tbd_output_count(row, "fresh", call->fresh);
    if (call->fresh != 0)
        tbd_output_count(row, "by", stack);
    tbd_shard_row(run->session, row, run->out);
}

enum tbd_exit tbd_heap_write_calls(struct tbd_command_run *run, const struct tbd_heap *heap)
{
    uint32_t *sorted = calloc(heap->call_count + 1, sizeof(*sorted));
    uint32_t *stacks = calloc(heap->call_count + 1, sizeof(*stacks));
    bool is_good = sorted != NULL && stacks != NULL;

    if (is_good)
        write_stacks(run, heap, sorted, stacks);
    for (size_t i = 0; i < heap->call_count && is_good; i++)
        write_call(run, &heap->calls[i], stacks[i]);
    free(sorted);
    free(stacks);
    if (!is_good)
        return tbd_command_no_memory();
    return heap->call_count == 0 ? TBD_EXIT_NOT_FOUND : TBD_EXIT_FOUND;
}

/* ---- all shards ---- */

bool tbd_heap_parts_new(struct tbd_heap_parts *out)
{
    *out = (struct tbd_heap_parts){ .blocks = json_array(),
                                    .by_from = json_object(),
                                    .shown = json_object() };
    return out->blocks != NULL && out->by_from != NULL && out->shown != NULL;
}

void tbd_heap_parts_free(struct tbd_heap_parts *parts)
{
    tbd_heap_free(&parts->heap);
    json_decref(parts->blocks);
    json_decref(parts->by_from);
    json_decref(parts->shown);
}

void tbd_heap_parts_next(struct tbd_heap_parts *parts)
{
    parts->first_text = parts->heap.text_count;
}

static bool take_number(const json_t *row, const char *key, uint64_t *out)
{
    const json_t *value = json_object_get(row, key);

    *out = (uint64_t)json_integer_value(value);
    return json_is_integer(value);
}

static bool take_position(const json_t *row, const char *time, const char *insn,
                          struct tbd_position *out)
{
    uint64_t offset;
    bool is_there = take_number(row, time, &out->time);

    is_there &= take_number(row, insn, &offset);
    out->offset = (uint32_t)offset;
    return is_there;
}

/* Stacks come by their numbers, from 0. */
static bool take_stack(struct tbd_heap_parts *parts, const json_t *row)
{
    struct tbd_heap *heap = &parts->heap;
    const char *text = json_string_value(json_object_get(row, "text"));
    uint64_t number;

    if (text == NULL || !take_number(row, "stack", &number) ||
        number != heap->text_count - parts->first_text || heap->text_count == UINT32_MAX ||
        !tbd_array_grow(&heap->texts, heap->text_count, &heap->text_capacity,
                        sizeof(*heap->texts)) ||
        !tbd_array_grow(&heap->frames, heap->frame_count, &heap->frame_capacity,
                        sizeof(*heap->frames)))
        return false;
    heap->frames[heap->frame_count++] = heap->text_count;
    heap->texts[heap->text_count] = strdup(text);
    return heap->texts[heap->text_count++] != NULL;
}

static bool take_call(struct tbd_heap_parts *parts, const json_t *row)
{
    struct tbd_heap *heap = &parts->heap;
    struct tbd_heap_call call = { .name = "" };
    uint64_t stack = 0, thread;

    if (!take_position(row, "time", "insn", &call.enter) || !take_number(row, "thread", &thread) ||
        !take_number(row, "size", &call.size) || !take_number(row, "old", &call.old) ||
        !take_number(row, "fresh", &call.fresh))
        return false;
    call.thread = (uint32_t)thread;
    call.has_ended = take_position(row, "exit_time", "exit_insn", &call.exit);
    if (call.fresh != 0 && (!call.has_ended || !take_number(row, "by", &stack) ||
                            stack >= heap->text_count - parts->first_text))
        return false;
    if (call.fresh != 0) {
        call.frames = (uint32_t)(parts->first_text + stack);
        call.frame_count = 1;
    }
    if (tbd_heap_is_inner(heap, call.thread, call.enter))
        return true;
    if (heap->call_count == TBD_HEAP_NONE ||
        !tbd_array_grow(&heap->calls, heap->call_count, &heap->call_capacity, sizeof(*heap->calls)))
        return false;
    heap->calls[heap->call_count++] = call;
    return true;
}

static bool take_known(struct tbd_heap_parts *parts, const json_t *row)
{
    parts->heap.is_known |= json_is_true(json_object_get(row, "known"));
    return json_object_get(row, "known") != NULL;
}

bool tbd_heap_parts_call(struct tbd_heap_parts *parts, const json_t *row)
{
    return take_known(parts, row) ||
           (json_object_get(row, "stack") != NULL ? take_stack(parts, row) : take_call(parts, row));
}

/* Adds what a later shard knows of a block. */
static bool add_block(json_t *block, const json_t *later)
{
    static const char *const newer[] = { "last_store", "to", "freed" };
    uint64_t stores, more;

    if (!take_number(block, "stores", &stores) || !take_number(later, "stores", &more))
        return false;
    tbd_output_count(block, "stores", stores + more);
    for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++) {
        json_t *value = json_object_get(later, newer[i]);

        if (json_is_string(value))
            json_object_set(block, newer[i], value);
    }
    return true;
}

bool tbd_heap_parts_block(struct tbd_heap_parts *parts, json_t *row)
{
    const char *from = json_string_value(json_object_get(row, "from"));
    json_t *block;

    if (take_known(parts, row))
        return true;
    if (from == NULL)
        return false;
    block = json_object_get(parts->by_from, from);
    if (block != NULL)
        return add_block(block, row);
    return json_object_set(parts->by_from, from, row) == 0 &&
           json_array_append(parts->blocks, row) == 0;
}

/* An error of which only some are shown for each block: a text of the block and the error; "": it is none. */
static void name_access(const json_t *row, char *out, size_t bytes)
{
    const char *error = json_string_value(json_object_get(row, "error"));
    const char *block = json_string_value(json_object_get(row, "allocated_at"));

    *out = '\0';
    if (error != NULL && block != NULL && strstr(error, " after free") != NULL)
        snprintf(out, bytes, "%s %s", block, error);
}

bool tbd_heap_parts_error(struct tbd_heap_parts *parts, json_t *row, struct tbd_rows *rows)
{
    char name[128];
    uint64_t count;

    if (take_known(parts, row))
        return true;
    name_access(row, name, sizeof(name));
    if (*name != '\0') {
        (void)take_number(parts->shown, name, &count);
        if (count >= TBD_HEAP_ERRORS_SHOWN)
            return true;
        tbd_output_count(parts->shown, name, count + 1);
    }
    tbd_rows_add(rows, json_incref(row));
    return true;
}

enum tbd_exit tbd_heap_parts_live(struct tbd_command_run *run, struct tbd_heap_parts *parts,
                                  const char *at)
{
    struct tbd_position position = { 0 };

    if (sscanf(at, "%" SCNu64 "+%" SCNu32, &position.time, &position.offset) != 2) {
        fprintf(stderr, "tbdq: unite: the shards do not say which position they are about\n");
        return TBD_EXIT_TRACE;
    }
    if (!tbd_heap_pair(&parts->heap))
        return tbd_command_no_memory();
    return tbd_heap_print_live(run, &parts->heap, position);
}
