// SPDX-License-Identifier: MIT
/* asked_loads.h - loads from chosen ranges of memory, before which the engine is asked (free run)
 *
 * While there are such ranges, a block ends before each instruction that loads, and the block that begins with one computes its address at
 * its entry.  If that is in a range it leaves by TBD_EXIT_ASKED, with the address and the size in the thread block
 * (thread->asked_address, asked_bytes), and goes on after that when it has been answered.  Without ranges blocks are as ever.
 *
 * The comparison is by a power of two of bytes: who is asked compares exactly.
 *
 * Loads by string instructions, gathers, push, pop, ret and gs, and from addresses of 32 bits, are left out.
 *
 * Who changes the ranges has all other threads at a boundary, and forgets all translations.
 * Context: APP. */
#ifndef TBD_PATCHER_ASKED_LOADS_H
#define TBD_PATCHER_ASKED_LOADS_H

#include "patcher/decode.h"
#include "patcher/translate.h"

#define TBD_ASKED_LOADS 4u
#define TBD_ASKED_LOADS_BYTES                                                                      \
    (1ull << 31) /* of a range at most: with a load's own bytes it has no more than 2^32 */

struct tbd_asked_range {
    uint64_t from, to; /* to: the address after it */
};

void tbd_asked_loads_set(const struct tbd_asked_range *ranges, size_t count);
bool tbd_asked_loads_are(void);
/* What it loads, if that is asked about; NULL: nothing. */
const struct tbd_access *tbd_asked_loads_of(const struct tbd_insn *insn);
/* At the entry of a block that begins with such a load. */
void tbd_translate_asked_load(struct tbd_translation *t, const struct tbd_access *access);

#endif
