// SPDX-License-Identifier: MIT
/* search.c - the windows of a search: where a search starts, which windows it skips, when it is
 * done
 *
 * The first windows that the plan leaves are searched one by one, because most answers are near;
 * all workers search the others, and all windows where all events are wanted (search_pool.c). Names of functions and modules are bound again
 * whenever the mapped modules change. */
#include "query/search/search_passing.h"
#include "query/search/search_private.h"
#include "query/search/search_tally.h"

#include "format/files/large_buffers.h"
#include "query/condition/window_names.h"
#include "query/session/part_trace.h"
#include "query/text/user_interrupt.h"
#include "query/text/progress.h"

#include <stdlib.h>
#include <string.h>

#define SERIAL_WINDOWS 2u

/* ---- names as modules come and go ---- */

/* Are the same modules mapped in `window`, from its start to its end, as when names were bound
 * last? */
static bool has_same_mappings(struct tbd_search_run *run, uint32_t window, size_t changes)
{
    bool is_same = run->has_changes && run->changes == changes &&
                   tbd_trace_mapping_changes(run->session->trace, window + 1) == changes;

    run->changes = changes;
    run->has_changes = tbd_trace_mapping_changes(run->session->trace, window + 1) == changes;
    return is_same;
}

/* Names do, and where functions begin, which jumps may enter. */
static bool depends_on_modules(const struct tbd_search_run *run)
{
    return (run->uses & TBD_USES_NAMES) != 0 ||
           (run->question->type == TBD_EVENT_FUNC_ENTER && !run->question->only_calls);
}

/* Binds func, module and stack names to the modules mapped in `window`, and plans anew if these
 * changed. */
static enum tbd_status bind_window(struct tbd_search_run *run, uint32_t window)
{
    struct tbd_window_names context = { run->session, window, run->question->type };
    struct tbd_expr_names names = tbd_window_names_of(&context);
    const struct tbd_module *modules = NULL;
    size_t changes = tbd_trace_mapping_changes(run->session->trace, window);
    size_t count = 0;
    uint64_t hash;
    enum tbd_status status;

    if (!depends_on_modules(run) || has_same_mappings(run, window, changes))
        return TBD_OK;
    status = tbd_symbols_modules(run->session->symbols, window, &modules, &count);
    if (status != TBD_OK)
        return status;
    hash = tbd_symbols_hash(modules, count);
    if (hash == run->module_hash)
        return TBD_OK;
    run->module_hash = hash;
    if ((run->uses & TBD_USES_NAMES) != 0)
        status = tbd_expr_bind_names(run->where, &names, false, run->search->error);
    if (status != TBD_OK)
        return status;
    tbd_plan_free(&run->plan);
    tbd_search_forget_picker(run);
    return tbd_plan_make(run->question, run->session, window, &run->plan);
}

static bool name_is_bound(const struct tbd_expr *expr)
{
    for (uint32_t i = 0; i < expr->name_count; i++) {
        if (expr->names[i].count == 0 && expr->names[i].copy_count == 0)
            return false;
    }
    return true;
}

/* Every name must be known at some time: at the start of the search, or at the end or the middle of
 * the trace. */
static enum tbd_status check_names(struct tbd_search_run *run, uint32_t start)
{
    uint32_t last = tbd_trace_window_count(run->session->trace) - 1;
    uint32_t tries[] = { start, last, last / 2, last < 4 ? 0 : 4, 0 };
    enum tbd_status status = TBD_OK;

    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        struct tbd_window_names context = { run->session, tries[i], run->question->type };
        struct tbd_expr_names names = tbd_window_names_of(&context);

        status = tbd_expr_bind_names(run->where, &names, true, run->search->error);
        if (status != TBD_NAME && (status != TBD_OK || name_is_bound(run->where)))
            return status;
    }
    return status;
}

static enum tbd_status bind_symbols(struct tbd_search_run *run, uint32_t start)
{
    uint32_t last = tbd_trace_window_count(run->session->trace) - 1;
    struct tbd_window_names context = { run->session, start, run->question->type };
    struct tbd_expr_names names = tbd_window_names_of(&context);
    enum tbd_status status = tbd_expr_bind_symbols(run->where, &names, run->search->error);

    if (status != TBD_NAME)
        return status;
    context.window = last;
    return tbd_expr_bind_symbols(run->where, &names, run->search->error);
}

/* ---- the whole search ---- */

static uint32_t start_window(const struct tbd_search_run *run)
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

static enum tbd_status set_span(struct tbd_search_run *run)
{
    const struct tbd_question *question = run->question;
    struct tbd_position from = question->position;

    if (question->from == TBD_FROM_CURRENT)
        from = tbd_session_current(run->session);
    run->span =
        (struct tbd_span){ .after = from, .before = from, .from_start = true, .to_end = true };
    if (question->from == TBD_FROM_FIRST || question->from == TBD_FROM_LAST) {
        /* before everything, after everything */
        bool nothing = question->backward == (question->from == TBD_FROM_FIRST);

        return nothing ? TBD_NOTFOUND : TBD_OK;
    }
    run->span.from_start = question->backward;
    run->span.to_end = !question->backward;
    return TBD_OK;
}

/* Returns of the calls in question may come later. */
static bool is_about_later(const struct tbd_question *question)
{
    return question->with_returns || question->own_returns;
}

/* What the condition says of time bounds the walks, too: they stop where it cannot hold any more. */
static void narrow_span(struct tbd_search_run *run)
{
    const struct tbd_search_plan *plan = &run->plan;
    struct tbd_span *span = &run->span;
    struct tbd_position before = { .time = plan->time_high + 1 };
    struct tbd_position after = { .time = plan->time_low - 1, .offset = UINT32_MAX };

    if (plan->time_high != UINT64_MAX && !is_about_later(run->question) &&
        (span->to_end || tbd_position_compare(before, span->before) < 0)) {
        span->before = before;
        span->to_end = false;
    }
    if (plan->time_low != 0 && (span->from_start || tbd_position_compare(after, span->after) > 0)) {
        span->after = after;
        span->from_start = false;
    }
}

enum tbd_status tbd_search_prepare(struct tbd_search_run *run, uint32_t start)
{
    enum tbd_status status = TBD_OK;

    if (run->question->type == TBD_EVENT_LINE)
        status = tbd_line_starts_new(run->session, &run->lines);
    if (status != TBD_OK)
        return status;
    if (run->where == NULL)
        return tbd_plan_make(run->question, run->session, start, &run->plan);
    status = bind_symbols(run, start);
    if (status == TBD_OK && run->where->name_count != 0)
        status = check_names(run, start);
    if (status != TBD_OK)
        return status;
    tbd_search_note_words(run, start);
    if (run->where->memory_count != 0) {
        run->memory = calloc(run->where->memory_count, sizeof(*run->memory));
        if (run->memory == NULL)
            return TBD_NOMEM;
        run->memory_capacity = run->where->memory_count;
    }
    if (run->question->keeps + run->question->keeps_stack != 0) {
        run->kept = calloc(1, sizeof(*run->kept));
        if (run->kept == NULL)
            return TBD_NOMEM;
        run->kept->count = run->question->keeps + run->question->keeps_stack;
        run->env.kept = run->kept;
    }
    run->all_uses = run->uses;
    run->levels = run->where->levels;
    if ((run->uses & TBD_USES_TYPES) != 0) {
        status = tbd_scopes_new(run->session, &run->scopes);
        if (status != TBD_OK)
            return status;
    }
    if ((run->uses & TBD_USES_STACK) != 0) {
        status = tbd_inlined_calls_new(run->session, &run->inlined);
        if (status != TBD_OK)
            return status;
    }
    return tbd_plan_make(run->question, run->session, start, &run->plan);
}

/* Windows that are not counted are passed over, and remembered, unless the question is about another time. */
static bool is_counted(struct tbd_search_run *run, uint32_t index)
{
    const struct tbd_counted_part *part = run->session->part;
    const struct tbd_window_summary *summary = tbd_trace_window(run->session->trace, index);

    if (part == NULL || (index >= part->from && index < part->to))
        return true;
    if (summary->first_time <= run->plan.time_high &&
        summary->first_time + summary->blocks >= run->plan.time_low) {
        run->passed_before |= index < part->from;
        run->passed_after |= index >= part->to;
    }
    return false;
}

/* A search that came to windows that are not counted, before it had its answer, needs them. */
static void ask_for_passed(struct tbd_search_run *run)
{
    bool is_done = tbd_search_is_done(run), backward = run->question->backward;

    if (run->passed_before && !(is_done && backward))
        (void)tbd_part_has(run->session->part, 0);
    if (run->passed_after && !(is_done && !backward))
        (void)tbd_part_has(run->session->part, UINT32_MAX);
}

/* Does the plan keep window `index`? A window that it skips is counted, with the reason. */
static enum tbd_status consider(struct tbd_search_run *run, uint32_t index, bool *out)
{
    struct tbd_session_stats *stats = &run->session->stats;
    double begin = tbd_progress_now();
    enum tbd_status status = bind_window(run, index);
    enum tbd_plan_verdict answer = TBD_PLAN_MAY_HOLD;

    if (status == TBD_OK && !is_counted(run, index))
        answer = TBD_PLAN_OTHER_TIME;
    else if (status == TBD_OK && run->question->only != NULL)
        answer = run->question->only[index] ? TBD_PLAN_MAY_HOLD : TBD_PLAN_NOT_IN_INDEX;
    else if (status == TBD_OK)
        answer = tbd_plan_ask(&run->plan, run->session->trace, index);
    stats->plan_s += tbd_progress_now() - begin;
    stats->considered++;
    stats->skipped += answer != TBD_PLAN_MAY_HOLD;
    stats->other_time += answer == TBD_PLAN_OTHER_TIME;
    stats->not_in_index += answer == TBD_PLAN_NOT_IN_INDEX;
    stats->not_in_toc += answer == TBD_PLAN_NOT_IN_TOC;
    *out = answer == TBD_PLAN_MAY_HOLD;
    return status;
}

/* ---- windows that are left out ---- */

/* Damage in another file may be the reason that a window is not available. */
static bool is_of_damage(const struct tbd_session *session, enum tbd_status status)
{
    return session->info->damage_count != 0 && status != TBD_OK && status != TBD_NOMEM &&
           status != TBD_INTERRUPTED;
}

/* Windows after the answer are not missing from it; but a search without an answer that reaches the
 * trace's lost end may have missed any number of events there. */
static void settle_left_out(const struct tbd_search_run *run)
{
    struct tbd_session *session = run->session;
    bool is_done = tbd_search_is_done(run), backward = run->question->backward;
    uint32_t window = is_done ? tbd_trace_window_of(session->trace, run->found.position.time) : 0;

    if (is_done)
        tbd_left_out_keep(&session->left_out, backward ? window : 0,
                          backward ? UINT32_MAX : window);
    session->left_out.has_lost_end =
        session->info->has_lost_end && run->span.to_end && (backward || !is_done);
}

enum tbd_status tbd_search_slice(struct tbd_search_run *run, const struct tbd_session_slice *slice)
{
    struct tbd_session *session = run->session;
    struct tbd_session_slice wanted = *slice;
    double begin = tbd_progress_now(), opened;
    enum tbd_status status;

    wanted.with_loads = run->question->type == TBD_EVENT_LOAD;
    run->slice = wanted;
    status = tbd_search_open(run);
    opened = tbd_progress_now();
    session->stats.open_s += opened - begin;
    if (tbd_session_is_of_window(status) || is_of_damage(session, status)) {
        tbd_session_leave_out(session, wanted.window, status);
        return TBD_NOWINDOW;
    }
    if (status != TBD_OK)
        return status;
    status = tbd_search_one(run);
    session->stats.walk_s += tbd_progress_now() - opened;
    if (tbd_session_is_of_window(status)) { /* at an event of this window: events before it count */
        tbd_session_leave_out(session, wanted.window, status);
        status = TBD_NOWINDOW;
    }
    return tbd_is_interrupted() ? TBD_INTERRUPTED : status;
}

/* Counted by place if that is all that is wanted, and can be had; else event by event. */
static enum tbd_status search_events(struct tbd_search_run *run, uint32_t index)
{
    struct tbd_session *session = run->session;
    double begin = tbd_progress_now();
    enum tbd_status status = tbd_search_tally(run, index);
    uint32_t slices;

    if (status == TBD_NOTFOUND)
        status = tbd_search_passing(run, index);
    session->stats.open_s += tbd_progress_now() - begin;
    if (tbd_is_interrupted())
        return TBD_INTERRUPTED;
    if (status == TBD_OK || status == TBD_NOMEM)
        return status;
    slices = tbd_session_slices(session, index, run->question->type == TBD_EVENT_LOAD);
    return slices > 1 ? tbd_search_slices(run, index, slices)
                      : tbd_search_slice(run, &(struct tbd_session_slice){ .window = index });
}

enum tbd_status tbd_search_chosen(struct tbd_search_run *run, uint32_t index)
{
    struct tbd_session *session = run->session;
    struct tbd_session_stats *stats = &session->stats;
    enum tbd_status status = bind_window(run, index);

    if (status != TBD_OK)
        return status;
    status = tbd_search_take_seen(run, index);
    if (status != TBD_OK)
        return status;
    if (run->question->searched != NULL)
        run->question->searched[index] = 1;
    status = search_events(run, index);
    if (status != TBD_NOWINDOW && tbd_session_is_of_window(status)) {
        tbd_session_leave_out(session, index, status);
        status = TBD_NOWINDOW;
    }
    if (status == TBD_NOWINDOW)
        return TBD_OK; /* left out */
    if (stats->searched_count < TBD_STATS_WINDOWS)
        stats->searched[stats->searched_count++] = index;
    stats->scanned++;
    return status;
}

/* One by one, until `max` windows were searched.  *io_i is the first one that was not looked at. */
static enum tbd_status search_serial(struct tbd_search_run *run, uint32_t start, uint32_t windows,
                                     uint32_t max, uint32_t *io_i)
{
    enum tbd_status status = TBD_OK;
    uint32_t searched = 0;

    for (; *io_i < windows && searched < max && status == TBD_OK && !tbd_search_is_done(run);
         ++*io_i) {
        uint32_t index = tbd_search_window_number(run, start, *io_i);
        bool is_chosen;

        if (tbd_is_interrupted())
            return TBD_INTERRUPTED;
        if (run->search->progress != NULL)
            run->search->progress(run->search->progress_context, *io_i, windows, run->total);
        status = consider(run, index, &is_chosen);
        if (status != TBD_OK || !is_chosen)
            continue;
        searched++;
        status = tbd_search_chosen(run, index);
    }
    return status;
}

/* Searches the windows i .. windows-1 that may hold an answer, in the direction of the search. */
static enum tbd_status choose(struct tbd_search_run *run, uint32_t start, uint32_t i,
                              uint32_t windows, uint32_t *chosen, uint32_t *out_count)
{
    enum tbd_status status = TBD_OK;

    *out_count = 0;
    for (; i < windows && status == TBD_OK; i++) {
        uint32_t index = tbd_search_window_number(run, start, i);
        bool is_chosen;

        if (tbd_is_interrupted())
            return TBD_INTERRUPTED;
        status = consider(run, index, &is_chosen);
        if (status == TBD_OK && is_chosen)
            chosen[(*out_count)++] = index;
    }
    return status;
}

static enum tbd_status search_parallel(struct tbd_search_run *run, uint32_t start, uint32_t i,
                                       uint32_t windows)
{
    uint32_t *chosen = calloc(windows - i, sizeof(*chosen));
    enum tbd_status status = TBD_NOMEM;
    uint32_t count = 0;

    if (chosen != NULL)
        status = choose(run, start, i, windows, chosen, &count);
    if (status == TBD_OK && count == 1)
        status = tbd_search_chosen(run, chosen[0]);
    else if (status == TBD_OK && count != 0)
        status = tbd_search_pool(run, chosen, count);
    free(chosen);
    return status;
}

static enum tbd_status search_windows(struct tbd_search_run *run)
{
    uint32_t count = tbd_trace_window_count(run->session->trace);
    uint32_t start = start_window(run);
    uint32_t windows = run->question->backward ? start + 1 : count - start;
    uint32_t i = 0, serial = run->search->each != NULL ? 0 : SERIAL_WINDOWS;
    enum tbd_status status =
        search_serial(run, start, windows, run->session->workers < 2 ? windows : serial, &i);

    if (status == TBD_OK && i < windows && !tbd_search_is_done(run))
        status = search_parallel(run, start, i, windows);
    return status;
}

void tbd_search_release(struct tbd_search_run *run)
{
    tbd_bad_events_add(&run->session->stats.bad, &run->env.bad);
    tbd_scopes_free(run->scopes);
    tbd_inlined_calls_free(run->inlined);
    tbd_line_starts_free(run->lines);
    tbd_search_forget_picker(run);
    tbd_plan_free(&run->plan);
    tbd_callers_free(&run->callers);
    tbd_search_free_returns(run);
    tbd_search_forget_candidates(run);
    tbd_note_sites_free(&run->known);
    free(run->memory);
    free(run->kept);
    free(run->candidates);
    free(run->memory_values);
    tbd_large_buffer_give(run->operands.all);
}

/* Reports a search in which nothing matched, and in which at no place all variables of the
 * condition had a meaning. */
static bool has_no_meaning(struct tbd_search_run *run)
{
    struct tbd_query_error problem;

    if (run->scopes == NULL || tbd_scopes_have_meaning(run->scopes, &problem) ||
        run->has_helper_meaning)
        return false;
    *run->search->error = problem.status != TBD_OK ? problem : run->helper_problem;
    return run->search->error->status != TBD_OK;
}

enum tbd_status tbd_search_run(struct tbd_search *search, struct tbd_event *out,
                               uint64_t *out_found)
{
    struct tbd_search_run run = { .search = search,
                                  .session = search->session,
                                  .question = search->question,
                                  .where = search->question->where };
    struct tbd_left_out before =
        search->session->left_out; /* counted by other searches of the command */
    enum tbd_status status;

    *out_found = 0;
    if (tbd_trace_window_count(search->session->trace) == 0)
        return TBD_NOTFOUND;
    search->session->left_out = (struct tbd_left_out){ .windows = NULL };
    run.uses = run.where == NULL ? 0 : run.where->uses;
    run.wants_values =
        search->each != NULL && !search->question->skips_operands &&
        (search->question->type == TBD_EVENT_STORE || search->question->type == TBD_EVENT_LOAD);
    status = set_span(&run);
    if (status == TBD_OK)
        status = tbd_search_prepare(&run, start_window(&run));
    if (status == TBD_OK)
        status = tbd_search_check_variables(&run);
    if (status == TBD_OK) {
        narrow_span(&run);
        status = search_windows(&run);
    }
    *out_found = run.total;
    ask_for_passed(&run);
    if (status == TBD_OK && run.total == 0 && has_no_meaning(&run))
        status = search->error->status;
    if (status == TBD_OK && !tbd_search_is_done(&run) && search->each == NULL)
        status = TBD_NOTFOUND;
    if (status == TBD_OK)
        *out = run.found;
    if (status == TBD_OK && search->each == NULL && !search->question->skips_operands)
        status = tbd_search_find_entry(&run, out);
    settle_left_out(&run);
    tbd_left_out_merge(&search->session->left_out, &before);
    tbd_left_out_clear(&before);
    tbd_search_release(&run);
    return status;
}
