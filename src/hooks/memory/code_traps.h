// SPDX-License-Identifier: MIT
/* code_traps.h - instructions of the program's own code that the engine has replaced by a trap (native play)
 *
 * The first byte of the instruction is int3; the trap comes to the engine, which executes the instruction.  The table
 * has the byte that was there.  Contexts: BOOT, APP, FORK_CHILD; _sigsafe SIG.
 *
 * CODE_TRAPS-1  A forked child has a copy of code and table: both say the same. (not checked: fork copies both) */
#ifndef TBD_HOOKS_CODE_TRAPS_H
#define TBD_HOOKS_CODE_TRAPS_H

#include "hooks/memory/regions.h"

/* Once: the mappings whose protection is changed; borrowed for ever. */
void tbd_code_traps_begin(const struct tbd_regions *regions);
/* Writes the traps, of one mapping and by address.  False: there are too many, or they cannot be written. */
bool tbd_code_traps_set_all(const uint64_t *addresses, size_t many);
bool tbd_code_traps_set(uint64_t address);
/* Writes these bytes in place of the program's, all in one mapping.  False: there are too many, or they cannot be written. */
bool tbd_code_traps_patch(uint64_t address, const uint8_t *patch, size_t bytes);
/* Puts the program's bytes back where these were written; context: SIG too. */
void tbd_code_traps_unpatch(uint64_t address, size_t bytes);
/* Puts the program's byte back. */
void tbd_code_traps_remove(uint64_t address);
bool tbd_code_traps_has_sigsafe(uint64_t address);
/* Is there one in [start, end)? */
bool tbd_code_traps_any(uint64_t start, uint64_t end);
/* Puts the program's bytes back into a copy of what is at `address`. */
void tbd_code_traps_hide(uint8_t *copy, uint64_t address, size_t bytes);
/* The range is no longer mapped, or is replaced. */
void tbd_code_traps_forget(uint64_t start, uint64_t end);
/* All bytes are the program's for a while; then they are traps again. */
void tbd_code_traps_lift(bool lifts);
/* The program is let go: its bytes are put back. */
void tbd_code_traps_remove_all(void);

#endif
