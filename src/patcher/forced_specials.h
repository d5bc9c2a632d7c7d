// SPDX-License-Identifier: MIT
/* forced_specials.h - instructions that the engine executes although their bytes do not require it
 *
 * Once an instruction has accessed memory that other processes may write, the engine executes it:
 * it ends its block as TBD_SPECIAL_SHARED.  So a block depends on the set of these addresses, and
 * the stream reports each change of the set (TBD_MSG_SHARED).  Callers that change the set flush
 * the translations at the address.  Contexts: APP; tbd_forced_specials_has() SIG too. */
#ifndef TBD_PATCHER_FORCED_SPECIALS_H
#define TBD_PATCHER_FORCED_SPECIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_MAX_FORCED_SPECIALS 8192u

struct tbd_forced_special {
    uint64_t pc;   /* 0 = none */
    uint32_t runs; /* for the set's owner: how often it was executed, */
    uint32_t hits; /* and met such memory */
};

bool tbd_forced_specials_has(uint64_t pc);
/* NULL if it is not in the set. */
struct tbd_forced_special *tbd_forced_specials_find(uint64_t pc);
/* False: the set is full. */
bool tbd_forced_specials_add(uint64_t pc);
size_t tbd_forced_specials_count(void);
/* Lists all, in no order; `out` has TBD_MAX_FORCED_SPECIALS. */
size_t tbd_forced_specials_list(uint64_t *out);
void tbd_forced_specials_clear(void);

#endif
