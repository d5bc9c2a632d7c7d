// SPDX-License-Identifier: MIT
/* jumps.h - probes that have a trap get a jump, and back (jump.h)
 *
 * Context: keeper. */
#ifndef TBD_HOOKS_PROBES_JUMPS_H
#define TBD_HOOKS_PROBES_JUMPS_H

#include "hooks/probes/jump.h"

/* Makes the jump of a probe that has a trap, uses, and no jump.  False: none fits there. */
bool tbd_jump_make(struct tbd_probe *probe, int memory);

/* Each of the probes, whose jump was made, becomes one, unless two overlap; instructions below it get their traps. */
void tbd_jumps_put(struct tbd_probe **probes, uint32_t count, int memory);

/* Probes that have a jump get their trap back, the code below it its bytes. */
void tbd_jumps_take(struct tbd_probe **probes, uint32_t count, int memory);

/* The probe whose jump covers the address, not at its first byte; NULL. */
struct tbd_probe *tbd_jump_over(uint64_t address);

/* Can processors be told that code has changed? */
bool tbd_jumps_possible(void);

#endif
