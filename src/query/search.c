// SPDX-License-Identifier: MIT
/* search.c - from windows to the answer, with as little work as the condition allows
 *
 * A condition is evaluated at every event of its type with what the event itself tells; most decide at once.  The rest
 * (candidates) get, in this order: values from memory, found in the same walk (probes.h); registers, by
 * partial replay in batches in the direction of the search; memory at addresses that need registers, read one by one.
 *
 * I1  Candidates of a window are in ascending order of position; each is decided at most once.
 * I2  A window is walked with probes or a stack of callers only if the condition uses them. */
#include "query/search.h"

#include "query/plan.h"
#include "query/scan.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_FIRST 16u
#define BATCH_MAX 1024u

enum verdict { OPEN = 0, MATCH, MISS };

struct candidate {
    struct tbd_event event;
    uint32_t value_probe;   /* UINT32_MAX = none */
    uint64_t stack_bits;    /* which patterns match here */
    uint32_t first_memory;  /* index into memory_probes: memory_count of them */
    enum verdict verdict;
};

struct run {
    struct tbd_search *search;
    struct tbd_session *session;
    const struct tbd_question *question;
    struct tbd_expr *where;        /* NULL: everything matches */
    uint32_t uses;
    struct tbd_plan plan;
    struct tbd_span span;
    const struct tbd_window *window;
    struct tbd_expr_env env;
    struct tbd_value *memory;      /* env.memory: one per slot */
    struct tbd_probes *probes;
    struct tbd_callers callers;
    struct candidate *candidates;
    size_t count, capacity;
    uint32_t *memory_probes;
    size_t memory_probe_count, memory_probe_capacity;
    /* counting without candidates */
    uint64_t seen, wanted;
    struct tbd_event found;
    bool has_found;
    /* the whole search */
    uint64_t total;
    const struct tbd_module *modules; /* names are bound to these */
    size_t module_count;
    uint64_t module_hash;
    enum tbd_status status;
};

/* ---- one event ---- */

static enum verdict judge(struct run *run, const struct tbd_event *event)
{
    struct tbd_value value;

    if (run->where == NULL)
        return MATCH;
    run->env.event = event;
    value = tbd_expr_eval(run->where, run->where->root, &run->env);
    if (value.state == TBD_VALUE_UNKNOWN)
        return OPEN;
    return value.state == TBD_VALUE_OK && value.v != 0 ? MATCH : MISS;
}

static enum verdict judge_first(struct run *run, const struct tbd_event *event)
{
    if ((run->uses & TBD_USES_STACK) != 0)
        run->env.frames = tbd_callers_pcs(&run->callers, event->pc, &run->env.frame_count);
    return judge(run, event);
}

/* Counting is enough: nothing beyond the event is needed. */
static bool count_event(void *context, struct tbd_event *event)
{
    struct run *run = context;

    if (judge_first(run, event) != MATCH)
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
static void add_probes(struct run *run, struct candidate *candidate)
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

static uint64_t match_patterns(const struct run *run)
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
    struct run *run = context;
    enum verdict verdict = judge_first(run, event);
    uint32_t slots = run->where == NULL ? 0 : run->where->memory_count;
    struct candidate *candidate;

    if (verdict == MISS)
        return true;
    if (!reserve((void **)&run->candidates, &run->capacity, run->count + 1, sizeof(*run->candidates)) ||
        !reserve((void **)&run->memory_probes, &run->memory_probe_capacity,
                 run->memory_probe_count + slots + 1, sizeof(*run->memory_probes))) {
        run->status = TBD_NOMEM;
        return false;
    }
    candidate = &run->candidates[run->count++];
    *candidate = (struct candidate){ .event = *event, .value_probe = UINT32_MAX, .verdict = verdict,
                                     .first_memory = (uint32_t)run->memory_probe_count };
    run->memory_probe_count += slots;
    if ((run->uses & TBD_USES_STACK) != 0)
        candidate->stack_bits = match_patterns(run);
    if (verdict == OPEN && run->probes != NULL)
        add_probes(run, candidate);
    run->session->stats.candidates += verdict == OPEN;
    return true;
}

/* ---- candidates: what the walk found about memory ---- */

static void fill_memory(struct run *run, const struct candidate *candidate)
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

static void use_probes(struct run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        struct candidate *candidate = &run->candidates[i];

        if (candidate->verdict != OPEN)
            continue;
        if (candidate->value_probe != UINT32_MAX &&
            tbd_probes_answer(run->probes, candidate->value_probe, &candidate->event.value))
            candidate->event.flags |= TBD_EVENT_HAS_VALUE;
        fill_memory(run, candidate);
        run->env.memory = run->memory;
        run->env.stack_bits = &candidate->stack_bits;
        candidate->verdict = judge(run, &candidate->event);
        run->env.memory = NULL;
        if (candidate->verdict == OPEN && (run->uses & TBD_USES_REGS) == 0) {
            candidate->verdict = MISS; /* a value that the trace does not hold */
            run->session->stats.unmapped++;
        }
    }
}

/* ---- candidates: registers ---- */

struct read_context {
    struct run *run;
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

static void judge_with_regs(struct run *run, struct candidate *candidate,
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
    if (candidate->verdict == OPEN)
        candidate->verdict = MISS;
    run->env.regs = NULL;
    run->env.read = NULL;
    run->env.memory = NULL;
}

/* Up to `max` open candidates from `from` on, in the direction of the search; their indices ascending. */
static size_t pick_batch(const struct run *run, size_t from, size_t max, size_t *out)
{
    bool backward = run->question->backward;
    size_t count = 0;

    for (size_t i = from; i < run->count && count < max; i = backward ? i - 1 : i + 1) {
        if (run->candidates[i].verdict == OPEN)
            out[count++] = i;
    }
    for (size_t i = 0; backward && i < count / 2; i++) {
        size_t other = out[i];

        out[i] = out[count - 1 - i];
        out[count - 1 - i] = other;
    }
    return count;
}

static enum tbd_status replay_batch(struct run *run, size_t from, size_t max)
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
        status = tbd_replay_regs(session->replayer, 0, run->window->index, states, count,
                                 &session->divergence, &session->why);
    }
    for (size_t i = 0; status == TBD_OK && i < count; i++)
        judge_with_regs(run, &run->candidates[picked[i]], &states[i]);
    free(picked);
    free(states);
    return status;
}

/* Goes through the candidates in the direction of the search, deciding them as needed. */
static enum tbd_status take_candidates(struct run *run)
{
    bool backward = run->question->backward;
    size_t batch = BATCH_FIRST;
    enum tbd_status status = TBD_OK;

    for (size_t i = backward ? run->count - 1 : 0; i < run->count && status == TBD_OK;
         i = backward ? i - 1 : i + 1) {
        struct candidate *candidate = &run->candidates[i];

        if (candidate->verdict == OPEN) {
            status = replay_batch(run, i, batch);
            batch = batch * 4 > BATCH_MAX ? BATCH_MAX : batch * 4;
        }
        if (candidate->verdict != MATCH || status != TBD_OK)
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

static struct tbd_scan make_scan(struct run *run, bool (*emit)(void *, struct tbd_event *))
{
    return (struct tbd_scan){
        .window = run->window,
        .disas = run->session->disas,
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
    struct run *run;
};

static bool read_at_start(void *context, uint64_t address, void *out, size_t bytes)
{
    const struct page_context *page = context;
    struct tbd_position start = { .time = page->run->window->first_time };

    return tbd_trace_read(page->run->session->trace, page->run->window, start, address, out, bytes) ==
           TBD_OK;
}

/* The stack that the window begins with, outermost frame first. */
static void seed_callers(struct run *run)
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

static void count_walk(struct run *run, uint64_t wanted)
{
    struct tbd_scan scan = make_scan(run, count_event);

    run->seen = 0;
    run->wanted = wanted;
    if ((run->uses & TBD_USES_STACK) != 0)
        seed_callers(run);
    tbd_scan_run(&scan);
}

/* Decided by events alone: forward stops at the one wanted; backward counts first, then finds it. */
static void count_window(struct run *run)
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

static enum tbd_status collect_window(struct run *run)
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

/* ---- names as modules come and go ---- */

static uint64_t hash_modules(const struct tbd_module *modules, size_t count)
{
    uint64_t hash = count;

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ modules[i].start ^ (uint64_t)(uintptr_t)modules[i].file) * 0x9e3779b97f4a7c15ull;
    return hash;
}

/* Binds func, module and stack names to what is mapped in `window`, and plans anew if that is different. */
static enum tbd_status bind_window(struct run *run, uint32_t window)
{
    struct tbd_session_names context = { run->session, window };
    struct tbd_expr_names names = tbd_session_expr_names(&context);
    const struct tbd_module *modules = NULL;
    size_t count = 0;
    uint64_t hash;
    enum tbd_status status;

    if ((run->uses & TBD_USES_NAMES) == 0)
        return TBD_OK;
    status = tbd_symbols_modules(run->session->symbols, window, &modules, &count);
    if (status != TBD_OK)
        return status;
    hash = hash_modules(modules, count);
    if (hash == run->module_hash)
        return TBD_OK;
    run->module_hash = hash;
    status = tbd_expr_bind_names(run->where, &names, false, run->search->error);
    if (status != TBD_OK)
        return status;
    tbd_plan_free(&run->plan);
    return tbd_plan_make(run->question, run->session, &run->plan);
}

static bool name_is_bound(const struct tbd_expr *expr)
{
    for (uint32_t i = 0; i < expr->name_count; i++) {
        if (expr->names[i].count == 0)
            return false;
    }
    return true;
}

/* All names must mean something at some time: at the start of the search, or at the end or the middle of the trace. */
static enum tbd_status check_names(struct run *run, uint32_t start)
{
    uint32_t last = tbd_trace_window_count(run->session->trace) - 1;
    uint32_t tries[] = { start, last, last / 2, last < 4 ? 0 : 4, 0 };
    enum tbd_status status = TBD_OK;

    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        struct tbd_session_names context = { run->session, tries[i] };
        struct tbd_expr_names names = tbd_session_expr_names(&context);

        status = tbd_expr_bind_names(run->where, &names, true, run->search->error);
        if (status != TBD_NAME && (status != TBD_OK || name_is_bound(run->where)))
            return status;
    }
    return status;
}

static enum tbd_status bind_symbols(struct run *run, uint32_t start)
{
    uint32_t last = tbd_trace_window_count(run->session->trace) - 1;
    struct tbd_session_names context = { run->session, start };
    struct tbd_expr_names names = tbd_session_expr_names(&context);
    enum tbd_status status = tbd_expr_bind_symbols(run->where, &names, run->search->error);

    if (status != TBD_NAME)
        return status;
    context.window = last;
    return tbd_expr_bind_symbols(run->where, &names, run->search->error);
}

/* ---- the whole search ---- */

static uint32_t start_window(const struct run *run)
{
    const struct tbd_question *question = run->question;
    uint32_t last = tbd_trace_window_count(run->session->trace) - 1;
    uint32_t window;

    if (question->backward ? run->span.to_end : run->span.from_start)
        return question->backward ? last : 0;
    window = tbd_trace_window_of(run->session->trace,
                                 question->backward ? run->span.before.time : run->span.after.time);
    return window == UINT32_MAX ? last : window;
}

static enum tbd_status set_span(struct run *run)
{
    const struct tbd_question *question = run->question;
    struct tbd_position from = question->position;

    if (question->from == TBD_FROM_CURRENT)
        from = tbd_session_current(run->session);
    run->span = (struct tbd_span){ .after = from, .before = from, .from_start = true, .to_end = true };
    if (question->from == TBD_FROM_FIRST || question->from == TBD_FROM_LAST) {
        /* before everything, behind everything */
        bool nothing = question->backward == (question->from == TBD_FROM_FIRST);

        return nothing ? TBD_NOTFOUND : TBD_OK;
    }
    run->span.from_start = question->backward;
    run->span.to_end = !question->backward;
    return TBD_OK;
}

static enum tbd_status prepare(struct run *run)
{
    uint32_t start = start_window(run);
    enum tbd_status status;

    if (run->where == NULL)
        return tbd_plan_make(run->question, run->session, &run->plan);
    status = bind_symbols(run, start);
    if (status == TBD_OK && run->where->name_count != 0)
        status = check_names(run, start);
    if (status != TBD_OK)
        return status;
    if (run->where->memory_count != 0) {
        run->memory = calloc(run->where->memory_count, sizeof(*run->memory));
        if (run->memory == NULL)
            return TBD_NOMEM;
    }
    return tbd_plan_make(run->question, run->session, &run->plan);
}

/* TBD_NOTFOUND: the window holds no answer by its summaries. */
static enum tbd_status open_window(struct run *run, uint32_t index)
{
    struct tbd_session *session = run->session;
    struct tbd_window *toc;
    enum tbd_status status;
    bool possible;

    session->stats.considered++;
    status = bind_window(run, index);
    if (status != TBD_OK)
        return status;
    if (!tbd_plan_may_hold_summary(&run->plan, tbd_trace_window(session->trace, index)))
        return TBD_NOTFOUND;
    if (run->plan.has_address || run->plan.has_blocks) {
        status = tbd_window_load(session->trace, index, false, &toc, &session->why);
        if (status != TBD_OK)
            return status;
        possible = tbd_plan_may_hold(&run->plan, toc);
        tbd_window_free(toc);
        if (!possible)
            return TBD_NOTFOUND;
    }
    return tbd_session_window(session, index, run->question->type == TBD_EVENT_LOAD, &run->window);
}

static enum tbd_status search_window(struct run *run, uint32_t index)
{
    enum tbd_status status = open_window(run, index);

    if (status == TBD_NOTFOUND) {
        run->session->stats.skipped++;
        return TBD_OK;
    }
    if (status != TBD_OK)
        return status;
    run->session->stats.scanned++;
    if ((run->uses & (TBD_USES_VALUE | TBD_USES_MEMORY | TBD_USES_REGS)) != 0)
        return collect_window(run);
    count_window(run);
    return TBD_OK;
}

static bool is_done(const struct run *run)
{
    return run->search->each == NULL && run->total >= run->question->count;
}

static enum tbd_status search_windows(struct run *run)
{
    bool backward = run->question->backward;
    uint32_t count = tbd_trace_window_count(run->session->trace);
    uint32_t start = start_window(run);
    uint32_t windows = backward ? start + 1 : count - start;
    enum tbd_status status = TBD_OK;

    for (uint32_t i = 0; i < windows && status == TBD_OK && !is_done(run); i++) {
        if (run->search->progress != NULL)
            run->search->progress(run->search->progress_context, i, windows, run->total);
        status = search_window(run, backward ? start - i : start + i);
    }
    return status;
}

enum tbd_status tbd_search_run(struct tbd_search *search, struct tbd_event *out, uint64_t *out_found)
{
    struct run run = { .search = search, .session = search->session, .question = search->question,
                       .where = search->question->where };
    enum tbd_status status;

    *out_found = 0;
    if (tbd_trace_window_count(search->session->trace) == 0)
        return TBD_NOTFOUND;
    run.uses = run.where == NULL ? 0 : run.where->uses;
    status = set_span(&run);
    if (status == TBD_OK)
        status = prepare(&run);
    if (status == TBD_OK)
        status = search_windows(&run);
    search->session->stats.divisions += run.env.divisions;
    search->session->stats.unmapped += run.env.unmapped;
    *out_found = run.total;
    if (status == TBD_OK && !is_done(&run) && search->each == NULL)
        status = TBD_NOTFOUND;
    if (status == TBD_OK)
        *out = run.found;
    tbd_plan_free(&run.plan);
    tbd_callers_free(&run.callers);
    free(run.memory);
    free(run.candidates);
    free(run.memory_probes);
    return status;
}
