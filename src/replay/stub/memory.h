// SPDX-License-Identifier: MIT
/* memory.h - the program's memory inside a replay process
 *
 * Pages come with the plan or are fetched from the driver when touched; a page that is not present
 * is not mapped at all, so that a touch of something play never saw is noticed. */
#ifndef TBD_REPLAY_MEMORY_H
#define TBD_REPLAY_MEMORY_H

#include "replay/plan.h"

#include <stdbool.h>

/* Once, at start-up: takes away everything the kernel mapped outside the engine's range. */
bool tbd_memory_clear_process(void);

/* Forgets the window before, except code pages in `keep`; then maps what the plan says.  NULL, or
 * why it cannot be done (static text). */
const char *tbd_memory_begin(struct tbd_plan_head *plan);

/* The program, or the engine on its behalf, faulted at `address`; `access` is PROT_READ or
 * PROT_WRITE. True: the page was missing and is there now.  APP and SIG contexts. */
bool tbd_memory_fault(uint64_t address, uint32_t access);
/* How many bytes from `address` on, at most `want`, lie in executable regions; they are present
 * then.  *out_changes: some are writable or shared, too, as in play (hooks/boot/play.c). */
uint64_t tbd_memory_executable(uint64_t address, uint64_t want, bool *out_changes);

/* The mapping calls, done again.  `order` = log messages up to and with the call's. */
bool tbd_memory_map(uint64_t start, uint64_t bytes, uint32_t prot, bool zero, uint64_t order);
bool tbd_memory_unmap(uint64_t start, uint64_t bytes);
bool tbd_memory_protect(uint64_t start, uint64_t bytes, uint32_t prot);
bool tbd_memory_move(uint64_t from, uint64_t old_bytes, uint64_t to, uint64_t new_bytes,
                     uint64_t order);
/* Contents go away, the mapping stays (MADV_DONTNEED). */
bool tbd_memory_discard(uint64_t start, uint64_t bytes, uint64_t order);

/* Copies that work whatever the region's protection is.  False when a page cannot be had. */
bool tbd_memory_read(uint64_t address, void *out, uint64_t bytes);
bool tbd_memory_write(uint64_t address, const void *from, uint64_t bytes);

#endif
