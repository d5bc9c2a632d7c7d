// SPDX-License-Identifier: MIT
/* code_traps.h - bytes of the program's own code that the engine has replaced (native play)
 *
 * In place of an instruction's first byte is int3: the trap comes to the engine, which executes the instruction.  In place of five
 * bytes is a jump to the engine's own code.  The table has the bytes that were there.  Contexts: BOOT, APP, FORK_CHILD; _sigsafe SIG.
 *
 * CODE_TRAPS-1  A forked child has a copy of code and table: both say the same. (not checked: fork copies both) */
#ifndef TBD_HOOKS_CODE_TRAPS_H
#define TBD_HOOKS_CODE_TRAPS_H

#include "hooks/memory/regions.h"

#define TBD_CODE_JUMP_BYTES 5u

/* Once: the mappings whose protection is changed; borrowed for ever. */
void tbd_code_traps_begin(const struct tbd_regions *regions);
/* Writes the trap.  False: there are too many, or it cannot be written. */
bool tbd_code_traps_set(uint64_t address);
/* Writes a jump to `target`, which must be within its reach; no other trap is in these bytes. */
bool tbd_code_traps_set_jump(uint64_t address, uint64_t target);
/* Puts the program's bytes back. */
void tbd_code_traps_remove(uint64_t address);
/* Is int3 there? */
bool tbd_code_traps_has_sigsafe(uint64_t address);
/* Is a byte of [start, end) replaced? */
bool tbd_code_traps_any(uint64_t start, uint64_t end);
/* Puts the program's bytes back into a copy of what is at `address`. */
void tbd_code_traps_hide(uint8_t *copy, uint64_t address, size_t bytes);
/* The range is no longer mapped, or is replaced. */
void tbd_code_traps_forget(uint64_t start, uint64_t end);
/* All bytes are the program's for a while; then they are replaced again. */
void tbd_code_traps_lift(bool lifts);
/* The program is let go: its bytes are put back. */
void tbd_code_traps_remove_all(void);

#endif
