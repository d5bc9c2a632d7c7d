// SPDX-License-Identifier: MIT
/* search_candidates.c - events that only registers can decide
 *
 * Partial replay gets the registers, in batches in the direction of the search; memory at addresses
 * that depend on registers is read one event at a time.
 *
 * SEARCH_CANDIDATES-1  A window's candidates are in ascending order of position; each is decided at
 *                      most once. */
#include "query/search/search_private.h"

#include "base/vector_layout.h"
#include "base/assert.h"
#include "base/array.h"
#include "format/pages/pages.h"

#include <stdlib.h>
#include <string.h>

/* Offsets in an XSAVE image of the standard form. */
#define XSAVE_STATE 512u
#define XSAVE_SSE   2u

#define BATCH_FIRST 16u
#define BATCH_MAX   8192u

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

/* Values of memory that are known already; UNKNOWN if there was no probe. */
static void keep_memory(struct tbd_search_run *run, struct tbd_candidate *candidate)
{
    uint32_t slots = run->here->memory_count;

    candidate->first_memory = run->memory_value_count;
    for (uint32_t i = 0; i < slots; i++)
        run->memory_values[run->memory_value_count++] = run->memory[i];
}

/* False without memory. */
static bool keep_values(const struct tbd_search_run *run, struct tbd_candidate *candidate)
{
    if (run->kept == NULL)
        return true;
    candidate->kept = tbd_kept_copy(run->kept->record.values, run->kept->count);
    candidate->event.kept = candidate->kept;
    return candidate->kept != NULL;
}

void tbd_search_forget_candidates(struct tbd_search_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        free(run->candidates[i].kept);
    run->count = 0;
}

bool tbd_search_keep_candidate(struct tbd_search_run *run, const struct tbd_event *event,
                               enum tbd_verdict verdict)
{
    struct tbd_candidate *candidate;

    if (!tbd_array_grow(&run->candidates, run->count, &run->capacity, sizeof(*run->candidates)) ||
        !tbd_array_reserve(&run->memory_values, run->memory_value_count + run->here->memory_count,
                           &run->memory_value_capacity, sizeof(*run->memory_values)))
        return false;
    TBD_INVARIANT("SEARCH_CANDIDATES-1",
                  run->count == 0 ||
                      tbd_position_compare(run->candidates[run->count - 1].event.position,
                                           event->position) <= 0);
    candidate = &run->candidates[run->count++];
    *candidate = (struct tbd_candidate){
        .event = *event, .verdict = verdict, .where = run->here, .frame = run->env.frame
    };
    keep_memory(run, candidate);
    if (verdict == TBD_VERDICT_MATCH && !keep_values(run, candidate))
        return false;
    if ((run->uses & TBD_USES_STACK) != 0)
        candidate->stack_bits = match_patterns(run);
    return true;
}

/* ---- registers ---- */

struct read_context {
    struct tbd_search_run *run;
    struct tbd_position position;
};

static enum tbd_value_state read_now(void *context, uint64_t address, uint64_t bytes, uint64_t *out)
{
    const struct read_context *read = context;
    const struct tbd_window *whole;

    *out = 0;
    return tbd_session_whole(read->run->session, read->run->window, read->position.time, &whole) ==
                       TBD_OK &&
                   tbd_trace_read(read->run->session->trace, whole, read->position, address, out,
                                  (size_t)bytes) == TBD_OK
               ? TBD_VALUE_OK
               : TBD_VALUE_BAD;
}

const uint8_t *tbd_search_vector(const struct tbd_reg_state *state)
{
    static const uint8_t none[16 * 16];
    uint64_t in_use;

    if (state->regs.xsave_bytes < XSAVE_STATE + sizeof(in_use))
        return NULL;
    memcpy(&in_use, state->xsave + XSAVE_STATE, sizeof(in_use));
    return (in_use & XSAVE_SSE) != 0 ? state->xsave + TBD_VECTOR_XMM : none;
}

static void judge_with_regs(struct tbd_search_run *run, struct tbd_candidate *candidate,
                            const struct tbd_reg_state *state)
{
    struct read_context read = { run, candidate->event.position };

    TBD_INVARIANT("SEARCH_CANDIDATES-1", candidate->verdict == TBD_VERDICT_OPEN);
    run->here = candidate->where;
    run->env.frame = candidate->frame;
    run->env.memory =
        run->here->memory_count == 0 ? NULL : &run->memory_values[candidate->first_memory];
    run->env.stack_bits = &candidate->stack_bits;
    run->env.regs = &state->regs;
    run->env.vector = tbd_search_vector(state);
    run->env.read = read_now;
    run->env.read_context = &read;
    candidate->verdict = tbd_search_judge(run, &candidate->event);
    if (candidate->verdict == TBD_VERDICT_OPEN)
        candidate->verdict = tbd_search_judge_last(run, &candidate->event);
    if (candidate->verdict == TBD_VERDICT_MATCH && !keep_values(run, candidate))
        run->status = TBD_NOMEM;
    run->env.regs = NULL;
    run->env.vector = NULL;
    run->env.read = NULL;
    run->env.memory = NULL;
    run->env.stack_bits = NULL;
}

/* Finds up to `max` undecided candidates from `from` on, in the direction of the search; returns
 * their indices in ascending order. */
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
        status = tbd_session_replay_regs(session, run->window->index, states, count);
    }
    for (size_t i = 0; status == TBD_OK && i < count; i++)
        judge_with_regs(run, &run->candidates[picked[i]], &states[i]);
    if (status == TBD_OK)
        status = run->status;
    free(picked);
    free(states);
    return status;
}

enum tbd_status tbd_search_take_candidates(struct tbd_search_run *run)
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
