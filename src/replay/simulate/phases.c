// SPDX-License-Identifier: MIT
/* phases.c - passes until nothing more becomes known, first of what is exact, then of what is inferred (simulate.h)
 *
 *     phase one     what is exact
 *     phase two     that saved registers are still there, until these assumptions agree with each other
 *                   rounds: other assumptions, the less doubtful ones first; what is withdrawn bars a word for the next round */
#include "replay/simulate/ledger.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum {
    PASSES_MAX = 64,
    IDLE_MOST = 2, /* passes that found next to nothing: one each way */
    ROUNDS_MAX = 6,
    LEAST_SHARE =
        1 << 13, /* a pass that finds something of fewer than one of as many variables is idle */
    FULL_SHARE =
        64, /* with a focus: passes over everything come until one finds something of fewer variables */
    WITHDRAWN_SHARE =
        1000, /* with a focus: a round that withdraws fewer assumptions is the last one */
    LEDGER_SHARE =
        64, /* if more than one of as many steps is settled and not entered, the ledger is made anew */
};

static bool has_focus(const struct tbd_simulation *sim)
{
    return sim->focus.to != 0 && sim->infers && sim->doubt_most >= TBD_SIM_DOUBT_OTHER &&
           sim->focus.is_on;
}

static void one_pass(struct tbd_simulation *sim, bool forward)
{
    if (has_focus(sim))
        tbd_sim_pass_focus(sim, forward);
    else
        tbd_sim_pass(sim, 0, sim->step_count, forward);
    sim->passes++;
}

/* Changes that come one by one, as round after round of a loop, would take most of the time: each takes a pass over everything.  What
 * is known without them is no less right. */
static void passes(struct tbd_simulation *sim)
{
    size_t few = sim->variable_count / LEAST_SHARE;
    unsigned idle = 0;

    tbd_sim_forget_borders(sim);
    sim->focus.is_on = false;
    for (unsigned n = 0; n < PASSES_MAX && idle < IDLE_MOST; n++) {
        uint32_t before = sim->changes;

        sim->changed = false;
        if (sim->infers && sim->doubt_most >= TBD_SIM_DOUBT_OTHER)
            tbd_sim_take_suppositions(sim);
        one_pass(sim, (n & 1) != 0);
        idle = sim->changed && sim->changes - before > few ? 0 : idle + 1;
        sim->focus.is_on |= n > 0 && sim->changes - before < sim->variable_count / FULL_SHARE;
        if (sim->settled_visits > sim->step_count / LEDGER_SHARE && !has_focus(sim))
            tbd_sim_make_ledger(sim, !sim->infers); /* borders would be of the one before */
        sim->settled_visits = 0;
    }
}

static bool reserve(struct tbd_simulation *sim)
{
    return tbd_sim_begin_stack(sim) && tbd_sim_begin_dirty(sim) &&
           tbd_array_reserve(&sim->exact, sim->variable_count, &sim->exact_capacity,
                             sizeof(*sim->exact)) &&
           tbd_array_reserve(&sim->addresses, sim->variable_count, &sim->address_capacity,
                             sizeof(*sim->addresses)) &&
           tbd_array_reserve(&sim->changed_at, sim->variable_count, &sim->changed_capacity,
                             sizeof(*sim->changed_at)) &&
           tbd_array_reserve(&sim->why, sim->variable_count, &sim->why_capacity, sizeof(*sim->why));
}

void tbd_sim_note_known(const struct tbd_simulation *sim, uint64_t *out)
{
    for (size_t i = 0; i < sim->variable_count; i++)
        out[i] = sim->variables[i].known;
}

void tbd_sim_keep_known(struct tbd_simulation *sim, const uint64_t *known)
{
    for (size_t i = 0; i < sim->variable_count; i++) {
        if ((sim->variables[i].known & ~known[i]) == 0)
            continue;
        sim->variables[i] = tbd_bits_only(sim->variables[i], known[i]);
        tbd_sim_note_change(sim, (uint32_t)i);
    }
}

/* Only what is exact is known now. */
static void forget_inferred(struct tbd_simulation *sim)
{
    tbd_sim_keep_known(sim, sim->exact);
    tbd_sim_unsettle(sim, TBD_SETTLED_SAVED);
    memset(sim->why, 0, sim->variable_count * sizeof(*sim->why));
    sim->assumption_count = 0;
    tbd_sim_use_ledger(sim, true);
}

/* If exact values contradict each other, then memory changes in ways that the steps do not show: it is not taken from
 * one step to another any more.  If that does not help, only what the caller said is exact. */
static void phase_one(struct tbd_simulation *sim)
{
    size_t given = sim->contradictions;

    tbd_sim_note_known(sim, sim->exact);
    passes(sim);
    if (sim->contradictions != given) {
        forget_inferred(sim);
        tbd_sim_unsettle(sim, TBD_SETTLED_EXACT);
        given = sim->contradictions;
        sim->source.others = true;
        sim->ledger = NULL;
        passes(sim);
    }
    if (sim->contradictions == given)
        tbd_sim_note_known(sim, sim->exact);
    tbd_sim_make_ledger(sim, true);
}

/* What is less doubtful is assumed first: it says where some of the stores went. */
static const uint32_t doubts[] = { TBD_SIM_DOUBT_OTHER - 1, (1u << 31) - 1, UINT32_MAX - 1 };

/* Until those agree with each other. */
static void infer_saved(struct tbd_simulation *sim)
{
    sim->doubt_most = doubts[0];
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        size_t bars = sim->bar_count;

        forget_inferred(sim);
        passes(sim);
        tbd_sim_refute(sim);
        if (sim->bar_count == bars)
            break;
    }
    if (!tbd_sim_note_saved(sim))
        sim->no_memory = true;
}

/* Was next to nothing withdrawn in the round?  If few steps are wanted, hardly one of them is about it. */
static bool is_settled(const struct tbd_simulation *sim, size_t bars_before)
{
    size_t withdrawn = sim->bar_count - bars_before;

    return withdrawn == 0 ||
           (sim->focus.to != 0 && withdrawn < sim->assumption_count / WITHDRAWN_SHARE);
}

static void phase_two(struct tbd_simulation *sim)
{
    sim->infers = true;
    tbd_sim_note_storers(sim);
    for (unsigned round = 0; round < ROUNDS_MAX && !sim->no_memory; round++) {
        size_t bars;

        if (!tbd_sim_saved_holds(sim))
            infer_saved(sim);
        else
            tbd_sim_forget_to_saved(sim);
        tbd_sim_make_ledger(sim, false);
        bars = sim->bar_count;
        for (size_t i = 1; i < sizeof(doubts) / sizeof(*doubts); i++) {
            sim->doubt_most = doubts[i];
            passes(sim);
        }
        tbd_sim_refute(sim);
        tbd_sim_note_storers(sim);
        if (is_settled(sim, bars))
            break;
    }
}

/* Steps do not change any more.  Without memory for it questions take longer. */
static void begin_walk(struct tbd_simulation *sim)
{
    sim->walk = sim->step_count == 0 ? NULL : malloc(sizeof(*sim->walk));
    if (sim->walk != NULL)
        *sim->walk = (struct tbd_sim_walk){ .map = sim->checkpoints[0] };
}

enum tbd_status tbd_simulation_run(struct tbd_simulation *sim, bool inferred)
{
    if (!reserve(sim))
        return TBD_NOMEM;
    memset(sim->why, 0, sim->variable_count * sizeof(*sim->why));
    memset(sim->changed_at, 0, sim->variable_count * sizeof(*sim->changed_at));
    phase_one(sim);
    if (inferred)
        phase_two(sim);
    else
        forget_inferred(sim);
    sim->ledger = NULL;
    begin_walk(sim);
    return sim->no_memory ? TBD_NOMEM : TBD_OK;
}
