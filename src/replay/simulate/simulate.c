// SPDX-License-Identifier: MIT
/* simulate.c - see simulate.h: the sequence, its variables, answers */
#include "replay/simulate/ledger.h"

#include "base/array.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static bool new_variables(struct tbd_simulation *sim, size_t count)
{
    size_t need = sim->variable_count + count;

    if (need > UINT32_MAX ||
        !tbd_array_reserve(&sim->variables, need, &sim->variable_capacity,
                           sizeof(*sim->variables)) ||
        !tbd_array_reserve(&sim->linear, need, &sim->linear_capacity, sizeof(*sim->linear)))
        return false;
    for (size_t i = sim->variable_count; i < need; i++)
        sim->linear[i] = (struct tbd_sim_linear){ .root = (uint32_t)i };
    memset(sim->variables + sim->variable_count, 0, count * sizeof(*sim->variables));
    sim->variable_count = need;
    return true;
}

/* Every place from `place` on becomes a variable of which nothing is known. */
static bool all_new(struct tbd_simulation *sim, uint32_t place)
{
    uint32_t first = (uint32_t)sim->variable_count;

    if (!new_variables(sim, TBD_PLACE_COUNT - place))
        return false;
    for (uint32_t i = place; i < TBD_PLACE_COUNT; i++)
        sim->current.variable[i] = first + i - place;
    return true;
}

enum tbd_status tbd_simulation_new(const struct tbd_simulation_source *source,
                                   struct tbd_simulation **out)
{
    struct tbd_simulation *sim = calloc(1, sizeof(*sim));

    *out = NULL;
    if (sim == NULL)
        return TBD_NOMEM;
    sim->source = *source;
    if (!new_variables(sim, 1) || !all_new(sim, 0)) {
        tbd_simulation_free(sim);
        return TBD_NOMEM;
    }
    sim->variables[TBD_VARIABLE_ZERO] = tbd_bits_of(0);
    *out = sim;
    return TBD_OK;
}

void tbd_simulation_free(struct tbd_simulation *sim)
{
    if (sim == NULL)
        return;
    for (size_t i = 0; i < sim->code_size; i++)
        tbd_insn_free(sim->code[i].insn);
    free(sim->code);
    free(sim->steps);
    free(sim->uses);
    free(sim->variables);
    free(sim->linear);
    free(sim->addresses);
    free(sim->first_quiet);
    free(sim->quiet_steps);
    free(sim->dirty);
    free(sim->changed_at);
    free(sim->exact);
    free(sim->why);
    free(sim->checkpoints);
    free(sim->walk);
    free(sim->assumptions);
    free(sim->asked);
    free(sim->bars);
    free(sim->facts);
    free(sim->calls);
    free(sim->suppositions);
    free(sim->ties);
    free(sim->marks);
    free(sim->stack.at);
    free(sim->stack.most);
    free(sim->stack.variable);
    tbd_sim_free_storers(&sim->storers);
    tbd_sim_free_saved(&sim->saved);
    tbd_sim_forget_borders(sim);
    tbd_image_free(&sim->image);
    tbd_sim_ledger_free(&sim->ledgers[0]);
    tbd_sim_ledger_free(&sim->ledgers[1]);
    free(sim);
}

/* The slot of an instruction with these bytes, which may be free. */
static struct tbd_sim_code *find_code(const struct tbd_simulation *sim, uint64_t address,
                                      const uint8_t bytes[16])
{
    size_t at = (size_t)tbd_hash64_mix(address * 0x9e3779b97f4a7c15ull) & (sim->code_size - 1);

    while (sim->code[at].insn != NULL &&
           (sim->code[at].insn->address != address || memcmp(sim->code[at].bytes, bytes, 16) != 0))
        at = (at + 1) & (sim->code_size - 1);
    return &sim->code[at];
}

static bool grow_code(struct tbd_simulation *sim)
{
    struct tbd_sim_code *old = sim->code;
    size_t old_size = sim->code_size, size = old_size ? 2 * old_size : 1024;
    struct tbd_sim_code *code = calloc(size, sizeof(*code));

    if (code == NULL)
        return false;
    sim->code = code;
    sim->code_size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].insn != NULL)
            *find_code(sim, old[i].insn->address, old[i].bytes) = old[i];
    free(old);
    return true;
}

/* The code of rt_sigreturn: a system call that is like no other. */
static const uint8_t return_code[] = { 0x0f, 0x05 };

static enum tbd_status insn_of(struct tbd_simulation *sim, uint64_t address, const uint8_t *code,
                               size_t length, const struct tbd_sim_insn **out)
{
    uint8_t bytes[16] = { 0 };
    struct tbd_sim_code *at;
    enum tbd_status status;

    if (length == 0 || length > 15)
        return TBD_CORRUPT;
    memcpy(bytes, code, length);
    bytes[15] = code == return_code;
    if (2 * sim->code_count >= sim->code_size && !grow_code(sim))
        return TBD_NOMEM;
    at = find_code(sim, address, bytes);
    if (at->insn == NULL) {
        status = code == return_code ? tbd_insn_make_return(address, &at->insn)
                                     : tbd_insn_make(address, code, length, &at->insn);
        if (status != TBD_OK)
            return status;
        memcpy(at->bytes, bytes, sizeof(bytes));
        sim->code_count++;
    }
    *out = at->insn;
    return at->insn->length == length ? TBD_OK : TBD_CORRUPT;
}

static bool add_uses(struct tbd_simulation *sim, const struct tbd_sim_insn *insn)
{
    if (!tbd_array_reserve(&sim->uses, sim->use_count + insn->read_count, &sim->use_capacity,
                           sizeof(*sim->uses)))
        return false;
    for (size_t i = 0; i < insn->read_count; i++)
        sim->uses[sim->use_count++] = sim->current.variable[insn->reads[i].place];
    return true;
}

/* A narrow piece of memory has zeros above it. */
static bool add_variables(struct tbd_simulation *sim, const struct tbd_sim_insn *insn)
{
    struct tbd_bits *memory;

    if (!new_variables(sim, (size_t)insn->write_count + insn->memory_count))
        return false;
    memory = sim->variables + sim->variable_count - insn->memory_count;
    for (size_t i = 0; i < insn->memory_count; i++)
        memory[i].known = ~tbd_bits_low(8u * insn->memory[i].bytes);
    return true;
}

uint32_t tbd_sim_first_renewed(const struct tbd_sim_step *step)
{
    return step->insn->kind == TBD_INSN_RESTORE && !step->is_interrupted ? TBD_PLACE_VECTOR : 0;
}

void tbd_sim_rename(const struct tbd_simulation *sim, size_t step, struct tbd_sim_checkpoint *map)
{
    const struct tbd_sim_step *s = &sim->steps[step];
    uint32_t from[TBD_INSN_COPIES];

    for (size_t i = 0; i < s->insn->copy_count; i++) {
        unsigned place = s->insn->copies[i].from;

        from[i] = place == TBD_PLACE_COUNT ? TBD_VARIABLE_ZERO : map->variable[place];
    }
    for (size_t i = 0; i < s->insn->copy_count; i++)
        map->variable[s->insn->copies[i].to] = from[i];
    for (size_t i = 0; i < s->insn->write_count; i++)
        map->variable[s->insn->writes[i].place] = tbd_sim_write_variable(s, i);
    if (s->renews)
        for (uint32_t i = tbd_sim_first_renewed(s); i < TBD_PLACE_COUNT; i++)
            map->variable[i] = s->first_variable + s->insn->write_count + s->insn->memory_count +
                               i - tbd_sim_first_renewed(s);
}

/* What it writes may be what it reads plus a constant. */
static void relate(struct tbd_simulation *sim, const struct tbd_sim_step *step)
{
    struct tbd_sim_linear linear;

    for (size_t i = 0; i < step->insn->write_count; i++)
        if (step->insn->writes[i].place < TBD_PLACE_FLAGS &&
            tbd_sim_linear(sim, step, step->insn->writes[i].slot, &linear))
            sim->linear[tbd_sim_write_variable(step, i)] = linear;
}

static bool checkpoint(struct tbd_simulation *sim)
{
    if (sim->step_count % TBD_CHECKPOINT_STEPS != 0)
        return true;
    if (!tbd_array_grow(&sim->checkpoints, sim->checkpoint_count, &sim->checkpoint_capacity,
                        sizeof(*sim->checkpoints)))
        return false;
    sim->checkpoints[sim->checkpoint_count++] = sim->current;
    return true;
}

enum tbd_status tbd_simulation_add(struct tbd_simulation *sim, uint64_t address,
                                   const uint8_t *code, size_t length)
{
    const struct tbd_sim_insn *insn;
    enum tbd_status status = insn_of(sim, address, code, length, &insn);
    struct tbd_sim_step *step;

    if (status != TBD_OK)
        return status;
    if (!checkpoint(sim) ||
        !tbd_array_grow(&sim->steps, sim->step_count, &sim->step_capacity, sizeof(*sim->steps)))
        return TBD_NOMEM;
    step = &sim->steps[sim->step_count];
    *step = (struct tbd_sim_step){ .insn = insn,
                                   .first_use = (uint32_t)sim->use_count,
                                   .first_variable = (uint32_t)sim->variable_count,
                                   .renews = insn->kind == TBD_INSN_HAVOC ||
                                             insn->kind == TBD_INSN_RESTORE };
    if (!add_uses(sim, insn) || !add_variables(sim, insn) ||
        (step->renews && !all_new(sim, tbd_sim_first_renewed(step))))
        return TBD_NOMEM;
    relate(sim, step);
    tbd_sim_rename(sim, sim->step_count, &sim->current);
    sim->step_count++;
    return TBD_OK;
}

enum tbd_status tbd_simulation_add_return(struct tbd_simulation *sim, uint64_t address,
                                          uint64_t next)
{
    enum tbd_status status = tbd_simulation_add(sim, address, return_code, sizeof(return_code));

    return status == TBD_OK ? tbd_sim_tie(sim, next) : status;
}

enum tbd_status tbd_simulation_break(struct tbd_simulation *sim, size_t from)
{
    struct tbd_sim_step *last;

    if (from > sim->step_count || sim->step_count == 0)
        return TBD_OK;
    for (size_t i = from; i < sim->step_count; i++) {
        sim->steps[i].unsure = true;
        for (size_t k = 0; k < sim->steps[i].insn->write_count; k++) {
            uint32_t variable = tbd_sim_write_variable(&sim->steps[i], k);

            sim->linear[variable] = (struct tbd_sim_linear){ .root = variable };
        }
    }
    last = &sim->steps[sim->step_count - 1];
    last->is_interrupted = true;
    if (last->insn->kind == TBD_INSN_RESTORE) /* it has too few variables */
        last->first_variable =
            (uint32_t)(sim->variable_count - last->insn->write_count - last->insn->memory_count);
    if ((!last->renews || last->insn->kind == TBD_INSN_RESTORE) && !all_new(sim, 0))
        return TBD_NOMEM;
    last->renews = true;
    return TBD_OK;
}

static void learn(struct tbd_bits *at, struct tbd_bits bits, bool *conflict)
{
    uint64_t new = bits.known & ~at->known;

    if ((bits.value ^ at->value) & bits.known & at->known)
        *conflict = true;
    at->value |= bits.value & new;
    at->known |= new;
}

enum { STACK_POINTER = 4 };

void tbd_simulation_know(struct tbd_simulation *sim, unsigned place, struct tbd_bits bits)
{
    bool conflict = false;

    if (place < TBD_PLACE_COUNT)
        learn(&sim->variables[sim->current.variable[place]], bits, &conflict);
    if (place == STACK_POINTER && sim->told == 0)
        sim->told = sim->step_count + 1;
    sim->contradictions += conflict;
}

void tbd_simulation_ends_at(struct tbd_simulation *sim, uint64_t address)
{
    sim->end = address;
}

struct tbd_simulation_counts tbd_simulation_counts(const struct tbd_simulation *sim)
{
    return (struct tbd_simulation_counts){ .steps = sim->step_count,
                                           .passes = sim->passes,
                                           .assumptions = sim->assumption_count,
                                           .withdrawn = sim->bar_count,
                                           .contradictions = sim->contradictions };
}

const struct tbd_sim_insn *tbd_simulation_insn(const struct tbd_simulation *sim, size_t step)
{
    return step < sim->step_count ? sim->steps[step].insn : NULL;
}

bool tbd_simulation_ran(const struct tbd_simulation *sim, size_t step)
{
    return step < sim->step_count && !sim->steps[step].unsure;
}

static struct tbd_simulated answer(const struct tbd_simulation *sim, uint32_t variable)
{
    return (struct tbd_simulated){ .bits = sim->variables[variable],
                                   .exact = sim->exact ? sim->exact[variable] : 0,
                                   .why = sim->why ? sim->why[variable] : 0 };
}

/* The variable of a place at a position before the last one. */
static uint32_t variable_at(const struct tbd_simulation *sim, struct tbd_sim_walk *walk,
                            size_t position, unsigned place)
{
    size_t checkpoint = position / TBD_CHECKPOINT_STEPS;

    if (walk->position > position || walk->position < checkpoint * TBD_CHECKPOINT_STEPS) {
        walk->position = checkpoint * TBD_CHECKPOINT_STEPS;
        walk->map = sim->checkpoints[checkpoint];
    }
    for (; walk->position < position; walk->position++)
        tbd_sim_rename(sim, walk->position, &walk->map);
    return walk->map.variable[place];
}

struct tbd_simulated tbd_simulation_place(const struct tbd_simulation *sim, size_t position,
                                          unsigned place)
{
    if (position >= sim->step_count)
        return answer(sim, sim->current.variable[place]);
    if (sim->walk == NULL) {
        struct tbd_sim_walk walk = { .position = SIZE_MAX };

        return answer(sim, variable_at(sim, &walk, position, place));
    }
    return answer(sim, variable_at(sim, sim->walk, position, place));
}

struct tbd_simulated tbd_simulation_address(const struct tbd_simulation *sim, size_t step,
                                            size_t index)
{
    const struct tbd_insn_memory *memory = &sim->steps[step].insn->memory[index];
    struct tbd_solver all, exact;

    if (sim->steps[step].settled == TBD_SETTLED_EXACT)
        return (struct tbd_simulated){
            .bits = sim->addresses[tbd_sim_memory_variable(&sim->steps[step], index)],
            .exact = UINT64_MAX
        };
    tbd_sim_load(sim, step, false, &all);
    tbd_solver_solve(&all, sim->steps[step].insn);
    tbd_sim_load(sim, step, true, &exact);
    tbd_solver_solve(&exact, sim->steps[step].insn);
    return (struct tbd_simulated){
        .bits = tbd_bits_add(all.slot[memory->address], tbd_bits_of(memory->offset)),
        .exact = tbd_bits_add(exact.slot[memory->address], tbd_bits_of(memory->offset)).known
    };
}

struct tbd_simulated tbd_simulation_data(const struct tbd_simulation *sim, size_t step,
                                         size_t index)
{
    return answer(sim, tbd_sim_memory_variable(&sim->steps[step], index));
}

bool tbd_simulation_assumption(const struct tbd_simulation *sim, uint32_t why,
                               struct tbd_assumption *out)
{
    if (why >= TBD_SIM_ASKED && why - TBD_SIM_ASKED < sim->asked_count) {
        *out = sim->asked[why - TBD_SIM_ASKED];
        return true;
    }
    if (why == 0 || why > sim->assumption_count)
        return false;
    *out = sim->assumptions[why - 1];
    return true;
}
