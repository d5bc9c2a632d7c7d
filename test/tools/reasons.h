// SPDX-License-Identifier: MIT
/* reasons.h - where the unknown values of a simulation begin
 *
 * For bench/values --why: the instructions that the unknown values used by the last steps lead back to, and values that are known but
 * wrong with the assumptions that they rest on. */
#ifndef TBD_TEST_REASONS_H
#define TBD_TEST_REASONS_H

#include "replay/simulate/simulate.h"

/* One line on stderr for each instruction in which unknown values used from step `from` on begin, most uses first.  Below the first ones,
 * if they load what is not known from an address that is: what is known of it, at which step, and the stores in between whose
 * addresses are not known. */
void reasons_of_unknown(const struct tbd_simulation *sim, size_t from);
/* One line on stderr for a wrong value: of a place, or TBD_PLACE_COUNT plus the number of the step's memory. */
void reasons_of_wrong(const struct tbd_simulation *sim, size_t step, size_t place,
                      struct tbd_simulated said, uint64_t is);

/* Counts a value that was inferred from the assumption `why`; what was counted, by kinds of assumptions, on stderr. */
void reasons_count_inferred(const struct tbd_simulation *sim, uint32_t why, bool right);
void reasons_of_inferred(void);

#endif
