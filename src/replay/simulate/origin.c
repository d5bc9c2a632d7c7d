// SPDX-License-Identifier: MIT
/* origin.c - which step gave something the value that it has at a position (simulate.h) */
#include "replay/simulate/simulate_private.h"

static bool writes_place(const struct tbd_sim_step *step, unsigned place)
{
    const struct tbd_sim_insn *insn = step->insn;

    for (size_t i = 0; i < insn->write_count; i++)
        if (insn->writes[i].place == place)
            return true;
    for (size_t i = 0; i < insn->copy_count; i++)
        if (insn->copies[i].to == place)
            return true;
    return step->renews && place >= tbd_sim_first_renewed(step);
}

size_t tbd_simulation_writer(const struct tbd_simulation *sim, size_t position, unsigned place)
{
    for (size_t i = position < sim->step_count ? position : sim->step_count; i-- > 0;)
        if (writes_place(&sim->steps[i], place))
            return i;
    return SIZE_MAX;
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static bool call_writes(const struct tbd_simulation *sim, size_t step, uint64_t address,
                        uint64_t bytes)
{
    const struct tbd_sim_known_call *call = tbd_sim_call_at(sim, step);

    for (uint32_t i = 0; call != NULL && i < call->count; i++)
        if (overlap(call->ranges[i].address, call->ranges[i].bytes, address, bytes))
            return true;
    return false;
}

/* Does the step write there?  Counts stores that may. */
static bool writes_memory(const struct tbd_simulation *sim, size_t step, uint64_t address,
                          uint64_t bytes, struct tbd_sim_storer *out)
{
    const struct tbd_sim_insn *insn = sim->steps[step].insn;

    for (size_t k = 0; k < insn->memory_count; k++) {
        struct tbd_simulated at;

        if (!insn->memory[k].write)
            continue;
        at = tbd_simulation_address(sim, step, k);
        out->index = k;
        if (!tbd_bits_full(at.bits) || insn->memory[k].range)
            out->unsure++;
        else if (overlap(at.bits.value, insn->memory[k].bytes, address, bytes))
            return true;
    }
    out->index = insn->memory_count;
    if (insn->kind == TBD_INSN_SYSCALL && call_writes(sim, step, address, bytes))
        return true;
    out->unsure += insn->barrier || insn->kind == TBD_INSN_HAVOC;
    return false;
}

struct tbd_sim_storer tbd_simulation_storer(const struct tbd_simulation *sim, size_t position,
                                            uint64_t address, uint64_t bytes)
{
    struct tbd_sim_storer out = { .step = SIZE_MAX };

    for (size_t i = position < sim->step_count ? position : sim->step_count; i-- > 0;)
        if (writes_memory(sim, i, address, bytes, &out)) {
            out.step = i;
            break;
        }
    return out;
}
