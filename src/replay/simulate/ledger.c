// SPDX-License-Identifier: MIT
/* ledger.c - accesses of settled steps, by the words of memory that they are to (simulate_private.h)
 *
 * A settled step has nothing to solve; a pass only takes its memory along.  So it is entered in a ledger: of each word all such accesses,
 * and facts that the caller gave, in their order.  Passes leave entered steps out.  When a step that is not entered asks for a word, the word's
 * entries up to there are made good; those before one that writes all of the word do not matter.  A later entry is looked at when it is asked for, too,
 * or when the pass comes by, if what was found contradicts it: then it is due.
 *
 * LEDGER-1  A pass with a ledger leaves variables, assumptions and bars as one without it does. (not checked: test_simulate_ledger compares
 *     the two)
 * LEDGER-2  An entry that contradicts those before it is due in each pass: contradictions are found where they are. (not checked:
 *     find_conflicts()) */
#include "replay/simulate/ledger.h"
#include "replay/simulate/ledger_private.h"

#include "base/array.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 4096 };

/* ---- accounts ---- */

static bool grow_slots(struct tbd_sim_ledger *ledger)
{
    size_t count = ledger->slot_count ? 2 * ledger->slot_count : FIRST_SLOTS;
    uint32_t *slots = calloc(count, sizeof(*slots));

    if (slots == NULL)
        return false;
    free(ledger->slots);
    ledger->slots = slots;
    ledger->slot_count = count;
    for (size_t i = 0; i < ledger->account_count; i++)
        *tbd_ledger_slot(ledger, ledger->accounts[i].address) = (uint32_t)i + 1;
    return true;
}

/* The number of a word's account, which is opened; UINT32_MAX: no memory. */
static uint32_t open_account(struct tbd_sim_ledger *ledger, uint64_t address)
{
    uint32_t *slot;

    if (2 * ledger->account_count >= ledger->slot_count && !grow_slots(ledger))
        return UINT32_MAX;
    slot = tbd_ledger_slot(ledger, address);
    if (*slot != 0)
        return *slot - 1;
    if (!tbd_array_grow(&ledger->accounts, ledger->account_count, &ledger->account_capacity,
                        sizeof(*ledger->accounts)))
        return UINT32_MAX;
    ledger->accounts[ledger->account_count] = (struct tbd_sim_account){ .address = address };
    *slot = (uint32_t)++ledger->account_count;
    return *slot - 1;
}

/* ---- entering ---- */

/* Entries in their order, each with its account, before they are sorted. */
struct entering {
    struct tbd_simulation *sim;
    struct tbd_sim_ledger *ledger;
    struct tbd_sim_entry *entries; /* owned */
    uint32_t *accounts;            /* owned */
    size_t count, entry_capacity, account_capacity;
    bool no_memory;
};

static void enter(struct entering *e, struct tbd_sim_entry entry, uint64_t address, unsigned bytes)
{
    for (uint64_t at = address & ~7ull; at < address + bytes; at += 8) {
        uint32_t account = open_account(e->ledger, at);

        if (account == UINT32_MAX ||
            !tbd_array_grow(&e->entries, e->count, &e->entry_capacity, sizeof(*e->entries)) ||
            !tbd_array_grow(&e->accounts, e->count, &e->account_capacity, sizeof(*e->accounts))) {
            e->no_memory = true;
            return;
        }
        e->entries[e->count] = entry;
        e->accounts[e->count++] = account;
        e->ledger->accounts[account].count++;
    }
}

static void enter_pieces(struct entering *e, size_t index, bool writes)
{
    const struct tbd_sim_step *step = &e->sim->steps[index];

    for (size_t k = 0; k < step->insn->memory_count; k++)
        if (step->insn->memory[k].write == writes)
            enter(e, (struct tbd_sim_entry){ .at = (uint32_t)index, .piece = (uint8_t)k },
                  e->sim->addresses[tbd_sim_memory_variable(step, k)].value,
                  step->insn->memory[k].bytes);
}

static void enter_facts(struct entering *e, size_t position, size_t *fact)
{
    for (; *fact < e->sim->fact_count && e->sim->facts[*fact].position <= position; ++*fact) {
        const struct tbd_sim_fact *f = &e->sim->facts[*fact];

        if (tbd_sim_fits(f->address, f->bytes))
            enter(e, (struct tbd_sim_entry){ .at = (uint32_t)*fact, .is_fact = true }, f->address,
                  f->bytes);
    }
}

static bool may_enter(const struct tbd_simulation *sim, size_t index, bool exact)
{
    const struct tbd_sim_step *step = &sim->steps[index];

    return (step->settled == TBD_SETTLED_EXACT || (!exact && step->settled > TBD_SETTLED_EXACT)) &&
           !step->unsure && !step->is_interrupted && !tbd_sim_is_part(sim, index);
}

static void enter_all(struct entering *e, bool exact)
{
    size_t fact = 0;

    for (size_t i = 0; i < e->sim->step_count && !e->no_memory; i++) {
        enter_facts(e, i, &fact);
        if (may_enter(e->sim, i, exact)) {
            tbd_ledger_set(e->ledger->entered, i);
            enter_pieces(e, i, false);
            enter_pieces(e, i, true);
        } else if (tbd_sim_has_effect(e->sim, i) && !tbd_sim_is_quiet(e->sim, i)) {
            tbd_ledger_set(e->ledger->always, i);
        }
    }
    enter_facts(e, e->sim->step_count, &fact);
}

/* By accounts; the order of each stays. */
static bool sort(struct entering *e)
{
    struct tbd_sim_ledger *ledger = e->ledger;
    uint32_t first = 0;

    if (e->count >= UINT32_MAX ||
        !tbd_array_reserve(&ledger->entries, e->count + 1, &ledger->entry_capacity,
                           sizeof(*ledger->entries)))
        return false;
    for (size_t i = 0; i < ledger->account_count; i++) {
        ledger->accounts[i].first = first;
        first += ledger->accounts[i].count;
        ledger->accounts[i].count = 0;
    }
    for (size_t i = 0; i < e->count; i++) {
        struct tbd_sim_account *account = &ledger->accounts[e->accounts[i]];

        ledger->entries[account->first + account->count++] = e->entries[i];
    }
    ledger->entry_count = e->count;
    return true;
}

/* ---- what entries say ---- */

static struct tbd_bits joined(struct tbd_bits one, struct tbd_bits other)
{
    uint64_t new = other.known & ~one.known;

    return (struct tbd_bits){ one.value | (other.value & new), one.known | new };
}

/* The entry is due in each pass of a direction. */
static void note_conflict(const struct tbd_simulation *sim, struct tbd_sim_ledger *ledger,
                          struct tbd_sim_entry entry, bool back)
{
    size_t step = entry.at;

    if (entry.is_fact) {
        step = sim->facts[entry.at].position;
        if (step == (back ? sim->step_count : 0))
            return; /* it comes first */
        step -= !back;
        tbd_ledger_set(ledger->conflict_facts[back], step);
    }
    tbd_ledger_set(ledger->conflicts[back], step);
}

/* Entries that contradict what the others say, with no other stores between, or what the word has at all times. */
static void find_conflicts(struct tbd_simulation *sim, struct tbd_sim_ledger *ledger,
                           const struct tbd_sim_account *account)
{
    const struct tbd_sim_entry *entries = &ledger->entries[account->first];
    struct tbd_bits now, constant;

    sim->now = sim->step_count;
    constant = tbd_sim_constant(sim, account->address);
    now = constant;
    for (size_t i = 0; i < account->count; i++) {
        struct tbd_ledger_access a = tbd_ledger_access_of(sim, entries[i]);
        struct tbd_bits bits = tbd_ledger_in_word(&a, account->address);

        now = a.write ? tbd_bits_only(now, ~bits.known) : now;
        if (tbd_ledger_differ(now, bits) || tbd_ledger_differ(constant, bits))
            note_conflict(sim, ledger, entries[i], false);
        now = tbd_ledger_differ(now, bits) ? bits : joined(now, bits);
    }
    now = tbd_sim_at_end(sim, account->address);
    for (size_t i = account->count; i-- > 0;) {
        struct tbd_ledger_access a = tbd_ledger_access_of(sim, entries[i]);
        struct tbd_bits bits = tbd_ledger_in_word(&a, account->address);

        if (tbd_ledger_differ(now, bits) || tbd_ledger_differ(constant, bits))
            note_conflict(sim, ledger, entries[i], true);
        now = tbd_ledger_differ(now, bits) ? bits : joined(now, bits);
        now = a.write ? tbd_bits_only(now, ~bits.known) : now;
    }
}

/* Whatever the word was before, it is the same after an entry that writes all of it. */
static void link_full(const struct tbd_simulation *sim, struct tbd_sim_ledger *ledger,
                      const struct tbd_sim_account *account)
{
    struct tbd_sim_entry *entries = &ledger->entries[account->first];
    uint32_t last = UINT32_MAX;

    for (uint32_t i = 0; i < account->count; i++) {
        struct tbd_ledger_access a = tbd_ledger_access_of(sim, entries[i]);

        entries[i].is_full = a.write && a.bytes == 8 && a.address == account->address;
        last = entries[i].is_full ? i : last;
        entries[i].full_before = last;
    }
    last = UINT32_MAX;
    for (uint32_t i = account->count; i-- > 0;) {
        last = entries[i].is_full ? i : last;
        entries[i].full_after = last;
    }
}

/* Forward, what is written is not compared with what was there before. */
static void note_expected(const struct tbd_simulation *sim, struct tbd_sim_ledger *ledger,
                          const struct tbd_sim_account *account)
{
    struct tbd_sim_entry *entries = &ledger->entries[account->first];
    struct tbd_bits next = { 0, 0 };

    for (uint32_t i = account->count; i-- > 0;) {
        struct tbd_ledger_access a = tbd_ledger_access_of(sim, entries[i]);
        struct tbd_bits bits = tbd_ledger_in_word(&a, account->address);

        next = a.write ? tbd_bits_only(next, ~bits.known) : joined(bits, next);
        entries[i].expected[0] = next;
    }
    next = (struct tbd_bits){ 0, 0 };
    for (uint32_t i = 0; i < account->count; i++) {
        struct tbd_ledger_access a = tbd_ledger_access_of(sim, entries[i]);
        struct tbd_bits bits = tbd_ledger_in_word(&a, account->address);

        next = joined(bits, a.write ? tbd_bits_only(next, ~bits.known) : next);
        entries[i].expected[1] = next;
    }
}

static void look_at_accounts(struct tbd_simulation *sim, struct tbd_sim_ledger *ledger)
{
    for (size_t i = 0; i < ledger->account_count; i++) {
        link_full(sim, ledger, &ledger->accounts[i]);
        note_expected(sim, ledger, &ledger->accounts[i]);
        find_conflicts(sim, ledger, &ledger->accounts[i]);
    }
}

/* ---- making it ---- */

void tbd_sim_ledger_free(struct tbd_sim_ledger *ledger)
{
    free(ledger->entries);
    free(ledger->accounts);
    free(ledger->slots);
    free(ledger->always);
    free(ledger->due);
    free(ledger->due_facts);
    for (unsigned i = 0; i < 2; i++) {
        free(ledger->conflicts[i]);
        free(ledger->conflict_facts[i]);
    }
    free(ledger->entered);
    memset(ledger, 0, sizeof(*ledger));
}

static bool make_sets(struct tbd_sim_ledger *ledger, size_t steps)
{
    uint64_t **sets[] = { &ledger->always,
                          &ledger->due,
                          &ledger->due_facts,
                          &ledger->entered,
                          &ledger->conflicts[0],
                          &ledger->conflicts[1],
                          &ledger->conflict_facts[0],
                          &ledger->conflict_facts[1] };
    bool done = true;

    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
        *sets[i] = calloc(steps / 64 + 1, sizeof(uint64_t));
        done &= *sets[i] != NULL;
    }
    return done;
}

void tbd_sim_use_ledger(struct tbd_simulation *sim, bool exact)
{
    struct tbd_sim_ledger *ledger = &sim->ledgers[exact];

    sim->ledger = !sim->source.others && ledger->always != NULL ? ledger : NULL;
}

void tbd_sim_make_ledger(struct tbd_simulation *sim, bool exact)
{
    struct tbd_sim_ledger *ledger = &sim->ledgers[exact];
    struct entering e = { .sim = sim, .ledger = ledger };

    sim->ledger = NULL;
    tbd_sim_ledger_free(ledger);
    if (sim->source.others || sim->without_ledger)
        return;
    e.no_memory = !make_sets(ledger, sim->step_count);
    if (!e.no_memory)
        enter_all(&e, exact);
    if (!e.no_memory && sort(&e))
        look_at_accounts(sim, ledger);
    else
        tbd_sim_ledger_free(ledger); /* it goes without, too */
    free(e.entries);
    free(e.accounts);
    tbd_sim_use_ledger(sim, exact);
}
