// SPDX-License-Identifier: MIT
/* moment.c - memory at one position (simulate.h)
 *
 * Two ways lead to a position: forward from the first step, and back from the last one.  Each has an image of memory when it gets
 * there: one of what is exact, and one of what is inferred too.  What both ways know is the same.
 *
 * MOMENT-1  The passes change no variable. (not checked: struct tbd_simulation, frozen) */
#include "replay/simulate/simulate_private.h"

#include <stdlib.h>

enum { FORWARD = 1, INFERRED = 2, IMAGES = 4 };

struct tbd_sim_moment {
    struct tbd_simulation *sim; /* borrowed */
    size_t position;
    struct tbd_image images[IMAGES]; /* by FORWARD | INFERRED */
};

/* The image `which` becomes the simulation's, until this is called again with it. */
static void exchange(struct tbd_sim_moment *moment, unsigned which)
{
    struct tbd_image image = moment->sim->image;

    moment->sim->image = moment->images[which];
    moment->images[which] = image;
}

static void begin(struct tbd_sim_moment *moment, unsigned which)
{
    struct tbd_simulation *sim = moment->sim;

    exchange(moment, which);
    sim->frozen = true;
    sim->infers = (which & INFERRED) != 0;
    sim->exact_only = !sim->infers;
    sim->now = moment->position;
}

static void end(struct tbd_sim_moment *moment, unsigned which)
{
    moment->sim->frozen = false;
    moment->sim->exact_only = false;
    exchange(moment, which);
}

enum tbd_status tbd_sim_moment_new(struct tbd_simulation *sim, size_t position,
                                   struct tbd_sim_moment **out)
{
    struct tbd_sim_moment *moment = calloc(1, sizeof(*moment));
    bool failed = false;

    *out = moment;
    if (moment == NULL)
        return TBD_NOMEM;
    moment->sim = sim;
    moment->position = position < sim->step_count ? position : sim->step_count;
    for (unsigned which = 0; which < IMAGES; which++) {
        begin(moment, which);
        if (which & FORWARD)
            tbd_sim_pass(sim, 0, moment->position, true);
        else
            tbd_sim_pass(sim, moment->position, sim->step_count, false);
        failed |= sim->image.no_memory;
        end(moment, which);
    }
    return failed ? TBD_NOMEM : TBD_OK;
}

void tbd_sim_moment_free(struct tbd_sim_moment *moment)
{
    for (unsigned which = 0; moment != NULL && which < IMAGES; which++)
        tbd_image_free(&moment->images[which]);
    free(moment);
}

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

        begin(moment, which);
        bits = tbd_sim_recall(moment->sim, moment->position, address, 8, &why);
        end(moment, which);
        if (out.why == 0 && (bits.known & ~out.bits.known) != 0)
            out.why = why;
        add(&out.bits, bits);
        if ((which & INFERRED) == 0)
            out.exact = out.bits.known;
    }
    return out;
}
