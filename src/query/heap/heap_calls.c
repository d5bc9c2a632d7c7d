// SPDX-License-Identifier: MIT
/* heap_calls.c - the calls of the allocator, as a list
 *
 * All names go into one question, so that the run is searched once; each entry comes with the calls around it
 * (keeps_stack).
 *
 * HEAP_CALLS-1  Of calls inside each other in one thread only the outermost is in the list. (not checked:
 *     test_heap counts blocks of operator new once) */
#include "query/heap/heap.h"

#include "base/array.h"
#include "query/calls/call_list.h"
#include "query/commands/functions.h"
#include "query/condition/expr_keep.h"

#include <stdlib.h>
#include <string.h>

enum heap_result { GIVES_NOTHING = 0, GIVES_RESULT, GIVES_AT_ARG0 };

/* Arguments by number; NO_ARG: it has no such. */
#define NO_ARG 7u
struct allocator_function {
    const char *name;
    uint8_t old, size, times; /* arguments: the block that is taken; the size, and a factor */
    uint8_t gives;            /* enum heap_result */
};

static const struct allocator_function functions[] = {
    { "malloc", NO_ARG, 0, NO_ARG, GIVES_RESULT },
    { "calloc", NO_ARG, 0, 1, GIVES_RESULT },
    { "realloc", 0, 1, NO_ARG, GIVES_RESULT },
    { "reallocarray", 0, 1, 2, GIVES_RESULT },
    { "aligned_alloc", NO_ARG, 1, NO_ARG, GIVES_RESULT },
    { "memalign", NO_ARG, 1, NO_ARG, GIVES_RESULT },
    { "posix_memalign", NO_ARG, 2, NO_ARG, GIVES_AT_ARG0 },
    { "valloc", NO_ARG, 0, NO_ARG, GIVES_RESULT },
    { "pvalloc", NO_ARG, 0, NO_ARG, GIVES_RESULT },
    { "free", 0, NO_ARG, NO_ARG, GIVES_NOTHING },
    { "_Znwm", NO_ARG, 0, NO_ARG, GIVES_RESULT },
    { "_Znam", NO_ARG, 0, NO_ARG, GIVES_RESULT },
    { "_ZnwmRKSt9nothrow_t", NO_ARG, 0, NO_ARG, GIVES_RESULT },
    { "_ZnamRKSt9nothrow_t", NO_ARG, 0, NO_ARG, GIVES_RESULT },
    { "_ZnwmSt11align_val_t", NO_ARG, 0, NO_ARG, GIVES_RESULT },
    { "_ZnamSt11align_val_t", NO_ARG, 0, NO_ARG, GIVES_RESULT },
    { "_ZdlPv", 0, NO_ARG, NO_ARG, GIVES_NOTHING },
    { "_ZdaPv", 0, NO_ARG, NO_ARG, GIVES_NOTHING },
    { "_ZdlPvm", 0, NO_ARG, NO_ARG, GIVES_NOTHING },
    { "_ZdaPvm", 0, NO_ARG, NO_ARG, GIVES_NOTHING },
    { "_ZdlPvSt11align_val_t", 0, NO_ARG, NO_ARG, GIVES_NOTHING },
    { "_ZdaPvSt11align_val_t", 0, NO_ARG, NO_ARG, GIVES_NOTHING },
    { "_ZdlPvmSt11align_val_t", 0, NO_ARG, NO_ARG, GIVES_NOTHING },
    { "_ZdaPvmSt11align_val_t", 0, NO_ARG, NO_ARG, GIVES_NOTHING },
};
#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

/* Where a function of the table begins. */
struct entry_point {
    uint64_t start;
    const struct allocator_function *function;
};

struct heap_reading {
    struct tbd_command_run *run;
    struct tbd_heap *heap;
    struct entry_point *entries; /* owned */
    size_t entry_count, entry_capacity;
    bool no_memory;
};

/* ---- the question ---- */

static bool is_known(const struct heap_reading *r, uint64_t start)
{
    for (size_t i = 0; i < r->entry_count; i++) {
        if (r->entries[i].start == start)
            return true;
    }
    return false;
}

/* The function's addresses in the modules of a window; false: none has it. */
static bool find_function(struct heap_reading *r, const struct allocator_function *function,
                          uint32_t window)
{
    struct tbd_symbol found[TBD_FUNCTIONS_MAX];
    size_t count = tbd_functions_called(r->run->session, window, function->name, found);

    for (size_t i = 0; i < count && i < TBD_FUNCTIONS_MAX; i++) {
        if (is_known(r, found[i].start))
            continue;
        if (!tbd_array_grow(&r->entries, r->entry_count, &r->entry_capacity, sizeof(*r->entries))) {
            r->no_memory = true;
            return false;
        }
        r->entries[r->entry_count++] = (struct entry_point){ found[i].start, function };
    }
    return count != 0;
}

static struct tbd_expr *any_of_them(struct heap_reading *r)
{
    uint32_t last = tbd_trace_window_count(r->run->session->trace) - 1;
    struct tbd_expr *all = NULL;

    for (size_t i = 0; i < FUNCTIONS; i++) {
        struct tbd_expr_name name = { .text = (char *)(uintptr_t)functions[i].name,
                                      .kind = TBD_NAME_FUNCTION };
        bool is_there = find_function(r, &functions[i], last);

        is_there |= find_function(r, &functions[i], last / 2);
        if (is_there && all == NULL)
            all = tbd_expr_is_in(&name);
        else if (is_there)
            all = tbd_expr_join(TBD_EXPR_OR, all, tbd_expr_is_in(&name));
    }
    return all;
}

/* ---- calls ---- */

static const struct allocator_function *function_at(const struct heap_reading *r, uint64_t pc)
{
    for (size_t i = 0; i < r->entry_count; i++) {
        if (r->entries[i].start == pc)
            return r->entries[i].function;
    }
    return NULL;
}

static uint64_t argument(const struct tbd_call_entry *enter, uint8_t number)
{
    return number == NO_ARG ? 0 : enter->args[number];
}

static uint64_t given(const struct heap_reading *r, const struct allocator_function *function,
                      const struct tbd_listed_call *call)
{
    uint64_t value = 0;

    if (call->end != TBD_FRAME_RETURNS || function->gives == GIVES_NOTHING)
        return 0;
    if (function->gives == GIVES_RESULT)
        return call->retval;
    if ((uint32_t)call->retval != 0 ||
        tbd_session_read(r->run->session, call->exit, call->enter.args[0], &value, sizeof(value)) !=
            TBD_OK)
        return 0;
    return value;
}

/* Takes the frames that came with the entry, without the allocator's own. */
static void take_frames(struct heap_reading *r, const struct tbd_call_entry *enter,
                        struct tbd_heap_call *call)
{
    struct tbd_heap *heap = r->heap;
    const struct tbd_kept_value *kept = enter->kept;
    uint32_t count = kept == NULL || kept->state != TBD_KEPT_FRAMES ? 0 : kept->bytes / 8u;

    if (count < 2)
        return;
    if (!tbd_array_reserve(&heap->frames, heap->frame_count + count, &heap->frame_capacity,
                           sizeof(*heap->frames))) {
        r->no_memory = true;
        return;
    }
    call->frames = (uint32_t)heap->frame_count;
    call->frame_count = count - 1;
    memcpy(heap->frames + heap->frame_count, (const uint8_t *)kept + kept->text + 8,
           call->frame_count * sizeof(*heap->frames));
    heap->frame_count += call->frame_count;
}

static void add_call(struct heap_reading *r, const struct allocator_function *function,
                     const struct tbd_listed_call *listed)
{
    struct tbd_heap *heap = r->heap;
    const struct tbd_call_entry *enter = &listed->enter;
    struct tbd_heap_call *call;
    uint64_t times = function->times == NO_ARG ? 1 : enter->args[function->times];

    if (!tbd_array_grow(&heap->calls, heap->call_count, &heap->call_capacity,
                        sizeof(*heap->calls))) {
        r->no_memory = true;
        return;
    }
    call = &heap->calls[heap->call_count++];
    *call = (struct tbd_heap_call){ .name = function->name,
                                    .enter = enter->position,
                                    .exit = listed->exit,
                                    .has_ended = listed->end == TBD_FRAME_RETURNS,
                                    .thread = enter->thread,
                                    .size = argument(enter, function->size) * times,
                                    .old = argument(enter, function->old),
                                    .fresh = given(r, function, listed) };
    take_frames(r, enter, call);
}

static void take_calls(struct heap_reading *r, const struct tbd_call_list *list)
{
    for (size_t i = 0; i < list->count && !r->no_memory; i++) {
        const struct allocator_function *function = function_at(r, list->all[i].enter.pc);

        if (function != NULL &&
            !tbd_heap_is_inner(r->heap, list->all[i].enter.thread, list->all[i].enter.position))
            add_call(r, function, &list->all[i]);
    }
}

void tbd_heap_narrow(struct tbd_question *question, const struct tbd_asked_span *span)
{
    question->since = span->has_since ? span->since : 0;
    question->has_until = span->has_until;
    question->until = span->until;
}

enum tbd_exit tbd_heap_read(struct tbd_command_run *run, const struct tbd_asked_span *span,
                            struct tbd_heap *out)
{
    struct heap_reading r = { .run = run, .heap = out };
    struct tbd_question question = tbd_question_all(TBD_EVENT_FUNC_ENTER);
    struct tbd_call_list list = { 0 };
    struct tbd_expr *where;
    enum tbd_exit result;

    *out = (struct tbd_heap){ 0 };
    if (tbd_trace_window_count(run->session->trace) == 0)
        return TBD_EXIT_NOT_FOUND;
    where = any_of_them(&r);
    if (where == NULL || r.no_memory) {
        tbd_expr_free(where);
        free(r.entries);
        return r.no_memory ? tbd_command_no_memory() : TBD_EXIT_NOT_FOUND;
    }
    out->is_known = true;
    tbd_question_where(&question, where);
    tbd_heap_narrow(&question, span);
    question.keeps_stack = true;
    result = tbd_call_list_find(run, &question, &list);
    if (result <= TBD_EXIT_NOT_FOUND)
        take_calls(&r, &list);
    tbd_call_list_free(&list);
    free(r.entries);
    if (r.no_memory || (result <= TBD_EXIT_NOT_FOUND && !tbd_heap_pair(out)))
        return tbd_command_no_memory();
    return result <= TBD_EXIT_NOT_FOUND ? TBD_EXIT_FOUND : result;
}
