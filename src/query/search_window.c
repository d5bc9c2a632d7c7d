// SPDX-License-Identifier: MIT
/* search_window.c - the matches in one window, with as little work as the condition allows
 *
 * A condition is evaluated at every event of its type with what the event itself tells; most decide
 * at once.  Conditions over variables mean something else at each instruction (search_scope.c).
 * Where it needs memory, a first walk asks (probes.h) and a second one, event by event
 * the same, has the answers; where these are addresses of more, further walks follow.  What is open then (candidates) gets registers, by partial replay in
 * batches in the direction of the search, and memory at addresses that need registers, read one by
 * one.
 *
 * I1  All walks see the same events in the same order, so probes are numbered alike.
 * I2  Candidates of a window are in ascending order of position; each is decided at most once.
 * I3  A window is walked with probes or a stack of callers only if the condition uses them. */
#include "query/search_private.h"

#include "base/layout.h"
#include "format/codec.h"
#include "query/scan_threads.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_FIRST 16u
#define BATCH_MAX   8192u
#define FRAMES_MAX  65536u

/* ---- one event ---- */

static enum tbd_verdict verdict_of(struct tbd_value value)
{
    if (value.state == TBD_VALUE_UNKNOWN)
        return TBD_VERDICT_OPEN;
    return value.state == TBD_VALUE_OK && value.v != 0 ? TBD_VERDICT_MATCH : TBD_VERDICT_MISS;
}

static enum tbd_verdict judge(struct tbd_search_run *run, const struct tbd_event *event)
{
    if (run->where == NULL)
        return TBD_VERDICT_MATCH;
    run->env.event = event;
    return verdict_of(tbd_expr_eval(run->here, run->here->root, &run->env));
}

static bool reserve_memory(struct tbd_search_run *run, uint32_t slots)
{
    struct tbd_value *bigger;

    if (slots <= run->memory_room)
        return true;
    bigger = realloc(run->memory, slots * sizeof(*bigger));
    if (bigger == NULL)
        return false;
    run->memory = bigger;
    run->memory_room = slots;
    return true;
}

/* Finds out what the condition means here, if what needs no variables leaves it open. */
static bool find_meaning(struct tbd_search_run *run, const struct tbd_event *event)
{
    run->here = run->where;
    if (run->scopes == NULL || judge(run, event) != TBD_VERDICT_OPEN)
        return false;
    run->here = tbd_scopes_get(run->scopes, run->where, event);
    if (run->here == NULL || !reserve_memory(run, run->here->memory_count)) {
        run->here = run->where;
        run->status = TBD_NOMEM;
        return false;
    }
    run->all_uses |= run->here->uses;
    if (run->here->levels > run->levels)
        run->levels = run->here->levels;
    return true;
}

static uint64_t frame_of(const struct tbd_callers *callers)
{
    return callers->count == 0 ? 0 : callers->frames[callers->count - 1].slot + 8;
}

static enum tbd_verdict judge_first(struct tbd_search_run *run, const struct tbd_event *event)
{
    if ((run->uses & TBD_USES_STACK) != 0)
        run->env.frames = tbd_callers_pcs(&run->callers, event->pc, &run->env.frame_count);
    run->env.frame = frame_of(&run->callers);
    if (run->where == NULL)
        return TBD_VERDICT_MATCH;
    if (run->scopes != NULL && !find_meaning(run, event))
        return run->status == TBD_OK ? judge(run, event) : TBD_VERDICT_MISS;
    if (run->scopes == NULL)
        run->here = run->where;
    return judge(run, event);
}

/* ---- memory: asked in one walk, answered in the next ---- */

/* Does the event get probes? */
static bool asks(const struct tbd_search_run *run, enum tbd_verdict verdict)
{
    return verdict == TBD_VERDICT_OPEN || (verdict == TBD_VERDICT_MATCH && run->wants_values);
}

static bool wants_value(const struct tbd_search_run *run, const struct tbd_event *event)
{
    return ((run->uses & TBD_USES_VALUE) != 0 || run->wants_values) && event->size != 0 &&
           event->fresh == NULL;
}

/* Words that a node of this level reads; *out is the address, if it is known. */
static uint32_t words_of(struct tbd_search_run *run, const struct tbd_expr_node *node,
                         uint32_t level, uint64_t *out)
{
    uint64_t divisions = run->env.divisions, unmapped = run->env.unmapped;
    uint64_t optimized = run->env.optimized;
    struct tbd_value address;

    if (node->level != level ||
        (node->op != TBD_EXPR_MEMORY && node->op != TBD_EXPR_MATCHES) ||
        run->memory[node->which].state == TBD_VALUE_OK)
        return 0;
    address = tbd_expr_eval(run->here, node->left, &run->env);
    run->env.divisions = divisions;
    run->env.unmapped = unmapped;
    run->env.optimized = optimized;
    *out = address.v;
    if (address.state != TBD_VALUE_OK)
        return 0;
    return node->op == TBD_EXPR_MEMORY ? 1 : TBD_EXPR_MATCH_SLOTS;
}

/* Asks for what the nodes of level `walk + 1` read. */
static void ask_memory(struct tbd_search_run *run, const struct tbd_event *event, uint32_t walk)
{
    const struct tbd_expr *expr = run->here;
    uint64_t address = 0;

    for (uint32_t i = 0; run->where != NULL && i < expr->node_count; i++) {
        const struct tbd_expr_node *node = &expr->nodes[i];
        uint32_t words = words_of(run, node, walk + 1, &address);
        uint32_t bytes = node->op == TBD_EXPR_MEMORY ? (uint32_t)node->value : 8;

        for (uint32_t w = 0; w < words; w++)
            (void)tbd_probes_add(run->probes[walk], event->position, address + w * 8, bytes,
                                 node->is_after);
        run->asked |= words != 0;
    }
}

static void ask_value(struct tbd_search_run *run, const struct tbd_event *event)
{
    if (!wants_value(run, event))
        return;
    (void)tbd_probes_add(run->probes[0], event->position, event->addr,
                         event->size < 8 ? (uint32_t)event->size : 8,
                         event->type == TBD_EVENT_STORE);
    run->asked = true;
}

static void take_memory(struct tbd_search_run *run, uint32_t walk)
{
    const struct tbd_expr *expr = run->here;
    uint64_t address;

    for (uint32_t i = 0; run->where != NULL && i < expr->node_count; i++) {
        const struct tbd_expr_node *node = &expr->nodes[i];
        uint32_t words = words_of(run, node, walk + 1, &address);

        for (uint32_t w = 0; w < words; w++) {
            struct tbd_value *value = &run->memory[node->which + w];

            value->state =
                tbd_probes_answer(run->probes[walk], run->next_probe[walk]++, &value->v)
                    ? TBD_VALUE_OK
                    : TBD_VALUE_BAD;
        }
    }
}

static void take_value(struct tbd_search_run *run, struct tbd_event *event)
{
    if (wants_value(run, event) &&
        tbd_probes_answer(run->probes[0], run->next_probe[0]++, &event->value))
        event->flags |= TBD_EVENT_HAS_VALUE;
}

/* With the answers of all walks before, in the order in which they were asked.  env.memory stays set. */
static enum tbd_verdict judge_answered(struct tbd_search_run *run, struct tbd_event *event)
{
    enum tbd_verdict verdict = judge_first(run, event);

    for (uint32_t i = 0; run->where != NULL && i < run->here->memory_count; i++)
        run->memory[i].state = TBD_VALUE_UNKNOWN;
    run->env.memory = run->where != NULL && run->here->memory_count != 0 ? run->memory : NULL;
    for (uint32_t walk = 0; walk < run->answered && asks(run, verdict); walk++) {
        if (walk == 0)
            take_value(run, event);
        if (verdict == TBD_VERDICT_MATCH)
            break;
        take_memory(run, walk);
        verdict = judge(run, event);
    }
    return verdict;
}

static bool ask_event(void *context, struct tbd_event *event)
{
    struct tbd_search_run *run = context;
    uint32_t walk = run->answered;
    enum tbd_verdict verdict = judge_answered(run, event);

    if (asks(run, verdict) && run->status == TBD_OK) {
        run->session->stats.candidates += walk == 0;
        if (walk == 0)
            ask_value(run, event);
        if (verdict == TBD_VERDICT_OPEN)
            ask_memory(run, event, walk);
    }
    run->env.memory = NULL;
    return run->status == TBD_OK;
}

/* With everything but registers.  A value that the trace does not hold decides against the event.
 */
static enum tbd_verdict judge_event(struct tbd_search_run *run, struct tbd_event *event)
{
    enum tbd_verdict verdict = judge_answered(run, event);

    run->env.memory = NULL;
    if (verdict == TBD_VERDICT_OPEN && run->answered != 0 &&
        (run->here->uses & TBD_USES_REGS) == 0) {
        run->env.unmapped++;
        return TBD_VERDICT_MISS;
    }
    return verdict;
}

static bool count_event(void *context, struct tbd_event *event)
{
    struct tbd_search_run *run = context;

    if (judge_event(run, event) != TBD_VERDICT_MATCH)
        return true;
    run->seen++;
    if (run->search->each != NULL) {
        run->found = *event;
        run->is_stopped = !run->search->each(run->search->each_context, event);
        return !run->is_stopped;
    }
    if (run->seen != run->wanted)
        return true;
    run->found = *event;
    return false;
}

/* ---- candidates ---- */

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

/* Values of memory that are known already; UNKNOWN where there was no probe. */
static void keep_memory(struct tbd_search_run *run, struct tbd_candidate *candidate)
{
    uint32_t slots = run->here->memory_count;

    candidate->first_memory = run->memory_value_count;
    for (uint32_t i = 0; i < slots; i++)
        run->memory_values[run->memory_value_count++] = run->memory[i];
}

static bool collect_event(void *context, struct tbd_event *event)
{
    struct tbd_search_run *run = context;
    enum tbd_verdict verdict = judge_event(run, event);
    struct tbd_candidate *candidate;

    if (verdict == TBD_VERDICT_MISS)
        return true;
    if (!reserve((void **)&run->candidates, &run->capacity, run->count + 1,
                 sizeof(*run->candidates)) ||
        !reserve((void **)&run->memory_values, &run->memory_value_capacity,
                 run->memory_value_count + run->here->memory_count, sizeof(*run->memory_values))) {
        run->status = TBD_NOMEM;
        return false;
    }
    candidate = &run->candidates[run->count++];
    *candidate = (struct tbd_candidate){
        .event = *event, .verdict = verdict, .where = run->here, .frame = run->env.frame
    };
    keep_memory(run, candidate);
    if ((run->uses & TBD_USES_STACK) != 0)
        candidate->stack_bits = match_patterns(run);
    return true;
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
    return tbd_trace_read(read->run->session->trace, read->run->window, read->position, address,
                          out, (size_t)bytes) == TBD_OK
               ? TBD_VALUE_OK
               : TBD_VALUE_BAD;
}

static void judge_with_regs(struct tbd_search_run *run, struct tbd_candidate *candidate,
                            const struct tbd_reg_state *state)
{
    struct read_context read = { run, candidate->event.position };

    run->here = candidate->where;
    run->env.frame = candidate->frame;
    run->env.memory =
        run->here->memory_count == 0 ? NULL : &run->memory_values[candidate->first_memory];
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
    run->env.stack_bits = NULL;
}

/* Up to `max` open candidates from `from` on, in the direction of the search; their indices
 * ascending. */
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
            states[i] = (struct tbd_reg_state){
                .position = run->candidates[picked[i]].event.position,
                .thread = run->candidates[picked[i]].event.thread,
            };
        session->stats.replayed += count;
        status = tbd_replay_regs(session->replayer, session->worker, run->window->index, states,
                                 count, &session->divergence, &session->why);
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
        run->is_stopped = run->search->each != NULL &&
                          !run->search->each(run->search->each_context, &candidate->event);
        if (run->is_stopped)
            break;
        if (run->search->each == NULL && run->total == run->question->count)
            break;
    }
    return status;
}

/* ---- one window ---- */

/* Pages as they were at the window's start: the stack, mostly. */
#define START_PAGES 4u

struct start_pages {
    struct tbd_search_run *run;
    uint64_t addresses[START_PAGES]; /* 1 = none */
    unsigned oldest;
    uint8_t bytes[START_PAGES][TBD_PAGE_SIZE];
};

static const uint8_t *start_page(struct start_pages *pages, uint64_t address)
{
    struct tbd_search_run *run = pages->run;
    unsigned use = pages->oldest;

    for (unsigned i = 0; i < START_PAGES; i++) {
        if (pages->addresses[i] == address)
            return pages->bytes[i];
    }
    pages->addresses[use] = 1;
    if (tbd_trace_page_at_start(run->session->trace, run->window->index, address,
                                pages->bytes[use]) != TBD_OK)
        return NULL;
    pages->addresses[use] = address;
    pages->oldest = (use + 1) % START_PAGES;
    return pages->bytes[use];
}

static bool read_at_start(void *context, uint64_t address, void *out, size_t bytes)
{
    uint8_t *to = out;

    for (size_t i = 0; i < bytes; i++) {
        uint64_t at = address + i;
        const uint8_t *page = start_page(context, at & ~(TBD_PAGE_SIZE - 1));

        if (page == NULL)
            return false;
        to[i] = page[at & (TBD_PAGE_SIZE - 1)];
    }
    return true;
}

/* Frames of a thread at the window's start, innermost first; owned by the caller.  NULL if there is no memory for
 * them. */
static struct tbd_frame *unwind_start(struct tbd_search_run *run, const struct tbd_regs *regs,
                                      size_t *out_count)
{
    struct start_pages pages = { .run = run, .addresses = { 1, 1, 1, 1 } };
    struct tbd_stack_memory memory = { read_at_start, &pages };
    struct tbd_frame *frames = NULL;

    *out_count = 0;
    for (size_t max = 256; max <= FRAMES_MAX; max *= 16) {
        free(frames);
        frames = calloc(max, sizeof(*frames));
        if (frames == NULL ||
            tbd_stack_unwind(run->session->symbols, run->window->index, regs, &memory,
                             frames, max, out_count) != TBD_OK)
            break;
        if (*out_count < max)
            return frames;
    }
    return frames;
}

/* The stack that the thread has when the window begins, outermost frame first. */
static void seed_callers(struct tbd_search_run *run, const struct tbd_regs *regs)
{
    size_t count;
    struct tbd_frame *frames = unwind_start(run, regs, &count);

    tbd_callers_clear(&run->callers);
    for (size_t i = frames == NULL ? 0 : count; i > 1; i--) {
        const struct tbd_frame *callee = &frames[i - 2];
        uint64_t cfa = callee->cfa != 0 ? callee->cfa : frames[i - 1].sp;

        (void)tbd_callers_call(&run->callers, cfa - 8, frames[i - 1].call_pc);
    }
    free(frames);
}

static bool needs_callers(const struct tbd_search_run *run)
{
    return (run->uses & (TBD_USES_STACK | TBD_USES_FRAME)) != 0 || run->scopes != NULL;
}

void tbd_search_forget_callers(struct tbd_search_run *run)
{
    for (size_t i = 0; i < run->other_count; i++)
        tbd_callers_free(&run->others[i].callers);
    free(run->others);
    run->others = NULL;
    run->other_count = run->other_room = 0;
}

/* A thread that was made in the window begins with no callers. */
static void take_callers(struct tbd_search_run *run, uint32_t thread)
{
    const struct tbd_regs *regs = tbd_scan_thread_regs(run->window, thread);

    for (size_t i = 0; i < run->other_count; i++) {
        if (run->others[i].thread == thread) {
            run->callers = run->others[i].callers;
            run->others[i] = run->others[--run->other_count];
            return;
        }
    }
    run->callers = (struct tbd_callers){ 0 };
    if (regs != NULL)
        seed_callers(run, regs);
}

static void change_turn(void *context, uint32_t from, uint32_t to)
{
    struct tbd_search_run *run = context;

    if (!needs_callers(run))
        return;
    if (tbd_array_grow(&run->others, run->other_count, &run->other_room, sizeof(*run->others)))
        run->others[run->other_count++] = (struct tbd_thread_callers){ from, run->callers };
    else
        tbd_callers_free(&run->callers);
    take_callers(run, to);
}

static void walk(struct tbd_search_run *run, bool (*emit)(void *, struct tbd_event *),
                 struct tbd_probes *feed)
{
    struct tbd_scan scan = {
        .window = run->window,
        .disas = run->session->disas,
        .symbols = run->session->symbols,
        .type = run->question->type,
        .span = run->span,
        .blocks = run->plan.blocks,
        .has_pc = run->plan.has_pc,
        .pc = run->plan.pc,
        .lines = run->lines,
        .probes = feed,
        .callers = needs_callers(run) ? &run->callers : NULL,
        .emit = emit,
        .turn = change_turn,
        .context = run,
    };

    memset(run->next_probe, 0, sizeof(run->next_probe));
    if (scan.callers != NULL)
        seed_callers(run, &run->window->regs);
    tbd_scan_run(&scan);
    tbd_search_forget_callers(run);
    run->env.frames = NULL;
}

/* A walk over events that another walk counts as bad, or will. */
static void walk_uncounted(struct tbd_search_run *run, bool (*emit)(void *, struct tbd_event *),
                           struct tbd_probes *feed)
{
    uint64_t divisions = run->env.divisions;
    uint64_t unmapped = run->env.unmapped;
    uint64_t optimized = run->env.optimized;

    walk(run, emit, feed);
    run->env.divisions = divisions;
    run->env.unmapped = unmapped;
    run->env.optimized = optimized;
}

static void count_walk(struct tbd_search_run *run, uint64_t wanted)
{
    run->seen = 0;
    run->wanted = wanted;
    walk(run, count_event, NULL);
}

/* Forward stops at the one wanted; backward counts first, then finds it. */
static void count_window(struct tbd_search_run *run)
{
    uint64_t left = run->question->count - run->total;

    if (run->question->backward && run->search->each == NULL) {
        uint64_t there;

        count_walk(run, 0);
        there = run->seen;
        if (there >= left) {
            run->seen = 0;
            run->wanted = there - left + 1;
            walk_uncounted(run, count_event, NULL);
        }
        run->total += there < left ? there : left;
    } else {
        count_walk(run, left);
        run->total += run->seen;
    }
}

static enum tbd_status collect_window(struct tbd_search_run *run)
{
    run->count = 0;
    run->memory_value_count = 0;
    run->status = TBD_OK;
    walk(run, collect_event, NULL);
    return run->status == TBD_OK ? take_candidates(run) : run->status;
}

static bool asks_anything(const struct tbd_search_run *run)
{
    return (run->uses & (TBD_USES_VALUE | TBD_USES_MEMORY)) != 0 || run->wants_values ||
           run->scopes != NULL;
}

/* Walks until nothing more is asked for: once for each level of memory that leads to memory. */
static enum tbd_status ask_window(struct tbd_search_run *run)
{
    enum tbd_status status = TBD_OK;

    do {
        run->asked = false;
        status = tbd_probes_new(run->session->trace, run->window, &run->probes[run->answered]);
        if (status != TBD_OK)
            return status;
        walk_uncounted(run, ask_event, run->probes[run->answered]);
        run->answered++;
    } while (run->status == TBD_OK && run->asked && run->answered < run->levels);
    return run->status;
}

enum tbd_status tbd_search_one(struct tbd_search_run *run)
{
    enum tbd_status status = TBD_OK;

    run->status = TBD_OK;
    if (run->scopes != NULL)
        tbd_scopes_set_window(run->scopes, run->window);
    if (asks_anything(run))
        status = ask_window(run);
    if (status == TBD_OK && (run->all_uses & TBD_USES_REGS) != 0)
        status = collect_window(run);
    else if (status == TBD_OK)
        count_window(run);
    for (uint32_t i = 0; i < TBD_EXPR_MAX_LEVELS; i++) {
        tbd_probes_free(run->probes[i]);
        run->probes[i] = NULL;
    }
    run->answered = 0;
    return status != TBD_OK ? status : run->status;
}
