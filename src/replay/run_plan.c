// SPDX-License-Identifier: MIT
/* run_plan.c - see run_plan.h
 *
 * RUN_PLAN-1  After an error the process is ended, because its state is not known or not trusted;
 *     the next window gets a new one. */
#include "replay/run_plan.h"

#include "base/assert.h"
#include "base/linux.h"
#include "format/files/file.h"
#include "format/reading/window_read.h"
#include "format/window/cursor.h"
#include "format/window/window_make.h"
#include "replay/skim.h"

#include <stdio.h>
#include <string.h>

/* ---- a suitable process ---- */

static bool overlaps(const struct tbd_plan_range *area, uint64_t start, uint64_t end)
{
    return area->start < end && start < area->end;
}

/* Patch areas of a warm process must not lie where this window has mappings. */
static bool collides(const struct tbd_worker *worker)
{
    const struct tbd_plan_report *report = &worker->process.report;
    const struct tbd_plan_section *avoid = &worker->process.plan->avoid;
    const struct tbd_plan_range *ranges = tbd_process_plan_at(&worker->process, avoid->offset);

    for (uint64_t i = 0; i < report->area_count; i++)
        for (uint64_t k = 0; k < avoid->count; k++)
            if (overlaps(&report->areas[i], ranges[k].start, ranges[k].end))
                return true;
    return false;
}

void tbd_worker_stop(struct tbd_worker *worker)
{
    if (worker->gather)
        tbd_gather_forget(worker->gather);
    if (worker->skim)
        tbd_skim_forget(worker->skim);
    tbd_areas_free(worker->areas);
    tbd_consumer_free(worker->consumer);
    worker->areas = NULL;
    worker->consumer = NULL;
    tbd_process_stop(&worker->process);
}

static enum tbd_status start_process(struct tbd_worker *worker, struct tbd_error *why)
{
    tbd_worker_forget_code(worker);
    worker->forget = true;
    worker->is_at_end = false;
    return tbd_process_start(&worker->process, why);
}

/* Every change of the hook set defines all blocks again, so a process whose block table is half
 * full is replaced. */
static bool is_used_up(const struct tbd_worker *worker)
{
    return worker->consumer && tbd_consumer_is_half_full(worker->consumer);
}

static enum tbd_status prepare(struct tbd_worker *worker, uint32_t hook_set,
                               const struct tbd_reg_state *states, size_t count,
                               struct tbd_error *why)
{
    enum tbd_status status = TBD_OK;

    if (is_used_up(worker))
        tbd_worker_stop(worker);
    if (!worker->process.pid)
        status = start_process(worker, why);
    if (status == TBD_OK)
        status = tbd_worker_build(worker, hook_set, states, count, why);
    if (status != TBD_OK || !collides(worker))
        return status;
    tbd_worker_stop(worker);
    status = start_process(worker, why);
    if (status == TBD_OK)
        status = tbd_worker_build(worker, hook_set, states, count, why);
    return status;
}

/* ---- while it runs ---- */

static enum tbd_status answer_page(struct tbd_worker *worker, struct tbd_error *why)
{
    const struct tbd_region *region;
    struct tbd_page_wanted page;
    enum tbd_page_answer answer;
    enum tbd_status known, status = TBD_OK;
    uint8_t contents[TBD_PAGE_SIZE];

    if (!tbd_process_wanted(&worker->process, &page, why))
        return TBD_STUBDIED;
    answer = tbd_worker_page(worker, page.address, page.order, contents, &known);
    if (answer == TBD_PAGE_ABSENT)
        status = tbd_worker_page_lost(worker, known, why);
    if (status != TBD_OK)
        return status;
    region = tbd_worker_region(worker, page.address);
    if (answer == TBD_PAGE_GIVEN && (page.order || (region && region->prot & PROT_EXEC)) &&
        !tbd_worker_note_code(worker, page.address, contents, known == TBD_OK))
        return tbd_process_error(why, TBD_NOMEM, "no memory for a page");
    if (answer == TBD_PAGE_ABSENT && region && region->flags & TBD_REGION_STACK)
        answer = TBD_PAGE_ZERO;
    tbd_process_answer(&worker->process, answer, answer == TBD_PAGE_GIVEN ? contents : NULL);
    return TBD_OK;
}

static enum tbd_status take(const struct tbd_run_consumer *consumer, struct tbd_error *why)
{
    return consumer ? consumer->take(consumer->context, why) : TBD_OK;
}

static bool has_enough(const struct tbd_run_consumer *consumer)
{
    return consumer && consumer->has_enough && consumer->has_enough(consumer->context);
}

/* `*out_over`: the replay is over. */
static enum tbd_status serve(struct tbd_worker *worker, const struct tbd_run_consumer *consumer,
                             bool *out_over, struct tbd_error *why)
{
    enum tbd_status status = take(consumer, why); /* takes the chunks published before that */

    *out_over = false;
    while (status == TBD_OK && !*out_over && !has_enough(consumer)) {
        switch (tbd_process_wait(&worker->process, why)) {
        case TBD_PROCESS_DEAD: return TBD_STUBDIED;
        case TBD_PROCESS_DONE:
            status = take(consumer, why);
            *out_over = !has_enough(consumer);
            break;
        case TBD_PROCESS_STREAM: status = take(consumer, why); break;
        case TBD_PROCESS_PAGE: status = answer_page(worker, why); break;
        }
    }
    return status;
}

/* ---- the outcome ---- */

/* The index of the block's last instruction, which the stub does not know; a trace with events
 * does. */
static uint32_t last_instruction(struct tbd_worker *worker, uint64_t time)
{
    const struct tbd_window_summary *summary =
        tbd_trace_window(worker->trace, worker->window->index);
    struct tbd_window *window;
    struct tbd_cursor cursor;
    uint32_t instruction = 0;

    if (summary->level < TBD_LEVEL_EVENTS ||
        tbd_window_load(worker->trace, worker->window->index, true, &window, NULL))
        return 0;
    if (tbd_cursor_seek(window, time, &cursor) && cursor.block->def.insn_count)
        instruction = cursor.block->def.insn_count ? cursor.block->def.insn_count - 1u : 0;
    tbd_window_free(window);
    return instruction;
}

static void fill_divergence(struct tbd_worker *worker, struct tbd_divergence *divergence,
                            const char *what)
{
    const struct tbd_plan_report *report = &worker->process.report;
    uint64_t time = tbd_worker_start(worker)->first_time + report->time;

    divergence->position.time = time;
    divergence->position.offset = report->instruction == TBD_PLAN_LAST_INSN
                                      ? last_instruction(worker, time)
                                      : report->instruction;
    divergence->window = worker->window->index;
    divergence->thread = report->thread;
    snprintf(divergence->what, sizeof(divergence->what), "%s", what);
    divergence->has_place = true;
    divergence->is_call = report->is_call != 0;
    divergence->regs = report->regs;
    divergence->log_next = report->log_next;
}

static enum tbd_status outcome(struct tbd_worker *worker, struct tbd_divergence *divergence,
                               struct tbd_error *why)
{
    const struct tbd_plan_report *report = &worker->process.report;
    const char *what = report->what;

    worker->forget = report->code_changed != 0;
    switch (report->outcome) {
    case TBD_OUTCOME_COMPLETE: return TBD_OK;
    case TBD_OUTCOME_DIVERGED:
        if (divergence)
            fill_divergence(worker, divergence, what);
        return tbd_process_error(why, TBD_DIVERGED, "%.250s", what);
    case TBD_OUTCOME_NO_STOP: return tbd_error_set(why, TBD_NOTIME, "", 0, "%.250s", what);
    default: return tbd_process_error(why, TBD_NOREPLAY, "%.250s", what);
    }
}

static bool is_lost(const struct tbd_worker *worker, const struct tbd_run_consumer *consumer)
{
    return !(consumer && consumer->takes_stops) &&
           tbd_window_begins_with(worker->window, TBD_MSG_STOPS);
}

static enum tbd_status refuse_lost(const struct tbd_worker *worker,
                                   struct tbd_divergence *divergence, struct tbd_error *why)
{
    static const char what[] = "no replay comes to the window's end";

    if (divergence) {
        *divergence = (struct tbd_divergence){ .position.time = worker->window->first_time,
                                               .window = worker->window->index };
        snprintf(divergence->what, sizeof(divergence->what), "%s", what);
    }
    return tbd_process_error(why, TBD_DIVERGED, "%s", what);
}

enum tbd_status tbd_run_begin(struct tbd_worker *worker, uint32_t hook_set,
                              const struct tbd_reg_state *states, size_t count,
                              const struct tbd_run_consumer *consumer, struct tbd_error *why)
{
    enum tbd_status status = prepare(worker, hook_set, states, count, why);

    if (status == TBD_OK && consumer)
        status = consumer->begin(consumer->context, why);
    worker->is_at_end = false;
    if (status == TBD_OK)
        tbd_process_go(&worker->process);
    else
        tbd_worker_stop(worker);
    return status;
}

enum tbd_status tbd_run_on(struct tbd_worker *worker, const struct tbd_run_consumer *consumer,
                           bool *out_over, struct tbd_divergence *divergence, struct tbd_error *why)
{
    enum tbd_status status = serve(worker, consumer, out_over, why);

    if (status == TBD_OK && *out_over)
        status = outcome(worker, divergence, why);
    if (status != TBD_OK)
        tbd_worker_stop(worker);
    TBD_INVARIANT("RUN_PLAN-1", status == TBD_OK || !worker->process.shared);
    return status;
}

enum tbd_status tbd_run_plan(struct tbd_worker *worker, uint32_t hook_set,
                             const struct tbd_reg_state *states, size_t count,
                             const struct tbd_run_consumer *consumer,
                             struct tbd_divergence *divergence, struct tbd_error *why)
{
    bool is_over;
    enum tbd_status status;

    if (is_lost(worker, consumer))
        return refuse_lost(worker, divergence, why);
    status = tbd_run_begin(worker, hook_set, states, count, consumer, why);
    return status == TBD_OK ? tbd_run_on(worker, consumer, &is_over, divergence, why) : status;
}
