// SPDX-License-Identifier: MIT
/* memory.h - the program's memory inside a replay process
 *
 * Pages come with the plan, or from the driver when they are touched.  Absent pages are not mapped,
 * so an access to a page that play did not touch is noticed. */
#ifndef TBD_REPLAY_MEMORY_H
#define TBD_REPLAY_MEMORY_H

#include "replay/plan.h"

#include <stdbool.h>

/* Called once, at start-up: unmaps everything outside the engine's range. */
bool tbd_memory_clear_process(void);

/* Removes the previous window's memory, except code pages in `keep`, and maps the plan's.  NULL, or
 * why it cannot be done (static text). */
const char *tbd_memory_begin(struct tbd_plan_head *plan);
/* Why the system refused memory in this window, which is no divergence; NULL: it did not. */
const char *tbd_memory_refused(void);

/* The program, or the engine on its behalf, faulted at `address`; `access` is PROT_READ or
 * PROT_WRITE.  True: the page was missing and is present now.  APP and SIG contexts. */
bool tbd_memory_fault(uint64_t address, uint32_t access);
/* A block was left in its middle: pages may have marks, as in play, without having been used. */
void tbd_memory_scan_all(void);
/* The number of bytes from `address` on, at most `want`, that lie in executable regions; makes
 * their pages present.  *out_changes: some are writable or shared, too, as in play
 * (hooks/boot/play.c). */
uint64_t tbd_memory_executable(uint64_t address, uint64_t want, bool *out_changes);

/* The mapping calls.  `order` = number of log messages up to the call's, including it. */
bool tbd_memory_map(uint64_t start, uint64_t bytes, uint32_t prot, bool zero, uint64_t order);
bool tbd_memory_unmap(uint64_t start, uint64_t bytes);
bool tbd_memory_protect(uint64_t start, uint64_t bytes, uint32_t prot);
bool tbd_memory_move(uint64_t from, uint64_t old_bytes, uint64_t to, uint64_t new_bytes,
                     uint64_t order);
/* Drops the contents; the mapping stays (MADV_DONTNEED). */
bool tbd_memory_discard(uint64_t start, uint64_t bytes, uint64_t order);

/* Copies that ignore the region's protection.  False if a page cannot be obtained. */
bool tbd_memory_read(uint64_t address, void *out, uint64_t bytes);
bool tbd_memory_write(uint64_t address, const void *from, uint64_t bytes);

#endif
