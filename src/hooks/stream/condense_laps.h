// SPDX-License-Identifier: MIT
/* condense_laps.h - laps of rings that are over, in a ring of bytes beside each (format/stream/condensed.h)
 *
 * Contexts: BOOT, APP with the engine lock; _sigsafe SIG, several threads at once. */
#ifndef TBD_HOOKS_CONDENSE_LAPS_H
#define TBD_HOOKS_CONDENSE_LAPS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Each of tbd_condensed_rings() rings has `bytes` of its own, one after the other from `memory` on.  NULL: laps are forgotten. */
void tbd_condense_start(uint8_t *memory, uint64_t bytes);
bool tbd_condense_is_on(void);
/* The lap of ring number `index` that has `count` entries is over. */
void tbd_condense_lap_sigsafe(uint32_t index, const uint32_t *ring, uint64_t count);
/* The ring's next lap begins: its first place is empty. */
void tbd_condense_next_lap_sigsafe(uint32_t index);
/* Another thread begins with this ring, which is empty. */
void tbd_condense_reset(uint32_t index);

#pragma GCC visibility pop

#endif
