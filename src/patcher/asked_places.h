// SPDX-License-Identifier: MIT
/* asked_places.h - instructions before which the engine is asked, in free run, and in a replay of native play
 *
 * The code of a block that begins with such an instruction leaves by TBD_EXIT_ASKED before the block is entered, and goes on
 * after that when it has been answered.  In free run no block has such an instruction elsewhere; in a replay blocks stay what they
 * are, and only those that begin there ask.  All other blocks are as ever, and cost the same.
 *
 * ASKED_PLACES-1  Sorted, without doubles. (not checked: tbd_asked_places_set() sorts)
 *
 * Who changes the set has all other threads at a boundary, and forgets the translations at the addresses.
 * Contexts: APP; tbd_asked_places_has() SIG too. */
#ifndef TBD_PATCHER_ASKED_PLACES_H
#define TBD_PATCHER_ASKED_PLACES_H

#include "format/stream/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_MAX_ASKED_PLACES 257u /* of triggers, and the loader's */

/* In a replay the code asks only if these agree; the rest is the callback's to compare.  Values may
 * change while translated code is there. */
struct tbd_asked_state {
    uint64_t minus_gpr[TBD_REG_COUNT]; /* 0 - value */
    uint64_t word;                     /* address of a word of memory that can be read, */
    uint64_t minus_value;              /* and what it must hold */
};
/* NULL: every arrival asks. */
const struct tbd_asked_state *tbd_asked_places_state(void);
/* Borrowed for ever; before anything is translated. */
void tbd_asked_places_set_state(const struct tbd_asked_state *state);

bool tbd_asked_places_has(uint64_t pc);
/* In place of those before; `count` is at most TBD_MAX_ASKED_PLACES. */
void tbd_asked_places_set(const uint64_t *places, size_t count);
/* `out` has TBD_MAX_ASKED_PLACES. */
size_t tbd_asked_places_list(uint64_t *out);

#endif
