// SPDX-License-Identifier: MIT
/* step_values.c - how much a simulation finds of what a program that crashes held, against single-stepping
 *
 * usage: step_values LAST RECORD PROGRAM [ARGUMENT...]
 *
 * Runs the program one instruction at a time until it dies of a signal, and keeps what its registers, flags and memory
 * operands held before each of the last LAST instructions, and half as many before them.  A simulation then gets the instructions, the registers and memory
 * at the end, and what the option record=RECORD would have recorded on the way (recorded.h).  Prints, for each distance from the end, how
 * many register uses and memory operands read are exact and right, inferred and right, wrong, unknown.  Status 1: an exact
 * value is wrong.  STEP_PRELOAD: a library for the program alone.  STEP_FROM_TRAP: the program runs at
 * full speed up to a trap instruction in it; what it does after is what is stepped.  STEP_WHY=N: also says where what is unknown in the last N
 * instructions begins, and what wrong values rest on.  STEP_FAR=N: prints the same of the 1,000 instructions from N before the end on, once with
 * everything wanted, once with these alone (tbd_simulation_focus()).  Repeated string instructions count as one.  One thread. */
#include "reasons.h"
#include "stepped.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- the comparison ---- */

struct tally {
    size_t exact, inferred, wrong, unknown, exact_wrong;
};

static void judge(struct tally *tally, struct tbd_simulated said, struct tbd_bits is)
{
    uint64_t differs = (said.bits.value ^ is.value) & said.bits.known & is.known;

    if (differs & said.exact)
        tally->exact_wrong++;
    if (differs != 0)
        tally->wrong++;
    else if ((is.known & ~said.exact) == 0)
        tally->exact++;
    else if ((is.known & ~said.bits.known) == 0)
        tally->inferred++;
    else
        tally->unknown++;
}

static void report(const struct tbd_simulation *sim, size_t step, size_t place)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);

    fprintf(stderr, "exact and wrong: step %zu at %#" PRIx64 ", %s %zu\n", step, insn->address,
            place < TBD_PLACE_COUNT ? "place" : "memory", place % TBD_PLACE_COUNT);
}

/* Steps that truly wrote to the word that an assumption says was left alone. */
static void blame_store(const struct tbd_simulation *sim, const struct tbd_assumption *a,
                        size_t step)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);
    struct tbd_solver solver;

    tbd_solver_begin(&solver, insn);
    for (size_t i = 0; i < insn->read_count; i++)
        tbd_solver_learn(&solver, insn->reads[i].slot,
                         stepped_truth(&stepped_moment_at(step)->regs, insn->reads[i].place));
    tbd_solver_solve(&solver, insn);
    for (size_t i = 0; i < insn->memory_count; i++) {
        const struct tbd_insn_memory *m = &insn->memory[i];
        uint64_t at = solver.slot[m->address].value + m->offset;

        if (m->write && tbd_bits_full(solver.slot[m->address]) && at < a->address + 8 &&
            a->address < at + m->bytes)
            fprintf(stderr,
                    "  %#" PRIx64 " is written at step %zu, %#" PRIx64 " %s, %u at %#" PRIx64 "\n",
                    a->address, step, insn->address,
                    ZydisMnemonicGetString((ZydisMnemonic)insn->mnemonic), (unsigned)m->bytes, at);
    }
}

static void blame(const struct tbd_simulation *sim, struct tbd_simulated said)
{
    struct tbd_assumption a;

    for (uint32_t why = said.why; tbd_simulation_assumption(sim, why, &a); why = a.parent)
        for (size_t step = a.from + 1; step < a.to && tbd_simulation_insn(sim, step) != NULL;
             step++)
            blame_store(sim, &a, step);
}

static void judge_one(struct tally *tally, const struct tbd_simulation *sim, size_t step,
                      size_t place, struct tbd_simulated said, struct tbd_bits is)
{
    struct tally before = *tally;

    judge(tally, said, is);
    if (tally->wrong + tally->inferred != before.wrong + before.inferred)
        reasons_count_inferred(sim, said.why, tally->wrong == before.wrong);
    if (tally->exact_wrong != before.exact_wrong && before.exact_wrong < 10)
        report(sim, step, place);
    if (tally->wrong != before.wrong && stepped.why != 0 && before.wrong < 4000) {
        reasons_of_wrong(sim, step, place, said, is.value);
        if (before.wrong < 400) /* it looks at all steps between */
            blame(sim, said);
    }
}

/* The flags that the instruction looks at: not those that it only leaves alone. */
static uint64_t tested_flags(const struct stepped_moment *moment)
{
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecodedInstruction insn;
    ZydisDecoder decoder;

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, moment->code, 15, &insn, operands)) ||
        insn.cpu_flags == NULL)
        return 0;
    return insn.cpu_flags->tested & TBD_STATUS_FLAGS;
}

/* What the step uses of a place. */
static struct tbd_bits used(const struct stepped_moment *moment, unsigned place)
{
    struct tbd_bits is = stepped_truth(&moment->regs, place);

    return place == TBD_PLACE_FLAGS ? tbd_bits_only(is, tested_flags(moment)) : is;
}

static void judge_step(const struct tbd_simulation *sim, size_t i, struct tally *tally)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, i);
    const struct stepped_moment *moment = stepped_moment_at(i);

    for (size_t k = 0; k < (size_t)insn->read_count + insn->copy_count; k++) {
        unsigned place =
            k < insn->read_count ? insn->reads[k].place : insn->copies[k - insn->read_count].from;

        if (place > TBD_PLACE_FLAGS || used(moment, place).known == 0)
            continue;
        judge_one(tally, sim, i, place, tbd_simulation_place(sim, i, place), used(moment, place));
    }
    for (size_t k = 0; k < insn->memory_count && k < READS; k++)
        if (moment->read & 1u << k)
            judge_one(tally, sim, i, TBD_PLACE_COUNT + k, tbd_simulation_data(sim, i, k),
                      tbd_bits_of(moment->memory[k]));
}

static void print(size_t distance, const struct tally *t)
{
    double all = (double)(t->exact + t->inferred + t->wrong + t->unknown) / 100.0;

    printf("%zu,%.2f,%.2f,%.2f,%.2f,%zu\n", distance, (double)t->exact / all,
           (double)t->inferred / all, (double)t->wrong / all, (double)t->unknown / all,
           t->exact_wrong);
}

static size_t compare(const struct tbd_simulation *sim, size_t steps)
{
    struct tally tally = { 0 };
    size_t distance = 1000;

    puts("last,exact,inferred,wrong,unknown,exact_but_wrong");
    for (size_t n = 1; n <= steps && n <= stepped.asked; n++) {
        judge_step(sim, steps - n, &tally);
        if (n == distance || n == steps || n == stepped.asked) {
            print(n, &tally);
            distance *= 10;
        }
    }
    return tally.exact_wrong;
}

/* ---- a stretch far from the end ---- */

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* What is known of steps that far from the end, if all are wanted, and if they alone are. */
static void compare_far(const struct tbd_simulation *all, const struct user_regs_struct *end,
                        size_t steps, size_t distance)
{
    struct tally of_all = { 0 }, of_focus = { 0 };
    double before = seconds();
    struct tbd_simulation *sim = stepped_simulate(end, steps, distance);

    fprintf(stderr, "focus: %.2f s\n", seconds() - before);
    for (size_t n = 0; n < STEPPED_FAR; n++) {
        judge_step(all, steps - distance + n, &of_all);
        judge_step(sim, steps - distance + n, &of_focus);
    }
    print(distance - 1, &of_all); /* as rows of bench/values, which must differ */
    print(distance, &of_focus);
    tbd_simulation_free(sim);
}

int main(int argc, char **argv)
{
    struct tbd_simulation_counts counts;
    struct user_regs_struct end;
    struct tbd_simulation *sim;
    size_t steps, wrong, far;
    double before;
    int signo;

    if (argc < 4)
        return 2;
    stepped.asked = strtoul(argv[1], NULL, 10);
    stepped.last = stepped.asked + stepped.asked / 2 + 1;
    stepped.why = getenv("STEP_WHY") ? strtoul(getenv("STEP_WHY"), NULL, 10) : 0;
    stepped.ring = calloc(stepped.last, sizeof(*stepped.ring));
    stepped.cache = calloc(CACHE, sizeof(*stepped.cache));
    if (stepped.ring == NULL || stepped.cache == NULL)
        stepped_give_up("memory");
    stepped_start(argv + 3);
    recorded_begin(&stepped.recorded, (unsigned)strtoul(argv[2], NULL, 10), stepped.pid,
                   stepped.mem, getenv("STEP_FROM_TRAP") == NULL);
    if ((getenv("STEP_FROM_TRAP") && !stepped_run_to_trap()) || !stepped_to_end(&end, &signo)) {
        fprintf(stderr, "step_values: it did not die of a signal\n");
        return 2;
    }
    stepped_read_mappings();
    steps = (stepped.count < stepped.last ? stepped.count : stepped.last) - 1;
    before = seconds();
    sim = stepped_simulate(&end, steps, 0);
    before = seconds() - before;
    counts = tbd_simulation_counts(sim);
    wrong = compare(sim, steps);
    if (stepped.why != 0)
        reasons_of_inferred();
    if (stepped.why != 0)
        reasons_of_unknown(sim, steps > stepped.why ? steps - stepped.why : 0);
    fprintf(
        stderr,
        "signal %d after %zu steps; %zu passes, %zu assumptions, %zu withdrawn, %zu contradictions, %.2f s\n",
        signo, stepped.count, counts.passes, counts.assumptions, counts.withdrawn,
        counts.contradictions, before);
    far = getenv("STEP_FAR") ? strtoul(getenv("STEP_FAR"), NULL, 10) : 0;
    if (far > 3 * STEPPED_GRID && far < steps)
        compare_far(sim, &end, steps, far);
    kill(stepped.pid, SIGKILL);
    tbd_simulation_free(sim);
    return wrong != 0;
}
