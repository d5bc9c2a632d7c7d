// SPDX-License-Identifier: MIT
/* suppose.c - assumptions about registers (simulate.h): the caller's, what one holds before a step; and that after a handler all are as
 * they were before its signal
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

/* A new assumption's number; 0: it was withdrawn. */
static uint32_t assume(struct tbd_simulation *sim, const struct tbd_assumption *what)
{
    uint32_t number = (uint32_t)sim->assumption_count + 1;

    if (tbd_sim_is_barred(sim, what->address, what->from, what->to))
        return 0;
    if (!tbd_array_grow(&sim->assumptions, sim->assumption_count, &sim->assumption_capacity,
                        sizeof(*sim->assumptions))) {
        sim->no_memory = true;
        return 0;
    }
    sim->assumptions[sim->assumption_count] = *what;
    sim->assumptions[sim->assumption_count++].weakest = number;
    return number;
}

/* False: nothing is new in it, or it contradicts what is known. */
static bool is_needed(struct tbd_bits supposed, struct tbd_bits known)
{
    return (supposed.known & ~known.known) != 0 &&
           ((supposed.value ^ known.value) & supposed.known & known.known) == 0;
}

static uint32_t assume_supposed(struct tbd_simulation *sim,
                                const struct tbd_sim_supposition *supposition)
{
    uint32_t position = supposition->position;

    if (!is_needed(supposition->bits, sim->variables[supposition->variable]))
        return 0;
    return assume(sim, &(struct tbd_assumption){ .address = 1ull << 62 | supposition->variable,
                                                 .from = position,
                                                 .to = position,
                                                 .store = position,
                                                 .doubt = TBD_SIM_DOUBT_OTHER,
                                                 .is_supposed = true });
}

/* ---- signals ---- */

enum tbd_status tbd_simulation_interrupted(struct tbd_simulation *sim, uint64_t address)
{
    if (!tbd_array_grow(&sim->marks, sim->mark_count, &sim->mark_capacity, sizeof(*sim->marks)))
        return TBD_NOMEM;
    sim->marks[sim->mark_count++] =
        (struct tbd_sim_mark){ .places = sim->current, .address = address };
    return TBD_OK;
}

enum tbd_status tbd_sim_tie(struct tbd_simulation *sim, uint64_t next)
{
    size_t count = sim->mark_count;

    while (count > 0 && sim->marks[count - 1].address != next)
        count--;
    if (count == 0)
        return TBD_OK;
    sim->mark_count = count - 1; /* those above it were left otherwise */
    if (!tbd_array_grow(&sim->ties, sim->tie_count, &sim->tie_capacity, sizeof(*sim->ties)))
        return TBD_NOMEM;
    sim->ties[sim->tie_count++] = (struct tbd_sim_tie){ .one = sim->marks[count - 1].places,
                                                        .other = sim->current,
                                                        .position = (uint32_t)sim->step_count };
    return TBD_OK;
}

/* Do they know different things?  *out_contradicts: of the same bits. */
static bool differ(const struct tbd_simulation *sim, uint32_t one, uint32_t other,
                   bool *out_contradicts)
{
    struct tbd_bits a = sim->variables[one], b = sim->variables[other];

    *out_contradicts |= ((a.value ^ b.value) & a.known & b.known) != 0;
    return a.known != b.known;
}

static void take_both(struct tbd_simulation *sim, uint32_t one, uint32_t other, uint32_t why)
{
    struct tbd_bits a = sim->variables[one], b = sim->variables[other];
    struct tbd_bits both = { a.value | b.value, a.known | b.known };
    uint32_t of_one = sim->why[one], of_other = sim->why[other];

    tbd_sim_store(sim, one, both, tbd_sim_weaker(sim, why, of_other));
    tbd_sim_store(sim, other, both, tbd_sim_weaker(sim, why, of_one));
}

static void take_tie(struct tbd_simulation *sim, const struct tbd_sim_tie *tie)
{
    struct tbd_assumption what = { .address = 1ull << 62 | 1ull << 61 | tie->position,
                                   .from = tie->position,
                                   .to = tie->position,
                                   .store = tie->position,
                                   .doubt = TBD_SIM_DOUBT_OTHER,
                                   .is_tie = true };
    bool contradicts = false, is_new = false;
    uint32_t why = 0;

    for (unsigned i = 0; i < TBD_PLACE_COUNT; i++)
        is_new |= differ(sim, tie->one.variable[i], tie->other.variable[i], &contradicts);
    if (contradicts)
        tbd_sim_bar(sim, what.address, what.from, what.to);
    else if (is_new)
        why = assume(sim, &what);
    for (unsigned i = 0; why != 0 && i < TBD_PLACE_COUNT; i++)
        take_both(sim, tie->one.variable[i], tie->other.variable[i], why);
}

void tbd_sim_take_suppositions(struct tbd_simulation *sim)
{
    for (size_t i = 0; i < sim->tie_count; i++)
        take_tie(sim, &sim->ties[i]);
    for (size_t i = 0; i < sim->supposition_count; i++) {
        const struct tbd_sim_supposition *supposition = &sim->suppositions[i];
        struct tbd_bits bits = sim->variables[supposition->variable];
        uint32_t why = assume_supposed(sim, supposition);

        if (why == 0)
            continue;
        bits.value |= supposition->bits.value & supposition->bits.known & ~bits.known;
        bits.known |= supposition->bits.known;
        tbd_sim_store(sim, supposition->variable, bits, why);
    }
}
