// SPDX-License-Identifier: MIT
/* ledger_private.h - what making a ledger and using it have in common (ledger.c, ledger_words.c) */
#ifndef TBD_REPLAY_SIMULATE_LEDGER_PRIVATE_H
#define TBD_REPLAY_SIMULATE_LEDGER_PRIVATE_H

#include "replay/simulate/simulate_private.h"

#include "base/hash.h"

/* Sets have a bit for each step. */
static inline bool tbd_ledger_has(const uint64_t *set, size_t step)
{
    return set[step / 64] >> step % 64 & 1;
}

static inline void tbd_ledger_set(uint64_t *set, size_t step)
{
    set[step / 64] |= 1ull << step % 64;
}

static inline void tbd_ledger_clear(uint64_t *set, size_t step)
{
    set[step / 64] &= ~(1ull << step % 64);
}

/* Where the number of a word's account is, or would be. */
static inline uint32_t *tbd_ledger_slot(const struct tbd_sim_ledger *ledger, uint64_t address)
{
    size_t at = (size_t)tbd_hash64_mix(address * 0x9e3779b97f4a7c15ull) & (ledger->slot_count - 1);

    while (ledger->slots[at] != 0 && ledger->accounts[ledger->slots[at] - 1].address != address)
        at = (at + 1) & (ledger->slot_count - 1);
    return &ledger->slots[at];
}

/* What an entry says. */
struct tbd_ledger_access {
    uint64_t address;
    struct tbd_bits bits;
    unsigned bytes;
    size_t step; /* where the pass is; of a fact its position */
    bool write;
    bool is_fact;
};

static inline struct tbd_ledger_access tbd_ledger_access_of(const struct tbd_simulation *sim,
                                                            struct tbd_sim_entry entry)
{
    const struct tbd_sim_fact *fact = &sim->facts[entry.at];
    const struct tbd_sim_step *step = &sim->steps[entry.at];
    uint32_t variable;

    if (entry.is_fact)
        return (struct tbd_ledger_access){ .address = fact->address,
                                           .bits = fact->bits,
                                           .bytes = fact->bytes,
                                           .step = fact->position,
                                           .is_fact = true };
    variable = tbd_sim_memory_variable(step, entry.piece);
    return (struct tbd_ledger_access){ .address = sim->addresses[variable].value,
                                       .bits = sim->variables[variable],
                                       .bytes = step->insn->memory[entry.piece].bytes,
                                       .step = entry.at,
                                       .write = step->insn->memory[entry.piece].write };
}

static inline struct tbd_bits tbd_ledger_in_word(const struct tbd_ledger_access *a, uint64_t word)
{
    return tbd_sim_word_part(a->address, a->bytes, a->bits, word);
}

static inline bool tbd_ledger_differ(struct tbd_bits one, struct tbd_bits other)
{
    return ((one.value ^ other.value) & one.known & other.known) != 0;
}

#endif
