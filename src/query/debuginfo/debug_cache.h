// SPDX-License-Identifier: MIT
/* debug_cache.h - separate debug files with their sections unpacked, kept for the next question
 *
 * Unpacking libc's debug information takes longer than most answers.  The copies are in
 * $XDG_CACHE_HOME/tbd/debug (~/.cache/tbd/debug), named by build id and by identity, size and time
 * of the file they were made from, so that no file is ever used for another.  Any number of
 * processes may read and write it; without a cache everything works, slower. */
#ifndef TBD_QUERY_DEBUG_CACHE_H
#define TBD_QUERY_DEBUG_CACHE_H

#include "query/debuginfo/elf_file.h"

/* An unpacked copy of the debug file that `fd` and `elf` have open, made if there is none yet.
 * False if there is nothing to unpack, or no cache; then the file itself is good enough. */
bool tbd_debug_cache_open(const struct tbd_elf_one *debug, const char *build_id,
                          struct tbd_elf_one *out);

#endif
