// SPDX-License-Identifier: MIT
/* safe_copy.h - access to program memory that may not be there
 *
 * A fault on the way is turned into `false` by the engine's SIGSEGV handler; bytes before it may
 * have been copied.  Contexts: APP, BOOT (after signals are set up). */
#ifndef TBD_HOOKS_SAFE_COPY_H
#define TBD_HOOKS_SAFE_COPY_H

#include "hooks/table/program_bytes.h"

/* 1, 2, 4 or 8 bytes in one access, longer ones in accesses of at most 8. */
bool tbd_load_from_program(void *dst, uint64_t src, size_t bytes);
bool tbd_store_to_program(uint64_t dst, const void *src, size_t bytes);
bool tbd_copy_to_program(uint64_t dst, const void *src, size_t bytes);

/* 0 when the byte was accessed, a write with what it holds; else a fault came, or *pending was set while it waited
 * for the page. */
size_t tbd_touch_faultable(uint64_t address, bool is_write, const uint32_t *pending);

#endif
