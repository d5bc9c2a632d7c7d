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
        struct tbd_bits address = tbd_bits_add(solver->slot[insn->memory[i].address],
                                               tbd_bits_of(insn->memory[i].offset));

        if (insn->memory[i].range ||
            (tbd_bits_full(address) && address.value > UINT64_MAX - TOP_BYTES))
            return;
        sim->addresses[tbd_sim_memory_variable(step, i)] = address;
    }
    step->is_solved = true;
    step->solved = sim->changes;
}

bool tbd_sim_is_idle(const struct tbd_simulation *sim, const struct tbd_sim_step *step)
{
    return step->is_solved && !has_changed(sim, step);
}

/* ---- a visit ---- */

struct idle_visit {
    struct tbd_simulation *sim;
    const struct tbd_sim_step *step;
    size_t index;
    uint32_t why;
};

static struct tbd_bits known_of(const struct idle_visit *v, size_t k)
{
    return v->sim->variables[tbd_sim_memory_variable(v->step, k)];
}

/* The address of a piece of memory, or what stands for it.  False: nothing does. */
static bool address_of(const struct idle_visit *v, size_t k, uint64_t *out)
{
    struct tbd_bits address = v->sim->addresses[tbd_sim_memory_variable(v->step, k)];

    *out = address.value;
    return tbd_bits_full(address) ||
           tbd_sim_stand_in(v->sim, v->step, &v->step->insn->memory[k], out);
}

static void put(const struct idle_visit *v, size_t k, uint64_t address)
{
    tbd_sim_remember(v->sim, v->index, address, v->step->insn->memory[k].bytes, known_of(v, k),
                     v->why);
}

/* Does memory know more of the piece than its variable? */
static bool tells(const struct idle_visit *v, size_t k, uint64_t address)
{
    struct tbd_bits bits, known = known_of(v, k);
    uint32_t why = 0;

    if (tbd_bits_full(known))
        return false;
    bits = tbd_sim_recall(v->sim, v->index, address, v->step->insn->memory[k].bytes, &why);
    return (bits.known & ~known.known) != 0 ||
           ((bits.value ^ known.value) & bits.known & known.known) != 0;
}

static void erase(const struct idle_visit *v, size_t k, uint64_t address)
{
    tbd_sim_erase(v->sim, address, v->step->insn->memory[k].bytes);
}

static bool visit_reads(const struct idle_visit *v)
{
    uint64_t address;

    for (size_t k = 0; k < v->step->insn->memory_count; k++) {
        if (v->step->insn->memory[k].write || !address_of(v, k, &address))
            continue;
        put(v, k, address);
        if (tells(v, k, address))
            return false;
    }
    return true;
}

/* A store to an address that is not known is one to anywhere for all other words. */
static void note_store(const struct idle_visit *v, size_t k, uint64_t stand_in)
{
    const struct tbd_insn_memory *memory = &v->step->insn->memory[k];
    const struct tbd_image_store store = {
        .address = v->sim->addresses[tbd_sim_memory_variable(v->step, k)],
        .data = known_of(v, k),
        .stand_in = stand_in,
        .step = (uint32_t)v->index,
        .why = v->why,
        .bytes = memory->bytes,
        .field = v->step->insn->field,
    };

    if (!tbd_bits_full(store.address))
        tbd_sim_unknown_piece(v->sim, &store);
}

/* False: its address is not known, and nothing stands for it. */
static bool begin_write(const struct idle_visit *v, size_t k, uint64_t *out_address)
{
    bool known = address_of(v, k, out_address);

    note_store(v, k, known ? *out_address : 0);
    return known;
}

static void write_forward(const struct idle_visit *v)
{
    uint64_t address;

    for (size_t k = 0; k < v->step->insn->memory_count; k++)
        if (v->step->insn->memory[k].write && begin_write(v, k, &address)) {
            erase(v, k, address);
            put(v, k, address);
        }
}

/* False: all of it has to be done again, by solving; what it noted is taken back. */
static bool write_back(const struct idle_visit *v)
{
    size_t noted = v->sim->image.store_count;
    uint64_t address;

    for (size_t k = 0; k < v->step->insn->memory_count; k++) {
        if (!v->step->insn->memory[k].write || !begin_write(v, k, &address))
            continue;
        put(v, k, address);
        if (tells(v, k, address)) {
            v->sim->image.store_count = noted;
            return false;
        }
        erase(v, k, address);
    }
    return true;
}

bool tbd_sim_visit_idle(struct tbd_simulation *sim, size_t index, bool forward, bool *out_written)
{
    struct idle_visit v = { .sim = sim, .step = &sim->steps[index], .index = index };

    *out_written = false;
    if (sim->exact_only || !tbd_sim_is_idle(sim, v.step))
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
