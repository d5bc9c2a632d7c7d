// SPDX-License-Identifier: MIT
/* safe_copy.h - access to program memory that may be unmapped
 *
 * The engine's SIGSEGV handler turns a fault into the result `false`; bytes before the fault may
 * have been copied.  Contexts: APP, BOOT (after signals are set up). */
#ifndef TBD_HOOKS_SAFE_COPY_H
#define TBD_HOOKS_SAFE_COPY_H

#include "hooks/table/program_bytes.h"

/* Copies 1, 2, 4 or 8 bytes in one access, more in accesses of at most 8. */
bool tbd_load_from_program(void *dst, uint64_t src, size_t bytes);
bool tbd_store_to_program(uint64_t dst, const void *src, size_t bytes);
bool tbd_copy_to_program(uint64_t dst, const void *src, size_t bytes);

/* Reads the byte, or writes it with its own value.  Returns 0 on success; otherwise there was a
 * fault, or *pending was set while the access waited for the page. */
size_t tbd_touch_faultable(uint64_t address, bool is_write, const uint32_t *pending);

#endif
