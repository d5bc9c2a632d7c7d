// SPDX-License-Identifier: MIT
/* asked_places.h - instructions before which the engine is asked, in free run
 *
 * A block never has such an instruction but as its first one; its code leaves by TBD_EXIT_ASKED before the
 * block is entered, and goes on after that when it has been answered.  All other blocks are as ever, and
 * cost the same.
 *
 * ASKED_PLACES-1  Sorted, without doubles. (not checked: tbd_asked_places_set() sorts)
 *
 * Who changes the set has all other threads at a boundary, and forgets the translations at the addresses.
 * Contexts: APP; tbd_asked_places_has() SIG too. */
#ifndef TBD_PATCHER_ASKED_PLACES_H
#define TBD_PATCHER_ASKED_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_MAX_ASKED_PLACES 256u

bool tbd_asked_places_has(uint64_t pc);
/* In place of those before; `count` is at most TBD_MAX_ASKED_PLACES. */
void tbd_asked_places_set(const uint64_t *places, size_t count);
/* `out` has TBD_MAX_ASKED_PLACES. */
size_t tbd_asked_places_list(uint64_t *out);

#endif
