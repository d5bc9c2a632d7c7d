// SPDX-License-Identifier: MIT
/* forced_specials.h - instructions that the engine executes although their bytes do not say so
 *
 * An instruction that has been seen to access memory which other processes may write is executed by
 * the engine from then on: it ends its block as TBD_SPECIAL_SHARED.  So the set of their addresses
 * belongs to what a block is, and the stream says whenever it changes (TBD_MSG_SHARED).  Whoever
 * changes the set flushes the translations at the address.  Contexts: APP; tbd_forced_specials_has() SIG
 * too. */
#ifndef TBD_PATCHER_FORCED_SPECIALS_H
#define TBD_PATCHER_FORCED_SPECIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_MAX_SINGLES 8192u

struct tbd_single {
    uint64_t pc;   /* 0 = none */
    uint32_t runs; /* for the set's owner: how often it was executed, */
    uint32_t hits; /* and met such memory */
};

bool tbd_forced_specials_has(uint64_t pc);
/* NULL if it is not in the set. */
struct tbd_single *tbd_forced_specials_find(uint64_t pc);
/* False: no room. */
bool tbd_forced_specials_add(uint64_t pc);
size_t tbd_forced_specials_count(void);
/* All of them, in no order; room for TBD_MAX_SINGLES. */
size_t tbd_forced_specials_list(uint64_t *out);
void tbd_forced_specials_clear(void);

#endif
