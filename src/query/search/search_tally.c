// SPDX-License-Identifier: MIT
/* search_tally.c - counts the events of a window at each place, without the window's events in memory
 *
 * A question that only counts needs of an event no more than where it was. How often that was follows from how often each block was entered, and
 * for entries of functions from which block was entered before it: so a replay shows block entries (replay/replay.h), and no operands, and what
 * scan.c would find event by event is added up by block. Entries that a jump leads to are added up by the two blocks.
 *
 * Windows with signals, faults and several threads are left to scan.c: there the block before is not the one that leads to an entry, and blocks
 * may not run to their end.
 *
 * SEARCH_TALLY-1  The numbers are those of a walk (scan.c). (not checked: test_tally compares them) */
#include "query/search/search_tally.h"

#include "format/reading/window_read.h"
#include "format/window/window_make.h"
#include "query/search/plain_windows.h"
#include "query/search/scan_jumps.h"

#include <stdlib.h>
#include <string.h>

#define PAIRS_LEAST 1024u /* a power of two */

/* A block that begins a function, and the one before it, which may have jumped there. */
struct tally_pair {
    uint32_t before, entered; /* 0: free */
    uint64_t count;
};

struct place_tally {
    struct tbd_search_run *run;
    uint32_t window;
    uint32_t count;     /* ids are below it */
    bool is_of_entries; /* of functions */
    struct tbd_leading leading;
    uint64_t *
        entered; /* by id: entries of the block; of functions those by calls; owned, as what follows */
    uint64_t *by_stub; /* by id */
    uint64_t *written; /* by id: stores by the kernel, or the engine, at its last instruction */
    struct tally_pair *pairs;
    size_t pair_count, pair_capacity;
    uint32_t last;          /* the block entered last; 0: none */
    struct tbd_event event; /* what all events have in common */
};

/* ---- may it be done so? ---- */

static bool is_countable(enum tbd_event_type type)
{
    return type == TBD_EVENT_FUNC_ENTER || type == TBD_EVENT_FUNC_EXIT ||
           type == TBD_EVENT_BLOCK_ENTRY || type == TBD_EVENT_STORE;
}

static bool only_counts(const struct tbd_search_run *run)
{
    const struct tbd_question *question = run->question;

    return is_countable(question->type) && run->where == NULL && question->skips_operands &&
           tbd_is_plain_question(run) && !run->plan.has_range && run->span.from_start &&
           run->span.to_end;
}

/* A window whose events are in its files is walked. */
static bool needs_replay(const struct tbd_search_run *run, uint32_t window)
{
    return tbd_trace_window(run->session->trace, window)->level < TBD_LEVEL_EVENTS;
}

/* ---- what is counted ---- */

static bool prepare(struct place_tally *t)
{
    const struct tbd_trace *trace = t->run->session->trace;

    t->count = tbd_trace_block_count(trace) + 1;
    t->entered = calloc(t->count, sizeof(*t->entered));
    t->by_stub = calloc(t->count, sizeof(*t->by_stub));
    t->written = calloc(t->count, sizeof(*t->written));
    t->pairs = calloc(PAIRS_LEAST, sizeof(*t->pairs));
    t->pair_capacity = PAIRS_LEAST;
    return t->entered != NULL && t->by_stub != NULL && t->written != NULL && t->pairs != NULL &&
           (!t->is_of_entries || tbd_leading_make(t->run, t->count, &t->leading));
}

static void release(struct place_tally *t)
{
    free(t->entered);
    free(t->by_stub);
    free(t->written);
    tbd_leading_free(&t->leading);
    free(t->pairs);
}

/* ---- while it is replayed ---- */

static struct tally_pair *place_of(const struct place_tally *t, uint32_t before, uint32_t entered)
{
    uint64_t hash = ((uint64_t)before << 32 | entered) * 0x9e3779b97f4a7c15ull;
    size_t i = (size_t)(hash >> 32) & (t->pair_capacity - 1);

    while (t->pairs[i].entered != 0 &&
           (t->pairs[i].before != before || t->pairs[i].entered != entered))
        i = (i + 1) & (t->pair_capacity - 1);
    return &t->pairs[i];
}

static bool grow_pairs(struct place_tally *t)
{
    struct place_tally old = *t;

    t->pairs = calloc(2 * old.pair_capacity, sizeof(*t->pairs));
    if (t->pairs == NULL) {
        t->pairs = old.pairs;
        return false;
    }
    t->pair_capacity = 2 * old.pair_capacity;
    for (size_t i = 0; i < old.pair_capacity; i++) {
        if (old.pairs[i].entered != 0)
            *place_of(t, old.pairs[i].before, old.pairs[i].entered) = old.pairs[i];
    }
    free(old.pairs);
    return true;
}

static bool add_pair(struct place_tally *t, uint32_t before, uint32_t entered)
{
    struct tally_pair *pair = place_of(t, before, entered);

    if (pair->entered == 0) {
        if (2 * t->pair_count >= t->pair_capacity && !grow_pairs(t))
            return false;
        pair = place_of(t, before, entered);
        *pair = (struct tally_pair){ .before = before, .entered = entered };
        t->pair_count++;
    }
    pair->count++;
    return true;
}

static bool add_entry(struct place_tally *t, uint32_t before, uint32_t id, uint8_t by)
{
    if ((by & TBD_BY_JUMP) != 0)
        return add_pair(t, before, id);
    t->entered[id] += (by & TBD_BY_CALL) != 0;
    t->by_stub[id] += (by & TBD_BY_STUB) != 0;
    return true;
}

static bool count_entries_of_functions(struct place_tally *t, const uint32_t *ids, size_t count)
{
    const uint8_t *leads = t->leading.leads, *wants = t->leading.wants;
    uint32_t before = t->last;
    bool good = true;

    for (size_t i = 0; i < count && good; i++) {
        uint32_t id = ids[i];
        uint8_t by;

        if (id >= t->count)
            return false;
        by = leads[before] & wants[id];
        if (by != 0)
            good = add_entry(t, before, id, by);
        before = id;
    }
    t->last = before;
    return good;
}

static bool count_blocks(void *context, const uint32_t *ids, size_t count)
{
    struct place_tally *t = context;

    if (t->is_of_entries)
        return count_entries_of_functions(t, ids, count);
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= t->count)
            return false;
        t->entered[ids[i]]++;
    }
    t->last = ids[count - 1];
    return true;
}

/* Writes by the kernel, or by the engine on the program's behalf, are stores of the block's last instruction. */
static bool count_writes(void *context, uint32_t kind, const uint8_t *payload, uint32_t bytes)
{
    struct place_tally *t = context;
    struct tbd_write_cursor writes;
    struct tbd_write_view view;

    if (t->run->question->type != TBD_EVENT_STORE || t->last == 0 ||
        (kind != TBD_MSG_SYSCALL && kind != TBD_MSG_SPECIAL && kind != TBD_MSG_UNLOGGED))
        return true;
    tbd_writes_first(kind, payload, bytes, &writes);
    while (tbd_writes_next(&writes, &view))
        t->written[t->last]++;
    return true;
}

/* ---- the events ---- */

static void emit(struct place_tally *t, uint32_t block, uint64_t pc, uint64_t count)
{
    struct tbd_search_run *run = t->run;

    if (count == 0 || run->is_stopped)
        return;
    t->event.block = block;
    t->event.pc = pc;
    run->total += count;
    run->found = t->event;
    run->is_stopped = !run->search->each_many(run->search->each_context, &t->event, count);
}

static void emit_at(struct place_tally *t, uint32_t id, uint32_t insn, uint64_t count)
{
    struct tbd_block_insn found;
    uint64_t pc = tbd_trace_block(t->run->session->trace, id)->def.start;

    if (count != 0 && insn != 0 && tbd_disas_insn(t->run->session->disas, id, insn, &found))
        pc = found.pc;
    emit(t, id, pc, count);
}

static void emit_ops(struct place_tally *t, uint32_t id, const struct tbd_block *block,
                     enum tbd_op_kind kind)
{
    const uint8_t *blocks = t->run->plan.blocks;
    bool is_wanted = blocks == NULL || (id < t->run->plan.block_count && blocks[id] != 0);

    for (uint16_t i = 0; i < block->def.op_count && is_wanted; i++) {
        if (block->ops[i].kind == kind)
            emit_at(t, id, block->ops[i].insn, t->entered[id]);
    }
}

static void emit_block(struct place_tally *t, uint32_t id, const struct tbd_block *block)
{
    struct tbd_session *session = t->run->session;
    uint32_t last = block->def.insn_count == 0 ? 0 : block->def.insn_count - 1u;

    switch (t->run->question->type) {
    case TBD_EVENT_BLOCK_ENTRY: emit(t, id, block->def.start, t->entered[id]); return;
    case TBD_EVENT_FUNC_EXIT: emit_ops(t, id, block, TBD_OP_RET); return;
    case TBD_EVENT_STORE:
        emit_ops(t, id, block, TBD_OP_STORE);
        emit_at(t, id, last, t->written[id]);
        return;
    default: break;
    }
    if (t->by_stub[id] != 0 && tbd_scan_is_function(session->symbols, t->window, block->def.start))
        t->entered[id] += t->by_stub[id];
    emit(t, id, block->def.start, t->entered[id]);
}

static uint64_t last_pc(const struct tbd_block *block)
{
    return block->def.start + block->def.last_insn;
}

static void emit_pairs(struct place_tally *t)
{
    struct tbd_session *session = t->run->session;

    for (size_t i = 0; i < t->pair_capacity; i++) {
        const struct tally_pair *pair = &t->pairs[i];
        const struct tbd_block *before, *entered;

        if (pair->entered == 0)
            continue;
        before = tbd_trace_block(session->trace, pair->before);
        entered = tbd_trace_block(session->trace, pair->entered);
        if (!tbd_scan_is_inside(session->symbols, t->window, last_pc(before), entered->def.start))
            emit(t, pair->entered, entered->def.start, pair->count);
    }
}

/* The last block leads to the window's end registers. */
static void emit_end(struct place_tally *t, const struct tbd_window *window)
{
    uint8_t by = t->last == 0 ? 0 : t->leading.leads[t->last];

    t->event.position.time = window->first_time + window->blocks;
    if (by != 0 &&
        tbd_enters_at_end(t->run, window, tbd_trace_block(t->run->session->trace, t->last), by))
        emit(t, 0, window->end_regs.rip, 1);
}

static void emit_all(struct place_tally *t, const struct tbd_window *window)
{
    const struct tbd_trace *trace = t->run->session->trace;

    t->event = (struct tbd_event){ .type = t->run->question->type,
                                   .position = { .time = window->first_time },
                                   .thread = window->regs.thread };
    for (uint32_t id = 1; id < t->count; id++) {
        if ((t->entered[id] | t->by_stub[id] | t->written[id]) != 0)
            emit_block(t, id, tbd_trace_block(trace, id));
    }
    if (!t->is_of_entries)
        return;
    emit_pairs(t);
    emit_end(t, window);
}

/* ---- a window ---- */

static enum tbd_status replay(struct place_tally *t)
{
    struct tbd_skim_listener listener = { .entries = count_blocks,
                                          .message = count_writes,
                                          .context = t };

    return tbd_session_skim(t->run->session, t->window, &listener);
}

enum tbd_status tbd_search_tally(struct tbd_search_run *run, uint32_t window)
{
    struct place_tally t = { .run = run,
                             .window = window,
                             .is_of_entries = run->question->type == TBD_EVENT_FUNC_ENTER };
    struct tbd_window *toc = NULL;
    enum tbd_status status;

    if (run->search->each_many == NULL || run->search->many_by_value || !only_counts(run) ||
        !needs_replay(run, window))
        return TBD_NOTFOUND;
    status = tbd_window_load_summaries(run->session->trace, window, &toc, &run->session->why);
    if (status == TBD_OK && !tbd_is_plain_window(toc))
        status = TBD_NOTFOUND;
    else if (status == TBD_OK && !prepare(&t))
        status = TBD_NOMEM;
    if (status == TBD_OK)
        status = replay(&t);
    if (status == TBD_OK)
        emit_all(&t, toc);
    release(&t);
    tbd_window_free(toc);
    return status;
}
