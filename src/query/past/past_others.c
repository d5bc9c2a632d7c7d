// SPDX-License-Identifier: MIT
/* past_others.c - see past_others.h
 *
 * PAST_OTHERS-1  Ranges are sorted by their beginnings; `reach` of each is the largest end of it and all before it. */
#include "query/past/past_others.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/binary_search.h"
#include "query/past/past.h"

#include <stdlib.h>

enum {
    INSNS = 20000,      /* of a thread, */
    INSNS_ALL = 100000, /* of all threads together, */
    INSNS_LEAST = 500,  /* but at least as many of each */
    NEAR = 64,          /* bytes between words of one instruction that belong together */
};

/* A word that an instruction stored to. */
struct stored_word {
    uint64_t pc, word;
};

struct theirs {
    uint64_t from, to, reach;
    uint32_t thread;
};

struct tbd_past_others {
    struct theirs *ranges; /* owned */
    size_t count, capacity;
};

/* ---- one thread ---- */

struct stored_words {
    struct stored_word *all; /* owned */
    size_t count, capacity;
};

static bool add_stored(struct stored_words *stores, uint64_t pc, uint64_t address, unsigned bytes)
{
    for (uint64_t word = address & ~7ull; word < address + bytes; word += 8) {
        if (!tbd_array_grow(&stores->all, stores->count, &stores->capacity, sizeof(*stores->all)))
            return false;
        stores->all[stores->count++] = (struct stored_word){ pc, word };
    }
    return true;
}

/* Not what it saved on its stack, which is its own. */
static bool add_step(struct stored_words *stores, const struct tbd_simulation *sim, size_t step)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);

    for (size_t k = 0; !insn->saves && k < insn->memory_count; k++) {
        const struct tbd_insn_memory *memory = &insn->memory[k];
        struct tbd_bits at = memory->write && !memory->range
                                 ? tbd_simulation_address(sim, step, k).bits
                                 : (struct tbd_bits){ 0, 0 };

        if (tbd_bits_full(at) && at.value < UINT64_MAX - 64 &&
            !add_stored(stores, insn->address, at.value, memory->bytes))
            return false;
    }
    return true;
}

static int by_insn(const void *one, const void *other)
{
    const struct stored_word *a = one, *b = other;

    if (a->pc != b->pc)
        return a->pc < b->pc ? -1 : 1;
    return (a->word > b->word) - (a->word < b->word);
}

static bool add_ranges(struct tbd_past_others *others, struct stored_words *stores, uint32_t thread)
{
    if (stores->count > 0)
        qsort(stores->all, stores->count, sizeof(*stores->all), by_insn);
    for (size_t i = 0, next; i < stores->count; i = next) {
        for (next = i + 1; next < stores->count && stores->all[next].pc == stores->all[i].pc &&
                           stores->all[next].word <= stores->all[next - 1].word + NEAR;)
            next++;
        if (!tbd_array_grow(&others->ranges, others->count, &others->capacity,
                            sizeof(*others->ranges)))
            return false;
        others->ranges[others->count++] = (struct theirs){ .from = stores->all[i].word,
                                                           .to = stores->all[next - 1].word + 8,
                                                           .thread = thread };
    }
    return true;
}

static uint64_t insns_of_each(uint64_t threads)
{
    uint64_t insns = INSNS_ALL / threads;

    return insns > INSNS ? INSNS : insns < INSNS_LEAST ? INSNS_LEAST : insns;
}

/* A thread whose values cannot be computed has none that are known. */
static enum tbd_status look_at(struct tbd_past_others *others, struct tbd_session *session,
                               struct tbd_rings *ring, uint32_t number)
{
    struct tbd_rings_thread *thread = &ring->threads[number];
    /* a round more or less of a loop stores to the same array */
    struct tbd_past_reach reach = { .begins_last = true };
    struct stored_words stores = { .all = NULL };
    enum tbd_status status;
    struct tbd_past *past;

    if (thread->count == 0 || thread->after != 0)
        return TBD_OK;
    if (tbd_rings_steps(ring, thread) == NULL)
        return TBD_NOMEM;
    reach.step = tbd_past_step_before(thread, thread->count - 1,
                                      insns_of_each(ring->dump.head->thread_count));
    status = tbd_past_new(session, ring, thread, &reach, &past);
    if (status != TBD_OK)
        return status == TBD_NOMEM ? status : TBD_OK;
    for (size_t step = 0; status == TBD_OK && tbd_simulation_insn(past->sim, step) != NULL; step++)
        status = add_step(&stores, past->sim, step) ? TBD_OK : TBD_NOMEM;
    if (status == TBD_OK && !add_ranges(others, &stores, number))
        status = TBD_NOMEM;
    free(stores.all);
    tbd_past_free(past);
    return status;
}

/* ---- all of them ---- */

static int by_beginning(const void *one, const void *other)
{
    const struct theirs *a = one, *b = other;

    return (a->from > b->from) - (a->from < b->from);
}

static void sort(struct tbd_past_others *others)
{
    uint64_t reach = 0;

    if (others->count > 0)
        qsort(others->ranges, others->count, sizeof(*others->ranges), by_beginning);
    for (size_t i = 0; i < others->count; i++) {
        reach = others->ranges[i].to > reach ? others->ranges[i].to : reach;
        others->ranges[i].reach = reach;
    }
}

enum tbd_status tbd_past_others_new(struct tbd_session *session, struct tbd_rings *ring,
                                    struct tbd_past_others **out)
{
    uint32_t threads = ring->dump.head->thread_count;
    enum tbd_status status = TBD_OK;

    *out = NULL;
    if (threads < 2)
        return TBD_OK;
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return TBD_NOMEM;
    for (uint32_t i = 0; status == TBD_OK && i < threads; i++)
        status = look_at(*out, session, ring, i);
    sort(*out);
    if (status != TBD_OK) {
        tbd_past_others_free(*out);
        *out = NULL;
    }
    return status;
}

void tbd_past_others_free(struct tbd_past_others *others)
{
    if (others == NULL)
        return;
    free(others->ranges);
    free(others);
}

bool tbd_past_others_store(const struct tbd_past_others *others, uint32_t own, uint64_t address)
{
    size_t at = others == NULL
                    ? 0
                    : TBD_COUNT_BEFORE(i, others->count, others->ranges[i].from < address + 8);

    while (at > 0 && others->ranges[at - 1].reach > address) {
        const struct theirs *range = &others->ranges[--at];

        TBD_INVARIANT("PAST_OTHERS-1", range->from < address + 8);
        if (range->to > address && range->thread != own)
            return true;
    }
    return false;
}
