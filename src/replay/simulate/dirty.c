// SPDX-License-Identifier: MIT
/* dirty.c - which steps that touch no memory have to be solved (simulate_private.h)
 *
 * Such a quiet step is a function of its variables.  So a pass visits it only after one of these has changed: then it is dirty, until
 * it was solved. */
#include "replay/simulate/simulate_private.h"

#include <stdlib.h>

bool tbd_sim_is_quiet(const struct tbd_simulation *sim, size_t index)
{
    const struct tbd_sim_step *step = &sim->steps[index];

    return step->insn->kind == TBD_INSN_PLAIN && step->insn->memory_count == 0 &&
           (step->insn->op_count != 0 || step->insn->constant_count != 0 ||
            step->insn->write_count != 0) &&
           !step->insn->barrier && !step->insn->repeats && !step->unsure && !step->is_interrupted;
}

/* Calls it with each variable of the step. */
static void each_variable(const struct tbd_simulation *sim, size_t index,
                          void (*call)(void *arg, uint32_t variable, size_t index), void *arg)
{
    const struct tbd_sim_step *step = &sim->steps[index];

    for (size_t i = 0; i < step->insn->read_count; i++)
        call(arg, sim->uses[step->first_use + i], index);
    for (size_t i = 0; i < step->insn->write_count; i++)
        call(arg, tbd_sim_write_variable(step, i), index);
}

static void count_one(void *arg, uint32_t variable, size_t index)
{
    uint32_t *counts = arg;

    (void)index;
    counts[variable]++;
}

/* first_quiet[] goes down to where the variable's steps begin. */
static void enter_one(void *arg, uint32_t variable, size_t index)
{
    struct tbd_simulation *sim = arg;

    sim->quiet_steps[--sim->first_quiet[variable]] = (uint32_t)index;
}

bool tbd_sim_begin_dirty(struct tbd_simulation *sim)
{
    uint32_t sum = 0;

    sim->dirty = calloc(sim->step_count / 64 + 1, sizeof(*sim->dirty));
    sim->first_quiet = calloc(sim->variable_count + 1, sizeof(*sim->first_quiet));
    if (sim->dirty == NULL || sim->first_quiet == NULL)
        return false;
    for (size_t i = 0; i < sim->step_count; i++) {
        if (!tbd_sim_is_quiet(sim, i))
            continue;
        sim->dirty[i / 64] |= 1ull << i % 64;
        each_variable(sim, i, count_one, sim->first_quiet);
    }
    for (size_t i = 0; i <= sim->variable_count; i++)
        sim->first_quiet[i] = sum += sim->first_quiet[i];
    sim->quiet_steps = malloc(((size_t)sum + 1) * sizeof(*sim->quiet_steps));
    for (size_t i = sim->step_count; sim->quiet_steps != NULL && i-- > 0;)
        if (tbd_sim_is_quiet(sim, i))
            each_variable(sim, i, enter_one, sim);
    return sim->quiet_steps != NULL;
}

void tbd_sim_note_change(struct tbd_simulation *sim, uint32_t variable)
{
    sim->changed_at[variable] = ++sim->changes;
    for (uint32_t i = sim->first_quiet[variable]; i < sim->first_quiet[variable + 1]; i++)
        sim->dirty[sim->quiet_steps[i] / 64] |= 1ull << sim->quiet_steps[i] % 64;
}

void tbd_sim_note_visit(struct tbd_simulation *sim, size_t index)
{
    const struct tbd_sim_step *step = &sim->steps[index];

    if (!sim->frozen && (step->settled != TBD_NOT_SETTLED || tbd_sim_is_idle(sim, step)))
        sim->dirty[index / 64] &= ~(1ull << index % 64);
}
