// SPDX-License-Identifier: MIT
/* program_bytes.h - what the table must be given: the program's memory
 *
 * In the engine by hooks/memory/safe_copy.c, in ordinary processes by sys_host.c.  A bad address is `false`, never a
 * fault; bytes before it may have been copied.  Contexts: APP, BOOT (after signals are set up). */
#ifndef TBD_HOOKS_PROGRAM_BYTES_H
#define TBD_HOOKS_PROGRAM_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool tbd_copy_from_program(void *dst, uint64_t src, size_t bytes);
/* How many of `bytes` bytes could be copied, from the front. */
size_t tbd_copy_prefix_from_program(void *dst, uint64_t src, size_t bytes);

#endif
