// SPDX-License-Identifier: MIT
/* search_passing.c - see search_passing.h
 *
 * A question about a whole run looks at each event once.  So a condition is asked while the replay runs, where the event still lies in the
 * replay's chunk (replay/replay.h): no window, and no slice, is in memory.  What the condition says of an event's own
 * numbers is compared before there is an event (condition_bounds.h); most stop there.
 *
 * Only the event's own values can be had so: registers, memory, variables and callers need a walk (search_window.c), as do windows in which
 * a block does not lead to the next one (plain_windows.h).
 *
 * SEARCH_PASSING-1  The matches are those of a walk. (not checked: test_passing.py compares them) */
#include "query/search/search_passing.h"

#include "base/array.h"
#include "format/reading/window_read.h"
#include "query/search/passing.h"
#include "replay/slices.h"
#include "query/text/user_interrupt.h"

#include <stdlib.h>
#include <string.h>

#define SHORT_BLOCKS (4u << 20)

/* ---- may it be done so? ---- */

static bool is_passable(enum tbd_event_type type)
{
    return type == TBD_EVENT_FUNC_ENTER || type == TBD_EVENT_FUNC_EXIT ||
           type == TBD_EVENT_BLOCK_ENTRY || type == TBD_EVENT_STORE;
}

static bool has_values(const struct tbd_search_run *run)
{
    return (run->uses & TBD_USES_VALUE) != 0 || run->wants_values;
}

/* Only workers count a window's matches without asking which one is the wanted. */
static bool wants_one(const struct tbd_search_run *run)
{
    return run->search->each == NULL && run->question->count != UINT64_MAX;
}

/* A list of events, or a search for one, is likely to be followed by questions about what it has found: a short window is kept for
 * these, with its events.  To find values among them takes longer than a replay, so a longer one is not. */
static bool is_better_kept(const struct tbd_search_run *run, uint32_t index)
{
    bool is_list = run->search->each != NULL && run->search->each_many == NULL;
    bool is_short = tbd_trace_window(run->session->trace, index)->blocks <= SHORT_BLOCKS;

    if (tbd_session_slices(run->session, index, false) > 1)
        return false;
    return (is_list && is_short) || (wants_one(run) && (is_short || !has_values(run)));
}

static bool can_pass(const struct tbd_search_run *run, uint32_t index)
{
    const uint32_t harmless = TBD_USES_VALUE | TBD_USES_NAMES | TBD_USES_OPERANDS;
    const struct tbd_window_summary *summary = tbd_trace_window(run->session->trace, index);

    return is_passable(run->question->type) && tbd_is_plain_question(run) &&
           (run->uses & ~harmless) == 0 && !is_better_kept(run, index) &&
           run->question->keeps + run->question->keeps_stack == 0 &&
           summary->level < TBD_LEVEL_EVENTS && summary->blocks < UINT32_MAX;
}

static bool has_whole(const struct tbd_span *span, const struct tbd_window *window)
{
    return (span->from_start || span->after.time < window->first_time) &&
           (span->to_end || span->before.time > window->first_time + window->blocks);
}

static bool is_inside(const struct tbd_span *span, struct tbd_position position)
{
    return (span->from_start || tbd_position_compare(position, span->after) > 0) &&
           (span->to_end || tbd_position_compare(position, span->before) < 0);
}

/* Memory that went away in the window is not what its end has. */
static bool is_passable_window(const struct tbd_search_run *run, const struct tbd_window *toc)
{
    return tbd_is_plain_window(toc) && (!has_values(run) || toc->gone_count == 0);
}

/* ---- what blocks do ---- */

static uint8_t what_it_does(const struct tbd_passing_window *p, uint32_t id)
{
    const struct tbd_search_plan *plan = &p->run->plan;
    const struct tbd_block *block = p->block[id];
    uint8_t does = 0;

    if (plan->blocks == NULL || (id < plan->block_count && plan->blocks[id] != 0))
        does |= TBD_DOES_WANT;
    for (uint16_t i = 0; i < block->def.op_count; i++) {
        does |= block->ops[i].kind == TBD_OP_STORE ? TBD_DOES_STORE : 0;
        does |= block->ops[i].kind == TBD_OP_CALL ? TBD_DOES_CALL : 0;
        does |= block->ops[i].kind == TBD_OP_RET ? TBD_DOES_RET : 0;
    }
    return does;
}

static bool look_at_blocks(struct tbd_passing_window *p)
{
    uint32_t counters = 0;

    for (uint32_t id = 1; id < p->count; id++) {
        p->block[id] = tbd_trace_block(p->run->session->trace, id);
        p->first[id] = counters;
        if (p->block[id] == NULL)
            continue;
        p->does[id] = what_it_does(p, id);
        counters += p->block[id]->def.op_count + 1u;
    }
    if (p->run->search->each_many == NULL || p->run->search->many_by_value)
        return true;
    p->matched = calloc(counters + 1u, sizeof(*p->matched));
    return p->matched != NULL;
}

static bool prepare(struct tbd_passing_window *p)
{
    p->count = tbd_trace_block_count(p->run->session->trace) + 1;
    p->block = calloc(p->count, sizeof(*p->block));
    p->does = calloc(p->count, sizeof(*p->does));
    p->first = calloc(p->count, sizeof(*p->first));
    tbd_condition_bounds_of(p->run->where, &p->bounds);
    p->is_cut = !has_whole(&p->run->span, p->toc);
    p->wants_one = wants_one(p->run);
    p->wants_operands = tbd_search_wants_operands(p->run);
    p->only_counts = p->bounds.is_all && !p->is_cut && !p->wants_one &&
                     (p->run->search->each == NULL || p->run->search->each_many != NULL);
    if (p->block == NULL || p->does == NULL || p->first == NULL || !look_at_blocks(p))
        return false;
    if (p->run->question->type == TBD_EVENT_STORE)
        return tbd_passing_begin_values(p);
    return p->run->question->type != TBD_EVENT_FUNC_ENTER ||
           tbd_leading_make(p->run, p->count, &p->leading);
}

static void release(struct tbd_passing_window *p)
{
    tbd_kept_events_free(&p->kept);
    tbd_value_counts_free(&p->by_value);
    free(p->bytes);
    free(p->jumps);
    tbd_passing_values_free(p->values);
    tbd_leading_free(&p->leading);
    free((void *)p->block);
    free(p->does);
    free(p->first);
    free(p->matched);
}

/* ---- an event ---- */

struct tbd_event tbd_passing_event(const struct tbd_passing_window *p, uint32_t id, uint64_t time,
                                   uint32_t insn)
{
    struct tbd_event event = { .type = p->run->question->type,
                               .block = id,
                               .position = { p->toc->first_time + time, insn },
                               .pc = p->block[id]->def.start,
                               .thread = p->toc->regs.thread };
    struct tbd_block_insn found;

    if (insn != 0 && tbd_disas_insn(p->run->session->disas, id, insn, &found))
        event.pc = found.pc;
    return event;
}

enum tbd_verdict tbd_passing_judge(struct tbd_passing_window *p, const struct tbd_event *event)
{
    struct tbd_search_run *run = p->run;

    run->here = run->where;
    run->env.regs = NULL;
    run->env.vector = NULL;
    run->env.memory = NULL;
    return tbd_search_judge(run, event);
}

bool tbd_passing_holds(struct tbd_passing_window *p, const struct tbd_event *event)
{
    enum tbd_verdict verdict = tbd_passing_judge(p, event);

    p->run->env.bad.unmapped += verdict == TBD_VERDICT_OPEN;
    return verdict == TBD_VERDICT_MATCH;
}

static bool is_nearer(const struct tbd_passing_window *p, const struct tbd_event *event)
{
    int order = tbd_position_compare(event->position, p->one.position);

    /* of one instruction's, in the order in which they come */
    return !p->has_one || (p->run->question->backward ? order >= 0 : order < 0);
}

/* Keeps it, with its bytes, if it is nearer than the one before.  Those of a large store have come without all of their bytes. */
static bool keep_one(struct tbd_passing_window *p, const struct tbd_event *event)
{
    bool has_fresh = event->fresh != NULL, is_large = event->size > sizeof(uint64_t);
    size_t bytes = event->old == NULL || (p->values != NULL && is_large && !has_fresh)
                       ? 0
                       : (size_t)event->size;

    if (!is_nearer(p, event))
        return true;
    if (!tbd_array_reserve(&p->bytes, 2 * (size_t)event->size + 1, &p->bytes_capacity, 1))
        return false;
    if (bytes != 0)
        memcpy(p->bytes, event->old, bytes);
    if (has_fresh)
        memcpy(p->bytes + event->size, event->fresh, (size_t)event->size);
    p->one = *event;
    p->one.old = bytes == 0 ? NULL : p->bytes;
    p->one.fresh = has_fresh ? p->bytes + event->size : NULL;
    p->has_one = true;
    return true;
}

static uint64_t value_of(const struct tbd_event *event)
{
    switch (event->type) {
    case TBD_EVENT_STORE: return event->value;
    case TBD_EVENT_FUNC_ENTER: return event->args[0];
    case TBD_EVENT_FUNC_EXIT: return event->retval;
    default: return event->pc;
    }
}

bool tbd_passing_take(struct tbd_passing_window *p, struct tbd_event *event, uint32_t counter)
{
    struct tbd_search_run *run = p->run;

    if (p->is_cut && !is_inside(&run->span, event->position))
        return true;
    p->matches++;
    if (p->wants_one)
        return keep_one(p, event);
    if (run->search->many_by_value)
        return tbd_value_counts_add(&p->by_value, value_of(event));
    if (p->matched != NULL && event->block != 0) {
        p->matched[counter]++;
        return true;
    }
    if (run->search->each == NULL)
        return true;
    p->gives_up = (event->type == TBD_EVENT_STORE && event->size > 8 && p->values != NULL) ||
                  !tbd_kept_events_add(&p->kept, event);
    return !p->gives_up;
}

/* ---- blocks ---- */

static bool take_block_entry(struct tbd_passing_window *p, uint32_t id)
{
    struct tbd_event event = tbd_passing_event(p, id, p->time, 0);

    return !tbd_passing_holds(p, &event) ||
           tbd_passing_take(p, &event, p->first[id] + p->block[id]->def.op_count);
}

/* ---- while it is replayed ---- */

static bool take_one(struct tbd_passing_window *p, uint32_t id, const uint8_t *record)
{
    uint8_t does = p->does[id], by;

    switch (p->run->question->type) {
    case TBD_EVENT_STORE:
        return (does & TBD_DOES_STORE) == 0 || (p->values == NULL && (does & TBD_DOES_WANT) == 0) ||
               tbd_passing_stores(p, id, record);
    case TBD_EVENT_FUNC_EXIT:
        return (does & (TBD_DOES_RET | TBD_DOES_WANT)) != (TBD_DOES_RET | TBD_DOES_WANT) ||
               tbd_passing_return(p, id, record);
    case TBD_EVENT_BLOCK_ENTRY: return (does & TBD_DOES_WANT) == 0 || take_block_entry(p, id);
    default: break;
    }
    by = p->leading.leads[p->last] & p->leading.wants[id];
    if (by != 0 && !tbd_passing_entry(p, id, by))
        return false;
    if ((does & TBD_DOES_CALL) != 0)
        tbd_passing_call(p, id, record);
    return true;
}

static bool take_records(void *context, const uint32_t *ids, size_t count, const uint8_t *operands)
{
    struct tbd_passing_window *p = context;
    bool good = !tbd_is_interrupted();

    for (size_t i = 0; i < count && good; i++) {
        uint32_t id = ids[i];

        if (id >= p->count || p->block[id] == NULL)
            return false;
        good = take_one(p, id, operands);
        operands += p->block[id]->def.operand_bytes;
        p->time++;
        p->last = id;
    }
    return good;
}

static bool take_message(void *context, uint32_t kind, const uint8_t *payload, uint32_t bytes)
{
    struct tbd_passing_window *p = context;

    if (p->run->question->type != TBD_EVENT_STORE || p->last == 0 ||
        (kind != TBD_MSG_SYSCALL && kind != TBD_MSG_SPECIAL && kind != TBD_MSG_UNLOGGED))
        return true;
    return tbd_passing_writes(p, kind, payload, bytes);
}

/* ---- the numbers ---- */

static void emit(struct tbd_passing_window *p, uint32_t id, uint32_t insn, uint32_t counter)
{
    struct tbd_search_run *run = p->run;
    struct tbd_event event;

    if (p->matched[counter] == 0 || run->is_stopped)
        return;
    event = tbd_passing_event(p, id, 0, insn);
    event.position.offset = 0;
    run->found = event;
    run->is_stopped =
        !run->search->each_many(run->search->each_context, &event, p->matched[counter]);
}

static void emit_values(struct tbd_passing_window *p)
{
    struct tbd_search_run *run = p->run;

    for (size_t i = 0; i < p->by_value.capacity && !run->is_stopped; i++) {
        const struct tbd_value_count *cell = &p->by_value.cells[i];
        struct tbd_event event = { .type = run->question->type,
                                   .position.time = p->toc->first_time,
                                   .pc = cell->value,
                                   .value = cell->value,
                                   .args[0] = cell->value,
                                   .retval = cell->value,
                                   .thread = p->toc->regs.thread };

        if (cell->count == 0)
            continue;
        run->found = event;
        run->is_stopped = !run->search->each_many(run->search->each_context, &event, cell->count);
    }
}

static void emit_all(struct tbd_passing_window *p)
{
    bool is_store = p->run->question->type == TBD_EVENT_STORE;

    for (uint32_t id = 1; p->matched != NULL && id < p->count; id++) {
        const struct tbd_block *block = p->block[id];
        uint32_t last =
            block == NULL || block->def.insn_count == 0 ? 0 : block->def.insn_count - 1u;

        for (uint16_t i = 0; block != NULL && i < block->def.op_count; i++)
            emit(p, id, block->ops[i].insn, p->first[id] + i);
        if (block != NULL)
            emit(p, id, is_store ? last : 0, p->first[id] + block->def.op_count);
    }
}

/* ---- the events ---- */

static int compare_kept(const void *left, const void *right)
{
    const struct tbd_event *a = *(const struct tbd_event *const *)left,
                           *b = *(const struct tbd_event *const *)right;
    int order = tbd_position_compare(a->position, b->position);

    return order != 0 ? order : a < b ? -1 : a > b;
}

/* In order: values have come later than their stores.  False without memory. */
static bool hand_on(struct tbd_passing_window *p)
{
    struct tbd_search_run *run = p->run;
    const struct tbd_event **sorted = calloc(p->kept.count + 1, sizeof(*sorted));

    for (size_t i = 0; sorted != NULL && i < p->kept.count; i++)
        sorted[i] = &p->kept.events[i];
    if (sorted != NULL)
        qsort((void *)sorted, p->kept.count, sizeof(*sorted), compare_kept);
    for (size_t i = 0; sorted != NULL && i < p->kept.count && !run->is_stopped; i++) {
        run->found = *sorted[i];
        run->is_stopped = !run->search->each(run->search->each_context, sorted[i]);
    }
    free((void *)sorted);
    return sorted != NULL;
}

/* ---- a window ---- */

static enum tbd_status replay(struct tbd_passing_window *p)
{
    struct tbd_skim_listener listener = { .records = take_records,
                                          .message = take_message,
                                          .context = p };
    enum tbd_status status = tbd_session_skim(p->run->session, p->toc->index, &listener);

    if (status == TBD_OK && !tbd_passing_end_values(p))
        status = TBD_NOMEM;
    if (status == TBD_OK && p->run->question->type == TBD_EVENT_FUNC_ENTER &&
        !tbd_passing_last_entry(p))
        status = TBD_NOMEM;
    if (status == TBD_OK)
        status = tbd_passing_take_jumps(p);
    return status;
}

/* The wanted match is one of the window's: takes it, or searches the slice that has it. */
static enum tbd_status take_wanted(struct tbd_passing_window *p)
{
    struct tbd_search_run *run = p->run;
    struct tbd_session *session = run->session;
    uint64_t time = p->one.position.time;
    struct tbd_session_slice slice = { .window = p->toc->index };

    if (run->question->count - run->total > 1)
        return TBD_NOTFOUND;
    if (p->one.type == TBD_EVENT_STORE && p->one.old == NULL) {
        if (tbd_session_slices(session, slice.window, false) > 1)
            slice.slice = slice.last = tbd_slice_of(session->trace, slice.window, time);
        return tbd_search_slice(run, &slice);
    }
    run->total++;
    run->found = p->one;
    free(session->passed);
    session->passed = p->bytes;
    p->bytes = NULL;
    return TBD_OK;
}

static enum tbd_status use(struct tbd_passing_window *p)
{
    struct tbd_search_run *run = p->run;

    if (p->wants_one && p->matches >= run->question->count - run->total)
        return take_wanted(p);
    run->total += p->matches;
    run->session->stats.candidates += p->candidates;
    emit_all(p);
    emit_values(p);
    return hand_on(p) ? TBD_OK : TBD_NOMEM;
}

static enum tbd_status pass(struct tbd_search_run *run, const struct tbd_window *toc)
{
    struct tbd_passing_window p = { .run = run, .toc = toc };
    struct tbd_bad_events bad = run->env.bad;
    enum tbd_status status = prepare(&p) ? replay(&p) : TBD_NOMEM;

    if (status == TBD_OK)
        status = use(&p);
    else if (p.gives_up)
        status = TBD_NOTFOUND;
    if (status == TBD_NOTFOUND)
        run->env.bad = bad;
    release(&p);
    return status;
}

enum tbd_status tbd_search_passing(struct tbd_search_run *run, uint32_t index)
{
    struct tbd_session *session = run->session;
    struct tbd_window *toc = NULL;
    enum tbd_status status;

    if (!can_pass(run, index))
        return TBD_NOTFOUND;
    status = tbd_window_load(session->trace, index, false, &toc, &session->why);
    if (status == TBD_OK)
        status = is_passable_window(run, toc) ? pass(run, toc) : TBD_NOTFOUND;
    tbd_window_free(toc);
    return status;
}
