// SPDX-License-Identifier: MIT
/* focus.c - passes over the steps that are wanted (simulate_private.h)
 *
 * Most passes are about assumptions of which each brings little.  If values are wanted far from the end, and only in a few steps there, then
 * passes over everything come only as long as they find much; later ones go over these steps alone.  Memory where they begin is that of one pass over
 * the others, in each direction.
 *
 *     steps   0 ............ from ======== to ................ end
 *     forward    one pass     | all passes
 *     back                      all passes  |     one pass
 *
 * FOCUS-1  Memory at a border is that of the ledger in use: its words have numbers of accounts. (not checked: passes()
 *     forgets borders, and makes no ledger while they are used) */
#include "replay/simulate/ledger.h"

#include <stdlib.h>
#include <string.h>

void tbd_simulation_focus(struct tbd_simulation *sim, size_t from, size_t to)
{
    if (from < to && to <= sim->step_count) {
        sim->focus.from = from;
        sim->focus.to = to;
    }
}

void tbd_sim_forget_borders(struct tbd_simulation *sim)
{
    for (unsigned i = 0; i < 2; i++) {
        struct tbd_sim_border *border = &sim->focus.borders[i];

        tbd_image_free(&border->image);
        free(border->due);
        free(border->due_facts);
        *border = (struct tbd_sim_border){ .is_there = false };
    }
}

static bool copy_set(uint64_t **out, const uint64_t *from, size_t bytes)
{
    *out = malloc(bytes);
    if (*out != NULL)
        memcpy(*out, from, bytes);
    return *out != NULL;
}

static size_t set_bytes(const struct tbd_simulation *sim)
{
    return (sim->step_count / 64 + 1) * sizeof(uint64_t);
}

/* Memory is where the steps that are wanted begin. */
static void note_border(struct tbd_simulation *sim, struct tbd_sim_border *border)
{
    border->is_there = tbd_image_copy(&border->image, &sim->image);
    if (border->is_there && sim->ledger != NULL)
        border->is_there = copy_set(&border->due, sim->ledger->due, set_bytes(sim)) &&
                           copy_set(&border->due_facts, sim->ledger->due_facts, set_bytes(sim));
    sim->no_memory |= !border->is_there;
}

/* As it was then. */
static void come_to_border(struct tbd_simulation *sim, const struct tbd_sim_border *border)
{
    sim->no_memory |= !tbd_image_copy(&sim->image, &border->image);
    if (sim->ledger == NULL || border->due == NULL)
        return;
    memcpy(sim->ledger->due, border->due, set_bytes(sim));
    memcpy(sim->ledger->due_facts, border->due_facts, set_bytes(sim));
}

void tbd_sim_pass_focus(struct tbd_simulation *sim, bool forward)
{
    struct tbd_sim_border *border = &sim->focus.borders[!forward];

    if (!border->is_there) {
        if (forward)
            tbd_sim_pass(sim, 0, sim->focus.from, true);
        else
            tbd_sim_pass(sim, sim->focus.to, sim->step_count, false);
        note_border(sim, border);
    } else {
        come_to_border(sim, border);
    }
    if (!sim->no_memory)
        tbd_sim_pass_on(sim, sim->focus.from, sim->focus.to, forward);
}
