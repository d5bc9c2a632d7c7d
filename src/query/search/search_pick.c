// SPDX-License-Identifier: MIT
/* search_pick.c - windows that hold only the events a search needs
 *
 * The plan knows which blocks can have wanted events, and which memory a wanted store must touch;
 * stacks of callers, and who asks for them, need all calls and returns. The first event that needs memory shows which
 * memory the condition reads: then the window is opened again, with the stores to that memory
 * (format/coding/pick.h).
 *
 * SEARCH_PICK-1  Answers of probes (probes.h) come from windows that have all stores to the memory
 *     that was asked for. (not checked: test_pick compares answers) */
#include "query/search/search_private.h"

#include <stdlib.h>

/* Pieces of memory no further apart than NEAR are joined; a window is not picked for pieces larger
 * than RANGE_MOST, because they have many events. */
#define NEAR       64u
#define RANGE_MOST 4096u
/* A part this many times smaller than a window in memory is walked as it is. */
#define PART_SMALL 8u

void tbd_search_forget_picker(struct tbd_search_run *run)
{
    tbd_picker_free(run->picking.picker);
    free(run->picking.blocks);
    run->picking.picker = NULL;
    run->picking.blocks = NULL;
}

/* What the type of event needs from the blocks that the plan keeps. */
static uint8_t wanted_of(const struct tbd_search_run *run)
{
    switch (run->question->type) {
    case TBD_EVENT_STORE: return run->plan.has_range ? 0 : TBD_PICK_OPS;
    case TBD_EVENT_FUNC_EXIT: return TBD_PICK_OPS;
    case TBD_EVENT_FUNC_ENTER: return TBD_PICK_ENTERED;
    case TBD_EVENT_BLOCK_ENTRY:
    case TBD_EVENT_LINE:
    case TBD_EVENT_STATE: return TBD_PICK_ENTRIES;
    default: return 0;
    }
}

static bool asks_memory(const struct tbd_search_run *run)
{
    return (run->uses & (TBD_USES_VALUE | TBD_USES_MEMORY)) != 0 || run->wants_values ||
           run->scopes != NULL;
}

/* Is most of a window perhaps not needed? (Loads come from replays, which take much longer than a
 * walk over all loads.) */
static bool is_worth_it(const struct tbd_search_run *run)
{
    switch (run->question->type) {
    case TBD_EVENT_LOAD: return false;
    case TBD_EVENT_STORE:
        return run->plan.has_range ||
               (run->plan.has_blocks && !run->wants_values && (run->uses & TBD_USES_VALUE) == 0);
    case TBD_EVENT_BLOCK_ENTRY:
    case TBD_EVENT_LINE:
    case TBD_EVENT_STATE: return run->plan.has_blocks;
    default: return true;
    }
}

static bool add_range(struct tbd_search_picking *picking, uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < picking->range_count; i++) {
        struct tbd_pick_range *range = &picking->ranges[i];

        if (start > range->end + NEAR || end + NEAR < range->start)
            continue;
        range->start = start < range->start ? start : range->start;
        range->end = end > range->end ? end : range->end;
        return range->end - range->start <= RANGE_MOST;
    }
    if (picking->range_count == TBD_PICK_RANGES - 1 || end - start > RANGE_MOST)
        return false;
    picking->ranges[picking->range_count++] = (struct tbd_pick_range){ start, end };
    return true;
}

static bool is_in(const struct tbd_pick_range *range, uint64_t address, uint32_t bytes)
{
    return address >= range->start && address < range->end && bytes <= range->end - address;
}

bool tbd_search_has_stores(struct tbd_search_run *run, uint64_t address, uint32_t bytes)
{
    struct tbd_search_picking *picking = &run->picking;
    const struct tbd_pick_range planned = { run->plan.range_start, run->plan.range_end };

    if (!run->window->is_picked || (run->plan.has_range && is_in(&planned, address, bytes)))
        return true;
    for (uint32_t i = 0; i < picking->range_count; i++) {
        if (is_in(&picking->ranges[i], address, bytes))
            return true;
    }
    picking->is_off |=
        bytes > UINT64_MAX - NEAR - address || !add_range(picking, address, address + bytes);
    tbd_search_forget_picker(run);
    return false;
}

static uint8_t picked_of(uint8_t planned, uint8_t wanted)
{
    return ((planned & ~TBD_PLAN_NO_ENTRY) != 0 ? wanted : 0) |
           ((planned & TBD_PLAN_LEADS) != 0 ? TBD_PICK_LEADING : 0) |
           ((planned & TBD_PLAN_JUMPED) != 0 ? TBD_PICK_LED : 0) |
           ((planned & TBD_PLAN_RETURN) != 0 ? TBD_PICK_OPS : 0);
}

static bool make_picker(struct tbd_search_run *run)
{
    struct tbd_search_picking *picking = &run->picking;
    struct tbd_pick pick = { .block_count = run->plan.block_count,
                             .calls = run->has_callers || run->question->every_return,
                             .range_count = picking->range_count };
    uint8_t wanted = wanted_of(run);

    picking->blocks = calloc(pick.block_count, 1);
    if (picking->blocks == NULL)
        return false;
    for (uint32_t id = 0; id < pick.block_count; id++)
        picking->blocks[id] = picked_of(run->plan.blocks[id], wanted);
    pick.blocks = picking->blocks;
    for (uint32_t i = 0; i < picking->range_count; i++)
        pick.ranges[i] = picking->ranges[i];
    if (run->plan.has_range)
        pick.ranges[pick.range_count++] =
            (struct tbd_pick_range){ run->plan.range_start, run->plan.range_end };
    picking->picker = tbd_picker_new(&pick);
    return picking->picker != NULL;
}

static bool has_signals(const struct tbd_window *window)
{
    struct tbd_message head;

    for (size_t i = 0; i < window->log_count; i++) {
        __builtin_memcpy(&head, window->log[i].message, sizeof(head));
        if (head.kind == TBD_MSG_SIGNAL)
            return true;
    }
    return false;
}

/* Other cases need the whole window: a handler may run between a call and the function that it
 * enters, and only the whole window tells what memory held before it was unmapped. */
static bool will_do(const struct tbd_search_run *run, const struct tbd_window *window)
{
    if (run->question->type == TBD_EVENT_FUNC_ENTER && has_signals(window))
        return false;
    return window->gone_count == 0 || !asks_memory(run);
}

/* To pick from a window in memory means to look at all of its entries, however few the search is about. */
static bool is_small_part(const struct tbd_search_run *run)
{
    const struct tbd_window *window = tbd_session_held(run->session, &run->slice);
    const struct tbd_span *span = &run->span;
    uint64_t first, end;

    if (window == NULL)
        return false;
    first = window->first_time;
    end = first + window->blocks;
    if (!span->from_start && span->after.time > first)
        first = span->after.time;
    if (!span->to_end && span->before.time < end)
        end = span->before.time;
    return first >= end || end - first <= window->blocks / PART_SMALL;
}

enum tbd_status tbd_search_open(struct tbd_search_run *run)
{
    struct tbd_search_picking *picking = &run->picking;
    enum tbd_status status;

    if (run->has_callers != tbd_search_needs_callers(run))
        tbd_search_forget_picker(run);
    run->has_callers = tbd_search_needs_callers(run);
    if (picking->is_off || !is_worth_it(run) || is_small_part(run) ||
        (picking->picker == NULL && !make_picker(run)))
        return tbd_session_slice(run->session, &run->slice, &run->window);
    status = tbd_session_picked(run->session, &run->slice, picking->picker, &run->window);
    picking->is_off = status == TBD_NOTFOUND;
    if (status == TBD_NOTFOUND || (status == TBD_OK && !will_do(run, run->window)))
        status = tbd_session_slice(run->session, &run->slice, &run->window);
    return status;
}
