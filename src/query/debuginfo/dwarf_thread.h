// SPDX-License-Identifier: MIT
/* dwarf_thread.h - where a thread has a module's thread-local variables
 *
 * The thread's vector, which its fs base leads to, lists a block for each module (ELF Handling For
 * Thread-Local Storage).  Which number a library has is not in its file: the dynamic linker wrote
 * it into the library's own slots, where relocations say. */
#ifndef TBD_QUERY_DWARF_THREAD_H
#define TBD_QUERY_DWARF_THREAD_H

#include "query/debuginfo/dwarf_location.h"

/* The address of the block; NULL, or in a few words why it cannot be had. */
const char *tbd_thread_block(const struct tbd_place_of *place, uint64_t *out);

#endif
