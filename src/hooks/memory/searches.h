// SPDX-License-Identifier: MIT
/* searches.h - where a search for address space was in vain
 *
 * A program with hundreds of stacks has filled all that its libraries reach, and each search there is a thousand system
 * calls.  So the next ones do without, twice as many after each; the program may give up memory meanwhile.
 * Context: APP, under the engine lock, or a replay process. */
#ifndef TBD_HOOKS_SEARCHES_H
#define TBD_HOOKS_SEARCHES_H

#include <stdbool.h>
#include <stdint.h>

/* False: this search for `bytes` that code at `pc` reaches is to be left out, and counts as one that was. */
bool tbd_searches_may_begin(uint64_t pc, uint64_t bytes);
void tbd_searches_note(uint64_t pc, uint64_t bytes, bool has_found);

#endif
