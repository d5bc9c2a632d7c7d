// SPDX-License-Identifier: MIT
/* idle.c - steps of which nothing new is known since they were solved last (simulate_private.h)
 *
 * A step is a function of its variables and of the memory it meets.  If none of its variables has changed since it was solved, there is
 * nothing to solve; only memory may tell more, and if its addresses are known, that can be asked without solving.
 *
 * Each change of a variable has a number; a step keeps the number that was the last one when it had been solved.
 *
 * IDLE-1  A visit here leaves variables and image as solving the step would. (not checked: else tbd_sim_visit_idle() says so, and the
 *     step is solved) */
#include "replay/simulate/simulate_private.h"

enum { TOP_BYTES = 1 << 27 }; /* addresses that near the top are not looked at */

static bool has_changed(const struct tbd_simulation *sim, const struct tbd_sim_step *step)
{
    size_t count = (size_t)step->insn->write_count + step->insn->memory_count;

    if (step->solved == sim->changes)
        return false;
    for (size_t i = 0; i < step->insn->read_count; i++)
        if (sim->changed_at[sim->uses[step->first_use + i]] > step->solved)
            return true;
    for (size_t i = 0; i < count; i++)
        if (sim->changed_at[step->first_variable + i] > step->solved)
            return true;
    return false;
}

void tbd_sim_note_solved(struct tbd_simulation *sim, size_t index, const struct tbd_solver *solver)
{
    struct tbd_sim_step *step = &sim->steps[index];
    const struct tbd_sim_insn *insn = step->insn;

    if (sim->frozen || insn->kind != TBD_INSN_PLAIN || insn->barrier)
        return;
    for (size_t i = 0; i < insn->memory_count; i++) {
        uint64_t address = solver->slot[insn->memory[i].address].value + insn->memory[i].offset;

        if (insn->memory[i].range || !tbd_bits_full(solver->slot[insn->memory[i].address]) ||
            address > UINT64_MAX - TOP_BYTES)
            return;
        sim->addresses[tbd_sim_memory_variable(step, i)] = address;
    }
    step->is_solved = true;
    step->solved = sim->changes;
}

void tbd_sim_forget_solved(struct tbd_simulation *sim)
{
    for (size_t i = 0; i < sim->step_count; i++)
        sim->steps[i].is_solved = false;
}

/* ---- a visit ---- */

struct idle_visit {
    struct tbd_simulation *sim;
    const struct tbd_sim_step *step;
    size_t index;
    uint32_t why;
};

static void put(const struct idle_visit *v, size_t k)
{
    uint32_t variable = tbd_sim_memory_variable(v->step, k);

    tbd_sim_remember(v->sim, v->index, v->sim->addresses[variable], v->step->insn->memory[k].bytes,
                     v->sim->variables[variable], v->why);
}

/* Does memory know more of the piece than its variable? */
static bool tells(const struct idle_visit *v, size_t k)
{
    uint32_t variable = tbd_sim_memory_variable(v->step, k), why = 0;
    struct tbd_bits bits, known = v->sim->variables[variable];

    if (tbd_bits_full(known))
        return false;
    bits = tbd_sim_recall(v->sim, v->index, v->sim->addresses[variable],
                          v->step->insn->memory[k].bytes, &why);
    return (bits.known & ~known.known) != 0 ||
           ((bits.value ^ known.value) & bits.known & known.known) != 0;
}

static void erase(const struct idle_visit *v, size_t k)
{
    tbd_sim_erase(v->sim, v->sim->addresses[tbd_sim_memory_variable(v->step, k)],
                  v->step->insn->memory[k].bytes);
}

static bool visit_reads(const struct idle_visit *v)
{
    for (size_t k = 0; k < v->step->insn->memory_count; k++) {
        if (v->step->insn->memory[k].write)
            continue;
        put(v, k);
        if (tells(v, k))
            return false;
    }
    return true;
}

static void write_forward(const struct idle_visit *v)
{
    for (size_t k = 0; k < v->step->insn->memory_count; k++)
        if (v->step->insn->memory[k].write) {
            erase(v, k);
            put(v, k);
        }
}

static bool write_back(const struct idle_visit *v)
{
    for (size_t k = 0; k < v->step->insn->memory_count; k++) {
        if (!v->step->insn->memory[k].write)
            continue;
        put(v, k);
        if (tells(v, k))
            return false;
        erase(v, k);
    }
    return true;
}

bool tbd_sim_visit_idle(struct tbd_simulation *sim, size_t index, bool forward, bool *out_written)
{
    struct idle_visit v = { .sim = sim, .step = &sim->steps[index], .index = index };

    *out_written = false;
    if (!v.step->is_solved || sim->exact_only || has_changed(sim, v.step))
        return false;
    if (v.step->insn->memory_count == 0)
        return true;
    v.why = sim->infers ? tbd_sim_why_of(sim, v.step) : 0;
    if (!forward) {
        *out_written = write_back(&v);
        return *out_written && visit_reads(&v);
    }
    if (!visit_reads(&v))
        return false;
    write_forward(&v);
    return true;
}
