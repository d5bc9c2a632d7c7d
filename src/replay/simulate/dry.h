// SPDX-License-Identifier: MIT
/* dry.h - what would be known if more had been recorded, without the values themselves
 *
 * After tbd_simulation_run().  Each use of an unknown value leads back to a root: an instruction that loaded what nobody knows, or
 * whose result is not computed.  A dry run supposes that some of these values were recorded, and passes that on from each
 * instruction to those that use its results: forward alone, so more than it says would be known. */
#ifndef TBD_REPLAY_SIMULATE_DRY_H
#define TBD_REPLAY_SIMULATE_DRY_H

#include "replay/simulate/simulate.h"

/* An instruction in which unknown values begin. */
struct tbd_sim_root {
    uint64_t address; /* of the instruction; 0: they are older than the first step */
    size_t step;      /* the last one of it */
    size_t uses;      /* of values that lead back to it */
};

struct tbd_sim_wish {
    const uint64_t *loads; /* what instructions at these addresses load or compute is known */
    size_t load_count;
    const uint32_t *steps; /* ascending; before each of these, registers are known */
    size_t step_count;
};

/* Uses of general registers and memory operands from step `from` on, and those that are known. */
struct tbd_sim_uses {
    size_t all, known;
};

/* The roots, those with the most uses first; the caller frees *out. */
TBD_MUST_CHECK enum tbd_status tbd_simulation_roots(const struct tbd_simulation *sim, size_t from,
                                                    struct tbd_sim_root **out, size_t *out_count);
TBD_MUST_CHECK enum tbd_status tbd_simulation_dry(const struct tbd_simulation *sim, size_t from,
                                                  const struct tbd_sim_wish *wish,
                                                  struct tbd_sim_uses *out);

#endif
