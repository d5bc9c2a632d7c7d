// SPDX-License-Identifier: MIT
/* dump_advise.c - see dump_advise.h
 *
 * Two kinds of rows.  Settings of the dial `record`: registers are supposed to be known as often as the setting records them, and results of system calls.
 * Probes: the instructions in which most unknown values begin, and the trigger that records the registers after each; `known` is what would be known with this one and all above. */
#include "query/dumps/dump_advise.h"

#include "base/array.h"
#include "query/dumps/dump_run.h"
#include "query/output/output.h"
#include "query/past/past_kept.h"
#include "replay/simulate/dry.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { INSNS_DEFAULT = 100000, PROBES = 10 };

struct advice {
    struct tbd_dump_run dump;
    struct tbd_past *past; /* owned */
    size_t from;           /* step of the simulation */
    struct tbd_sim_uses now;
    struct tbd_rows rows;
};

static double percent(size_t part, size_t all)
{
    size_t tenths = all == 0 ? 0 : 1000 * part / all;

    return (double)tenths / 10;
}

static void add_row(struct advice *advice, json_t *row, const char *text,
                    const struct tbd_sim_uses *uses)
{
    char known[32];

    json_object_set_new(row, "advice", tbd_output_text(text));
    snprintf(known, sizeof(known), "%.1f %%", percent(uses->known, uses->all));
    json_object_set_new(row, "known", json_string(known));
    tbd_rows_add(&advice->rows, row);
}

/* ---- settings ---- */

/* What settings cost on top of the ring (docs/COSTS.md, "Values before a crash"). */
static const char *const setting_costs[TBD_RECORD_MOST + 1] = {
    [1] = "0.05 us for each system call",
    [2] = "up to 0.05 of native time, and 0.05 us for each system call",
};
static const char checks_cost[] = "0.2 to 2 of native time, for checks in loops";

/* What a setting records in the simulation's steps. */
struct moments_recorded {
    uint32_t *steps; /* owned; ascending: before which it records registers */
    uint64_t *calls; /* owned; addresses of system calls, each of which has its results recorded */
    size_t step_count, call_count, step_capacity, call_capacity;
};

static enum tbd_status record_call(struct moments_recorded *recorded, uint64_t address)
{
    for (size_t i = 0; i < recorded->call_count; i++)
        if (recorded->calls[i] == address)
            return TBD_OK;
    if (!tbd_array_grow(&recorded->calls, recorded->call_count, &recorded->call_capacity,
                        sizeof(*recorded->calls)))
        return TBD_NOMEM;
    recorded->calls[recorded->call_count++] = address;
    return TBD_OK;
}

static enum tbd_status record_registers(struct moments_recorded *recorded, uint32_t step)
{
    if (!tbd_array_grow(&recorded->steps, recorded->step_count, &recorded->step_capacity,
                        sizeof(*recorded->steps)))
        return TBD_NOMEM;
    recorded->steps[recorded->step_count++] = step;
    return TBD_OK;
}

/* The system call that ends before a step; NULL: none. */
static const struct tbd_sim_insn *call_before(const struct advice *advice, size_t step)
{
    const struct tbd_sim_insn *insn =
        step == 0 ? NULL : tbd_simulation_insn(advice->past->sim, step - 1);

    return insn != NULL && insn->kind == TBD_INSN_SYSCALL ? insn : NULL;
}

/* Every N entries, and after system calls that come M or more entries after the last set of registers.  What it records where code is new is not
 * counted: a ring does not say where that was. */
static enum tbd_status find_recorded(const struct advice *advice,
                                     const struct tbd_record_dial *dial,
                                     struct moments_recorded *recorded)
{
    const struct tbd_past *past = advice->past;
    uint64_t count = past->thread->count - past->first_step, last = 0;
    enum tbd_status status = TBD_OK;

    for (uint64_t i = 0; status == TBD_OK && i < count; i++) {
        const struct tbd_sim_insn *call = call_before(advice, past->first_insn[i]);
        bool is_due = (dial->entries != 0 && i % dial->entries == 0) ||
                      (dial->after_call != 0 && call != NULL && i - last >= dial->after_call);

        if (call != NULL)
            status = record_call(recorded, call->address);
        if (status == TBD_OK && is_due) {
            status = record_registers(recorded, past->first_insn[i]);
            last = i;
        }
    }
    return status;
}

static enum tbd_status try_setting(struct advice *advice, unsigned setting)
{
    struct moments_recorded recorded = { .steps = NULL };
    enum tbd_status status = find_recorded(advice, &tbd_record_dials[setting], &recorded);
    struct tbd_sim_wish wish = { .loads = recorded.calls,
                                 .load_count = recorded.call_count,
                                 .steps = recorded.steps,
                                 .step_count = recorded.step_count };
    struct tbd_sim_uses uses = { 0, 0 };
    json_t *row;
    char text[64];

    if (status == TBD_OK)
        status = tbd_simulation_dry(advice->past->sim, advice->from, &wish, &uses);
    free(recorded.steps);
    free(recorded.calls);
    if (status != TBD_OK || uses.known <= advice->now.known)
        return status;
    row = json_object();
    json_object_set_new(row, "cost",
                        json_string(setting_costs[setting] ? setting_costs[setting] : checks_cost));
    snprintf(text, sizeof(text), "record=%u", setting);
    add_row(advice, row, text, &uses);
    return TBD_OK;
}

/* ---- probes ---- */

static void probe_text(struct advice *advice, const struct tbd_dump_place *place, char *out,
                       size_t bytes)
{
    const struct tbd_rings_step *step = &place->thread->walked.steps[place->step];
    const struct tbd_rings_insn *insn = &advice->dump.ring->blocks[step->block].insns[place->insn];
    const uint8_t *code = tbd_rings_code(advice->dump.ring, step->block, place->insn);
    char text[256] = "?";

    if (code != NULL &&
        (advice->dump.disas != NULL || tbd_disas_new(NULL, NULL, advice->dump.run->session->syntax,
                                                     &advice->dump.disas) == TBD_OK))
        tbd_disas_text(advice->dump.disas, 0, code, insn->length, insn->pc, text, sizeof(text));
    snprintf(out, bytes, "the result of %s", text);
}

/* As an option `trigger` has it: before the instruction that comes next, if it is in the same function. */
static void put_trigger(const struct advice *advice, size_t step, json_t *row)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(advice->past->sim, step);
    uint64_t next = insn->address + insn->length;
    struct tbd_rings_place place = tbd_rings_place_at(advice->dump.ring, next);
    struct tbd_rings_place at = tbd_rings_place_at(advice->dump.ring, insn->address);
    char text[600];

    if (place.function == NULL || place.module == NULL || place.function_start == 0 ||
        at.function_start != place.function_start || insn->target != 0 || insn->indirect)
        return;
    snprintf(text, sizeof(text), "%s!%s+0x%" PRIx64 " records", place.module, place.function,
             next - place.function_start);
    json_object_set_new(row, "trigger", tbd_output_text(text));
}

static void add_probe(struct advice *advice, const struct tbd_sim_root *root,
                      const struct tbd_sim_uses *uses)
{
    struct tbd_dump_place place = { .thread = advice->past->thread };
    char text[300];
    json_t *row;

    tbd_past_where(advice->past, root->step, &place.step, &place.insn);
    row = tbd_dump_row(&advice->dump, &place);
    json_object_set_new(row, "uses", json_integer((json_int_t)root->uses));
    put_trigger(advice, root->step, row);
    probe_text(advice, &place, text, sizeof(text));
    add_row(advice, row, text, uses);
}

static enum tbd_status try_probes(struct advice *advice)
{
    struct tbd_sim_root *roots;
    size_t count, probes = 0;
    uint64_t loads[PROBES];
    enum tbd_status status = tbd_simulation_roots(advice->past->sim, advice->from, &roots, &count);

    for (size_t i = 0; status == TBD_OK && i < count && probes < PROBES; i++) {
        struct tbd_sim_wish wish = { .loads = loads };
        struct tbd_sim_uses uses;

        if (roots[i].address == 0) /* what is older than the ring cannot be recorded */
            continue;
        loads[probes++] = roots[i].address;
        wish.load_count = probes;
        status = tbd_simulation_dry(advice->past->sim, advice->from, &wish, &uses);
        if (status == TBD_OK)
            add_probe(advice, &roots[i], &uses);
    }
    free(roots);
    return status;
}

/* ---- the command ---- */

static enum tbd_exit open_past(struct tbd_command_run *run, struct advice *advice)
{
    unsigned long insns = run->argc == 0 ? INSNS_DEFAULT : strtoul(run->argv[0], NULL, 10);
    struct tbd_past_reach reach = { .before = TBD_PAST_BEFORE };
    struct tbd_rings_thread *thread;
    enum tbd_exit result = tbd_dump_open(run, &advice->dump);
    enum tbd_status status;
    size_t steps;

    if (result != TBD_EXIT_FOUND)
        return result;
    thread = tbd_dump_thread(&advice->dump);
    if (thread == NULL || !tbd_dump_reach(&advice->dump, thread, 1)) {
        fprintf(stderr, "tbdq: advise: the thread has no ring\n");
        return TBD_EXIT_NOT_FOUND;
    }
    reach.step = tbd_past_step_before(thread, thread->count - 1, insns);
    status = tbd_past_others(run->session, &reach.others);
    if (status == TBD_OK)
        status = tbd_past_new(run->session, advice->dump.ring, thread, &reach, &advice->past);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    steps = tbd_simulation_counts(advice->past->sim).steps;
    advice->from = steps > insns ? steps - insns : 0;
    return TBD_EXIT_FOUND;
}

static enum tbd_exit answer(struct advice *advice)
{
    static const char *const columns[] = { "advice",   "known",  "cost",    "uses", "position",
                                           "function", "source", "trigger", NULL };
    static const struct tbd_sim_wish nothing = { .loads = NULL };
    struct tbd_command_run *run = advice->dump.run;
    enum tbd_status status =
        tbd_simulation_dry(advice->past->sim, advice->from, &nothing, &advice->now);
    enum tbd_exit result;

    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    tbd_rows_start(&advice->rows, run, columns);
    add_row(advice, json_object(), "as it is", &advice->now);
    for (unsigned setting = 1; status == TBD_OK && setting <= TBD_RECORD_MOST; setting++)
        status = try_setting(advice, setting);
    if (status == TBD_OK)
        status = try_probes(advice);
    result = tbd_rows_end(&advice->rows);
    return status == TBD_OK ? result : tbd_command_fail(run, status);
}

static bool is_number(const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    return *text >= '1' && *text <= '9' && *end == '\0' && number <= TBD_PAST_MOST / 2;
}

enum tbd_exit tbd_dump_run_advise(struct tbd_command_run *run)
{
    struct advice advice = { .past = NULL };
    enum tbd_exit result;

    if (run->argc > 1 && strcmp(run->argv[run->argc - 2], "thread") != 0)
        return tbd_command_usage(run, "advise takes a number of instructions, up to 1000000");
    if (run->argc != 0 && strcmp(run->argv[0], "thread") != 0 && !is_number(run->argv[0]))
        return tbd_command_usage(run, "advise takes a number of instructions, up to 1000000");
    result = open_past(run, &advice);
    if (result == TBD_EXIT_FOUND)
        result = answer(&advice);
    tbd_past_free(advice.past);
    tbd_dump_close(&advice.dump);
    return result;
}
