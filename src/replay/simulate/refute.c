// SPDX-License-Identifier: MIT
/* refute.c - assumptions that turned out to be wrong without a contradiction (simulate_private.h)
 *
 * A word is assumed to be as it was across stores to unknown addresses.  Later the address of one of these becomes known, and is
 * that word's.  What was found by the assumption stays, and may even agree with all else: the last of a string's
 * bytes is 0, and so is what the store put there, long after a string was copied from it.  So after each round the stores are
 * compared with the assumptions, and one of the two is withdrawn.
 *
 * A store that changes bits of what it reads does not count: most bits are as they were.
 *
 * Only words about which something is assumed are entered, each store to one of them once. */
#include "replay/simulate/simulate_private.h"

#include "base/array.h"
#include "base/binary_search.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* A store to a word, at an address that is known. */
struct hit {
    uint64_t address;
    uint32_t step;
    uint8_t bytes; /* set of those of the word */
};

struct refuting {
    struct tbd_simulation *sim;
    uint64_t *
        words; /* owned; about which something is assumed: a hash table, of which each word is 0 or an address + 1 */
    size_t size;
    struct hit *hits; /* owned; by word and step */
    size_t hit_count, hit_capacity;
};

/* ---- words ---- */

static uint64_t *word_slot(const struct refuting *r, uint64_t address)
{
    size_t at = tbd_hash64_mix(address) & (r->size - 1);

    while (r->words[at] != 0 && r->words[at] != address + 1)
        at = (at + 1) & (r->size - 1);
    return &r->words[at];
}

static bool is_of_memory(const struct tbd_assumption *a)
{
    return !a->is_supposed && !a->is_tie;
}

static bool enter_words(struct refuting *r)
{
    const struct tbd_simulation *sim = r->sim;

    for (r->size = 64; r->size < 2 * sim->assumption_count;)
        r->size *= 2;
    r->words = calloc(r->size, sizeof(*r->words));
    if (r->words == NULL)
        return false;
    for (size_t i = 0; i < sim->assumption_count; i++)
        if (is_of_memory(&sim->assumptions[i]))
            *word_slot(r, sim->assumptions[i].address) = sim->assumptions[i].address + 1;
    return true;
}

/* ---- stores ---- */

static bool enter_hit(struct refuting *r, const struct hit *hit)
{
    if (*word_slot(r, hit->address) == 0)
        return true;
    if (!tbd_array_grow(&r->hits, r->hit_count, &r->hit_capacity, sizeof(*r->hits)))
        return false;
    r->hits[r->hit_count++] = *hit;
    return true;
}

static bool enter_store(struct refuting *r, uint32_t step, uint64_t address, unsigned bytes)
{
    for (uint64_t at = address & ~7ull; at < address + bytes; at += 8) {
        struct hit hit = { .address = at, .step = step };

        for (unsigned i = 0; i < 8; i++)
            if (at + i >= address && at + i < address + bytes)
                hit.bytes |= (uint8_t)(1u << i);
        if (!enter_hit(r, &hit))
            return false;
    }
    return true;
}

/* Is the piece read, too?  Then most of its bits are as before. */
static bool is_changed(const struct tbd_sim_insn *insn, const struct tbd_insn_memory *written)
{
    for (size_t k = 0; k < insn->memory_count; k++)
        if (!insn->memory[k].write && insn->memory[k].address == written->address &&
            insn->memory[k].offset == written->offset)
            return true;
    return false;
}

static bool enter_step(struct refuting *r, uint32_t index)
{
    const struct tbd_simulation *sim = r->sim;
    const struct tbd_sim_step *step = &sim->steps[index];
    const struct tbd_sim_insn *insn = step->insn;

    if (step->unsure || (!step->is_solved && !step->settled))
        return true;
    for (size_t k = 0; k < insn->memory_count; k++) {
        struct tbd_bits address = sim->addresses[tbd_sim_memory_variable(step, k)];

        if (insn->memory[k].write && !insn->memory[k].range &&
            !is_changed(insn, &insn->memory[k]) && tbd_bits_full(address) &&
            tbd_sim_fits(address.value, insn->memory[k].bytes) &&
            !enter_store(r, index, address.value, insn->memory[k].bytes))
            return false;
    }
    return true;
}

static int by_word(const void *one, const void *other)
{
    const struct hit *a = one, *b = other;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->step < b->step ? -1 : a->step > b->step;
}

static bool enter_stores(struct refuting *r)
{
    for (size_t i = 0; i < r->sim->step_count; i++)
        if (!enter_step(r, (uint32_t)i))
            return false;
    if (r->hit_count > 0)
        qsort(r->hits, r->hit_count, sizeof(*r->hits), by_word);
    return true;
}

/* ---- assumptions ---- */

static const struct hit *hit_between(const struct refuting *r, const struct tbd_assumption *a)
{
    size_t first =
        TBD_COUNT_BEFORE(i, r->hit_count,
                         r->hits[i].address < a->address ||
                             (r->hits[i].address == a->address && r->hits[i].step <= a->from));

    for (size_t i = first;
         i < r->hit_count && r->hits[i].address == a->address && r->hits[i].step < a->to; i++)
        if ((r->hits[i].bytes & a->bytes) != 0)
            return &r->hits[i];
    return NULL;
}

/* What the store's address rests on may be more doubtful than that it did not hit. */
static void refute(const struct refuting *r, const struct tbd_assumption *a, const struct hit *hit)
{
    struct tbd_simulation *sim = r->sim;
    uint32_t why = tbd_sim_why_of(sim, &sim->steps[hit->step]);

    if (why != 0 && why <= sim->assumption_count && sim->assumptions[why - 1].doubt > a->doubt)
        tbd_sim_withdraw(sim, why);
    else
        tbd_sim_bar(sim, a->address, a->from, a->to);
}

void tbd_sim_refute(struct tbd_simulation *sim)
{
    struct refuting r = { .sim = sim };

    if (!enter_words(&r) || !enter_stores(&r))
        sim->no_memory = true;
    for (size_t i = 0; !sim->no_memory && i < sim->assumption_count; i++) {
        const struct tbd_assumption *a = &sim->assumptions[i];
        const struct hit *hit = is_of_memory(a) ? hit_between(&r, a) : NULL;

        if (hit != NULL)
            refute(&r, a, hit);
    }
    free(r.words);
    free(r.hits);
}
