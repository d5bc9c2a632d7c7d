// SPDX-License-Identifier: MIT
/* near_memory.h - memory for code that a jump in the program's code can reach
 *
 * A jump's displacement has 32 bits, of which some may be fixed: then it can lead only to
 * every 256th address, say.  Memory comes in areas below the program's modules, is executable, and is never given back: a
 * thread may be in the code there at any time.
 *
 * NEAR_MEMORY-1  An entry's first and last bytes are not zero, and lie in memory that was zero: so entries never
 *     overlap. (not checked: tbd_near_entry() looks at all bytes)
 *
 * Contexts: keeper to get memory; SIG to look up. */
#ifndef TBD_HOOKS_NEAR_MEMORY_H
#define TBD_HOOKS_NEAR_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_NEAR_ENTRY_BYTES 7u

/* An address A for an entry, with ((A - from) & mask) == value; 0: there is none. */
uint64_t tbd_near_entry(uint64_t from, uint32_t mask, uint32_t value);

/* Memory in the area of an entry, at a multiple of 64, or NULL; `owner` is found by any address in it. */
uint8_t *tbd_near_alloc(uint64_t entry, size_t bytes, void *owner);

/* Is the address in an area?  *out: the owner, NULL: an entry is there, or nothing. */
bool tbd_near_find(uint64_t address, void **out);

/* What the process has mapped, in the order of addresses: an area is looked for between.  First forget what was there before. */
void tbd_near_forget_mapped(void);
void tbd_near_note_mapped(uint64_t start, uint64_t end);

#endif
