// SPDX-License-Identifier: MIT
/* chase.c - from a step that has just become known, forward along what follows from it (simulate_private.h)
 *
 * A loop that follows pointers needs a pass back for each round: the memory that it reads is known from the end, the pointer from the
 * round before.  So when a pass back finds what a step writes, it looks ahead at the steps that use it, with the image as it is.  A
 * word of it holds for them as long as no step between has written it.
 *
 * CHASE-1  Nothing is taken from the image of a word that a step between writes, or may write. (not checked: the walk stops at
 *     such a step) */
#include "replay/simulate/simulate_private.h"

enum { IDLE_MAX = 24, STEPS_MAX = 20000, WRITTEN_MAX = 32 };

struct chase {
    struct tbd_simulation *sim;
    struct tbd_sim_range written[WRITTEN_MAX]; /* by the steps between */
    size_t written_count;
};

static bool overlaps(const struct chase *chase, uint64_t address, unsigned bytes)
{
    for (size_t i = 0; i < chase->written_count; i++)
        if (address < chase->written[i].address + chase->written[i].bytes &&
            chase->written[i].address < address + bytes)
            return true;
    return false;
}

static void take_memory(struct chase *chase, size_t index, struct tbd_solver *solver, uint32_t *why)
{
    const struct tbd_sim_insn *insn = chase->sim->steps[index].insn;

    for (size_t k = 0; k < insn->memory_count; k++) {
        const struct tbd_insn_memory *memory = &insn->memory[k];
        struct tbd_bits at = solver->slot[memory->address], bits;
        uint64_t address = at.value + memory->offset;
        uint32_t assumed = 0;

        if (memory->write || memory->range || !tbd_bits_full(at) ||
            tbd_bits_full(solver->slot[memory->data]) || overlaps(chase, address, memory->bytes))
            continue;
        bits = tbd_sim_recall(chase->sim, index, address, memory->bytes, &assumed);
        if (bits.known & ~solver->slot[memory->data].known)
            *why = tbd_sim_weaker(chase->sim, *why, assumed);
        tbd_solver_learn(solver, memory->data, bits);
    }
}

/* False: it may write anything, or there is no space left to note it. */
static bool note_writes(struct chase *chase, size_t index, const struct tbd_solver *solver)
{
    const struct tbd_sim_insn *insn = chase->sim->steps[index].insn;

    for (size_t k = 0; k < insn->memory_count; k++) {
        const struct tbd_insn_memory *memory = &insn->memory[k];

        if (!memory->write)
            continue;
        if (memory->range || !tbd_bits_full(solver->slot[memory->address]) ||
            chase->written_count == WRITTEN_MAX)
            return false;
        chase->written[chase->written_count++] =
            (struct tbd_sim_range){ solver->slot[memory->address].value + memory->offset,
                                    memory->bytes };
    }
    return true;
}

static bool is_plain(const struct tbd_sim_step *step)
{
    return step->insn->kind == TBD_INSN_PLAIN && !step->insn->barrier && !step->unsure &&
           !step->is_interrupted && !step->insn->repeats;
}

/* True: the walk can go on; *out_found: something became known. */
static bool look_at(struct chase *chase, size_t index, bool *out_found)
{
    struct tbd_simulation *sim = chase->sim;
    const struct tbd_sim_step *step = &sim->steps[index];
    bool changed = sim->changed;
    struct tbd_solver solver;
    uint32_t why;

    if (!is_plain(step))
        return false;
    tbd_sim_load(sim, index, false, &solver);
    tbd_solver_solve(&solver, step->insn);
    why = sim->infers ? tbd_sim_why_of(sim, step) : 0;
    take_memory(chase, index, &solver, &why);
    tbd_solver_solve(&solver, step->insn);
    if (solver.conflict)
        return false;
    sim->changed = false;
    tbd_sim_learn(sim, step, &solver, why);
    *out_found = sim->changed;
    sim->changed |= changed;
    return note_writes(chase, index, &solver);
}

void tbd_sim_chase(struct tbd_simulation *sim, size_t from)
{
    struct chase chase = { .sim = sim };
    size_t idle = 0;

    if (sim->frozen || sim->source.others)
        return;
    for (size_t i = from; i < sim->step_count && i - from < STEPS_MAX && idle < IDLE_MAX; i++) {
        bool found = false;

        if (!look_at(&chase, i, &found))
            return;
        idle = found ? 0 : idle + 1;
    }
}
