// SPDX-License-Identifier: MIT
/* moment.c - memory at one position (simulate.h)
 *
 * Two ways lead to a position: forward from the first step, and back from the last one.  Each has an image of memory when it gets
 * there: one of what is exact, and one of what is inferred too.  What both ways know is the same.
 *
 * A moment that moves on goes on with the images that lead forward.  Those that lead back come from a base, AHEAD steps after them, so
 * that a list of positions passes over all steps once for that many of them.  A moment that moves back does the same the other way
 * round: a search goes from the end back.
 *
 * MOMENT-1  The passes change no variable. (not checked: struct tbd_simulation, frozen) */
#include "replay/simulate/ledger.h"

#include <stdlib.h>

enum { FORWARD = 1, INFERRED = 2, IMAGES = 4, AHEAD = 2048 };

struct tbd_sim_moment {
    struct tbd_simulation *sim; /* borrowed */
    size_t position;
    struct tbd_image images[IMAGES]; /* by FORWARD | INFERRED */
    struct tbd_image bases[IMAGES];
    size_t base_at[2]; /* where they are, by FORWARD; SIZE_MAX: they are not there */
};

/* The image becomes the simulation's, until this is called again with it. */
static void exchange(struct tbd_simulation *sim, struct tbd_image *image)
{
    struct tbd_image other = sim->image;

    sim->image = *image;
    *image = other;
}

static void begin(struct tbd_simulation *sim, struct tbd_image *image, unsigned which)
{
    exchange(sim, image);
    sim->frozen = true;
    sim->infers = (which & INFERRED) != 0;
    sim->exact_only = !sim->infers;
    sim->goes_back = (which & FORWARD) == 0;
    tbd_sim_use_ledger(sim, sim->exact_only);
}

/* False: words are missing. */
static bool end(struct tbd_simulation *sim, struct tbd_image *image)
{
    sim->frozen = false;
    sim->exact_only = false;
    sim->ledger = NULL;
    exchange(sim, image);
    return !image->no_memory;
}

/* From the first step, or back from the last one. */
static bool come_to(struct tbd_simulation *sim, size_t position, struct tbd_image *image,
                    unsigned which)
{
    begin(sim, image, which);
    if (which & FORWARD)
        tbd_sim_pass(sim, 0, position, true);
    else
        tbd_sim_pass(sim, position, sim->step_count, false);
    return end(sim, image);
}

static bool go_on(struct tbd_simulation *sim, size_t from, size_t to, struct tbd_image *image,
                  unsigned which)
{
    begin(sim, image, which);
    tbd_sim_pass_on(sim, from, to, (which & FORWARD) != 0);
    return end(sim, image);
}

static size_t within(const struct tbd_simulation *sim, size_t position)
{
    return position < sim->step_count ? position : sim->step_count;
}

/* Once: values do not change any more. */
static void make_ledgers(struct tbd_simulation *sim)
{
    if (sim->has_ledgers)
        return;
    sim->has_ledgers = true;
    sim->frozen = true;
    tbd_sim_make_ledger(sim, false);
    tbd_sim_make_ledger(sim, true);
    sim->frozen = false;
    sim->ledger = NULL;
}

enum tbd_status tbd_sim_moment_new(struct tbd_simulation *sim, size_t position,
                                   struct tbd_sim_moment **out)
{
    struct tbd_sim_moment *moment = calloc(1, sizeof(*moment));
    bool done = true;

    *out = moment;
    if (moment == NULL)
        return TBD_NOMEM;
    moment->sim = sim;
    moment->position = within(sim, position);
    moment->base_at[0] = moment->base_at[FORWARD] = SIZE_MAX;
    make_ledgers(sim);
    for (unsigned which = 0; which < IMAGES; which++)
        done &= come_to(sim, moment->position, &moment->images[which], which);
    return done ? TBD_OK : TBD_NOMEM;
}

void tbd_sim_moment_free(struct tbd_sim_moment *moment)
{
    for (unsigned which = 0; moment != NULL && which < IMAGES; which++) {
        tbd_image_free(&moment->images[which]);
        tbd_image_free(&moment->bases[which]);
    }
    free(moment);
}

/* ---- moving ---- */

static bool is_of(unsigned which, unsigned way)
{
    return (which & FORWARD) == way;
}

/* Those of one way. */
static bool set_bases(struct tbd_sim_moment *moment, size_t position, unsigned way)
{
    bool done = true;

    moment->base_at[way] = position;
    for (unsigned which = 0; which < IMAGES; which++)
        if (is_of(which, way))
            done &= come_to(moment->sim, position, &moment->bases[which], which);
    return done;
}

/* Does the way lead from the base to the position, over few steps? */
static bool is_near(const struct tbd_sim_moment *moment, size_t to, unsigned way)
{
    size_t at = moment->base_at[way];

    if (at == SIZE_MAX)
        return false;
    return way == FORWARD ? at <= to && to - at <= AHEAD : at >= to && at - to <= AHEAD;
}

static bool go_from_base(struct tbd_sim_moment *moment, size_t to, unsigned way)
{
    size_t ahead =
        way == FORWARD ? to - (to < AHEAD ? to : AHEAD) : within(moment->sim, to + AHEAD);
    bool done = is_near(moment, to, way) || set_bases(moment, ahead, way);
    size_t at = moment->base_at[way];

    for (unsigned which = 0; which < IMAGES && done; which++)
        if (is_of(which, way))
            done = tbd_image_copy(&moment->images[which], &moment->bases[which]) &&
                   go_on(moment->sim, at < to ? at : to, at < to ? to : at, &moment->images[which],
                         which);
    return done;
}

enum tbd_status tbd_sim_moment_move(struct tbd_sim_moment *moment, size_t position)
{
    size_t from = moment->position, to = within(moment->sim, position);
    unsigned way = to > from ? FORWARD : 0; /* where the moves lead */
    bool done = true;

    for (unsigned which = 0; to != from && which < IMAGES; which++)
        if (is_of(which, way))
            done &= go_on(moment->sim, from < to ? from : to, from < to ? to : from,
                          &moment->images[which], which);
    done = done && (to == from || go_from_base(moment, to, way ^ FORWARD));
    moment->position = to;
    return done ? TBD_OK : TBD_NOMEM;
}

/* ---- asking ---- */

/* What is known already stays. */
static void add(struct tbd_bits *to, struct tbd_bits bits)
{
    uint64_t new = bits.known & ~to->known;

    to->value |= bits.value & new;
    to->known |= new;
}

struct tbd_simulated tbd_sim_moment_memory(struct tbd_sim_moment *moment, uint64_t address)
{
    struct tbd_simulated out = { .why = 0 };

    for (unsigned which = 0; which < IMAGES; which++) {
        uint32_t why = 0;
        struct tbd_bits bits;

        begin(moment->sim, &moment->images[which], which);
        moment->sim->now = moment->position;
        tbd_sim_set_moment(moment->sim, moment->position, false);
        moment->sim->asks = true;
        bits = tbd_sim_recall(moment->sim, moment->position, address, 8, &why);
        moment->sim->asks = false;
        end(moment->sim, &moment->images[which]);
        if (out.why == 0 && (bits.known & ~out.exact) != 0)
            out.why = why; /* one way may know only that it is inferred */
        add(&out.bits, bits);
        if ((which & INFERRED) == 0)
            out.exact = out.bits.known;
    }
    return out;
}
