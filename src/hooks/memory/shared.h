// SPDX-License-Identifier: MIT
/* shared.h - memory that other processes may write (TBD_REGION_SHARED)
 *
 * For the trace and for a replay such memory does not hold its real contents: others write to it
 * without telling.  So the engine keeps a copy of every page of it that the program has used, the
 * *view*: the contents as the log has them (a view's first contents are sent when it is taken).
 * Before an instruction reads such memory, every difference from the view is logged as stores of
 * others and copied to the view.
 *
 * So translated code must not touch it.  The touch map's cells of such pages are read-only: the
 * mark that translated code makes before an access faults, and the engine executes that instruction
 * from then on (patcher/forced_specials.h, shared_insn.c).  The engine's own marks go to a second
 * map, which the window code reads instead of the first (tbd_shared_cell).  A page of cells covers
 * 8 MiB of addresses: new shared mappings are placed away from others, so that accesses to those
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

/* Regions in [start, end) came, went, or changed their flags. */
void tbd_shared_update(uint64_t start, uint64_t end);
/* Contents of [start, end) end: the view is taken anew at the next use. */
void tbd_shared_forget(uint64_t start, uint64_t end);
/* The address for a new shared mapping of this size; 0 = anywhere. */
uint64_t tbd_shared_place(uint64_t bytes);
/* Another process is about to share the anonymous memory that only this one had. */
void tbd_shared_fork(void);
/* The memory at `address` is about to be mapped a second time. */
void tbd_shared_double(uint64_t address);
/* In the child: forgets everything. */
void tbd_shared_reset(void);
/* Takes over all shared mappings that are there now: called after boot's or a child's have been
 * read. */
void tbd_shared_take_over(void);

/* Reads shared memory as the log has it, and ordinary memory as it is; returns the number of bytes
 * read, from the start. */
size_t tbd_shared_read(void *out, uint64_t address, size_t bytes);
/* The same for a page that is just being sent. */
bool tbd_shared_read_page(void *out, uint64_t page);
/* The log says that these bytes were written. */
void tbd_shared_logged(uint64_t address, const void *now, size_t bytes);
/* Memory was found to hold `now`: what differs from the view is added to `effects`, `*others` grows
 * by the number of writes. */
void tbd_shared_add_others(struct tbd_effects *effects, uint64_t address, const void *now,
                           size_t bytes, uint32_t *others);
/* Reads real memory, once, and does that.  False if it is not there. */
bool tbd_shared_load(struct tbd_effects *effects, void *out, uint64_t address, size_t bytes,
                     uint32_t *others);

/* How many pages of the touch map are read-only. */
extern uint32_t tbd_shared_guards;
/* Touch-map cell of a page (base/layout.h) in place of the one at `cell`, if there are any. */
uint16_t *tbd_shared_cell(uint16_t *cell, uint64_t page);

/* SIG: is this a cell that translated code may not write? */
bool tbd_shared_owns_sigsafe(uint64_t address);

#endif
