// SPDX-License-Identifier: MIT
/* suppose.c - assumptions of the caller's: what a register holds before a step (simulate.h)
 *
 * They are made in phase two, when the least doubtful assumptions about memory have shown what they can.  One that contradicts what
 * is known is not made; one that leads to a contradiction is withdrawn as others are, by a bar for an address that no word has. */
#include "replay/simulate/simulate_private.h"

#include "base/array.h"

enum tbd_status tbd_simulation_suppose(struct tbd_simulation *sim, unsigned place,
                                       struct tbd_bits bits)
{
    if (place >= TBD_PLACE_COUNT || bits.known == 0)
        return TBD_OK;
    if (!tbd_array_grow(&sim->suppositions, sim->supposition_count, &sim->supposition_capacity,
                        sizeof(*sim->suppositions)))
        return TBD_NOMEM;
    sim->suppositions[sim->supposition_count++] =
        (struct tbd_sim_supposition){ .bits = bits,
                                      .variable = sim->current.variable[place],
                                      .position = (uint32_t)sim->step_count };
    return TBD_OK;
}

static uint64_t stand_in(const struct tbd_sim_supposition *supposition)
{
    return 1ull << 62 | supposition->variable;
}

/* Its number; 0: it was withdrawn, or is not needed. */
static uint32_t assume(struct tbd_simulation *sim, const struct tbd_sim_supposition *supposition)
{
    struct tbd_bits known = sim->variables[supposition->variable];
    uint32_t position = supposition->position, number = (uint32_t)sim->assumption_count + 1;

    if ((supposition->bits.known & ~known.known) == 0 ||
        ((supposition->bits.value ^ known.value) & supposition->bits.known & known.known) != 0 ||
        tbd_sim_is_barred(sim, stand_in(supposition), position, position) ||
        !tbd_array_grow(&sim->assumptions, sim->assumption_count, &sim->assumption_capacity,
                        sizeof(*sim->assumptions)))
        return 0;
    sim->assumptions[sim->assumption_count++] =
        (struct tbd_assumption){ .address = stand_in(supposition),
                                 .from = position,
                                 .to = position,
                                 .store = position,
                                 .doubt = TBD_SIM_DOUBT_OTHER,
                                 .weakest = number,
                                 .is_supposed = true };
    return number;
}

void tbd_sim_take_suppositions(struct tbd_simulation *sim)
{
    for (size_t i = 0; i < sim->supposition_count; i++) {
        const struct tbd_sim_supposition *supposition = &sim->suppositions[i];
        struct tbd_bits bits = sim->variables[supposition->variable];
        uint32_t why = assume(sim, supposition);

        if (why == 0)
            continue;
        bits.value |= supposition->bits.value & supposition->bits.known & ~bits.known;
        bits.known |= supposition->bits.known;
        tbd_sim_store(sim, supposition->variable, bits, why);
    }
}
