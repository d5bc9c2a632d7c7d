// SPDX-License-Identifier: MIT
/* saved.c - what rests on saved registers alone (simulate_private.h)
 *
 * That a saved register is still there is the least doubtful assumption, and hardly one is withdrawn once these agree with each other.  So
 * they are made until they do, and each round of other assumptions begins with what follows from them, in place of computing it anew.
 *
 * SAVED-1  What is kept rests on no assumption that was withdrawn. (not checked: phase_two() asks tbd_sim_saved_holds()) */
#include "replay/simulate/simulate_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

bool tbd_sim_note_saved(struct tbd_simulation *sim)
{
    struct tbd_sim_saved *saved = &sim->saved;

    saved->is_there = false;
    if (!tbd_array_reserve(&saved->known, sim->variable_count, &saved->known_capacity,
                           sizeof(*saved->known)) ||
        !tbd_array_reserve(&saved->why, sim->variable_count, &saved->why_capacity,
                           sizeof(*saved->why)))
        return false;
    tbd_sim_note_known(sim, saved->known);
    memcpy(saved->why, sim->why, sim->variable_count * sizeof(*saved->why));
    saved->assumption_count = sim->assumption_count;
    for (size_t i = 0; i < sim->step_count; i++)
        if (sim->steps[i].settled == TBD_SETTLED_INFERRED)
            sim->steps[i].settled = TBD_SETTLED_SAVED;
    saved->is_there = true;
    return true;
}

void tbd_sim_forget_to_saved(struct tbd_simulation *sim)
{
    const struct tbd_sim_saved *saved = &sim->saved;

    tbd_sim_keep_known(sim, saved->known);
    tbd_sim_unsettle(sim, TBD_SETTLED_INFERRED);
    memcpy(sim->why, saved->why, sim->variable_count * sizeof(*sim->why));
    sim->assumption_count = saved->assumption_count;
}

bool tbd_sim_saved_holds(struct tbd_simulation *sim)
{
    for (size_t i = 0; i < sim->saved.assumption_count; i++) {
        const struct tbd_assumption *a = &sim->assumptions[i];

        if (!a->is_supposed && !a->is_tie && tbd_sim_is_barred(sim, a->address, a->from, a->to))
            return false;
    }
    return sim->saved.is_there;
}

void tbd_sim_free_saved(struct tbd_sim_saved *saved)
{
    free(saved->known);
    free(saved->why);
}
