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

/* May the debug information be unpacked in memory?  Sections say how large they become: gigabytes
 * from a small file are not meant to be read.  False also sets file->refused_bytes. */
bool tbd_elf_can_unpack(struct tbd_elf_file *file, const struct tbd_elf_one *one);
/* The same for any file; *out_bytes: what it would take. */
bool tbd_elf_one_can_unpack(const struct tbd_elf_one *one, uint64_t *out_bytes);

#endif
