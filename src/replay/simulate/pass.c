// SPDX-License-Identifier: MIT
/* pass.c - passing over the steps (simulate.h)
 *
 * A step does the same in both directions: its equations are solved, and memory is compared with the image.  Forward the
 * image holds memory as it was before the step, so reads come first, and then what was written is put there.  Back it
 * holds memory as it was after the step: first what was written is compared, and removed. */
#include "replay/simulate/ledger.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHORT_RANGE = 4096, /* of a system call: its words are looked at one by one */
    STACK_POINTER = 4,
    RANGE_BYTES_MAX = 1 << 24, /* a longer range counts as a store to anywhere */
};

struct tbd_bits tbd_sim_at_end(void *arg, uint64_t address)
{
    const struct tbd_simulation *sim = arg;

    return sim->source.final && address >> 63 == 0 ? sim->source.final(sim->source.arg, address)
                                                   : (struct tbd_bits){ 0, 0 };
}

static struct tbd_bits value_of(const struct tbd_simulation *sim, uint32_t variable, bool exact)
{
    struct tbd_bits bits = sim->variables[variable];

    return exact ? tbd_bits_only(bits, sim->exact[variable]) : bits;
}

/* What the next step's address says of this one's branch. */
static void load_next(const struct tbd_simulation *sim, size_t i, struct tbd_solver *solver)
{
    const struct tbd_sim_insn *insn = sim->steps[i].insn;
    bool last = i + 1 == sim->step_count;
    uint64_t next = last ? sim->end : sim->steps[i + 1].insn->address;

    if (insn->next == TBD_INSN_NO_SLOT || (last && next == 0))
        return;
    if (insn->indirect)
        tbd_solver_learn(solver, insn->next, tbd_bits_of(next));
    else if (insn->target != insn->address + insn->length)
        tbd_solver_learn(solver, insn->next, tbd_bits_of(next == insn->target));
}

void tbd_sim_load(const struct tbd_simulation *sim, size_t i, bool exact, struct tbd_solver *solver)
{
    const struct tbd_sim_step *step = &sim->steps[i];
    const struct tbd_sim_insn *insn = step->insn;

    tbd_solver_begin(solver, insn);
    for (size_t k = 0; k < insn->read_count; k++)
        tbd_solver_learn(solver, insn->reads[k].slot,
                         value_of(sim, sim->uses[step->first_use + k], exact));
    for (size_t k = 0; k < insn->write_count; k++)
        tbd_solver_learn(solver, insn->writes[k].slot,
                         value_of(sim, tbd_sim_write_variable(step, k), exact));
    for (size_t k = 0; k < insn->memory_count; k++)
        tbd_solver_learn(solver, insn->memory[k].data,
                         value_of(sim, tbd_sim_memory_variable(step, k), exact));
    load_next(sim, i, solver);
}

uint32_t tbd_sim_why_of(const struct tbd_simulation *sim, const struct tbd_sim_step *step)
{
    const struct tbd_sim_insn *insn = step->insn;
    uint32_t why = 0;

    for (size_t k = 0; k < insn->read_count; k++)
        why = tbd_sim_weaker(sim, why, sim->why[sim->uses[step->first_use + k]]);
    for (uint32_t k = 0; k < (uint32_t)insn->write_count + insn->memory_count; k++)
        why = tbd_sim_weaker(sim, why, sim->why[step->first_variable + k]);
    return why;
}

void tbd_sim_store(struct tbd_simulation *sim, uint32_t variable, struct tbd_bits bits,
                   uint32_t why)
{
    struct tbd_bits *at = &sim->variables[variable];

    if ((bits.known & ~at->known) == 0)
        return;
    *at = bits;
    sim->changed = true;
    tbd_sim_note_change(sim, variable);
    if (sim->infers)
        sim->why[variable] = tbd_sim_weaker(sim, sim->why[variable], why);
}

void tbd_sim_learn(struct tbd_simulation *sim, const struct tbd_sim_step *step,
                   const struct tbd_solver *solver, uint32_t why)
{
    const struct tbd_sim_insn *insn = step->insn;

    if (sim->frozen)
        return;
    for (size_t k = 0; k < insn->read_count; k++)
        tbd_sim_store(sim, sim->uses[step->first_use + k], solver->slot[insn->reads[k].slot], why);
    for (size_t k = 0; k < insn->write_count; k++)
        tbd_sim_store(sim, tbd_sim_write_variable(step, k), solver->slot[insn->writes[k].slot],
                      why);
    for (size_t k = 0; k < insn->memory_count; k++)
        tbd_sim_store(sim, tbd_sim_memory_variable(step, k), solver->slot[insn->memory[k].data],
                      why);
}

/* What one step of a pass works on. */
struct step_visit {
    struct tbd_simulation *sim;
    const struct tbd_sim_step *step;
    size_t index;
    struct tbd_solver solver;
    uint32_t why;
    bool is_written; /* in a pass back: what it writes was visited */
};

/* The address of a piece of memory, or in phase two what stands for one that is not known. */
static bool address_of(const struct step_visit *v, const struct tbd_insn_memory *memory,
                       uint64_t *out)
{
    struct tbd_bits address = v->solver.slot[memory->address];

    *out = address.value + memory->offset;
    return tbd_bits_full(address) || tbd_sim_stand_in(v->sim, v->step, memory, out);
}

static bool stands_for_address(const struct step_visit *v, const struct tbd_insn_memory *memory)
{
    return !tbd_bits_full(v->solver.slot[memory->address]);
}

static void read_memory(struct step_visit *v)
{
    const struct tbd_sim_insn *insn = v->step->insn;
    uint64_t address;

    for (size_t k = 0; k < insn->memory_count; k++) {
        const struct tbd_insn_memory *memory = &insn->memory[k];
        uint32_t why = 0;
        struct tbd_bits bits;

        if (memory->write || !address_of(v, memory, &address))
            continue;
        tbd_sim_remember(v->sim, v->index, address, memory->bytes, v->solver.slot[memory->data],
                         v->why);
        if (tbd_bits_full(v->solver.slot[memory->data]))
            continue;
        bits = tbd_sim_recall(v->sim, v->index, address, memory->bytes, &why);
        if (bits.known & ~v->solver.slot[memory->data].known)
            v->why = tbd_sim_weaker(v->sim, v->why, why);
        tbd_solver_learn(&v->solver, memory->data, bits);
    }
}

/* A repeated store: how many bytes; 0: unknown, or too many to look at. */
static uint64_t range_bytes(const struct step_visit *v, const struct tbd_insn_memory *memory)
{
    struct tbd_bits count = v->solver.slot[memory->count];

    if (!tbd_bits_full(count) || count.value > RANGE_BYTES_MAX)
        return 0;
    return count.value * memory->bytes;
}

static void write_range(struct step_visit *v, const struct tbd_insn_memory *memory,
                        uint64_t address, bool forward)
{
    uint64_t bytes = range_bytes(v, memory);

    if (bytes == 0 && !(tbd_bits_full(v->solver.slot[memory->count]) &&
                        v->solver.slot[memory->count].value == 0)) {
        tbd_sim_unknown_store(v->sim, v->index);
        return;
    }
    tbd_sim_erase(v->sim, address, bytes);
    for (uint64_t at = 0; forward && at < bytes; at += memory->bytes)
        tbd_sim_remember(v->sim, v->index, address + at, memory->bytes,
                         v->solver.slot[memory->data], v->why);
}

/* A store to an address that is not known; `stand_in` stands for it. */
static void note_unknown(const struct step_visit *v, const struct tbd_insn_memory *memory,
                         uint64_t stand_in)
{
    struct tbd_bits address = v->solver.slot[memory->address];
    struct tbd_image_store store = { .address = tbd_bits_add(address, tbd_bits_of(memory->offset)),
                                     .data = v->solver.slot[memory->data],
                                     .stand_in = stand_in,
                                     .step = (uint32_t)v->index,
                                     .why = v->why,
                                     .bytes = memory->bytes,
                                     .field = v->step->insn->field };

    if (memory->range)
        tbd_sim_unknown_store(v->sim, v->index);
    else
        tbd_sim_unknown_piece(v->sim, &store);
}

static void write_one(struct step_visit *v, const struct tbd_insn_memory *memory, bool forward)
{
    uint64_t address;
    uint32_t why = 0;
    struct tbd_bits bits;

    if (!address_of(v, memory, &address) || address > UINT64_MAX - RANGE_BYTES_MAX * 8ull) {
        note_unknown(v, memory, 0);
        return;
    }
    if (stands_for_address(v, memory)) /* of other words it is an unknown store */
        note_unknown(v, memory, address);
    if (memory->range) {
        write_range(v, memory, address, forward);
    } else if (forward) {
        tbd_sim_erase(v->sim, address, memory->bytes);
        tbd_sim_remember(v->sim, v->index, address, memory->bytes, v->solver.slot[memory->data],
                         v->why);
    } else {
        tbd_sim_remember(v->sim, v->index, address, memory->bytes, v->solver.slot[memory->data],
                         v->why);
        bits = tbd_sim_recall(v->sim, v->index, address, memory->bytes, &why);
        if (bits.known & ~v->solver.slot[memory->data].known)
            v->why = tbd_sim_weaker(v->sim, v->why, why);
        tbd_solver_learn(&v->solver, memory->data, bits);
        tbd_sim_erase(v->sim, address, memory->bytes);
    }
}

/* A register that the step reads. */
static struct tbd_bits read_of(const struct step_visit *v, unsigned place)
{
    const struct tbd_sim_insn *insn = v->step->insn;

    for (size_t i = 0; i < insn->read_count; i++)
        if (insn->reads[i].place == place)
            return v->solver.slot[insn->reads[i].slot];
    return (struct tbd_bits){ 0, 0 };
}

static void write_ranges(struct step_visit *v, const struct tbd_sim_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ranges[i].bytes > UINT64_MAX / 4 || ranges[i].address > UINT64_MAX / 4)
            tbd_sim_unknown_store(v->sim, v->index);
        else if (ranges[i].bytes > SHORT_RANGE)
            tbd_sim_replace(v->sim, ranges[i].address, ranges[i].bytes);
        else
            tbd_sim_erase(v->sim, ranges[i].address, ranges[i].bytes);
}

/* System V ABI, A.2.1: rdi, rsi, rdx, r10, r8, r9; rax is the number. */
static void write_call(struct step_visit *v)
{
    static const unsigned places[6] = { 7, 6, 2, 10, 8, 9 };
    const struct tbd_simulation_source *source = &v->sim->source;
    const struct tbd_sim_known_call *call = tbd_sim_call_at(v->sim, v->index);
    struct tbd_bits number = read_of(v, 0);
    struct tbd_sim_range ranges[6];
    uint64_t args[6];
    unsigned known = 0;
    size_t count = 0;

    if (call != NULL) {
        write_ranges(v, call->ranges, call->count);
        return;
    }
    for (unsigned i = 0; i < 6; i++) {
        struct tbd_bits arg = read_of(v, places[i]);

        args[i] = arg.value;
        known |= tbd_bits_full(arg) ? 1u << i : 0;
    }
    if (source->call_writes == NULL || !tbd_bits_full(number) ||
        !source->call_writes(source->arg, number.value, args, known, ranges, &count))
        tbd_sim_unknown_store(v->sim, v->index);
    write_ranges(v, ranges, count);
}

static void write_memory(struct step_visit *v, bool forward)
{
    const struct tbd_sim_insn *insn = v->step->insn;

    for (size_t k = 0; k < insn->memory_count; k++)
        if (insn->memory[k].write)
            write_one(v, &insn->memory[k], forward);
    if (insn->kind == TBD_INSN_SYSCALL)
        write_call(v);
    else if (insn->barrier)
        tbd_sim_unknown_store(v->sim, v->index);
}

/* Values that should be the same are not. */
static void contradict(struct step_visit *v)
{
    struct tbd_simulation *sim = v->sim;
    const struct tbd_sim_step *step = v->step;

    if (!sim->infers) {
        sim->contradictions += !sim->frozen;
        return;
    }
    tbd_sim_withdraw(sim, tbd_sim_weaker(sim, v->why, tbd_sim_why_of(sim, step)));
}

static void solve(struct step_visit *v)
{
    tbd_solver_solve(&v->solver, v->step->insn);
    v->solver.changed = false;
}

/* Again, if memory has said something since. */
static void solve_again(struct step_visit *v)
{
    if (v->solver.changed)
        solve(v);
}

/* Does a load of it become known only now?  Then the steps that use it are looked at, too. */
static bool finds_load(const struct step_visit *v)
{
    const struct tbd_sim_insn *insn = v->step->insn;

    for (size_t k = 0; k < insn->memory_count; k++)
        if (!insn->memory[k].write && tbd_bits_full(v->solver.slot[insn->memory[k].data]) &&
            !tbd_bits_full(v->sim->variables[tbd_sim_memory_variable(v->step, k)]))
            return true;
    return false;
}

static bool no_writes(const struct tbd_sim_insn *insn)
{
    for (size_t k = 0; k < insn->memory_count; k++)
        if (insn->memory[k].write)
            return false;
    return true;
}

static void learn_all(struct step_visit *v)
{
    tbd_sim_learn(v->sim, v->step, &v->solver, v->why);
    tbd_sim_settle(v->sim, v->index, &v->solver);
    if (!v->solver.changed)
        tbd_sim_note_solved(v->sim, v->index, &v->solver);
}

static void visit_step(struct step_visit *v, bool forward)
{
    bool found;

    tbd_sim_load(v->sim, v->index, v->sim->exact_only, &v->solver);
    v->why = v->sim->infers ? tbd_sim_why_of(v->sim, v->step) : 0;
    solve(v);
    if (forward) {
        read_memory(v);
        solve_again(v);
        read_memory(v);
        write_memory(v, true);
    } else {
        if (!v->is_written)
            write_memory(v, false);
        solve_again(v);
        read_memory(v);
        solve_again(v);
        read_memory(v);
    }
    tbd_sim_note_stack(v->sim, v->index, read_of(v, STACK_POINTER));
    found = !forward && !v->solver.conflict && finds_load(v);
    if (v->solver.conflict)
        contradict(v);
    else
        learn_all(v);
    if (found && no_writes(v->step->insn) && !v->step->is_interrupted)
        tbd_sim_chase(v->sim, v->index + 1);
}

/* Was a repeated instruction interrupted here, to be run again? */
bool tbd_sim_is_part(const struct tbd_simulation *sim, size_t i)
{
    const struct tbd_sim_insn *insn = sim->steps[i].insn;

    return insn->repeats &&
           (i + 1 < sim->step_count ? sim->steps[i + 1].insn->address : sim->end) == insn->address;
}

/* Does a visit change anything?  While variables are frozen, only memory is taken along.  What only goes from one place to another needs no operation, but a
 * visit: `movq rax, xmm0`. */
static bool has_effect(const struct tbd_simulation *sim, const struct tbd_sim_insn *insn)
{
    if (insn->memory_count != 0 || insn->barrier)
        return true;
    if (sim->frozen && !sim->source.others && insn->kind == TBD_INSN_PLAIN)
        return false;
    return insn->op_count != 0 || insn->constant_count != 0 || insn->write_count != 0;
}

bool tbd_sim_has_effect(const struct tbd_simulation *sim, size_t i)
{
    const struct tbd_sim_step *step = &sim->steps[i];

    return step->unsure || step->is_interrupted || step->insn->kind == TBD_INSN_HAVOC ||
           tbd_sim_is_part(sim, i) || has_effect(sim, step->insn);
}

static void visit_whole(struct tbd_simulation *sim, size_t i, bool forward)
{
    const struct tbd_sim_step *step = &sim->steps[i];
    struct step_visit v; /* large: its solver is filled by tbd_sim_load() */

    if (step->unsure || step->insn->kind == TBD_INSN_HAVOC || tbd_sim_is_part(sim, i)) {
        tbd_sim_unknown_store(sim, i);
        return;
    }
    if (!has_effect(sim, step->insn))
        return;
    if (sim->source.others)
        tbd_sim_unknown_store(sim, i);
    if (tbd_sim_is_settled(sim, step)) {
        sim->settled_visits++;
        tbd_sim_visit_settled(sim, i, forward);
    } else if (!tbd_sim_visit_idle(sim, i, forward, &v.is_written)) {
        v.sim = sim;
        v.step = step;
        v.index = i;
        visit_step(&v, forward);
    }
}

static void stir(struct tbd_simulation *sim, size_t i)
{
    tbd_sim_stir(sim, i);
    tbd_sim_erase_frame(sim, i);
}

static void visit(struct tbd_simulation *sim, size_t i, bool forward)
{
    bool stirs = sim->steps[i].is_interrupted;

    if (stirs && !forward)
        stir(sim, i);
    visit_whole(sim, i, forward);
    if (stirs && forward)
        stir(sim, i);
    tbd_sim_note_visit(sim, i);
}

/* The steps that are not entered in the ledger. */
static void go_over_rest(struct tbd_simulation *sim, size_t from, size_t to, bool forward)
{
    size_t step;

    while ((step = tbd_sim_next_visit(sim, from, to, forward)) != SIZE_MAX) {
        sim->now = step;
        tbd_sim_set_moment(sim, step, true);
        if (!tbd_sim_take_due(sim, step))
            visit(sim, step, forward);
        tbd_sim_take_due_facts(sim, step);
        from = forward ? step + 1 : from;
        to = forward ? to : step;
    }
}

/* The steps of a pass; what is known where it begins is known. */
static void go_over(struct tbd_simulation *sim, size_t from, size_t to, bool forward, size_t cursor)
{
    if (sim->ledger != NULL) {
        go_over_rest(sim, from, to, forward);
        sim->no_memory |= sim->image.no_memory;
        return;
    }
    for (size_t i = 0; i < to - from; i++) {
        size_t step = forward ? from + i : to - 1 - i;

        sim->now = step;
        visit(sim, step, forward);
        tbd_sim_take_facts(sim, forward ? step + 1 : step, forward, &cursor);
    }
    sim->no_memory |= sim->image.no_memory;
}

void tbd_sim_pass(struct tbd_simulation *sim, size_t from, size_t to, bool forward)
{
    size_t cursor = tbd_sim_first_fact(sim, forward ? from : to + 1);

    sim->now = forward ? from : to;
    sim->goes_back = !forward;
    tbd_image_begin(&sim->image, (uint32_t)sim->now, forward ? tbd_sim_constant : tbd_sim_at_end,
                    sim);
    tbd_sim_set_moment(sim, sim->now, false);
    if (sim->ledger != NULL)
        tbd_sim_begin_ledger(sim);
    else
        tbd_sim_take_facts(sim, sim->now, forward, &cursor);
    go_over(sim, from, to, forward, cursor);
}

void tbd_sim_pass_on(struct tbd_simulation *sim, size_t from, size_t to, bool forward)
{
    sim->goes_back = !forward;
    go_over(sim, from, to, forward, tbd_sim_first_fact(sim, forward ? from + 1 : to));
}
