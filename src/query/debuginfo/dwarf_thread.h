// SPDX-License-Identifier: MIT
/* dwarf_thread.h - the address of a module's thread-local variables in a thread
 *
 * The thread's vector, which its fs base leads to, lists a block for each module (ELF Handling For
 * Thread-Local Storage).  A library's number is not in its file: the dynamic linker wrote it into
 * the library's own slots, which relocations name. */
#ifndef TBD_QUERY_DWARF_THREAD_H
#define TBD_QUERY_DWARF_THREAD_H

#include "query/debuginfo/dwarf_location.h"

/* The address of the block; returns NULL, or the reason why it is not available. */
const char *tbd_thread_block(const struct tbd_place_of *place, uint64_t *out);

#endif
