// SPDX-License-Identifier: MIT
/* program_bytes.h - how the table reads the program's memory
 *
 * Implemented in the engine by hooks/memory/safe_copy.c, in ordinary processes by sys_host.c.
 * Returns false for a bad address, without a fault; bytes before it may have been copied.
 * Contexts: APP, BOOT (after signals are set up). */
#ifndef TBD_HOOKS_PROGRAM_BYTES_H
#define TBD_HOOKS_PROGRAM_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool tbd_copy_from_program(void *dst, uint64_t src, size_t bytes);
/* Copies as many of the first `bytes` bytes as can be read, and returns their number. */
size_t tbd_copy_prefix_from_program(void *dst, uint64_t src, size_t bytes);

#endif
