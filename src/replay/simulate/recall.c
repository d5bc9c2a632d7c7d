// SPDX-License-Identifier: MIT
/* recall.c - memory as the steps of a pass know it, and the assumptions about it (simulate_private.h)
 *
 * In phase one a store to an unknown address makes the image forget what it may have changed.  In phase two that is only in doubt:
 * what is then recalled across it rests on an assumption, unless a bar says that the word changed in between. */
#include "replay/simulate/simulate_private.h"

#include "base/array.h"
#include "base/hash.h"

enum {
    STORES_MOST = 1024,  /* a word is compared with as many; after more, all of it is in doubt */
    MANY_STORES = 1000,  /* an instruction among more that is known to store to the word hit it */
    FAR_STEPS = 1 << 18, /* an assumption over more is withdrawn by half, if a longer one was */
};

/* What is assumed of a word while a register is saved there is the least doubtful, then that of other words, then that of a
 * word that lay outside of all frames between. */
static const uint32_t doubt_dead = 1u << 31;

struct tbd_bits tbd_sim_constant(void *arg, uint64_t address)
{
    const struct tbd_simulation *sim = arg;
    const struct tbd_simulation_source *source = &sim->source;
    struct tbd_bits bits = { 0, 0 };

    if (address >> 63 != 0)
        return bits;
    if (source->constant)
        bits = source->constant(source->arg, address);
    if (!tbd_bits_full(bits) && source->fixed_since && source->final &&
        source->fixed_since(source->arg, address) <= sim->now)
        bits = source->final(source->arg, address);
    return bits;
}

static uint32_t *bar_list(struct tbd_simulation *sim, uint64_t address)
{
    return &sim->bar_lists[tbd_hash64_mix(address * 0x9e3779b97f4a7c15ull) % TBD_BAR_LISTS];
}

bool tbd_sim_is_barred(struct tbd_simulation *sim, uint64_t address, uint32_t one, uint32_t other)
{
    uint32_t from = one < other ? one : other, to = one < other ? other : one;

    for (uint32_t at = *bar_list(sim, address); at != 0; at = sim->bars[at - 1].next) {
        const struct tbd_sim_bar *bar = &sim->bars[at - 1];

        if (bar->address == address && bar->from >= from && bar->to <= to)
            return true;
    }
    return false;
}

void tbd_sim_bar(struct tbd_simulation *sim, uint64_t address, uint32_t one, uint32_t other)
{
    uint32_t *list = bar_list(sim, address);

    if (sim->frozen || tbd_sim_is_barred(sim, address, one, other))
        return;
    if (!tbd_array_grow(&sim->bars, sim->bar_count, &sim->bar_capacity, sizeof(*sim->bars))) {
        sim->no_memory = true;
        return;
    }
    sim->bars[sim->bar_count] = (struct tbd_sim_bar){ .address = address,
                                                      .from = one < other ? one : other,
                                                      .to = one < other ? other : one,
                                                      .next = *list };
    *list = (uint32_t)++sim->bar_count;
}

/* The one that rests on more: 0 is certain. */
uint32_t tbd_sim_weaker(const struct tbd_simulation *sim, uint32_t one, uint32_t other)
{
    if (one == 0 || other == 0 || one > sim->assumption_count || other > sim->assumption_count)
        return one != 0 ? one : other;
    return sim->assumptions[other - 1].doubt > sim->assumptions[one - 1].doubt ? other : one;
}

/* If a longer assumption of the word from the same end on was withdrawn before, the next one would be only a little shorter: half of it
 * is barred. */
static void bar_half(struct tbd_simulation *sim, const struct tbd_assumption *a)
{
    uint32_t middle = a->from + (a->to - a->from) / 2;

    for (uint32_t at = *bar_list(sim, a->address); at != 0; at = sim->bars[at - 1].next) {
        const struct tbd_sim_bar *bar = &sim->bars[at - 1];
        bool same_to = bar->to == a->to && bar->from < a->from;
        bool same_from = bar->from == a->from && bar->to > a->to;

        if (bar->address != a->address || (!same_to && !same_from))
            continue;
        tbd_sim_bar(sim, a->address, same_to ? middle : a->from, same_to ? a->to : middle);
        return;
    }
}

void tbd_sim_withdraw(struct tbd_simulation *sim, uint32_t why)
{
    const struct tbd_assumption *assumption;

    if (why == 0 || why > sim->assumption_count)
        return;
    assumption = &sim->assumptions[sim->assumptions[why - 1].weakest - 1];
    if (assumption->to - assumption->from >= FAR_STEPS &&
        !tbd_sim_is_barred(sim, assumption->address, assumption->from, assumption->to))
        bar_half(sim, assumption);
    tbd_sim_bar(sim, assumption->address, assumption->from, assumption->to);
}

/* Does the step save or restore a register, or its return address? */
static bool is_saving(const struct tbd_simulation *sim, size_t step)
{
    return step < sim->step_count && sim->steps[step].insn->saves;
}

/* How doubtful it is that none of the stores between hit the word. */
static uint32_t doubt_of(const struct tbd_simulation *sim, size_t step,
                         const struct tbd_image_word *word)
{
    uint32_t stores = word->stores < TBD_SIM_DOUBT_OTHER ? word->stores : TBD_SIM_DOUBT_OTHER - 1;

    if (tbd_sim_was_dead(sim, word->address, word->step, step))
        return is_saving(sim, step) ? UINT32_MAX : doubt_dead + stores;
    return is_saving(sim, step) ? stores : TBD_SIM_DOUBT_OTHER + stores;
}

/* Is it the one that was asked last?  Then it has its number. */
static bool is_last_asked(const struct tbd_simulation *sim, const struct tbd_assumption *a)
{
    const struct tbd_assumption *last;

    if (!sim->asked_count)
        return false;
    last = sim->asked + sim->asked_count - 1;
    return last->address == a->address && last->from == a->from && last->to == a->to &&
           last->bits == a->bits;
}

/* Assumptions of answers have numbers of their own: those of the passes do not change any more.  0: no memory. */
static uint32_t note_asked(struct tbd_simulation *sim, const struct tbd_assumption *a)
{
    if (!is_last_asked(sim, a)) {
        if (sim->asked_count >= TBD_SIM_ASKED_MOST ||
            !tbd_array_grow(&sim->asked, sim->asked_count, &sim->asked_capacity,
                            sizeof(*sim->asked)))
            return 0;
        sim->asked[sim->asked_count++] = *a;
    }
    return TBD_SIM_ASKED + (uint32_t)sim->asked_count - 1;
}

/* That these bits of the word are as they were. */
static uint32_t assume(struct tbd_simulation *sim, size_t step, const struct tbd_image_word *word,
                       uint64_t bits)
{
    uint32_t number = (uint32_t)sim->assumption_count + 1;
    struct tbd_assumption new;

    if (sim->frozen && !sim->asks)
        return word->why;
    new = (struct tbd_assumption){ .address = word->address,
                                   .from = word->step < step ? word->step : (uint32_t)step,
                                   .to = word->step < step ? (uint32_t)step : word->step,
                                   .store = word->store,
                                   .stores = word->stores,
                                   .parent = word->why,
                                   .doubt = doubt_of(sim, step, word),
                                   .weakest = number,
                                   .bits = bits };
    if (word->why != 0 && sim->assumptions[word->why - 1].doubt > new.doubt) {
        new.doubt = sim->assumptions[word->why - 1].doubt;
        new.weakest = sim->assumptions[word->why - 1].weakest;
    }
    if (sim->frozen)
        return note_asked(sim, &new);
    if (!tbd_array_grow(&sim->assumptions, sim->assumption_count, &sim->assumption_capacity,
                        sizeof(*sim->assumptions)))
        return word->why;
    sim->assumptions[sim->assumption_count++] = new;
    return number;
}

/* ---- stores between ---- */

/* Bits that are not known any more may still be the same at all times. */
static void drop(struct tbd_simulation *sim, struct tbd_image_word *word, uint64_t mask)
{
    struct tbd_bits constant = tbd_sim_constant(sim, word->address);
    uint64_t new = constant.known &mask;

    word->bits = tbd_bits_only(word->bits, ~mask);
    word->bits.value |= constant.value & new;
    word->bits.known |= new;
    word->doubt &= ~mask;
}

static void doubt(struct tbd_simulation *sim, struct tbd_image_word *word, uint64_t changed,
                  const struct tbd_image_store *store)
{
    changed &= word->bits.known;
    if (changed == 0)
        return;
    if (!sim->infers) {
        drop(sim, word, changed);
        return;
    }
    if (word->doubt == 0) {
        word->stores = 0;
        word->fields = 0;
        word->has_byte = false;
        word->crossed = false;
    }
    word->stores++;
    word->fields |= 1ull << store->field;
    word->has_byte |= store->bytes == 1;
    word->store = store->step;
    word->doubt |= changed;
}

/* Compares the word with the unknown stores since it became known. */
static void look_at_stores(struct tbd_simulation *sim, struct tbd_image_word *word)
{
    const struct tbd_image *image = &sim->image;
    uint32_t count = (uint32_t)image->store_count;

    if (word->bits.known == 0)
        word->counter = count;
    if (word->counter == count)
        return;
    if (word->counter < image->stores[count - 1].anything || count - word->counter > STORES_MOST) {
        uint32_t stores = count - word->counter;

        doubt(sim, word, UINT64_MAX, &image->stores[count - 1]);
        word->stores += word->doubt != 0 ? stores - 1 : 0;
        word->crossed |= word->counter < image->stores[count - 1].stirred;
        word->counter = count;
        return;
    }
    for (; word->counter < count; word->counter++) {
        const struct tbd_image_store *store = &image->stores[word->counter];
        uint64_t changed = tbd_image_may_change(store, word, sim->goes_back);

        if (store->why != 0 && (word->bits.known & ~changed) != 0)
            word->why = tbd_sim_weaker(sim, word->why, store->why);
        doubt(sim, word, changed, store);
    }
}

/* The word, which is up to date, as the step may take it. */
static void look_at(struct tbd_simulation *sim, size_t step, struct tbd_image_word *word)
{
    look_at_stores(sim, word);
    if (word->doubt != 0 && tbd_sim_is_barred(sim, word->address, word->step, (uint32_t)step))
        drop(sim, word, word->doubt);
    if (word->bits.known == 0) {
        word->step = (uint32_t)step;
        word->why = 0;
    }
}

static struct tbd_image_word *word_at(struct tbd_simulation *sim, size_t step, uint64_t address)
{
    struct tbd_image_word *word = tbd_sim_word(sim, address);

    if (word != NULL)
        look_at(sim, step, word);
    return word;
}

/* The bytes of a piece that lie in the word at `at`: their first bit in the word and in the piece, their width. */
struct span {
    unsigned in_word, in_piece, width;
};

static struct span span_of(uint64_t address, unsigned bytes, uint64_t at)
{
    uint64_t from = address > at ? address : at;
    uint64_t to = address + bytes < at + 8 ? address + bytes : at + 8;

    return (struct span){ .in_word = 8 * (unsigned)(from - at),
                          .in_piece = 8 * (unsigned)(from - address),
                          .width = 8 * (unsigned)(to - from) };
}

bool tbd_sim_fits(uint64_t address, uint64_t bytes)
{
    return bytes > 0 && address <= UINT64_MAX - 16 && bytes <= UINT64_MAX - 16 - address;
}

/* Are registers known before the end? */
static bool is_recorded(const struct tbd_simulation *sim)
{
    return sim->told != 0 && sim->told <= sim->step_count;
}

/* As functions do that look at text. */
static bool reads_vector(const struct tbd_simulation *sim, size_t step)
{
    const struct tbd_sim_insn *insn = step < sim->step_count ? sim->steps[step].insn : NULL;

    return insn != NULL && insn->memory_count >= 2 && !insn->memory[0].write &&
           insn->memory[0].bytes == 8 && insn->memory[1].bytes == 8;
}

/* Other threads' stores have no place among the steps: the word may have had any value between two of them. */
static bool is_theirs(const struct tbd_simulation *sim, const struct tbd_image_word *word)
{
    const struct tbd_simulation_source *source = &sim->source;

    return source->others && source->is_theirs != NULL && word->address >> 63 == 0 &&
           source->is_theirs(source->arg, word->address);
}

/* A store by the same displacement probably hit it: both are for the same field of a structure.  A store of a byte probably hit what is
 * text: it ends a word there.  After an interruption registers are unknown, and so is where the code that was interrupted stores; only
 * what it saved is still there.  Unless registers were recorded on the way.  Over many stores one of an instruction that is known to store
 * to the word probably hit it (storers.c). */
static bool may_assume(const struct tbd_simulation *sim, size_t step,
                       const struct tbd_image_word *word)
{
    unsigned field = step < sim->step_count ? sim->steps[step].insn->field : 0;

    if (word->has_byte && reads_vector(sim, step))
        return false;
    if (word->crossed && !is_recorded(sim) && !is_saving(sim, step))
        return false;
    if (field != 0 && (word->fields >> field & 1) != 0)
        return false;
    if (is_theirs(sim, word))
        return false;
    return doubt_of(sim, step, word) <= sim->doubt_most &&
           (word->stores <= MANY_STORES || is_saving(sim, step) ||
            !tbd_sim_storer_between(sim, word->address, word->step, (uint32_t)step));
}

struct tbd_bits tbd_sim_recall(struct tbd_simulation *sim, size_t step, uint64_t address,
                               unsigned bytes, uint32_t *why)
{
    struct tbd_bits out = { 0, 0 };

    if (!tbd_sim_fits(address, bytes))
        return out;
    for (uint64_t at = address & ~7ull; at < address + bytes; at += 8) {
        struct tbd_image_word *word = word_at(sim, step, at);
        struct span s = span_of(address, bytes, at);
        uint64_t low = tbd_bits_low(s.width);
        uint64_t known, unsure;

        if (word == NULL)
            continue;
        if (word->bits.known == 0)
            word->bits = tbd_sim_constant(sim, at); /* it may be so only from here on */
        known = word->bits.known & low << s.in_word;
        unsure = known & word->doubt & ~tbd_sim_constant(sim, at).known;
        if (unsure != 0 && !may_assume(sim, step, word))
            known &= ~unsure;
        out.value |= (word->bits.value & known) >> s.in_word << s.in_piece;
        out.known |= known >> s.in_word << s.in_piece;
        if (known != 0 && sim->infers)
            *why = tbd_sim_weaker(sim, *why,
                                  (known & unsure) != 0 ? assume(sim, step, word, known & unsure)
                                                        : word->why);
    }
    return out;
}

/* Bits that are known already stay, unless they are wrong: then an assumption was, and the word is what the step says. */
static void correct(struct tbd_simulation *sim, size_t step, struct tbd_image_word *word,
                    struct tbd_bits bits, uint32_t why)
{
    if (!sim->infers)
        sim->contradictions += !sim->frozen;
    else if (word->doubt & (bits.value ^ word->bits.value) & bits.known)
        tbd_sim_bar(sim, word->address, word->step, (uint32_t)step);
    else
        tbd_sim_withdraw(sim, tbd_sim_weaker(sim, why, word->why));
    word->bits = bits;
    word->why = why;
    word->step = (uint32_t)step;
    word->doubt = 0;
}

void tbd_sim_remember_in(struct tbd_simulation *sim, size_t step, struct tbd_image_word *word,
                         struct tbd_bits bits, uint32_t why)
{
    uint64_t new;

    look_at(sim, step, word);
    new = bits.known & ~word->bits.known;
    if ((bits.value ^ word->bits.value) & bits.known & word->bits.known) {
        correct(sim, step, word, bits, why);
        return;
    }
    if (new == 0)
        return;
    word->why = word->bits.known == 0 ? why : tbd_sim_weaker(sim, word->why, why);
    word->bits.value |= bits.value & new;
    word->bits.known |= new;
}

struct tbd_bits tbd_sim_word_part(uint64_t address, unsigned bytes, struct tbd_bits bits,
                                  uint64_t word)
{
    struct span s = span_of(address, bytes, word);
    uint64_t low = tbd_bits_low(s.width);

    return (struct tbd_bits){ (bits.value >> s.in_piece & low) << s.in_word,
                              (bits.known >> s.in_piece & low) << s.in_word };
}

static void remember_found(struct tbd_simulation *sim, size_t step, struct tbd_image_word *word,
                           struct tbd_bits bits, uint32_t why)
{
    struct tbd_bits before = word->bits;

    tbd_sim_remember_in(sim, step, word, bits, why);
    if (before.known != word->bits.known || before.value != word->bits.value)
        tbd_sim_look_ahead(sim, word);
}

void tbd_sim_remember(struct tbd_simulation *sim, size_t step, uint64_t address, unsigned bytes,
                      struct tbd_bits bits, uint32_t why)
{
    if (!tbd_sim_fits(address, bytes))
        return;
    for (uint64_t at = address & ~7ull; at < address + bytes; at += 8) {
        struct tbd_image_word *word = tbd_sim_word(sim, at);

        if (word != NULL)
            remember_found(sim, step, word, tbd_sim_word_part(address, bytes, bits, at), why);
    }
}

void tbd_sim_erase_in(struct tbd_simulation *sim, struct tbd_image_word *word, uint64_t mask)
{
    if ((word->bits.known & ~mask) != 0)
        look_at_stores(sim, word); /* with all of its bits */
    word->counter = (uint32_t)sim->image.store_count;
    word->bits = tbd_bits_only(word->bits, ~mask);
    word->doubt &= ~mask;
    if (word->bits.known == 0)
        word->why = 0;
}

void tbd_sim_erase(struct tbd_simulation *sim, uint64_t address, uint64_t bytes)
{
    for (uint64_t at = address & ~7ull; at < address + bytes; at += 8) {
        struct tbd_image_word *word = tbd_sim_word(sim, at);
        uint64_t from = address > at ? address : at;
        uint64_t to = address + bytes < at + 8 ? address + bytes : at + 8;

        if (word != NULL)
            tbd_sim_erase_in(sim, word,
                             tbd_bits_low(8 * (unsigned)(to - from)) << (8 * (from - at)));
    }
}

void tbd_sim_replace(struct tbd_simulation *sim, uint64_t address, uint64_t bytes)
{
    const struct tbd_image_range range = { .from = address & ~7ull,
                                           .to = (address + bytes + 7) & ~7ull,
                                           .step = (uint32_t)sim->now };
    struct tbd_image_word *word;
    uint64_t cursor = 0;

    while (sim->ledger != NULL && (word = tbd_image_next_in(&sim->image, &range, &cursor)) != NULL)
        tbd_sim_catch_up(sim, word);
    tbd_image_replace(&sim->image, range, tbd_sim_constant);
}

/* Nothing is known of any word; in phase two that is only in doubt. */
static void lose_all(struct tbd_simulation *sim, const struct tbd_image_store *store)
{
    if (sim->infers) {
        tbd_image_note_store(&sim->image, store);
        return;
    }
    tbd_image_forget(&sim->image, tbd_sim_constant);
    sim->image.forgotten = tbd_sim_moment_of(sim->now);
}

void tbd_sim_unknown_store(struct tbd_simulation *sim, size_t step)
{
    lose_all(sim, &(struct tbd_image_store){ .step = (uint32_t)step });
}

void tbd_sim_stir(struct tbd_simulation *sim, size_t step)
{
    lose_all(sim, &(struct tbd_image_store){ .step = (uint32_t)step, .stirs = true });
}

void tbd_sim_unknown_piece(struct tbd_simulation *sim, const struct tbd_image_store *store)
{
    tbd_image_note_store(&sim->image, store);
}
