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

#include "base/address_table.h"
#include "base/array.h"
#include "base/binary_search.h"

#include <stdlib.h>
#include <string.h>

/* A store to a word, at an address that is known. */
struct hit {
    uint64_t address;
    uint64_t bits; /* of the word */
    uint32_t step;
};

struct refuting {
    struct tbd_simulation *sim;
    struct tbd_address_table words; /* of key_of() the words about which something is assumed */
    struct hit *hits;               /* owned; by word and step */
    size_t hit_count, hit_capacity;
};

/* ---- words ---- */

/* Never 0, which a table does not take. */
static uint64_t key_of(uint64_t address)
{
    return address + 1;
}

static bool is_of_memory(const struct tbd_assumption *a)
{
    return !a->is_supposed && !a->is_tie;
}

static bool enter_words(struct refuting *r)
{
    const struct tbd_simulation *sim = r->sim;

    for (size_t i = 0; i < sim->assumption_count; i++)
        if (is_of_memory(&sim->assumptions[i]) &&
            !tbd_address_table_add(&r->words, key_of(sim->assumptions[i].address), 0))
            return false;
    return true;
}

/* ---- stores ---- */

static bool enter_hit(struct refuting *r, const struct hit *hit)
{
    if (!tbd_address_table_find(&r->words, key_of(hit->address), 0))
        return true;
    if (!tbd_array_grow(&r->hits, r->hit_count, &r->hit_capacity, sizeof(*r->hits)))
        return false;
    r->hits[r->hit_count++] = *hit;
    return true;
}

static bool enter_store(struct refuting *r, uint32_t step, uint64_t address, unsigned bytes)
{
    const struct tbd_bits all = { 0, UINT64_MAX };

    for (uint64_t at = address & ~7ull; at < address + bytes; at += 8) {
        const struct hit hit = { .address = at,
                                 .bits = tbd_sim_word_part(address, bytes, all, at).known,
                                 .step = step };

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
        if ((r->hits[i].bits & a->bits) != 0)
            return &r->hits[i];
    return NULL;
}

/* What the store's address rests on may be more doubtful than that it did not hit.  Else the word changed at the store: no assumption that
 * crosses it is made any more, while one may begin with what it stored. */
static void refute(const struct refuting *r, const struct tbd_assumption *a, const struct hit *hit)
{
    struct tbd_simulation *sim = r->sim;
    uint32_t why = tbd_sim_why_of(sim, &sim->steps[hit->step]);

    if (why != 0 && why <= sim->assumption_count && sim->assumptions[why - 1].doubt > a->doubt)
        tbd_sim_withdraw(sim, why);
    else
        tbd_sim_bar(sim, a->address, hit->step - 1, hit->step + 1); /* from < step < to */
}

void tbd_sim_refute(struct tbd_simulation *sim)
{
    struct refuting r = { .sim = sim, .words = { .element = sizeof(uint64_t) } };

    if (!enter_words(&r) || !enter_stores(&r))
        sim->no_memory = true;
    for (size_t i = 0; !sim->no_memory && i < sim->assumption_count; i++) {
        const struct tbd_assumption *a = &sim->assumptions[i];
        const struct hit *hit = is_of_memory(a) ? hit_between(&r, a) : NULL;

        if (hit != NULL)
            refute(&r, a, hit);
    }
    tbd_address_table_free(&r.words);
    free(r.hits);
}
