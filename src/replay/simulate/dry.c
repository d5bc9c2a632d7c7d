// SPDX-License-Identifier: MIT
/* dry.c - see dry.h
 *
 * One pass over the steps: each variable is known, or has a root.  A variable that is loaded from where another one was stored last
 * has that one's root.
 *
 * DRY-1  A variable's root is set before any step that reads it comes. (not checked: variables are numbered as steps come) */
#include "replay/simulate/dry.h"

#include "base/array.h"
#include "base/hash.h"
#include "replay/simulate/simulate_private.h"

#include <stdlib.h>
#include <string.h>

enum { KNOWN = 0, OLDER = UINT32_MAX, STORES = 1 << 16 };

/* The variable that was stored last at an address. */
struct stored {
    uint64_t address;
    uint32_t variable; /* 0: none */
    uint8_t bytes;
};

struct dry {
    const struct tbd_simulation *sim;
    const struct tbd_sim_wish *wish;
    uint32_t *roots;       /* owned; of variables: KNOWN, OLDER, or a step plus 1 */
    struct stored *stores; /* owned; by address: the last one that had this place */
    struct tbd_sim_checkpoint map;
    size_t next_wish; /* of wish->steps */
    struct tbd_sim_uses uses;
    void (*use)(struct dry *dry, uint32_t root); /* NULL: they are only counted */
    void *arg;
};

/* ---- roots ---- */

static bool is_wished(const struct dry *dry, uint64_t address)
{
    for (size_t i = 0; i < dry->wish->load_count; i++)
        if (dry->wish->loads[i] == address)
            return true;
    return false;
}

static bool is_full(const struct dry *dry, uint32_t variable, unsigned place)
{
    uint64_t wanted = place == TBD_PLACE_FLAGS ? (uint64_t)TBD_STATUS_FLAGS : UINT64_MAX;

    return (wanted & ~dry->sim->variables[variable].known) == 0;
}

static struct stored *stored_at(const struct dry *dry, uint64_t address)
{
    return &dry->stores[tbd_hash64_mix(address * 0x9e3779b97f4a7c15ull) % STORES];
}

/* The first root among what the step reads; KNOWN: all of it is known. */
static uint32_t root_of_reads(const struct dry *dry, const struct tbd_sim_step *step)
{
    for (size_t i = 0; i < step->insn->read_count; i++)
        if (dry->roots[dry->sim->uses[step->first_use + i]] != KNOWN)
            return dry->roots[dry->sim->uses[step->first_use + i]];
    return KNOWN;
}

static uint32_t root_of_load(const struct dry *dry, size_t index, size_t k, uint32_t here)
{
    const struct tbd_sim_step *step = &dry->sim->steps[index];
    struct tbd_simulated address = tbd_simulation_address(dry->sim, index, k);
    uint32_t reads = root_of_reads(dry, step);
    const struct stored *last;

    if (!tbd_bits_full(address.bits))
        return reads != KNOWN ? reads : here;
    last = stored_at(dry, address.bits.value);
    return last->variable != 0 && last->address == address.bits.value &&
                   last->bytes == step->insn->memory[k].bytes
               ? dry->roots[last->variable]
               : here;
}

/* Sets the roots of what the step loads; returns the first one. */
static uint32_t load_all(struct dry *dry, size_t index, uint32_t here)
{
    const struct tbd_sim_step *step = &dry->sim->steps[index];
    uint32_t first = KNOWN;

    for (size_t k = 0; k < step->insn->memory_count; k++) {
        uint32_t variable = tbd_sim_memory_variable(step, k);

        if (step->insn->memory[k].write || is_full(dry, variable, 0))
            continue;
        dry->roots[variable] = here == KNOWN ? KNOWN : root_of_load(dry, index, k, here);
        first = first != KNOWN ? first : dry->roots[variable];
    }
    return first;
}

static void store_all(struct dry *dry, size_t index, uint32_t root)
{
    const struct tbd_sim_step *step = &dry->sim->steps[index];

    for (size_t k = 0; k < step->insn->memory_count; k++) {
        uint32_t variable = tbd_sim_memory_variable(step, k);
        struct tbd_simulated address;

        if (!step->insn->memory[k].write)
            continue;
        dry->roots[variable] = is_full(dry, variable, 0) ? KNOWN : root;
        address = tbd_simulation_address(dry->sim, index, k);
        if (tbd_bits_full(address.bits))
            *stored_at(dry, address.bits.value) =
                (struct stored){ .address = address.bits.value,
                                 .variable = variable,
                                 .bytes = step->insn->memory[k].bytes };
    }
}

static void renew(struct dry *dry, const struct tbd_sim_step *step, uint32_t here)
{
    uint32_t first = step->first_variable + step->insn->write_count + step->insn->memory_count;

    for (uint32_t i = tbd_sim_first_renewed(step); step->renews && i < TBD_PLACE_COUNT; i++) {
        uint32_t variable = first + i - tbd_sim_first_renewed(step);

        dry->roots[variable] = is_full(dry, variable, i) ? KNOWN : here;
    }
}

/* What an instruction computes is known if all that it reads is, and it is computed at all. */
static uint32_t root_of_result(const struct dry *dry, const struct tbd_sim_step *step,
                               uint32_t loaded, uint32_t here)
{
    uint32_t reads = root_of_reads(dry, step);

    if (loaded != KNOWN)
        return loaded;
    return reads == KNOWN && step->insn->kind == TBD_INSN_PLAIN && !step->unsure ? KNOWN
           : reads != KNOWN                                                      ? reads
                                                                                 : here;
}

static void write_all(struct dry *dry, size_t index, uint32_t here)
{
    const struct tbd_sim_step *step = &dry->sim->steps[index];
    uint32_t loaded = load_all(dry, index, here);
    uint32_t root = here == KNOWN ? KNOWN : root_of_result(dry, step, loaded, here);

    for (size_t i = 0; i < step->insn->write_count; i++) {
        uint32_t variable = tbd_sim_write_variable(step, i);

        dry->roots[variable] = is_full(dry, variable, step->insn->writes[i].place) ? KNOWN : root;
    }
    store_all(dry, index, root);
    renew(dry, step, here);
}

/* ---- the pass ---- */

static void wish_registers(struct dry *dry, size_t index)
{
    const struct tbd_sim_wish *wish = dry->wish;

    while (dry->next_wish < wish->step_count && wish->steps[dry->next_wish] < index)
        dry->next_wish++;
    if (dry->next_wish == wish->step_count || wish->steps[dry->next_wish] != index)
        return;
    for (unsigned place = 0; place < TBD_PLACE_VECTOR; place++)
        dry->roots[dry->map.variable[place]] = KNOWN;
}

static void count(struct dry *dry, uint32_t root)
{
    dry->uses.all++;
    dry->uses.known += root == KNOWN;
    if (root != KNOWN && dry->use != NULL)
        dry->use(dry, root);
}

static void count_step(struct dry *dry, const struct tbd_sim_step *step)
{
    for (size_t i = 0; i < step->insn->read_count; i++)
        if (step->insn->reads[i].place < TBD_PLACE_FLAGS)
            count(dry, dry->roots[dry->sim->uses[step->first_use + i]]);
    for (size_t i = 0; i < step->insn->copy_count; i++)
        if (step->insn->copies[i].from < TBD_PLACE_FLAGS)
            count(dry, dry->roots[dry->map.variable[step->insn->copies[i].from]]);
    for (size_t k = 0; k < step->insn->memory_count; k++)
        if (!step->insn->memory[k].write)
            count(dry, dry->roots[tbd_sim_memory_variable(step, k)]);
}

static void pass(struct dry *dry, size_t from)
{
    const struct tbd_simulation *sim = dry->sim;

    for (size_t i = 0; i < sim->step_count; i++) {
        bool wished = is_wished(dry, sim->steps[i].insn->address);

        wish_registers(dry, i);
        write_all(dry, i, wished ? (uint32_t)KNOWN : (uint32_t)i + 1);
        if (i >= from)
            count_step(dry, &sim->steps[i]);
        tbd_sim_rename(sim, i, &dry->map);
    }
}

static enum tbd_status run(struct dry *dry, size_t from)
{
    const struct tbd_simulation *sim = dry->sim;

    dry->roots = calloc(sim->variable_count, sizeof(*dry->roots));
    dry->stores = calloc(STORES, sizeof(*dry->stores));
    if (dry->roots != NULL && dry->stores != NULL && sim->checkpoint_count != 0) {
        dry->map = sim->checkpoints[0];
        for (unsigned place = 0; place < TBD_PLACE_COUNT; place++)
            if (!is_full(dry, dry->map.variable[place], place))
                dry->roots[dry->map.variable[place]] = OLDER;
        pass(dry, from);
    }
    return dry->roots == NULL || dry->stores == NULL ? TBD_NOMEM : TBD_OK;
}

static void free_dry(struct dry *dry)
{
    free(dry->roots);
    free(dry->stores);
}

enum tbd_status tbd_simulation_dry(const struct tbd_simulation *sim, size_t from,
                                   const struct tbd_sim_wish *wish, struct tbd_sim_uses *out)
{
    struct dry dry = { .sim = sim, .wish = wish };
    enum tbd_status status = run(&dry, from);

    *out = dry.uses;
    free_dry(&dry);
    return status;
}

/* ---- all roots ---- */

static void note_use(struct dry *dry, uint32_t root)
{
    size_t *uses = dry->arg;

    uses[root == OLDER ? dry->sim->step_count : root - 1]++;
}

static int by_address(const void *one, const void *other)
{
    const struct tbd_sim_root *a = one, *b = other;

    return a->address != b->address ? (a->address < b->address ? -1 : 1) : (a->step > b->step);
}

static int by_uses(const void *one, const void *other)
{
    const struct tbd_sim_root *a = one, *b = other;

    return a->uses != b->uses ? (a->uses > b->uses ? -1 : 1) : by_address(one, other);
}

/* Those at the same address become one. */
static size_t unite(struct tbd_sim_root *roots, size_t all)
{
    size_t kept = 0;

    qsort(roots, all, sizeof(*roots), by_address);
    for (size_t i = 0; i < all; i++) {
        if (kept == 0 || roots[kept - 1].address != roots[i].address) {
            roots[kept++] = roots[i];
            continue;
        }
        roots[kept - 1].uses += roots[i].uses;
        roots[kept - 1].step = roots[i].step;
    }
    qsort(roots, kept, sizeof(*roots), by_uses);
    return kept;
}

static bool gather(const struct tbd_simulation *sim, const size_t *uses, struct tbd_sim_root **out,
                   size_t *out_count)
{
    size_t capacity = 0;

    for (size_t i = 0; i <= sim->step_count; i++) {
        if (uses[i] == 0)
            continue;
        if (!tbd_array_grow(out, *out_count, &capacity, sizeof(**out)))
            return false;
        (*out)[(*out_count)++] =
            (struct tbd_sim_root){ .address = i < sim->step_count ? sim->steps[i].insn->address : 0,
                                   .step = i,
                                   .uses = uses[i] };
    }
    *out_count = unite(*out, *out_count);
    return true;
}

enum tbd_status tbd_simulation_roots(const struct tbd_simulation *sim, size_t from,
                                     struct tbd_sim_root **out, size_t *out_count)
{
    static const struct tbd_sim_wish nothing = { .loads = NULL };
    size_t *uses = calloc(sim->step_count + 1, sizeof(*uses));
    struct dry dry = { .sim = sim, .wish = &nothing, .use = note_use, .arg = uses };
    enum tbd_status status = uses == NULL ? TBD_NOMEM : run(&dry, from);

    *out = NULL;
    *out_count = 0;
    if (status == TBD_OK && !gather(sim, uses, out, out_count))
        status = TBD_NOMEM;
    if (status != TBD_OK) {
        free(*out);
        *out = NULL;
        *out_count = 0;
    }
    free(uses);
    free_dry(&dry);
    return status;
}
