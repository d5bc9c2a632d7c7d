// SPDX-License-Identifier: MIT
/* search_window.c - the matches in one window, with as little work as the condition allows
 *
 * A condition is evaluated at every event of its type with what the event itself tells; most decide at once.  The rest
 * (candidates) get, in this order: values from memory, found in the same walk (probes.h); registers, by
 * partial replay in batches in the direction of the search; memory at addresses that need registers, read one by one.
 *
 * I1  Candidates of a window are in ascending order of position; each is decided at most once.
 * I2  A window is walked with probes or a stack of callers only if the condition uses them. */
#include "query/search_private.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_FIRST 16u
#define BATCH_MAX 8192u

/* ---- one event ---- */

static enum tbd_verdict judge(struct tbd_search_run *run, const struct tbd_event *event)
{
    struct tbd_value value;

    if (run->where == NULL)
        return TBD_VERDICT_MATCH;
    run->env.event = event;
    value = tbd_expr_eval(run->where, run->where->root, &run->env);
    if (value.state == TBD_VALUE_UNKNOWN)
        return TBD_VERDICT_OPEN;
    return value.state == TBD_VALUE_OK && value.v != 0 ? TBD_VERDICT_MATCH : TBD_VERDICT_MISS;
}

static enum tbd_verdict judge_first(struct tbd_search_run *run, const struct tbd_event *event)
{
    if ((run->uses & TBD_USES_STACK) != 0)
        run->env.frames = tbd_callers_pcs(&run->callers, event->pc, &run->env.frame_count);
    return judge(run, event);
}

/* Counting is enough: nothing beyond the event is needed. */
static bool count_event(void *context, struct tbd_event *event)
{
    struct tbd_search_run *run = context;

    if (judge_first(run, event) != TBD_VERDICT_MATCH)
        return true;
    run->seen++;
    if (run->search->each != NULL) {
        run->found = *event;
        run->has_found = true;
        return run->search->each(run->search->each_context, event);
    }
    if (run->seen != run->wanted)
        return true;
    run->found = *event;
    run->has_found = true;
    return false;
}

static bool reserve(void **array, size_t *capacity, size_t need, size_t item)
{
    size_t bigger = *capacity == 0 ? 256 : *capacity * 2;
    void *memory;

    if (need <= *capacity)
        return true;
    while (bigger < need)
        bigger *= 2;
    memory = realloc(*array, bigger * item);
    if (memory == NULL)
        return false;
    *array = memory;
    *capacity = bigger;
    return true;
}

/* Probes for the memory a candidate needs, as far as addresses are known. */
static void add_probes(struct tbd_search_run *run, struct tbd_candidate *candidate)
{
    const struct tbd_event *event = &candidate->event;
    uint32_t size = event->size < 8 ? (uint32_t)event->size : 8;

    if ((run->uses & TBD_USES_VALUE) != 0 && size != 0 && event->fresh == NULL)
        candidate->value_probe = tbd_probes_add(run->probes, event->position, event->addr, size,
                                                event->type == TBD_EVENT_STORE);
    for (uint32_t i = 0; i < run->where->node_count; i++) {
        const struct tbd_expr_node *node = &run->where->nodes[i];
        struct tbd_value address;
        uint32_t *probe;

        if (node->op != TBD_EXPR_MEMORY)
            continue;
        probe = &run->memory_probes[candidate->first_memory + node->which];
        run->env.event = event;
        address = tbd_expr_eval(run->where, node->left, &run->env);
        *probe = UINT32_MAX;
        if (address.state == TBD_VALUE_OK)
            *probe = tbd_probes_add(run->probes, event->position, address.v, (uint32_t)node->value, false);
    }
}

static uint64_t match_patterns(const struct tbd_search_run *run)
{
    uint64_t bits = 0;

    for (uint32_t i = 0; run->env.frames != NULL && i < run->where->pattern_count; i++) {
        if (tbd_expr_stack_matches(run->where, &run->where->patterns[i], run->env.frames,
                                   run->env.frame_count))
            bits |= 1ull << i;
    }
    return bits;
}

static bool collect_event(void *context, struct tbd_event *event)
{
    struct tbd_search_run *run = context;
    enum tbd_verdict verdict = judge_first(run, event);
    uint32_t slots = run->where == NULL ? 0 : run->where->memory_count;
    struct tbd_candidate *candidate;

    if (verdict == TBD_VERDICT_MISS)
        return true;
    if (!reserve((void **)&run->candidates, &run->capacity, run->count + 1, sizeof(*run->candidates)) ||
        !reserve((void **)&run->memory_probes, &run->memory_probe_capacity,
                 run->memory_probe_count + slots + 1, sizeof(*run->memory_probes))) {
        run->status = TBD_NOMEM;
        return false;
    }
    candidate = &run->candidates[run->count++];
    *candidate = (struct tbd_candidate){ .event = *event, .value_probe = UINT32_MAX, .verdict = verdict,
                                     .first_memory = (uint32_t)run->memory_probe_count };
    run->memory_probe_count += slots;
    if ((run->uses & TBD_USES_STACK) != 0)
        candidate->stack_bits = match_patterns(run);
    if (verdict == TBD_VERDICT_OPEN && run->probes != NULL)
        add_probes(run, candidate);
    run->session->stats.candidates += verdict == TBD_VERDICT_OPEN;
    return true;
}

/* ---- candidates: what the walk found about memory ---- */

static void fill_memory(struct tbd_search_run *run, const struct tbd_candidate *candidate)
{
    for (uint32_t slot = 0; run->memory != NULL && slot < run->where->memory_count; slot++) {
        uint32_t probe = run->memory_probes[candidate->first_memory + slot];
        struct tbd_value *value = &run->memory[slot];

        value->state = TBD_VALUE_UNKNOWN;
        if (run->probes == NULL || probe == UINT32_MAX)
            continue;
        value->state = tbd_probes_answer(run->probes, probe, &value->v) ? TBD_VALUE_OK : TBD_VALUE_BAD;
    }
}

static void use_probes(struct tbd_search_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        struct tbd_candidate *candidate = &run->candidates[i];

        if (candidate->verdict != TBD_VERDICT_OPEN)
            continue;
        if (candidate->value_probe != UINT32_MAX &&
            tbd_probes_answer(run->probes, candidate->value_probe, &candidate->event.value))
            candidate->event.flags |= TBD_EVENT_HAS_VALUE;
        fill_memory(run, candidate);
        run->env.memory = run->memory;
        run->env.stack_bits = &candidate->stack_bits;
        candidate->verdict = judge(run, &candidate->event);
        run->env.memory = NULL;
        if (candidate->verdict == TBD_VERDICT_OPEN && (run->uses & TBD_USES_REGS) == 0) {
            candidate->verdict = TBD_VERDICT_MISS; /* a value that the trace does not hold */
            run->session->stats.unmapped++;
        }
    }
}

/* ---- candidates: registers ---- */

struct read_context {
    struct tbd_search_run *run;
    struct tbd_position position;
};

static enum tbd_value_state read_now(void *context, uint64_t address, uint64_t bytes, uint64_t *out)
{
    const struct read_context *read = context;

    *out = 0;
    return tbd_trace_read(read->run->session->trace, read->run->window, read->position, address, out,
                          (size_t)bytes) == TBD_OK
               ? TBD_VALUE_OK
               : TBD_VALUE_BAD;
}

static void judge_with_regs(struct tbd_search_run *run, struct tbd_candidate *candidate,
                            const struct tbd_reg_state *state)
{
    struct read_context read = { run, candidate->event.position };

    fill_memory(run, candidate);
    run->env.memory = run->memory;
    run->env.stack_bits = &candidate->stack_bits;
    run->env.regs = &state->regs;
    run->env.read = read_now;
    run->env.read_context = &read;
    candidate->verdict = judge(run, &candidate->event);
    if (candidate->verdict == TBD_VERDICT_OPEN)
        candidate->verdict = TBD_VERDICT_MISS;
    run->env.regs = NULL;
    run->env.read = NULL;
    run->env.memory = NULL;
}

/* Up to `max` open candidates from `from` on, in the direction of the search; their indices ascending. */
static size_t pick_batch(const struct tbd_search_run *run, size_t from, size_t max, size_t *out)
{
    bool backward = run->question->backward;
    size_t count = 0;

    for (size_t i = from; i < run->count && count < max; i = backward ? i - 1 : i + 1) {
        if (run->candidates[i].verdict == TBD_VERDICT_OPEN)
            out[count++] = i;
    }
    for (size_t i = 0; backward && i < count / 2; i++) {
        size_t other = out[i];

        out[i] = out[count - 1 - i];
        out[count - 1 - i] = other;
    }
    return count;
}

static enum tbd_status replay_batch(struct tbd_search_run *run, size_t from, size_t max)
{
    struct tbd_session *session = run->session;
    size_t *picked = calloc(max, sizeof(*picked));
    struct tbd_reg_state *states = calloc(max, sizeof(*states));
    enum tbd_status status = tbd_session_replayer(session);
    size_t count = 0;

    if (picked == NULL || states == NULL)
        status = TBD_NOMEM;
    if (status == TBD_OK) {
        count = pick_batch(run, from, max, picked);
        for (size_t i = 0; i < count; i++)
            states[i].position = run->candidates[picked[i]].event.position;
        session->stats.replayed += count;
        status = tbd_replay_regs(session->replayer, session->worker, run->window->index, states, count,
                                 &session->divergence, &session->why);
    }
    for (size_t i = 0; status == TBD_OK && i < count; i++)
        judge_with_regs(run, &run->candidates[picked[i]], &states[i]);
    free(picked);
    free(states);
    return status;
}

/* Goes through the candidates in the direction of the search, deciding them as needed. */
static enum tbd_status take_candidates(struct tbd_search_run *run)
{
    bool backward = run->question->backward;
    size_t batch = BATCH_FIRST;
    enum tbd_status status = TBD_OK;

    for (size_t i = backward ? run->count - 1 : 0; i < run->count && status == TBD_OK;
         i = backward ? i - 1 : i + 1) {
        struct tbd_candidate *candidate = &run->candidates[i];

        if (candidate->verdict == TBD_VERDICT_OPEN) {
            status = replay_batch(run, i, batch);
            batch = batch * 8 > BATCH_MAX ? BATCH_MAX : batch * 8;
        }
        if (candidate->verdict != TBD_VERDICT_MATCH || status != TBD_OK)
            continue;
        run->total++;
        run->found = candidate->event;
        run->has_found = true;
        if (run->search->each != NULL && !run->search->each(run->search->each_context, &candidate->event))
            break;
        if (run->search->each == NULL && run->total == run->question->count)
            break;
    }
    return status;
}

/* ---- one window ---- */

static struct tbd_scan make_scan(struct tbd_search_run *run, bool (*emit)(void *, struct tbd_event *))
{
    return (struct tbd_scan){
        .window = run->window,
        .disas = run->session->disas,
        .symbols = run->session->symbols,
        .type = run->question->type,
        .span = run->span,
        .blocks = run->plan.blocks,
        .has_pc = run->plan.has_pc,
        .pc = run->plan.pc,
        .probes = run->probes,
        .callers = (run->uses & TBD_USES_STACK) != 0 ? &run->callers : NULL,
        .emit = emit,
        .context = run,
    };
}

struct page_context {
    struct tbd_search_run *run;
};

static bool read_at_start(void *context, uint64_t address, void *out, size_t bytes)
{
    const struct page_context *page = context;
    struct tbd_position start = { .time = page->run->window->first_time };

    return tbd_trace_read(page->run->session->trace, page->run->window, start, address, out, bytes) ==
           TBD_OK;
}

/* The stack that the window begins with, outermost frame first. */
static void seed_callers(struct tbd_search_run *run)
{
    enum { MAX_FRAMES = 512 };
    struct page_context page = { run };
    struct tbd_stack_memory memory = { read_at_start, &page };
    struct tbd_frame *frames = calloc(MAX_FRAMES, sizeof(*frames));
    size_t count = 0;

    tbd_callers_clear(&run->callers);
    if (frames == NULL || tbd_stack_unwind(run->session->symbols, run->window->index, &run->window->regs,
                                           &memory, frames, MAX_FRAMES, &count) != TBD_OK)
        count = 0;
    for (size_t i = count; i > 1; i--) {
        const struct tbd_frame *callee = &frames[i - 2];
        uint64_t cfa = callee->cfa != 0 ? callee->cfa : frames[i - 1].sp;

        (void)tbd_callers_call(&run->callers, cfa - 8, frames[i - 1].call_pc);
    }
    free(frames);
}

static void count_walk(struct tbd_search_run *run, uint64_t wanted)
{
    struct tbd_scan scan = make_scan(run, count_event);

    run->seen = 0;
    run->wanted = wanted;
    if ((run->uses & TBD_USES_STACK) != 0)
        seed_callers(run);
    tbd_scan_run(&scan);
}

/* Decided by events alone: forward stops at the one wanted; backward counts first, then finds it. */
static void count_window(struct tbd_search_run *run)
{
    uint64_t left = run->question->count - run->total;

    run->has_found = false;
    if (run->question->backward && run->search->each == NULL) {
        uint64_t there;

        count_walk(run, 0);
        there = run->seen;
        if (there >= left)
            count_walk(run, there - left + 1);
        run->total += there < left ? there : left;
    } else {
        count_walk(run, left);
        run->total += run->seen;
    }
}

static enum tbd_status collect_window(struct tbd_search_run *run)
{
    struct tbd_scan scan;
    enum tbd_status status;

    run->count = 0;
    run->memory_probe_count = 0;
    run->has_found = false;
    if ((run->uses & (TBD_USES_VALUE | TBD_USES_MEMORY)) != 0) {
        status = tbd_probes_new(run->session->trace, run->window, &run->probes);
        if (status != TBD_OK)
            return status;
    }
    if ((run->uses & TBD_USES_STACK) != 0)
        seed_callers(run);
    run->env.stack_bits = NULL;
    scan = make_scan(run, collect_event);
    tbd_scan_run(&scan);
    run->env.frames = NULL;
    status = run->status;
    if (status == TBD_OK && run->probes != NULL)
        use_probes(run);
    if (status == TBD_OK)
        status = take_candidates(run);
    tbd_probes_free(run->probes);
    run->probes = NULL;
    return status;
}

enum tbd_status tbd_search_one(struct tbd_search_run *run)
{
    if ((run->uses & (TBD_USES_VALUE | TBD_USES_MEMORY | TBD_USES_REGS)) != 0)
        return collect_window(run);
    count_window(run);
    return TBD_OK;
}
