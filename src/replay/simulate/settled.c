// SPDX-License-Identifier: MIT
/* settled.c - steps of which everything is known (simulate_private.h)
 *
 * Most passes find little that is new.  A step whose registers, memory and addresses are all known, and fit together, has nothing
 * more to solve: passes only take its memory along.
 *
 * SETTLED-1  A step that is settled as TBD_SETTLED_EXACT has exact values alone. (not checked: it becomes so before anything is
 *     inferred) */
#include "replay/simulate/simulate_private.h"

#include <string.h>

static bool is_full(const struct tbd_simulation *sim, uint32_t variable, unsigned place)
{
    uint64_t wanted = place == TBD_PLACE_FLAGS ? (uint64_t)TBD_STATUS_FLAGS : UINT64_MAX;

    return (wanted & ~sim->variables[variable].known) == 0;
}

static bool has_all_registers(const struct tbd_simulation *sim, const struct tbd_sim_step *step)
{
    const struct tbd_sim_insn *insn = step->insn;

    for (size_t i = 0; i < insn->read_count; i++)
        if (!is_full(sim, sim->uses[step->first_use + i], insn->reads[i].place))
            return false;
    for (size_t i = 0; i < insn->write_count; i++)
        if (!is_full(sim, tbd_sim_write_variable(step, i), insn->writes[i].place))
            return false;
    return true;
}

static bool has_all_memory(const struct tbd_simulation *sim, const struct tbd_sim_step *step,
                           const struct tbd_solver *solver)
{
    const struct tbd_sim_insn *insn = step->insn;

    for (size_t i = 0; i < insn->memory_count; i++)
        if (insn->memory[i].range || !tbd_bits_full(solver->slot[insn->memory[i].address]) ||
            !is_full(sim, tbd_sim_memory_variable(step, i), 0) ||
            solver->slot[insn->memory[i].address].value > UINT64_MAX - 256)
            return false;
    return true;
}

void tbd_sim_settle(struct tbd_simulation *sim, size_t index, const struct tbd_solver *solver)
{
    struct tbd_sim_step *step = &sim->steps[index];
    const struct tbd_sim_insn *insn = step->insn;

    if (sim->frozen || insn->kind != TBD_INSN_PLAIN || insn->barrier ||
        !has_all_registers(sim, step) || !has_all_memory(sim, step, solver))
        return;
    for (size_t i = 0; i < insn->memory_count; i++)
        sim->addresses[tbd_sim_memory_variable(step, i)] =
            tbd_bits_of(solver->slot[insn->memory[i].address].value + insn->memory[i].offset);
    step->settled = sim->infers ? TBD_SETTLED_INFERRED : TBD_SETTLED_EXACT;
}

bool tbd_sim_is_settled(const struct tbd_simulation *sim, const struct tbd_sim_step *step)
{
    return step->settled == TBD_SETTLED_EXACT ||
           (step->settled > TBD_SETTLED_EXACT && !sim->exact_only);
}

void tbd_sim_unsettle(struct tbd_simulation *sim, enum tbd_sim_settled from)
{
    for (size_t i = 0; i < sim->step_count; i++)
        if (sim->steps[i].settled >= from)
            sim->steps[i].settled = TBD_NOT_SETTLED;
}

/* ---- a visit ---- */

static void take(struct tbd_simulation *sim, size_t index, size_t k, uint32_t why)
{
    const struct tbd_sim_step *step = &sim->steps[index];
    uint32_t variable = tbd_sim_memory_variable(step, k);

    tbd_sim_remember(sim, index, sim->addresses[variable].value, step->insn->memory[k].bytes,
                     sim->variables[variable], why);
}

static void read_all(struct tbd_simulation *sim, size_t index, uint32_t why)
{
    for (size_t k = 0; k < sim->steps[index].insn->memory_count; k++)
        if (!sim->steps[index].insn->memory[k].write)
            take(sim, index, k, why);
}

static void write_all(struct tbd_simulation *sim, size_t index, bool forward, uint32_t why)
{
    const struct tbd_sim_step *step = &sim->steps[index];

    for (size_t k = 0; k < step->insn->memory_count; k++) {
        const struct tbd_insn_memory *memory = &step->insn->memory[k];
        uint64_t address = sim->addresses[tbd_sim_memory_variable(step, k)].value;

        if (!memory->write)
            continue;
        if (!forward)
            take(sim, index, k, why);
        tbd_sim_erase(sim, address, memory->bytes);
        if (forward)
            take(sim, index, k, why);
    }
}

void tbd_sim_visit_settled(struct tbd_simulation *sim, size_t index, bool forward)
{
    const struct tbd_sim_step *step = &sim->steps[index];
    uint32_t why = step->settled > TBD_SETTLED_EXACT ? tbd_sim_why_of(sim, step) : 0;

    if (step->insn->memory_count == 0)
        return;
    if (forward)
        read_all(sim, index, why);
    write_all(sim, index, forward, why);
    if (!forward)
        read_all(sim, index, why);
}
