// SPDX-License-Identifier: MIT
/* recall.c - memory as the steps of a pass know it, and the assumptions about it (simulate_private.h)
 *
 * In phase one a store to an unknown address makes the image forget everything.  In phase two it is only counted: what
 * is then recalled across it rests on an assumption, unless a bar says that the word changed in between. */
#include "replay/simulate/simulate_private.h"

#include "base/array.h"
#include "base/hash.h"

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

/* Did the word surely change between the two steps? */
static bool is_barred(struct tbd_simulation *sim, uint64_t address, uint32_t one, uint32_t other)
{
    uint32_t from = one < other ? one : other, to = one < other ? other : one;

    for (uint32_t at = *bar_list(sim, address); at != 0; at = sim->bars[at - 1].next) {
        const struct tbd_sim_bar *bar = &sim->bars[at - 1];

        if (bar->address == address && bar->from >= from && bar->to <= to)
            return true;
    }
    return false;
}

static void add_bar(struct tbd_simulation *sim, uint64_t address, uint32_t one, uint32_t other)
{
    uint32_t *list = bar_list(sim, address);

    if (sim->frozen || is_barred(sim, address, one, other))
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

void tbd_sim_withdraw(struct tbd_simulation *sim, uint32_t why)
{
    const struct tbd_assumption *assumption;

    if (why == 0 || why > sim->assumption_count)
        return;
    assumption = &sim->assumptions[why - 1];
    add_bar(sim, assumption->address, assumption->from, assumption->to);
}

static uint32_t assume(struct tbd_simulation *sim, size_t step, const struct tbd_image_word *word)
{
    if (sim->frozen || !tbd_array_grow(&sim->assumptions, sim->assumption_count,
                                       &sim->assumption_capacity, sizeof(*sim->assumptions)))
        return word->why;
    sim->assumptions[sim->assumption_count] =
        (struct tbd_assumption){ .address = word->address,
                                 .from = word->step < step ? word->step : (uint32_t)step,
                                 .to = word->step < step ? (uint32_t)step : word->step,
                                 .store = sim->image.store,
                                 .stores = sim->image.counter - word->counter,
                                 .parent = word->why };
    return (uint32_t)++sim->assumption_count;
}

/* The word as the step may take it. */
static struct tbd_image_word *word_at(struct tbd_simulation *sim, size_t step, uint64_t address)
{
    struct tbd_image_word *word = tbd_image_word(&sim->image, address);

    if (word != NULL && word->counter != sim->image.counter &&
        is_barred(sim, address, word->step, (uint32_t)step)) {
        word->bits = tbd_sim_constant(sim, address);
        word->step = (uint32_t)step;
        word->counter = sim->image.counter;
        word->why = 0;
    }
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

static bool fits(uint64_t address, uint64_t bytes)
{
    return bytes > 0 && address <= UINT64_MAX - 16 && bytes <= UINT64_MAX - 16 - address;
}

struct tbd_bits tbd_sim_recall(struct tbd_simulation *sim, size_t step, uint64_t address,
                               unsigned bytes, uint32_t *why)
{
    struct tbd_bits out = { 0, 0 };

    if (!fits(address, bytes))
        return out;
    for (uint64_t at = address & ~7ull; at < address + bytes; at += 8) {
        struct tbd_image_word *word = word_at(sim, step, at);
        struct span s = span_of(address, bytes, at);
        uint64_t low = tbd_bits_low(s.width);
        uint64_t known;

        if (word == NULL)
            continue;
        if (word->bits.known == 0 && word->counter == sim->image.counter)
            word->bits = tbd_sim_constant(sim, at); /* it may be so only from here on */
        known = word->bits.known >> s.in_word & low;
        out.value |= (word->bits.value >> s.in_word & low) << s.in_piece;
        out.known |= known << s.in_piece;
        if (known != 0 && sim->infers && *why == 0)
            *why = word->counter != sim->image.counter &&
                           (tbd_sim_constant(sim, at).known >> s.in_word & low & known) != known
                       ? assume(sim, step, word)
                       : word->why;
    }
    return out;
}

/* Bits that are known already stay, unless they are wrong: then an assumption was, and the word is what the step says. */
static void correct(struct tbd_simulation *sim, size_t step, struct tbd_image_word *word,
                    struct tbd_bits bits, uint32_t why)
{
    if (!sim->infers) {
        sim->contradictions += !sim->frozen;
    } else if (word->counter != sim->image.counter) {
        add_bar(sim, word->address, word->step, (uint32_t)step);
    } else {
        tbd_sim_withdraw(sim, why);
        tbd_sim_withdraw(sim, word->why);
    }
    word->bits = bits;
    word->why = why;
    word->step = (uint32_t)step;
    word->counter = sim->image.counter;
}

static void remember_in(struct tbd_simulation *sim, size_t step, struct tbd_image_word *word,
                        struct tbd_bits bits, uint32_t why)
{
    uint64_t new = bits.known & ~word->bits.known;

    if ((bits.value ^ word->bits.value) & bits.known & word->bits.known) {
        correct(sim, step, word, bits, why);
        return;
    }
    if (new == 0)
        return;
    if (word->bits.known == 0) {
        word->step = (uint32_t)step;
        word->counter = sim->image.counter;
        word->why = why;
    } else if (word->why == 0) {
        word->why = why;
    }
    word->bits.value |= bits.value & new;
    word->bits.known |= new;
}

void tbd_sim_remember(struct tbd_simulation *sim, size_t step, uint64_t address, unsigned bytes,
                      struct tbd_bits bits, uint32_t why)
{
    if (!fits(address, bytes))
        return;
    for (uint64_t at = address & ~7ull; at < address + bytes; at += 8) {
        struct tbd_image_word *word = word_at(sim, step, at);
        struct span s = span_of(address, bytes, at);
        uint64_t low = tbd_bits_low(s.width);

        if (word != NULL)
            remember_in(sim, step, word,
                        (struct tbd_bits){ (bits.value >> s.in_piece & low) << s.in_word,
                                           (bits.known >> s.in_piece & low) << s.in_word },
                        why);
    }
}

void tbd_sim_erase(struct tbd_simulation *sim, uint64_t address, uint64_t bytes)
{
    for (uint64_t at = address & ~7ull; at < address + bytes; at += 8) {
        struct tbd_image_word *word = tbd_image_word(&sim->image, at);
        uint64_t from = address > at ? address : at;
        uint64_t to = address + bytes < at + 8 ? address + bytes : at + 8;
        uint64_t mask = tbd_bits_low(8 * (unsigned)(to - from)) << (8 * (from - at));

        if (word == NULL)
            continue;
        word->bits = tbd_bits_only(word->bits, ~mask);
        if (word->bits.known == 0)
            word->why = 0;
    }
}

void tbd_sim_replace(struct tbd_simulation *sim, uint64_t address, uint64_t bytes)
{
    tbd_image_replace(&sim->image,
                      (struct tbd_image_range){ address & ~7ull, (address + bytes + 7) & ~7ull },
                      tbd_sim_constant);
}

void tbd_sim_unknown_store(struct tbd_simulation *sim, size_t step)
{
    if (!sim->infers) {
        tbd_image_forget(&sim->image, tbd_sim_constant);
        return;
    }
    sim->image.counter++;
    sim->image.store = (uint32_t)step;
}
