// SPDX-License-Identifier: MIT
/* ledger_words.c - words of memory as entries of a ledger say, when a pass asks for them (ledger.c)
 *
 * Moments are numbered so that both kinds of entries have one: facts at position p 2p + 1, the step s 2s + 2. */
#include "replay/simulate/ledger.h"
#include "replay/simulate/ledger_private.h"

#include "base/binary_search.h"

#include <string.h>

static uint64_t moment_of(const struct tbd_simulation *sim, struct tbd_sim_entry entry)
{
    return entry.is_fact ? 2 * (uint64_t)sim->facts[entry.at].position + 1
                         : tbd_sim_moment_of(entry.at);
}

/* Does a moment come before another one in the pass? */
static bool is_before(const struct tbd_simulation *sim, uint64_t one, uint64_t other)
{
    return sim->goes_back ? one > other : one < other;
}

/* ---- which steps a pass visits ---- */

/* Steps i to i + 63 that are to be visited; `i` is a multiple of 64. */
static uint64_t visits_at(const struct tbd_simulation *sim, size_t i)
{
    return sim->ledger->always[i / 64] | sim->ledger->due[i / 64] |
           (sim->frozen ? 0 : sim->dirty[i / 64]);
}

/* The first step at or after `from`, before `to`, that is to be visited; `to`: none. */
static size_t next_forward(const struct tbd_simulation *sim, size_t from, size_t to)
{
    for (size_t i = from; i < to; i = (i | 63) + 1) {
        uint64_t left = visits_at(sim, i) >> i % 64;

        if (left != 0)
            return i + (size_t)__builtin_ctzll(left) < to ? i + (size_t)__builtin_ctzll(left) : to;
    }
    return to;
}

/* The last one before `to`, at or after `from`; SIZE_MAX: none. */
static size_t next_back(const struct tbd_simulation *sim, size_t from, size_t to)
{
    for (size_t end = to; end > from; end = (end - 1) & ~(size_t)63) {
        size_t i = end - 1;
        uint64_t left = visits_at(sim, i) << (63 - i % 64);

        if (left != 0) {
            i -= (size_t)__builtin_clzll(left);
            return i >= from ? i : SIZE_MAX;
        }
    }
    return SIZE_MAX;
}

size_t tbd_sim_next_visit(const struct tbd_simulation *sim, size_t from, size_t to, bool forward)
{
    size_t next = forward ? next_forward(sim, from, to) : next_back(sim, from, to);

    return forward && next == to ? SIZE_MAX : next;
}

/* ---- making entries good ---- */

/* The entry comes when the pass is there. */
static void make_due(struct tbd_simulation *sim, struct tbd_sim_entry entry)
{
    struct tbd_sim_ledger *ledger = sim->ledger;
    size_t step = entry.at;

    if (entry.is_fact) {
        step = sim->facts[entry.at].position - !sim->goes_back;
        tbd_ledger_set(ledger->due_facts, step);
    }
    tbd_ledger_set(ledger->due, step);
}

/* How many unknown stores came before the moment. */
static size_t stores_before(const struct tbd_simulation *sim, uint64_t moment)
{
    const struct tbd_image *image = &sim->image;

    return TBD_COUNT_BEFORE(i, image->store_count,
                            is_before(sim, tbd_sim_moment_of(image->stores[i].step), moment));
}

/* Ranges that system calls replaced before it. */
static size_t ranges_before(const struct tbd_simulation *sim, uint64_t moment)
{
    const struct tbd_image *image = &sim->image;

    return TBD_COUNT_BEFORE(i, image->replaced_count,
                            is_before(sim, tbd_sim_moment_of(image->replaced[i].step), moment));
}

static size_t now_at(const struct tbd_simulation *sim, const struct tbd_ledger_access *a)
{
    return a->step - (a->is_fact && !sim->goes_back && a->step > 0);
}

static void apply(struct tbd_simulation *sim, struct tbd_image_word *word,
                  const struct tbd_ledger_access *a)
{
    const struct tbd_sim_step *step = &sim->steps[a->step];
    uint32_t why = !a->is_fact && step->settled > TBD_SETTLED_EXACT ? tbd_sim_why_of(sim, step) : 0;
    struct tbd_bits bits = tbd_ledger_in_word(a, word->address);

    if (a->write && !sim->goes_back)
        tbd_sim_erase_in(sim, word, bits.known);
    tbd_sim_remember_in(sim, a->step, word, bits, why);
    if (a->write && sim->goes_back)
        tbd_sim_erase_in(sim, word, bits.known);
}

/* The word as it was at the moment, which now becomes that of the pass: `ranges` of those replaced are past. */
struct replay {
    struct tbd_simulation *sim;
    struct tbd_image_word *word;
    size_t ranges;
};

static void replace_until(struct replay *r, uint64_t moment)
{
    struct tbd_image *image = &r->sim->image;
    size_t stores = image->store_count;

    for (; r->ranges < image->replaced_count; r->ranges++) {
        const struct tbd_image_range *range = &image->replaced[r->ranges];

        if (!is_before(r->sim, tbd_sim_moment_of(range->step), moment))
            break;
        r->sim->now = range->step;
        image->store_count = stores_before(r->sim, tbd_sim_moment_of(range->step));
        if (r->word->address >= range->from && r->word->address < range->to)
            tbd_image_replace_word(image, r->word);
        image->store_count = stores;
    }
}

static struct tbd_sim_entry entry_at(const struct tbd_simulation *sim,
                                     const struct tbd_sim_account *account, uint32_t done)
{
    return sim->ledger
        ->entries[account->first + (sim->goes_back ? account->count - 1 - done : done)];
}

/* How many of the account's entries come before the moment, of which `done` are known to. */
static uint32_t entries_before(const struct tbd_simulation *sim,
                               const struct tbd_sim_account *account, uint32_t done,
                               uint64_t moment)
{
    uint32_t step = 1;

    while (done + step <= account->count &&
           is_before(sim, moment_of(sim, entry_at(sim, account, done + step - 1)), moment)) {
        done += step;
        step *= 2;
    }
    step = step <= account->count - done ? step : account->count - done;
    return done +
           (uint32_t)TBD_COUNT_BEFORE(
               i, step,
               is_before(sim, moment_of(sim, entry_at(sim, account, done + (uint32_t)i)), moment));
}

/* Leaves out entries before `to` that do not count, because a later one writes all of the word.  False: there are none. */
static bool skip(const struct tbd_simulation *sim, struct tbd_image_word *word, uint32_t to)
{
    const struct tbd_sim_account *account = &sim->ledger->accounts[word->account - 1];
    struct tbd_sim_entry last;
    uint32_t full;

    if (word->done == to)
        return false;
    last = entry_at(sim, account, to - 1);
    full = sim->goes_back ? last.full_after : last.full_before;
    if (full == UINT32_MAX)
        return false;
    full = sim->goes_back ? account->count - 1 - full : full;
    if (full <= word->done)
        return false;
    word->done = full;
    word->bits = (struct tbd_bits){ 0, 0 };
    word->doubt = 0;
    word->why = 0;
    return true;
}

/* If what the word knows contradicts one of the next entries, that one is due. */
void tbd_sim_look_ahead(struct tbd_simulation *sim, const struct tbd_image_word *word)
{
    const struct tbd_sim_account *account =
        word->account == 0 ? NULL : &sim->ledger->accounts[word->account - 1];
    struct tbd_bits bits = word->bits;

    if (account == NULL || sim->frozen) /* frozen: no contradiction counts */
        return;
    for (uint32_t n = word->done; n < account->count; n++) {
        struct tbd_sim_entry entry = entry_at(sim, account, n);
        struct tbd_ledger_access a;
        struct tbd_bits part;

        if (!tbd_ledger_differ(bits, entry.expected[sim->goes_back]))
            return;
        a = tbd_ledger_access_of(sim, entry);
        part = tbd_ledger_in_word(&a, word->address);
        if ((sim->goes_back || !a.write) && tbd_ledger_differ(bits, part)) {
            make_due(sim, entry);
            return;
        }
        if (a.write)
            bits = tbd_bits_only(bits, ~part.known);
    }
}

/* Makes its entries good up to where the pass is. */
static void catch_up(struct replay *r)
{
    struct tbd_simulation *sim = r->sim;
    struct tbd_image_word *word = r->word;
    const struct tbd_sim_account *account = &sim->ledger->accounts[word->account - 1];
    uint32_t to = entries_before(sim, account, word->done, sim->moment);
    size_t now = sim->now, stores = sim->image.store_count;

    skip(sim, word, to);
    for (; word->done < to; word->done++) {
        struct tbd_sim_entry entry = entry_at(sim, account, word->done);
        uint64_t moment = moment_of(sim, entry);
        struct tbd_ledger_access a = tbd_ledger_access_of(sim, entry);

        replace_until(r, moment);
        sim->image.store_count = stores_before(sim, moment);
        sim->now = now_at(sim, &a);
        apply(sim, word, &a);
        sim->image.store_count = stores;
    }
    replace_until(r, sim->moment);
    sim->now = now;
}

/* The first entry since memory was forgotten last. */
static uint32_t first_entry(const struct tbd_simulation *sim, const struct tbd_sim_account *account)
{
    return sim->image.forgotten == 0
               ? 0
               : (uint32_t)TBD_COUNT_BEFORE(
                     i, account->count,
                     !is_before(sim, sim->image.forgotten,
                                moment_of(sim, entry_at(sim, account, (uint32_t)i))));
}

/* What the word was when the first entry that counts came, or is now. */
static void begin_word(struct replay *r)
{
    struct tbd_simulation *sim = r->sim;
    struct tbd_image_word *word = r->word;
    size_t now = sim->now;
    bool skipped = false;

    r->ranges = sim->image.replaced_count;
    word->account = *tbd_ledger_slot(sim->ledger, word->address);
    if (word->account != 0) {
        const struct tbd_sim_account *account = &sim->ledger->accounts[word->account - 1];
        uint32_t to;

        word->done = first_entry(sim, account);
        to = entries_before(sim, account, word->done, sim->moment);
        skipped = skip(sim, word, to);
        if (word->done < to) {
            struct tbd_sim_entry entry = entry_at(sim, account, word->done);
            struct tbd_ledger_access a = tbd_ledger_access_of(sim, entry);

            r->ranges = ranges_before(sim, moment_of(sim, entry));
            sim->now = now_at(sim, &a);
        }
    }
    if (!skipped)
        word->bits = tbd_image_first(&sim->image, word->address, r->ranges);
    sim->now = now;
}

void tbd_sim_catch_up(struct tbd_simulation *sim, struct tbd_image_word *word)
{
    struct replay r = { .sim = sim, .word = word, .ranges = sim->image.replaced_count };

    if (word->account != 0)
        catch_up(&r);
}

struct tbd_image_word *tbd_sim_word(struct tbd_simulation *sim, uint64_t address)
{
    struct replay r = { .sim = sim, .ranges = sim->image.replaced_count };
    bool is_new;

    r.word = tbd_image_place(&sim->image, address, &is_new);
    if (r.word == NULL)
        return NULL;
    if (is_new && (sim->ledger == NULL || sim->ledger->account_count == 0 || address >> 63 != 0))
        r.word->bits = tbd_image_first(&sim->image, address, r.ranges);
    else if (is_new)
        begin_word(&r);
    if (r.word->account != 0)
        catch_up(&r);
    return r.word;
}

/* ---- what is due ---- */

/* An entry of the word is due between the moment where the pass is and `next`; `anyway`: although nobody asked for the word. */
static void take_word(struct tbd_simulation *sim, uint64_t address, uint64_t next, bool anyway)
{
    uint64_t moment = sim->moment;
    struct tbd_image_word *word;

    if (!anyway && !tbd_image_has(&sim->image, address))
        return;
    word = tbd_sim_word(sim, address); /* as it was before: it is compared with that */
    if (word == NULL)
        return;
    sim->moment = next;
    tbd_sim_catch_up(sim, word);
    tbd_sim_look_ahead(sim, word);
    sim->moment = moment;
}

static void take_words(struct tbd_simulation *sim, uint64_t address, unsigned bytes, uint64_t next,
                       bool anyway)
{
    for (uint64_t at = address & ~7ull; at < address + bytes; at += 8)
        take_word(sim, at, next, anyway);
}

bool tbd_sim_take_due(struct tbd_simulation *sim, size_t index)
{
    const struct tbd_sim_step *step = &sim->steps[index];
    bool anyway = tbd_ledger_has(sim->ledger->conflicts[sim->goes_back], index);
    bool is_due = tbd_ledger_has(sim->ledger->due, index);

    tbd_ledger_clear(sim->ledger->due, index);
    if (!tbd_ledger_has(sim->ledger->entered, index))
        return false;
    sim->moment = tbd_sim_moment_of(index);
    for (size_t k = 0; is_due && k < step->insn->memory_count; k++)
        take_words(sim, sim->addresses[tbd_sim_memory_variable(step, k)].value,
                   step->insn->memory[k].bytes, sim->moment + 1 - 2 * sim->goes_back, anyway);
    return true;
}

void tbd_sim_take_due_facts(struct tbd_simulation *sim, size_t index)
{
    size_t position = index + !sim->goes_back;
    bool anyway = tbd_ledger_has(sim->ledger->conflict_facts[sim->goes_back], index);

    if (!tbd_ledger_has(sim->ledger->due_facts, index))
        return;
    tbd_ledger_clear(sim->ledger->due_facts, index);
    sim->moment = 2 * (uint64_t)position + 1;
    for (size_t i = tbd_sim_first_fact(sim, position);
         i < sim->fact_count && sim->facts[i].position == position; i++)
        take_words(sim, sim->facts[i].address, sim->facts[i].bytes,
                   sim->moment + 1 - 2 * sim->goes_back, anyway);
}

void tbd_sim_begin_ledger(struct tbd_simulation *sim)
{
    struct tbd_sim_ledger *ledger = sim->ledger;
    size_t bytes = (sim->step_count / 64 + 1) * sizeof(uint64_t);

    if (ledger == NULL || sim->frozen)
        return;
    memcpy(ledger->due, ledger->conflicts[sim->goes_back], bytes);
    memcpy(ledger->due_facts, ledger->conflict_facts[sim->goes_back], bytes);
}

void tbd_sim_set_moment(struct tbd_simulation *sim, size_t position, bool at_step)
{
    sim->moment = tbd_sim_moment_of(position);
    if (!at_step && sim->goes_back)
        sim->moment -= 2;
}
