// SPDX-License-Identifier: MIT
/* native_patch.h - changes the program's own code while its threads run it
 *
 * A trap is one byte, int3, at an instruction's first byte: a store of one byte is seen as a whole by every
 * processor, before or after, and the bytes that follow stay what they were.  So no thread has to be
 * stopped, and none that is in the middle of the code can meet half an instruction (Intel SDM volume 3,
 * 9.1.3, asks for a serialising instruction before *other* bytes change: tbd_native_sync()).
 *
 * The writer goes through /proc/self/mem, which also writes to pages that are mapped without write
 * permission, and copies a page of a private mapping first.  Contexts: any that may wait. */
#ifndef TBD_PATCHER_NATIVE_PATCH_H
#define TBD_PATCHER_NATIVE_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_NATIVE_TRAP 0xccu

/* A descriptor of this process' memory, or -errno. */
long tbd_native_open(void);

/* Reads bytes that may not be mapped; how many could be read. */
size_t tbd_native_read(int memory, uint64_t address, void *out, size_t bytes);

/* Writes one byte of code; false if the kernel refuses. */
bool tbd_native_write(int memory, uint64_t address, uint8_t byte);

/* Writes bytes of which no processor decodes one meanwhile: the first bytes of the instructions are traps. */
bool tbd_native_write_bytes(int memory, uint64_t address, const uint8_t *bytes, size_t count);

/* Every processor that runs this process' threads executes a serialising instruction (membarrier(2), SYNC_CORE)
 * before this returns.  False: the kernel cannot. */
bool tbd_native_sync_prepare(void);
bool tbd_native_sync(void);

#endif
