// SPDX-License-Identifier: MIT
/* storers.c - which instructions are known to store to a word (simulate_private.h)
 *
 * An instruction that has stored to a word does so again: the one that puts a piece of memory into a list of free ones, or that counts in
 * a field of an object.  So it is not assumed that it missed the word where its address is not known, over many stores.
 *
 * What is known of addresses is noted after the first phase and after each round of the second; what was known once stays noted. */
#include "replay/simulate/simulate_private.h"

#include "base/array.h"
#include "base/binary_search.h"

#include <stdlib.h>

enum {
    LOOKS_MOST = 256
}; /* at executions of an instruction; after that one is taken to be unknown */

/* ---- what is noted ---- */

static bool is_plain_store(const struct tbd_sim_insn *insn, size_t k)
{
    return insn->memory[k].write && !insn->memory[k].range && !insn->saves;
}

static bool stores(const struct tbd_sim_step *step)
{
    for (size_t k = 0; k < step->insn->memory_count; k++)
        if (is_plain_store(step->insn, k))
            return !step->unsure;
    return false;
}

/* Are all addresses known that it stores to? */
static bool is_known(const struct tbd_simulation *sim, const struct tbd_sim_step *step)
{
    if (!step->is_solved && !step->settled)
        return false;
    for (size_t k = 0; k < step->insn->memory_count; k++)
        if (step->insn->memory[k].write &&
            !tbd_bits_full(sim->addresses[tbd_sim_memory_variable(step, k)]))
            return false;
    return true;
}

static bool note_word(struct tbd_sim_storers *s, uint64_t address, const struct tbd_sim_insn *insn)
{
    if (!tbd_array_grow(&s->words, s->word_count, &s->word_capacity, sizeof(*s->words)))
        return false;
    s->words[s->word_count++] = (struct tbd_sim_storer_of){ .address = address & ~7ull, insn };
    return true;
}

static bool note_words(struct tbd_simulation *sim, const struct tbd_sim_step *step)
{
    const struct tbd_sim_insn *insn = step->insn;

    for (size_t k = 0; k < insn->memory_count; k++) {
        uint64_t address = sim->addresses[tbd_sim_memory_variable(step, k)].value;

        if (is_plain_store(insn, k) && tbd_sim_fits(address, insn->memory[k].bytes) &&
            (!note_word(&sim->storers, address, insn) ||
             ((address + insn->memory[k].bytes - 1) / 8 != address / 8 &&
              !note_word(&sim->storers, address + 8, insn))))
            return false;
    }
    return true;
}

static int by_word(const void *one, const void *other)
{
    const struct tbd_sim_storer_of *a = one, *b = other;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->insn->address != b->insn->address ? (a->insn->address < b->insn->address ? -1 : 1)
                                                : (a->insn > b->insn) - (a->insn < b->insn);
}

static void leave_out_doubles(struct tbd_sim_storers *s)
{
    size_t count = 0;

    if (s->word_count > 0)
        qsort(s->words, s->word_count, sizeof(*s->words), by_word);
    for (size_t i = 0; i < s->word_count; i++)
        if (count == 0 || by_word(&s->words[count - 1], &s->words[i]) != 0)
            s->words[count++] = s->words[i];
    s->word_count = count;
}

static int by_insn(const void *one, const void *other)
{
    const struct tbd_sim_execution *a = one, *b = other;

    if (a->insn != b->insn)
        return a->insn < b->insn ? -1 : 1;
    return (a->step > b->step) - (a->step < b->step);
}

/* All steps that store, once. */
static bool note_executions(struct tbd_simulation *sim)
{
    struct tbd_sim_storers *s = &sim->storers;

    for (size_t i = 0; i < sim->step_count; i++) {
        if (!stores(&sim->steps[i]))
            continue;
        if (!tbd_array_grow(&s->executions, s->execution_count, &s->execution_capacity,
                            sizeof(*s->executions)))
            return false;
        s->executions[s->execution_count++] =
            (struct tbd_sim_execution){ sim->steps[i].insn, (uint32_t)i };
    }
    if (s->execution_count > 0)
        qsort(s->executions, s->execution_count, sizeof(*s->executions), by_insn);
    return true;
}

void tbd_sim_note_storers(struct tbd_simulation *sim)
{
    if (sim->storers.execution_count == 0 && !note_executions(sim))
        sim->no_memory = true;
    for (size_t i = 0; i < sim->step_count && !sim->no_memory; i++)
        if (stores(&sim->steps[i]) && is_known(sim, &sim->steps[i]) &&
            !note_words(sim, &sim->steps[i]))
            sim->no_memory = true;
    leave_out_doubles(&sim->storers);
}

void tbd_sim_free_storers(struct tbd_sim_storers *s)
{
    free(s->words);
    free(s->executions);
}

/* ---- what is asked ---- */

static bool runs_unknown(const struct tbd_simulation *sim, const struct tbd_sim_insn *insn,
                         uint32_t from, uint32_t to)
{
    const struct tbd_sim_storers *s = &sim->storers;
    size_t first =
        TBD_COUNT_BEFORE(i, s->execution_count,
                         s->executions[i].insn < insn ||
                             (s->executions[i].insn == insn && s->executions[i].step <= from));

    for (size_t i = first;
         i < s->execution_count && s->executions[i].insn == insn && s->executions[i].step < to; i++)
        if (i - first == LOOKS_MOST || !is_known(sim, &sim->steps[s->executions[i].step]))
            return true;
    return false;
}

bool tbd_sim_storer_between(const struct tbd_simulation *sim, uint64_t address, uint32_t one,
                            uint32_t other)
{
    const struct tbd_sim_storers *s = &sim->storers;
    uint32_t from = one < other ? one : other, to = one < other ? other : one;
    size_t first = TBD_COUNT_BEFORE(i, s->word_count, s->words[i].address < address);

    for (size_t i = first; i < s->word_count && s->words[i].address == address; i++)
        if (runs_unknown(sim, s->words[i].insn, from, to))
            return true;
    return false;
}
