// SPDX-License-Identifier: MIT
/* facts.c - what a caller knows of memory between two steps, and of system calls (simulate.h)
 *
 * Passes come by in order, so a fact is found by a cursor that moves with the pass.
 *
 * FACTS-1  Facts and calls are sorted by their positions. (not checked: they are added as steps are) */
#include "replay/simulate/simulate_private.h"

#include "base/array.h"
#include "base/binary_search.h"

#include <string.h>

enum tbd_status tbd_simulation_know_memory(struct tbd_simulation *sim, uint64_t address,
                                           unsigned bytes, uint64_t value)
{
    uint64_t low = bytes < 8 ? (1ull << 8 * bytes) - 1 : UINT64_MAX;

    if (bytes == 0 || bytes > 8)
        return TBD_OK;
    if (!tbd_array_grow(&sim->facts, sim->fact_count, &sim->fact_capacity, sizeof(*sim->facts)))
        return TBD_NOMEM;
    sim->facts[sim->fact_count++] = (struct tbd_sim_fact){ .address = address,
                                                           .bits = { value & low, low },
                                                           .position = (uint32_t)sim->step_count,
                                                           .bytes = (uint8_t)bytes };
    return TBD_OK;
}

enum tbd_status tbd_simulation_know_call(struct tbd_simulation *sim,
                                         const struct tbd_sim_range *ranges, size_t count)
{
    struct tbd_sim_known_call *call;

    if (sim->step_count == 0 || count > TBD_SIM_CALL_RANGES)
        return TBD_OK;
    if (!tbd_array_grow(&sim->calls, sim->call_count, &sim->call_capacity, sizeof(*sim->calls)))
        return TBD_NOMEM;
    call = &sim->calls[sim->call_count++];
    *call = (struct tbd_sim_known_call){ .step = (uint32_t)sim->step_count - 1,
                                         .count = (uint32_t)count };
    if (count > 0)
        memcpy(call->ranges, ranges, count * sizeof(*ranges));
    return TBD_OK;
}

const struct tbd_sim_known_call *tbd_sim_call_at(const struct tbd_simulation *sim, size_t step)
{
    size_t at = TBD_COUNT_BEFORE(i, sim->call_count, sim->calls[i].step < step);

    return at < sim->call_count && sim->calls[at].step == step ? &sim->calls[at] : NULL;
}

size_t tbd_sim_first_fact(const struct tbd_simulation *sim, size_t position)
{
    return TBD_COUNT_BEFORE(i, sim->fact_count, sim->facts[i].position < position);
}

static void take(struct tbd_simulation *sim, const struct tbd_sim_fact *fact)
{
    tbd_sim_remember(sim, fact->position, fact->address, fact->bytes, fact->bits, 0);
}

void tbd_sim_take_facts(struct tbd_simulation *sim, size_t position, bool forward, size_t *cursor)
{
    if (forward)
        for (; *cursor < sim->fact_count && sim->facts[*cursor].position == position; ++*cursor)
            take(sim, &sim->facts[*cursor]);
    else
        for (; *cursor > 0 && sim->facts[*cursor - 1].position == position; --*cursor)
            take(sim, &sim->facts[*cursor - 1]);
}
