// SPDX-License-Identifier: MIT
/* reasons.c - see reasons.h */
#include "reasons.h"

#include "replay/simulate/dry.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LINES_MOST = 40,
    NEIGHBOURS_MOST = 10, /* of the first roots it is said which stores are in the way */
    STORERS = 64,         /* instructions that are told apart */
};

/* Why nobody knows what the step loads or computes. */
static const char *reason(const struct tbd_simulation *sim, size_t step)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);
    bool loads = false;

    if (insn->kind == TBD_INSN_SYSCALL)
        return "a system call";
    if (insn->kind != TBD_INSN_PLAIN)
        return "not in the table";
    if (!tbd_simulation_ran(sim, step))
        return "run in part";
    for (size_t k = 0; k < insn->memory_count; k++) {
        if (insn->memory[k].write)
            continue;
        loads = true;
        if (!tbd_bits_full(tbd_simulation_address(sim, step, k).bits))
            return "load from somewhere";
    }
    return loads ? "load of what was changed since" : "not solved";
}

/* ---- what is in the way of a load whose address is known ---- */

/* Stores to unknown addresses between the load and what is known of its word, by their instructions. */
struct way {
    uint64_t at[STORERS];
    size_t times[STORERS];
    size_t count, stores, same_field;
};

static void enter_store(struct way *way, const struct tbd_sim_insn *insn, uint8_t field)
{
    size_t i = 0;

    way->stores++;
    way->same_field += field != 0 && insn->field == field;
    while (i < way->count && way->at[i] != insn->address)
        i++;
    if (i == STORERS)
        return;
    if (i == way->count)
        way->at[way->count++] = insn->address;
    way->times[i]++;
}

/* Does the step say what the word has?  Else it may be in the way. */
static bool says(const struct tbd_simulation *sim, size_t step, uint64_t word, uint8_t field,
                 struct way *way)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);
    bool is_in_the_way = insn->barrier || !tbd_simulation_ran(sim, step);

    for (size_t k = 0; k < insn->memory_count; k++) {
        struct tbd_bits at = tbd_simulation_address(sim, step, k).bits;

        if (tbd_bits_full(at) && at.value + insn->memory[k].bytes > word && at.value < word + 8 &&
            tbd_bits_full(tbd_simulation_data(sim, step, k).bits))
            return true;
        is_in_the_way |= insn->memory[k].write && !tbd_bits_full(at);
    }
    if (is_in_the_way)
        enter_store(way, insn, field);
    return false;
}

static void print_way(const struct tbd_simulation *sim, size_t step, uint64_t word, uint8_t field,
                      bool forward)
{
    size_t count = tbd_simulation_counts(sim).steps, at = step, most = 0;
    struct way way = { .count = 0 };

    do
        at += forward ? 1 : (size_t)-1;
    while (at < count && !says(sim, at, word, field, &way));
    for (size_t i = 1; i < way.count; i++)
        most = way.times[i] > way.times[most] ? i : most;
    fprintf(stderr, "  %#" PRIx64 " is %sknown %s", word, at < count || forward ? "" : "not ",
            forward ? "later" : "earlier");
    if (at < count)
        fprintf(stderr, ", at step %zu", at);
    else if (forward)
        fputs(", at the end", stderr);
    fprintf(stderr, "; over %zu stores, %zu of the same field", way.stores, way.same_field);
    for (size_t i = 0; i < way.count; i++)
        if (i == most || way.count <= 4)
            fprintf(stderr, ", %zu by %#" PRIx64, way.times[i], way.at[i]);
    fputc('\n', stderr);
}

static void print_ways(const struct tbd_simulation *sim, size_t step)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);

    for (size_t k = 0; k < insn->memory_count; k++) {
        struct tbd_bits at = tbd_simulation_address(sim, step, k).bits;

        if (insn->memory[k].write || !tbd_bits_full(at) ||
            tbd_bits_full(tbd_simulation_data(sim, step, k).bits))
            continue;
        print_way(sim, step, at.value & ~7ull, insn->field, true);
        print_way(sim, step, at.value & ~7ull, insn->field, false);
    }
}

void reasons_of_unknown(const struct tbd_simulation *sim, size_t from)
{
    struct tbd_sim_root *roots;
    size_t count;

    if (tbd_simulation_roots(sim, from, &roots, &count) != TBD_OK)
        return;
    for (size_t i = 0; i < count && i < LINES_MOST; i++) {
        const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, roots[i].step);

        if (insn == NULL || roots[i].address == 0)
            fprintf(stderr, "why: %zu older\n", roots[i].uses);
        else
            fprintf(stderr, "why: %zu step %zu at %#" PRIx64 " %s: %s\n", roots[i].uses,
                    roots[i].step, roots[i].address,
                    ZydisMnemonicGetString((ZydisMnemonic)insn->mnemonic),
                    reason(sim, roots[i].step));
        if (insn != NULL && roots[i].address != 0 && i < NEIGHBOURS_MOST)
            print_ways(sim, roots[i].step);
    }
    free(roots);
}

void reasons_of_wrong(const struct tbd_simulation *sim, size_t step, size_t place,
                      struct tbd_simulated said, uint64_t is)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);
    struct tbd_assumption a;
    uint32_t why = said.why;

    fprintf(stderr,
            "wrong: step %zu at %#" PRIx64 " %s, %s %zu: %#" PRIx64 "/%#" PRIx64 " is %#" PRIx64
            "\n",
            step, insn->address, ZydisMnemonicGetString((ZydisMnemonic)insn->mnemonic),
            place < TBD_PLACE_COUNT ? "place" : "memory", place % TBD_PLACE_COUNT, said.bits.value,
            said.bits.known, is);
    for (; tbd_simulation_assumption(sim, why, &a); why = a.parent)
        fprintf(stderr,
                "  %#" PRIx64 " as from step %" PRIu32 " to %" PRIu32 ", over %" PRIu32
                " stores, one of step %" PRIu32 "\n",
                a.address, a.from, a.to, a.stores, a.store);
}

/* ---- what inferred values rest on ---- */

enum { STORES_CLASSES = 6, KINDS = 4 };

/* The assumption over the most stores that a value rests on says its row, the most doubtful one its column. */
static struct {
    size_t right, wrong;
} inferred[STORES_CLASSES][KINDS];

static const struct {
    uint32_t most;
    const char *text;
} stores_classes[STORES_CLASSES] = { { 1, "1" },       { 10, "10" },       { 100, "100" },
                                     { 1000, "1000" }, { 10000, "10000" }, { UINT32_MAX, "more" } };

static unsigned class_of(uint32_t stores)
{
    unsigned at = 0;

    while (stores > stores_classes[at].most)
        at++;
    return at;
}

static const char *const kinds[KINDS] = { "saved registers", "other words", "left stack",
                                          "doubtful" };

static unsigned kind_of(uint32_t doubt)
{
    return doubt < 1u << 30 ? 0 : doubt < 1u << 31 ? 1 : doubt != UINT32_MAX ? 2 : 3;
}

void reasons_count_inferred(const struct tbd_simulation *sim, uint32_t why, bool right)
{
    uint32_t stores = 0, doubt = 0;
    struct tbd_assumption a;

    for (; tbd_simulation_assumption(sim, why, &a); why = a.parent) {
        if (stores < a.stores)
            stores = a.stores;
        if (doubt < a.doubt)
            doubt = a.doubt;
    }
    if (right)
        inferred[class_of(stores)][kind_of(doubt)].right++;
    else
        inferred[class_of(stores)][kind_of(doubt)].wrong++;
}

void reasons_of_inferred(void)
{
    for (unsigned row = 0; row < STORES_CLASSES; row++)
        for (unsigned kind = 0; kind < KINDS; kind++)
            if (inferred[row][kind].right + inferred[row][kind].wrong != 0)
                fprintf(stderr, "inferred: stores up to %s, %s: %zu right, %zu wrong\n",
                        stores_classes[row].text, kinds[kind], inferred[row][kind].right,
                        inferred[row][kind].wrong);
}
