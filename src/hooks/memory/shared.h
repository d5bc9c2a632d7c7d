// SPDX-License-Identifier: MIT
/* shared.h - memory that other processes may write (TBD_REGION_SHARED)
 *
 * Others write to such memory without notice, so the log does not know its real contents.  The
 * engine keeps a copy of every such page that the program has used, the *view*: the contents that
 * the log knows (those of a new view are sent when it is taken).  Before an instruction reads such
 * memory, every difference from the view is logged as a store of others and copied to the view.
 *
 * Translated code must not access it.  The touch map's cells for such pages are read-only: the mark
 * that translated code makes before an access faults, and from then on the engine executes that
 * instruction (patcher/forced_specials.h, shared_insn.c).  The engine marks a second map instead,
 * which the window code reads in place of the first (tbd_shared_cell).  A page of cells covers 8
 * MiB of addresses, so new shared mappings are placed far from other mappings: accesses to these
 * stay fast.
 *
 * In a replay process there is no such memory; all of this does nothing.  Context: APP,
 * BOOT, FORK_CHILD. */
#ifndef TBD_HOOKS_SHARED_H
#define TBD_HOOKS_SHARED_H

#include "hooks/memory/effects.h"
#include "patcher/thread.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is any byte of [start, end) such memory? */
bool tbd_shared_holds(uint64_t start, uint64_t end);

/* Called after regions in [start, end) were added, removed, or changed their flags. */
void tbd_shared_update(uint64_t start, uint64_t end);
/* The contents of [start, end) are gone: the next use takes a new view. */
void tbd_shared_forget(uint64_t start, uint64_t end);
/* The address for a new shared mapping of this size; 0 = anywhere. */
uint64_t tbd_shared_place(uint64_t bytes);
/* Called before a fork that shares this process' anonymous memory with the child. */
void tbd_shared_fork(void);
/* Called before the memory at `address` is mapped a second time. */
void tbd_shared_double(uint64_t address);
/* Called before the file of `map`, a private mapping in the table of regions, is changed. */
void tbd_shared_private(struct tbd_msg_region *map);
/* How often that was. */
extern uint64_t tbd_shared_private_changes;
/* Called in a forked child: forgets everything. */
void tbd_shared_reset(void);
/* Handles all present shared mappings; called after the mappings were read, at boot or in a
 * child. */
void tbd_shared_take_over(void);

/* Reads shared memory as the log knows it, and other memory as it is.  Returns the number of bytes
 * read, from the start. */
size_t tbd_shared_read(void *out, uint64_t address, size_t bytes);
/* Likewise, for a page that is being sent. */
bool tbd_shared_read_page(void *out, uint64_t page);
/* Updates the views: the log now contains a write of these bytes. */
void tbd_shared_logged(uint64_t address, const void *now, size_t bytes);
/* The memory contains `now`: adds each difference from the view to `effects` as a write, and the
 * number of these writes to `*others`. */
void tbd_shared_add_others(struct tbd_effects *effects, uint64_t address, const void *now,
                           size_t bytes, uint32_t *others);
/* Reads the real memory once, then does the same.  False if it is not mapped. */
bool tbd_shared_load(struct tbd_effects *effects, void *out, uint64_t address, size_t bytes,
                     uint32_t *others);

/* The page's view, which is the log's; NULL: it is no such memory, or was not used yet.  Borrowed until a view is dropped, or mappings
 * change. */
uint8_t *tbd_shared_view_of(uint64_t page);
/* How many views were dropped. */
extern uint64_t tbd_shared_views_dropped;

/* The number of pages of the touch map that are read-only. */
extern uint32_t tbd_shared_guards;
/* The cell of the second map that replaces `cell`, the page's cell in the touch map
 * (base/layout.h); `cell` itself if it is not guarded. */
uint16_t *tbd_shared_cell(uint16_t *cell, uint64_t page);

/* Is this a cell that translated code may not write?  Context SIG, too. */
bool tbd_shared_owns_sigsafe(uint64_t address);

#endif
