// SPDX-License-Identifier: MIT
/* search_window.c - finds the matches in one window, with as little work as the condition allows
 *
 * A condition is evaluated at every event of its type with the event's own values; most events are
 * decided at once. Conditions over variables mean something different at each instruction
 * (search_scope.c). If a condition needs memory, a first walk asks for it (probes.h) and a second
 * walk over the same events has the answers; if the answers are addresses of more memory, further
 * walks follow. If many events need registers, the window is replayed once with notes of them
 * (register_notes.h) before memory is asked for; if few do, these events are candidates at the end
 * (search_candidates.c).
 *
 * SEARCH_WINDOW-1  All walks see the same events in the same order, so probes are numbered alike.
 *     (not checked: test_pick compares answers)
 * SEARCH_WINDOW-2  A window is walked with probes or a stack of callers only if the condition uses
 *     them. (not checked: it is about what is not done) */
#include "query/search/search_private.h"

#include "query/search/scan_jumps.h"
#include "query/text/user_interrupt.h"

#include <string.h>

/* Events of func_exit that come with entries (tbd_question.with_returns, own_returns, every_return). */
static bool is_return(const struct tbd_search_run *run, const struct tbd_event *event)
{
    const struct tbd_question *question = run->question;

    return (question->with_returns || question->own_returns || question->every_return) &&
           event->type == TBD_EVENT_FUNC_EXIT;
}

static bool ask_event(void *context, struct tbd_event *event)
{
    struct tbd_search_run *run = context;
    uint32_t walk = run->answered;
    enum tbd_verdict verdict;

    tbd_search_take_operands(run, event);
    verdict = is_return(run, event) ? TBD_VERDICT_MISS : tbd_search_judge_answered(run, event);
    run->undecided |= verdict != TBD_VERDICT_MISS;
    if (tbd_search_asks(run, verdict) && run->status == TBD_OK) {
        run->session->stats.candidates += walk == 0;
        tbd_search_ask(run, event, verdict);
    }
    run->env.memory = NULL;
    return run->status == TBD_OK && !run->again;
}

static void keep_stack(struct tbd_search_run *run, const struct tbd_event *event)
{
    size_t count;
    const uint64_t *pcs = tbd_callers_pcs(&run->callers, event->pc, &count);

    if (pcs == NULL)
        run->status = TBD_NOMEM;
    else
        tbd_kept_take_frames(run->kept, pcs, count);
}

/* Decides with every value except registers. A value that the trace does not hold decides against
 * the event. */
static enum tbd_verdict judge_entry(struct tbd_search_run *run, struct tbd_event *event)
{
    enum tbd_verdict verdict = tbd_search_judge_answered(run, event);

    if (verdict == TBD_VERDICT_OPEN && run->answered != 0 &&
        ((run->here->uses & TBD_USES_REGS) == 0 || run->env.regs != NULL)) {
        verdict = tbd_search_judge_last(run, event);
        run->env.bad.unmapped += verdict == TBD_VERDICT_MISS;
    }
    run->env.memory = NULL;
    if (verdict == TBD_VERDICT_MATCH && run->question->keeps_stack)
        keep_stack(run, event);
    event->kept = run->kept != NULL ? run->kept->record.values : NULL;
    return verdict;
}

static enum tbd_verdict judge_own(struct tbd_search_run *run, struct tbd_event *event)
{
    enum tbd_verdict verdict;

    if (is_return(run, event) || !tbd_expr_in_ranges(&run->where->names[0], event->pc))
        return tbd_search_wants_own(run, event) ? TBD_VERDICT_MATCH : TBD_VERDICT_MISS;
    if ((event->flags & TBD_EVENT_BARE) != 0)
        return TBD_VERDICT_MATCH;
    if ((event->flags & TBD_EVENT_BY_JUMP) != 0)
        tbd_search_take_stub(run, event);
    verdict = judge_entry(run, event);
    tbd_search_note_own_entry(run, event);
    if (verdict != TBD_VERDICT_MISS)
        return verdict;
    event->flags |= TBD_EVENT_UNWANTED;
    return TBD_VERDICT_MATCH;
}

static enum tbd_verdict judge_event(struct tbd_search_run *run, struct tbd_event *event)
{
    const struct tbd_question *question = run->question;
    enum tbd_verdict verdict;

    event->kept = NULL;
    tbd_search_take_operands(run, event);
    if (question->own_returns)
        return judge_own(run, event);
    if (is_return(run, event))
        return question->every_return || tbd_search_wants_return(run, event) ? TBD_VERDICT_MATCH
                                                                             : TBD_VERDICT_MISS;
    verdict = judge_entry(run, event);
    if (question->with_returns && verdict != TBD_VERDICT_MISS)
        tbd_search_note_entry(run, event);
    return verdict;
}

static bool count_event(void *context, struct tbd_event *event)
{
    struct tbd_search_run *run = context;

    if (judge_event(run, event) != TBD_VERDICT_MATCH)
        return true;
    run->seen += !is_return(run, event);
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

static bool collect_event(void *context, struct tbd_event *event)
{
    struct tbd_search_run *run = context;
    enum tbd_verdict verdict = judge_event(run, event);

    if (verdict == TBD_VERDICT_MISS || tbd_search_keep_candidate(run, event, verdict))
        return true;
    run->status = TBD_NOMEM;
    return false;
}

/* ---- one window ---- */

/* Frames at the walk's start: for one that starts far inside the window, as of there.  (Other threads'
 * frames are only known at the window's start.) */
static void seed(struct tbd_search_run *run, struct tbd_scan *scan)
{
    uint64_t start = tbd_scan_start_time(scan);

    scan->seeded_at = 0;
    if (start - run->window->first_time > TBD_SEED_REACH && run->window->complete &&
        !run->session->borrows_replayer && tbd_trace_thread_count(run->session->trace) <= 1)
        scan->seeded_at = tbd_search_seed_near(run, start);
    if (scan->seeded_at == 0)
        tbd_search_seed_callers(run);
}

/* Only with own_returns are the calls of functions looked at that may jump. */
static bool makes_operands(const struct tbd_search_run *run)
{
    return run->question->own_returns && tbd_search_wants_operands(run);
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
        .has_range = run->plan.has_range,
        .range_start = run->plan.range_start,
        .range_end = run->plan.range_end,
        .has_pc = run->plan.has_pc,
        .pc = run->plan.pc,
        .lines = run->lines,
        .probes = feed,
        .callers = run->has_callers ? &run->callers : NULL,
        .keeps_frames = run->question->keeps_frames,
        .with_returns = run->question->with_returns,
        .own_returns = run->question->own_returns,
        .every_return = run->question->every_return,
        .with_jumps = run->plan.has_jumped,
        .makes_operands = makes_operands(run),
        .emit = emit,
        .turn = tbd_search_change_turn,
        .context = run,
    };

    memset(run->next_probe, 0, sizeof(run->next_probe));
    run->returns.count = 0;
    if (scan.callers != NULL)
        seed(run, &scan);
    tbd_scan_run(&scan);
    tbd_search_forget_callers(run);
    run->env.frames = NULL;
}

/* A walk that does not count bad events, because another walk counts them.  What it would have
 * counted is in run->bad. */
static void walk_uncounted(struct tbd_search_run *run, bool (*emit)(void *, struct tbd_event *),
                           struct tbd_probes *feed)
{
    struct tbd_bad_events before = run->env.bad;

    run->env.bad = (struct tbd_bad_events){ 0 };
    walk(run, emit, feed);
    run->bad = run->env.bad;
    run->env.bad = before;
}

static void count_walk(struct tbd_search_run *run, uint64_t wanted)
{
    run->seen = 0;
    run->wanted = wanted;
    walk(run, count_event, NULL);
}

/* Counts the matches in the span first, then finds the wanted one. */
static void count_backward(struct tbd_search_run *run)
{
    uint64_t left = run->question->count - run->total, there;

    count_walk(run, 0);
    there = run->seen;
    if (there >= left) {
        run->seen = 0;
        run->wanted = there - left + 1;
        walk_uncounted(run, count_event, NULL);
    }
    run->total += there < left ? there : left;
}

/* The block entries of the first part that a backward search looks at; the next part is larger. */
#define PART_BLOCKS 65536u
#define PART_GROWS  16u

/* Most answers are near: a backward search goes through the window in parts, the last one first. */
static void count_parts(struct tbd_search_run *run)
{
    struct tbd_span whole = run->span;
    uint64_t first = run->window->first_time, end = first + run->window->blocks;
    uint64_t part = PART_BLOCKS;

    if (!whole.from_start && whole.after.time > first)
        first = whole.after.time;
    if (!whole.to_end && whole.before.time < end)
        end = whole.before.time;
    while (end > first && end - first > part && run->total < run->question->count &&
           run->status == TBD_OK && !tbd_is_interrupted()) {
        end -= part;
        run->span.from_start = false;
        run->span.after = (struct tbd_position){ .time = end - 1, .offset = UINT32_MAX };
        count_backward(run);
        run->span.to_end = false;
        run->span.before = (struct tbd_position){ .time = end };
        part *= PART_GROWS;
    }
    run->span.from_start = whole.from_start;
    run->span.after = whole.after;
    if (run->total < run->question->count)
        count_backward(run);
    run->span = whole;
}

/* A forward search stops at the wanted match. */
static void count_window(struct tbd_search_run *run)
{
    if (run->question->backward && run->search->each == NULL) {
        if (run->answered == 0)
            count_parts(run);
        else
            count_backward(run);
    } else {
        count_walk(run, run->question->count - run->total);
        run->total += run->seen;
    }
}

static enum tbd_status collect_window(struct tbd_search_run *run)
{
    tbd_search_forget_candidates(run);
    run->memory_value_count = 0;
    run->status = TBD_OK;
    walk(run, collect_event, NULL);
    return run->status == TBD_OK ? tbd_search_take_candidates(run) : run->status;
}

static bool asks_anything(const struct tbd_search_run *run)
{
    return (run->uses & (TBD_USES_VALUE | TBD_USES_MEMORY)) != 0 || run->wants_values ||
           run->scopes != NULL || (run->uses & TBD_USES_REGS) != 0;
}

/* Walks until no more memory is asked for: once for each level of memory that holds addresses of
 * memory. */
static enum tbd_status ask_window(struct tbd_search_run *run)
{
    enum tbd_status status = TBD_OK;

    do {
        run->asked = run->undecided = false;
        status = tbd_probes_new(run->session->trace, run->window, &run->probes[run->answered]);
        if (status != TBD_OK)
            return status;
        walk_uncounted(run, ask_event, run->probes[run->answered]);
        run->answered++;
    } while (run->status == TBD_OK && !run->again && run->asked && run->answered < run->levels);
    return run->status;
}

static void forget_answers(struct tbd_search_run *run)
{
    for (uint32_t i = 0; i < TBD_EXPR_MAX_LEVELS; i++) {
        tbd_probes_free(run->probes[i]);
        run->probes[i] = NULL;
    }
    run->answered = 0;
}

/* Has the last walk decided against all events?  Then nothing is left to count. */
static bool has_none(const struct tbd_search_run *run)
{
    return run->answered != 0 && !run->undecided && !run->question->with_returns &&
           !run->question->own_returns;
}

static void count_bad(struct tbd_search_run *run)
{
    tbd_bad_events_add(&run->env.bad, &run->bad);
}

/* A replay with notes costs as much as a replay that stops once in this many of a window's
 * blocks. */
#define BLOCKS_PER_STOP 64u
#define STOPS_MIN       64u

bool tbd_search_is_many(const struct tbd_search_run *run, uint64_t events)
{
    return events >= STOPS_MIN && events >= run->window->blocks / BLOCKS_PER_STOP;
}

static bool wants_notes(const struct tbd_search_run *run)
{
    return tbd_search_is_many(run, run->missed) && run->window->complete &&
           (run->all_uses & TBD_USES_STATE) == 0;
}

/* Walks again, with the registers that were missed. */
static enum tbd_status open_again(struct tbd_search_run *run)
{
    enum tbd_status status = tbd_search_open(run);

    if (status == TBD_OK && run->scopes != NULL)
        tbd_scopes_set_window(run->scopes, run->window);
    run->again = false;
    return status;
}

/* Registers may point to memory anywhere: only the whole window has all stores to it. */
static enum tbd_status ask_with_notes(struct tbd_search_run *run)
{
    enum tbd_status status = ask_window(run);

    if (status != TBD_OK || !run->again)
        return status;
    run->picking.is_off = true;
    forget_answers(run);
    run->unnoted = run->noted = 0;
    status = open_again(run);
    return status == TBD_OK ? ask_window(run) : status;
}

/* Gets the registers that were missed at the sites; then repeats all walks.  If that replay fails,
 * the replays that stop at positions will say why. */
static enum tbd_status note_window(struct tbd_search_run *run)
{
    struct tbd_session *session = run->session;
    struct tbd_window *window;
    enum tbd_status status = tbd_session_replayer(session);

    if (status != TBD_OK)
        return status;
    if (tbd_replay_notes(session->replayer, session->worker, run->window, run->known.table.entries,
                         run->known.table.count, &window, &session->divergence,
                         &session->why) != TBD_OK)
        return TBD_OK;
    session->stats.noted++;
    tbd_notes_take(&run->notes, window);
    forget_answers(run);
    run->unnoted = run->noted = 0;
    return ask_with_notes(run);
}

/* The next window will probably miss the same registers as this one. */
static enum tbd_status note_missed(struct tbd_search_run *run)
{
    tbd_note_sites_free(&run->known);
    run->known = run->sites;
    run->sites = (struct tbd_note_sites){ 0 };
    tbd_note_sites_sort(&run->known);
    return note_window(run);
}

/* Most conditions over variables need no stack of callers: it is kept from the first place whose
 * condition does. */
static enum tbd_status ask_first(struct tbd_search_run *run)
{
    uint64_t candidates = run->session->stats.candidates;
    enum tbd_status status;

    run->again = false;
    do {
        forget_answers(run);
        tbd_note_sites_free(&run->sites);
        run->session->stats.candidates = candidates;
        run->missed = 0;
        status = run->again ? open_again(run) : TBD_OK;
        if (status == TBD_OK && asks_anything(run))
            status = ask_window(run);
    } while (status == TBD_OK && run->again);
    return status;
}

/* Notes at the sites of the window before, if these are all.  Where few events were at them, the
 * next window is asked first. */
static enum tbd_status note_known(struct tbd_search_run *run)
{
    uint64_t candidates = run->session->stats.candidates;
    enum tbd_status status = note_window(run);

    if (run->notes.window == NULL || run->unnoted != 0 || run->noted < STOPS_MIN)
        tbd_note_sites_free(&run->known);
    if (status != TBD_OK || (run->notes.window != NULL && run->unnoted == 0))
        return status;
    run->session->stats.candidates = candidates;
    tbd_notes_free(&run->notes);
    return TBD_OK;
}

static enum tbd_status ask_all(struct tbd_search_run *run)
{
    enum tbd_status status =
        run->known.table.count != 0 && run->window->complete ? note_known(run) : TBD_OK;

    if (status != TBD_OK || run->notes.window != NULL)
        return status;
    status = ask_first(run);
    return status == TBD_OK && wants_notes(run) ? note_missed(run) : status;
}

/* The entries by jumps alone: no stack of callers, no returns. */
static void walk_jumps(struct tbd_search_run *run)
{
    struct tbd_scan scan = {
        .window = run->window,
        .disas = run->session->disas,
        .symbols = run->session->symbols,
        .type = TBD_EVENT_FUNC_ENTER,
        .span = run->span,
        .blocks = run->plan.blocks,
        .with_jumps = true,
        .only_jumps = true,
        .makes_operands = makes_operands(run),
        .emit = tbd_search_note_bare,
        .context = run,
    };

    tbd_scan_run(&scan);
}

/* Whoever reads a condition needs the operands of entries by jumps, too.  Without them these have none. */
static enum tbd_status find_operands(struct tbd_search_run *run)
{
    enum tbd_status status;

    run->operands.count = run->operands.next = 0;
    if (!tbd_search_wants_operands(run) ||
        !tbd_scan_may_meet(run->window, run->plan.blocks, run->plan.block_count))
        return TBD_OK;
    walk_jumps(run);
    if (run->status != TBD_OK || run->operands.count == 0)
        return run->status;
    status = tbd_search_find_operands(run);
    if ((run->uses & (TBD_USES_OPERANDS | TBD_USES_TYPES)) == 0 && !run->question->with_returns &&
        status != TBD_NOMEM)
        status = TBD_OK;
    return status;
}

enum tbd_status tbd_search_one(struct tbd_search_run *run)
{
    enum tbd_status status;

    run->status = TBD_OK;
    if (run->scopes != NULL)
        tbd_scopes_set_window(run->scopes, run->window);
    status = tbd_search_see_jumps(run);
    if (status == TBD_OK)
        status = find_operands(run);
    if (status == TBD_OK)
        status = ask_all(run);
    if (status == TBD_OK && has_none(run))
        count_bad(run);
    else if (status == TBD_OK && (run->all_uses & TBD_USES_REGS) != 0 &&
             (run->notes.window == NULL || run->unnoted != 0))
        status = collect_window(run);
    else if (status == TBD_OK)
        count_window(run);
    forget_answers(run);
    tbd_note_sites_free(&run->sites);
    tbd_notes_free(&run->notes);
    return status != TBD_OK ? status : run->status;
}
