// SPDX-License-Identifier: MIT
/* condense_laps.h - laps of rings that are over, in a ring of bytes beside each (format/stream/condensed.h), now or when somebody has
 * condensed them (format/stream/handed_laps.h)
 *
 * Contexts: BOOT, APP with the engine lock; _sigsafe SIG, several threads at once. */
#ifndef TBD_HOOKS_CONDENSE_LAPS_H
#define TBD_HOOKS_CONDENSE_LAPS_H

#include "format/stream/handed_laps.h"

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Each of tbd_condensed_rings() rings has `bytes` of its own, one after the other from `memory` on.  NULL: laps are forgotten. */
void tbd_condense_start(uint8_t *memory, uint64_t bytes, struct tbd_lap_call *call);
bool tbd_condense_is_on(void);
/* Where the lap of ring number `index` lies that is not over; `area` is where its area begins. */
uint64_t tbd_condense_ring_sigsafe(uint32_t index, uint64_t area);
/* That lap, which begins at `ring` and has `count` entries, is over. */
void tbd_condense_lap_sigsafe(uint32_t index, const uint32_t *ring, uint64_t count);
/* Where the next one will lie.  After tbd_condense_lap_sigsafe(). */
uint64_t tbd_condense_next_ring_sigsafe(uint32_t index, uint64_t area);
/* The ring's next lap begins: its first place is empty. */
void tbd_condense_next_lap_sigsafe(uint32_t index);
/* Another thread begins with this ring, which is empty and has `bytes` from `area` on. */
void tbd_condense_reset(uint32_t index, uint64_t area, uint64_t bytes);

/* The ring's length changes: what it has lies in its area from here on, and no lap waits. */
void tbd_condense_stay(uint32_t index, uint64_t area);
/* It has changed to `bytes`. */
void tbd_condense_turn(uint32_t index, uint64_t area, uint64_t bytes);

#pragma GCC visibility pop

#endif
