// SPDX-License-Identifier: MIT
/* own_known.h - what was found in the code of a file is kept for the next process that maps it
 *
 * To look for instructions that must stop takes most of a start (own_sites.c).  What was found in a mapping of a file is kept beside the
 * traces, and used for the same mapping of the same file.
 *
 * Contexts: BOOT, APP. */
#ifndef TBD_HOOKS_OWN_KNOWN_H
#define TBD_HOOKS_OWN_KNOWN_H

#include "hooks/memory/regions.h"

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

#define TBD_KNOWN_SITES 512u

/* Names a mapping, and who has searched it: the times of a file change with its contents. */
struct tbd_known_key {
    uint64_t engine; /* a hash of its build's id: another one may decide otherwise */
    uint64_t device, inode, size;
    uint64_t modified[2], changed[2]; /* seconds, nanoseconds */
    uint64_t offset, bytes;           /* the mapping */
};

/* `root`: the folder in which traces are made; "": as the environment says (tbd_trace_root()).  Without one nothing is kept. */
void tbd_own_known_begin(const char *root, char *const *environment);

/* False: nothing may be known of it, or kept.  So it is with what is small, with files that have just changed, and with mappings that have
 * pages that are not the file's. */
bool tbd_own_known_describe(struct tbd_known_key *out, const struct tbd_mapped_region *region);
/* Their addresses, ascending, one of them perhaps twice; TBD_KNOWN_SITES + 1: they are not known.  Whoever calls looks whether each is such an instruction. */
size_t tbd_own_known_get(const struct tbd_known_key *key, const struct tbd_mapped_region *region,
                         uint64_t *sites);
/* Keeps them, if the file is still what it was. */
void tbd_own_known_put(const struct tbd_known_key *key, const struct tbd_mapped_region *region,
                       const uint64_t *sites, size_t count);

#pragma GCC visibility pop

#endif
