// SPDX-License-Identifier: MIT
/* search_ends.c - see search_ends.h
 *
 * A frame that returns leads to the instruction after its call: the window enters a block that begins
 * there, or ends there.  A frame that was left (by an exception, longjmp) is noticed at the latest when
 * its slot, which holds the return address, is overwritten: the window has a store to that word.  A
 * signal's handler returns through rt_sigreturn. */
#include "query/search/search_ends.h"

#include "base/binary_search.h"
#include "format/reading/trace_keys.h"
#include "format/reading/window_read.h"
#include "format/window/window_make.h"
#include "query/search/search_plan.h"
#include "query/session/main_stack.h"

#include <stdlib.h>
#include <sys/syscall.h>

#define CALL_MOST_BYTES 15u

struct start {
    uint64_t address;
    uint32_t id;
};

struct tbd_ends {
    struct tbd_session *session;
    struct start *starts; /* owned: of all blocks, by address */
    size_t start_count;
    struct tbd_window *last; /* owned: summaries of the last window; NULL: none */
    bool has_asked_last;
};

static int compare_starts(const void *left, const void *right)
{
    const struct start *a = left, *b = right;

    return a->address < b->address ? -1 : a->address > b->address;
}

enum tbd_status tbd_ends_new(struct tbd_session *session, struct tbd_ends **out)
{
    struct tbd_ends *ends = calloc(1, sizeof(*ends));
    uint32_t count = tbd_trace_block_count(session->trace);

    *out = ends;
    if (ends == NULL)
        return TBD_NOMEM;
    ends->session = session;
    ends->starts = calloc((size_t)count + 1, sizeof(*ends->starts));
    if (ends->starts == NULL)
        return TBD_NOMEM;
    for (uint32_t id = 1; id <= count; id++) {
        const struct tbd_block *block = tbd_trace_block(session->trace, id);

        if (block != NULL)
            ends->starts[ends->start_count++] = (struct start){ block->def.start, id };
    }
    qsort(ends->starts, ends->start_count, sizeof(*ends->starts), compare_starts);
    return TBD_OK;
}

void tbd_ends_free(struct tbd_ends *ends)
{
    if (ends == NULL)
        return;
    tbd_window_free(ends->last);
    free(ends->starts);
    free(ends);
}

/* ---- what a window must have ---- */

static int compare_keys(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

static bool is_handler(const struct tbd_event *enter)
{
    return enter->called_at == 0 && (enter->flags & TBD_EVENT_BY_JUMP) == 0;
}

/* Blocks that begin within CALL_MOST_BYTES after the call's first byte: one of them is entered when the
 * function returns. */
static void want_return(const struct tbd_ends *ends, const struct tbd_event *enter,
                        struct tbd_search_plan *plan)
{
    uint64_t low = enter->called_at + 1, high = enter->called_at + CALL_MOST_BYTES;
    size_t i = TBD_COUNT_BEFORE(k, ends->start_count, ends->starts[k].address < low);

    for (; i < ends->start_count && ends->starts[i].address <= high; i++)
        plan->wanted[plan->wanted_count++] = tbd_key(TBD_KEY_BLOCK, ends->starts[i].id);
    for (uint64_t at = low; at <= high; at++)
        plan->wanted[plan->wanted_count++] = tbd_key(TBD_KEY_TARGET, at);
}

static size_t count_near(const struct tbd_ends *ends, const struct tbd_event *enter)
{
    uint64_t low = enter->called_at + 1, high = enter->called_at + CALL_MOST_BYTES;

    return TBD_COUNT_BEFORE(k, ends->start_count, ends->starts[k].address <= high) -
           TBD_COUNT_BEFORE(k, ends->start_count, ends->starts[k].address < low);
}

static bool start_plan(const struct tbd_ends *ends, const struct tbd_event *enter, size_t most,
                       struct tbd_search_plan *plan)
{
    *plan = (struct tbd_search_plan){ .type = TBD_EVENT_STORE,
                                      .time_high = UINT64_MAX,
                                      .has_blocks = true,
                                      .has_thread = true,
                                      .thread = enter->thread };
    plan->segment_count = tbd_trace_segment_count(ends->session->trace);
    plan->segments = calloc(plan->segment_count + 1, sizeof(*plan->segments));
    plan->wanted = calloc(most, sizeof(*plan->wanted));
    if (plan->segments == NULL || plan->wanted == NULL)
        return false;
    plan->wanted[plan->wanted_count++] = tbd_key(TBD_KEY_WORD, enter->sp / 8);
    return true;
}

static bool plan_ends(const struct tbd_ends *ends, const struct tbd_event *enter,
                      struct tbd_search_plan *plan)
{
    if (!start_plan(ends, enter, 4 + CALL_MOST_BYTES + count_near(ends, enter), plan))
        return false;
    plan->type = TBD_EVENT_FUNC_EXIT;
    plan->has_blocks = enter->called_at != 0 || is_handler(enter);
    plan->wanted[plan->wanted_count++] = tbd_key(TBD_KEY_ALL_WORDS, enter->sp / 4096);
    plan->wanted[plan->wanted_count++] = tbd_key(TBD_KEY_ALL_BLOCKS, 0);
    if (is_handler(enter))
        plan->wanted[plan->wanted_count++] = tbd_key(TBD_KEY_SYSCALL, SYS_rt_sigreturn);
    else
        want_return(ends, enter, plan);
    qsort(plan->wanted, plan->wanted_count, sizeof(*plan->wanted), compare_keys);
    return true;
}

/* What is asked about one entry, made when the first window is asked for. */
struct asking {
    struct tbd_ends *ends;
    const struct tbd_event *enter;
    struct tbd_search_plan ending, overwriting;
    bool has_ending, has_overwriting;
};

/* Without memory it may be any window. */
static bool may_end_in(struct asking *a, uint32_t window)
{
    if (!a->has_ending && !plan_ends(a->ends, a->enter, &a->ending))
        return true;
    a->has_ending = true;
    return tbd_plan_ask(&a->ending, a->ends->session->trace, window) == TBD_PLAN_MAY_HOLD;
}

static bool is_overwritten_in(struct asking *a, uint32_t window)
{
    struct tbd_trace *trace = a->ends->session->trace;

    if (tbd_trace_window(trace, window)->is_uncounted ||
        (!a->has_overwriting && !start_plan(a->ends, a->enter, 1, &a->overwriting)))
        return false;
    a->has_overwriting = true;
    return tbd_plan_ask(&a->overwriting, trace, window) == TBD_PLAN_MAY_HOLD;
}

uint32_t tbd_ends_next(struct tbd_ends *ends, const struct tbd_event *enter,
                       const struct tbd_ends_span *span, bool *out_is_over)
{
    struct asking a = { .ends = ends, .enter = enter };
    uint32_t found = UINT32_MAX;

    *out_is_over = false;
    for (uint32_t i = span->from; i <= span->to && found == UINT32_MAX && !*out_is_over; i++) {
        if (span->known[i])
            *out_is_over = i != span->from && is_overwritten_in(&a, i);
        else if (may_end_in(&a, i))
            found = i;
    }
    tbd_plan_free(&a.ending);
    tbd_plan_free(&a.overwriting);
    return found;
}

/* ---- the recording's end ---- */

bool tbd_ends_is_gone(struct tbd_ends *ends, const struct tbd_event *enter)
{
    struct tbd_session *session = ends->session;
    uint32_t count = tbd_trace_window_count(session->trace);
    uint64_t sp;

    if (!ends->has_asked_last && count != 0 &&
        tbd_window_load_summaries(session->trace, count - 1, &ends->last, &session->why) != TBD_OK)
        ends->last = NULL;
    ends->has_asked_last = true;
    if (ends->last == NULL || !ends->last->complete || ends->last->end_regs.thread != enter->thread)
        return false;
    sp = ends->last->end_regs.gpr[TBD_RSP];
    return sp > enter->sp && tbd_is_on_main_stack(session, sp) &&
           tbd_is_on_main_stack(session, enter->sp);
}
