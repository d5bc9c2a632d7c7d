// SPDX-License-Identifier: MIT
/* probe_table.h - from the address of a trap to the instruction that it replaced
 *
 * Only the keeper adds; handlers of all threads look up, without a lock.  What was added stays for ever:
 * a thread that has met a trap finds its instruction, also when the trap has been taken away
 * meanwhile.  Contexts: keeper to add, SIG to look up. */
#ifndef TBD_HOOKS_PROBE_TABLE_H
#define TBD_HOOKS_PROBE_TABLE_H

#include "patcher/native_step.h"

#define TBD_PROBE_INSN_BYTES 15

struct tbd_jump;

struct tbd_probe {
    struct tbd_native_step step;
    uint8_t bytes[TBD_PROBE_INSN_BYTES]; /* the instruction, as it was */
    bool is_placed;                      /* the trap is there now; the keeper's own */
    bool may_change;                     /* the program may write over it: no file's code */
    uint32_t placed_at;                  /* in the keeper's list */
    uint32_t uses;                       /* first use of the session plus 1, 0: none */
    bool is_jump;                        /* the keeper's own, as is the next: instead of the trap */
    struct tbd_jump *jump;               /* jump.h; NULL: none was made yet */
    uint32_t looked_at;                  /* number of the session that last looked for a jump */
};

/* NULL: no trap of ours was ever there. */
struct tbd_probe *tbd_probe_find(uint64_t address);
/* False: no memory.  `probe` lives for ever. */
bool tbd_probe_add(struct tbd_probe *probe);

#endif
