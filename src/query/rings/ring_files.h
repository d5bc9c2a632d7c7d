// SPDX-License-Identifier: MIT
/* ring_files.h - the files of a dump's modules
 *
 * A dump has the code that ran, but for names and lines a file is needed: the one that was mapped, if it still has this code, else the
 * dump's own copy. */
#ifndef TBD_QUERY_RING_FILES_H
#define TBD_QUERY_RING_FILES_H

#include "query/rings/dump_rings.h"

/* NULL: there is none.  Of a file that has been replaced, and that the dump has no copy of, it says so, once. */
struct tbd_elf_file *tbd_rings_file(struct tbd_rings *ring, uint32_t module);

#endif
