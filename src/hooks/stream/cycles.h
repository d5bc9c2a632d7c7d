// SPDX-License-Identifier: MIT
/* cycles.h - the processor's counter, for intervals of the engine's own, unless the program has forbidden it (PR_SET_TSC)
 *
 * Contexts: APP. */
#ifndef TBD_HOOKS_CYCLES_H
#define TBD_HOOKS_CYCLES_H

#include <stdbool.h>
#include <stdint.h>

bool tbd_cycles_can_be_read(void);
/* The counter's value; where it cannot be read, nanoseconds. */
uint64_t tbd_cycles_now(void);
/* What it was when it was last read. */
uint64_t tbd_cycles_read_last(void);
/* Before the program forbids it, or allows it again. */
void tbd_cycles_forbid(void);

#endif
